"""The description of the API: whole, valid, and the same as what the code has."""

import json
from dataclasses import fields

import pytest
from api_rig import serving
from openapi_spec_validator import OpenAPIV31SpecValidator
from openapi_truth import check_form, resolved, validator

from sift_batch import Options
from sift_batch.fetch._meta import ORDER
from sift_batch.fetch._options import MODES
from sift_batch.service import _openapi, _openapi_routes
from sift_batch.service._codes import KINDS
from sift_batch.service._openapi import document, openapi_bytes, path_of
from sift_batch.service._openapi_examples import example_problem
from sift_batch.service._router import ROUTES

DOCUMENT = json.loads(openapi_bytes())
OPERATIONS = {
    (method.upper(), path): operation
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}
KEYED = {key: operation for key, operation in OPERATIONS.items() if key[1].startswith("/v1/")}


def test_it_is_openapi_3_1() -> None:
    """The validator of the format finds nothing wrong, examples included."""
    assert DOCUMENT["openapi"].startswith("3.1.")
    OpenAPIV31SpecValidator(DOCUMENT).validate()


def test_it_is_the_same_each_time() -> None:
    """It is made once: the bytes are the same object, and hold what `document` gives."""
    assert openapi_bytes() is openapi_bytes()
    assert json.loads(openapi_bytes()) == document()


def test_every_route_is_described_and_nothing_else() -> None:
    """The operations under /v1 are those of the router's table, each with a name of its own."""
    routes = {(method, path_of(parts)) for parts, methods in ROUTES.items() for method in methods}
    assert KEYED.keys() == routes
    names = [operation["operationId"] for operation in OPERATIONS.values()]
    assert len(names) == len(set(names))


def test_a_route_without_a_description_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who adds a route and says nothing about it gets no document at all."""
    routes = {**ROUTES, ("v1", "batch"): {**ROUTES["v1", "batch"], "PUT": ROUTES["v1", "limits"]["GET"]}}
    monkeypatch.setattr(_openapi, "ROUTES", routes)
    with pytest.raises(ValueError, match="PUT"):
        _openapi.document.__wrapped__()
    monkeypatch.setattr(_openapi, "ROUTES", {**ROUTES, ("v1", "new"): ROUTES["v1", "limits"]})
    with pytest.raises(KeyError):
        _openapi.document.__wrapped__()


def test_only_what_is_open_needs_no_key() -> None:
    """Each path under /v1 takes the bearer key and may answer 401; the open ones take none and may not."""
    assert DOCUMENT["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert DOCUMENT["security"] == [{"key": []}]
    for key, operation in OPERATIONS.items():
        assert (operation.get("security") == []) == (key not in KEYED)
        assert ("401" in operation["responses"]) == (key in KEYED)
    assert {path for _, path in OPERATIONS.keys() - KEYED.keys()} == set(_openapi_routes.OPEN)


def test_every_code_is_in_it_with_its_status() -> None:
    """Each code of the registry stands at its own status somewhere, and no other code does."""
    found: set[tuple[str, int]] = set()
    for response in DOCUMENT["components"]["responses"].values():
        (content,) = response["content"].values()
        said = content["schema"]["allOf"][1]["properties"]
        assert set(content["examples"]) == set(said["code"]["enum"])
        found |= {(code, said["status"]["const"]) for code in said["code"]["enum"]}
    assert found == {(code, kind.status) for code, kind in KINDS.items()}


@pytest.mark.parametrize("code", KINDS)
def test_an_example_of_a_problem_is_one(code: str) -> None:
    """The example of each code has the form of a problem."""
    check_form("Problem", json.dumps(example_problem(code)).encode())


def test_examples_have_the_form_that_they_are_examples_of() -> None:
    """Each example of a body and of an answer is valid by the schema beside it; lines one by one."""
    count = 0
    for operation in OPERATIONS.values():
        contents = [operation.get("requestBody", {}).get("content", {})]
        contents += [resolved(found).get("content", {}) for found in operation["responses"].values()]
        for media, item in ((media, item) for content in contents for media, item in content.items()):
            examples = [found["value"] for found in item.get("examples", {}).values()]
            if media in ("application/jsonl", "application/x-ndjson"):
                examples += [json.loads(line) for line in item["example"].splitlines()]
            elif "example" in item and media != "text/event-stream":
                examples.append(item["example"])
            for example in examples:
                validator(item["schema"]).validate(example)
            count += len(examples)
    assert count > 100


def test_options_are_those_of_the_engine() -> None:
    """The form of options has each option, and each mode; the facts of a page are those that it may have."""
    forms = DOCUMENT["components"]["schemas"]
    assert list(forms["AnyOptions"]["properties"]) == [field.name for field in fields(Options)]
    assert forms["AnyOptions"]["properties"]["mode"]["enum"] == list(MODES)
    assert list(forms["Meta"]["properties"]) == list(ORDER)


def test_forms_are_closed() -> None:
    """No form but the facts of a page may have members that are not named."""
    for name, form in DOCUMENT["components"]["schemas"].items():
        if "properties" in form:
            assert form["additionalProperties"] is (name == "Meta"), name
            assert form.get("required") or name in ("AnyOptions", "Meta", "Nothing"), name


@pytest.mark.real
async def test_parameters_are_those_that_the_routes_take() -> None:
    """A parameter that nobody knows is refused with the names of those that are known: the described ones."""
    async with serving() as api:
        job_id = await api.settled("https://a.example/")
        for (method, path), operation in KEYED.items():
            if path.endswith(("/cancel", "/rerun")) or method == "DELETE" or path == "/v1/fetch":
                assert not [item for item in operation.get("parameters", []) if item["in"] == "query"]
            body = {"targets": ["https://a.example/"]} if method == "POST" else None
            asked = path.replace("{id}", job_id).replace("{idx}", "0")
            problem = (await api.ann.send(method, f"{asked}?nobody=1", body)).problem(422, "bad_request")
            known = sorted(item["name"] for item in operation.get("parameters", []) if item["in"] == "query")
            (error,) = problem["errors"]
            assert error["detail"] == f"the parameters are: {', '.join(known) or 'none'}", path


@pytest.mark.real
async def test_it_is_served_as_it_is() -> None:
    """What a client gets is the document, byte by byte."""
    async with serving() as api:
        assert (await api.nobody.get("/openapi.json")).body == openapi_bytes()
