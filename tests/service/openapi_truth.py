"""Is what the service answers what its description promises? Each reply against the document.

`check_reply` is called for every reply that a test of the API reads: a status, a header, a media type or a
member that is not described fails the test that met it.
"""

import json
from functools import cache
from typing import Any

import jsonschema

from sift_batch.service._openapi import document
from sift_batch.service._router import ROUTES

_PLAIN = frozenset({"content-type", "content-length", "connection", "date", "transfer-encoding"})
_NO_ROUTE = frozenset({"unknown_path", "method_not_allowed", "unauthorized", "auth_failures"})


def check_reply(method: str, path: str, status: int, headers: dict[str, str], body: bytes) -> None:
    """Fail unless the document has this reply for this request."""
    operation = _operation(method, path.partition("?")[0])
    if operation is None:
        check_form("Problem", body)
        code = json.loads(body)["code"] if body else ""
        assert not body or code in _NO_ROUTE or status in _statuses_anywhere(), (method, path, status, code)
        return
    assert str(status) in operation["responses"], f"{method} {path} is not said to answer {status}"
    response = resolved(operation["responses"][str(status)])
    _check_headers(response.get("headers", {}), headers)
    content = response.get("content", {})
    if not content or method == "HEAD":
        assert not body
        return
    media = headers["content-type"].partition(";")[0]
    assert media in content, f"{method} {path} is not said to give {media}"
    _check_content(media, content[media].get("schema", {}), body)


def check_form(name: str, body: bytes) -> None:
    """Fail unless a body is of a named form."""
    if body:
        validator({"$ref": f"#/components/schemas/{name}"}).validate(json.loads(body))


def check_event(event: dict[str, Any]) -> None:
    """Fail unless this is an event as the document has it; its data is parsed already."""
    told = {**event, "data": json.dumps(event["data"])}
    validator({"$ref": "#/components/schemas/Event"}).validate(told)
    holds = document()["components"]["schemas"]["Event"]["properties"]["data"]["contentSchema"]
    validator(holds).validate(event["data"])


def validator(schema: dict[str, Any]) -> Any:
    """Return a validator of a schema of the document."""
    return _validator(json.dumps(schema))


@cache
def _validator(text: str) -> Any:
    schema = {**json.loads(text), "components": document()["components"]}
    return jsonschema.Draft202012Validator(schema)


def resolved(item: Any) -> Any:
    """Return what a reference names."""
    if "$ref" not in item:
        return item
    found: Any = document()
    for part in item["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def _operation(method: str, path: str) -> Any:
    """Return the description of what serves a request, None if nothing does."""
    paths = document()["paths"]
    name = ("get" if method == "HEAD" else method).lower()
    if path in paths:
        return paths[path].get(name)
    parts = path.split("/")[1:]
    for pattern in ROUTES:
        fits = [part in ("*", given) and given for part, given in zip(pattern, parts, strict=False)]
        if len(pattern) == len(parts) and all(fits):
            names = iter(("id", "idx"))
            key = "".join(f"/{{{next(names)}}}" if part == "*" else f"/{part}" for part in pattern)
            return paths[key].get(name)
    return None


@cache
def _statuses_anywhere() -> frozenset[int]:
    """Return the statuses that each operation may have."""
    operations = [operation for path in document()["paths"].values() for operation in path.values()]
    found = set.intersection(*(set(operation["responses"]) for operation in operations))
    return frozenset(map(int, found))


def _check_headers(described: dict[str, Any], headers: dict[str, str]) -> None:
    by_name = {name.lower(): resolved(item) for name, item in described.items()}
    unknown = headers.keys() - by_name.keys() - _PLAIN
    assert not unknown, f"these headers are not described: {unknown}"
    missing = {name for name, item in by_name.items() if item.get("required")} - headers.keys()
    assert not missing, f"these headers are missing: {missing}"
    for name in headers.keys() & by_name.keys():
        schema = by_name[name]["schema"]
        value = int(headers[name]) if schema.get("type") == "integer" else headers[name]
        validator(schema).validate(value)


def _check_content(media: str, schema: dict[str, Any], body: bytes) -> None:
    if media in ("application/json", "application/problem+json"):
        validator(schema).validate(json.loads(body))
    elif media in ("application/jsonl", "application/x-ndjson"):
        for line in body.splitlines():
            validator(schema).validate(json.loads(line))
    elif media == "text/event-stream":
        for block in body.decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            if "data" in fields:
                check_event({**fields, "data": json.loads(fields["data"])})
