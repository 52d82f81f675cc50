"""What no schema can say, for schemathesis: formats of texts, and what goes together.

Given to the command with SCHEMATHESIS_HOOKS. The filter leaves cases out that are in order by the schema and
refused by the service, each for a rule that the description says in words.
"""

import json
from typing import Any

import jsonschema_rs
import schemathesis
from hypothesis import strategies as st

from sift_batch import Options, Target, TargetError
from sift_batch.fetch import FetchError, check_target
from sift_batch.fetch._options import _check_together

_HOSTS = st.sampled_from(["example.org", "www.example.com", "wiki.example.net:8080", "xn--bcher-kva.de"])
_PATHS = st.from_regex(r"(/[a-z0-9~._-]{0,8}){0,3}(\?[a-z]{1,3}=[a-z0-9]{0,2})?", fullmatch=True)
_URLS = st.builds("{}://{}{}".format, st.sampled_from(["http", "https", "HTTPS"]), _HOSTS, _PATHS)
_PAGES = st.lists(st.sampled_from(["1", "-1", "2-5", "7-", "30"]), min_size=1, max_size=4).map(",".join)
_PROGRAMS = ["", ".", ".a", ".[0]", "map(.x)", "length", 'keys | join(",")']

schemathesis.openapi.format("http-url", _URLS)
schemathesis.openapi.format("jq", st.sampled_from(_PROGRAMS))
schemathesis.openapi.format("re2", st.sampled_from(["", "a", "^x+$", "(?i)news", r"\d{4}", "[ä-ü]"]))
schemathesis.openapi.format("question", st.sampled_from(["", "why?", "wo ist was", "何時"]))
schemathesis.openapi.format("pages", _PAGES | st.just(""))

_NO_HOST = frozenset({"host_syntax", "idna", "numeric_host", "percent_in_host", "port", "malformed"})
_LINES = "application/jsonl"
# Cursors that the service has given, and for what: they are taken for the same list and caller only.
_given: dict[str, tuple[str, str | None, str | None]] = {}


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Return whether a case that is in order by the schema is so by the words too."""
    if case.meta is None or case.meta.generation.mode.is_negative:
        return True
    query = case.query or {}
    if "until" in query and "wait" not in query:
        return False
    if "follow" in query and not {"limit", "cursor", "max_chars"}.isdisjoint(query):
        return False
    if "cursor" in query and _given.get(str(query["cursor"])) != _asked(case):
        return False
    if not all(map(_names_a_host, _urls(case.body))):
        return False
    return case.operation.path != "/v1/batch" or case.method != "POST" or _go_together(case.body)


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Ask for lines where they are followed."""
    if (case.query or {}).get("follow") == "1":
        case.headers["Accept"] = _LINES


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    """Remember the cursors."""
    if response.status_code == 200 and response.headers.get("content-type") == ["application/json"]:
        page = response.json()
        if isinstance(page, dict) and page.get("next_cursor"):
            _given[page["next_cursor"]] = _asked(case)


@schemathesis.check
def line_conformance(ctx: Any, response: Any, case: Any) -> None:
    """Each line is a target as the description has it."""
    if response.status_code == 200 and response.headers.get("content-type") == [_LINES]:
        components = case.operation.schema.raw_schema["components"]
        schema = {"$ref": "#/components/schemas/Target", "components": components}
        for line in response.content.splitlines():
            jsonschema_rs.validate(schema, json.loads(line))


def _urls(body: Any) -> list[str]:
    """Return the URLs of a body that is in order."""
    if not isinstance(body, dict):
        return []
    items = body.get("targets", [body])
    return [item if isinstance(item, str) else item["url"] for item in items]


def _names_a_host(url: str) -> bool:
    # A pattern can say where the host of a URL stands, but not which hosts there can be.
    try:
        check_target(Target(url))
    except FetchError as error:
        return error.reason not in _NO_HOST
    return True


def _asked(case: Any) -> tuple[str, str | None, str | None]:
    return case.formatted_path, (case.query or {}).get("status"), case.auth_identity


def _go_together(body: Any) -> bool:
    shared = body.get("options") or {}
    for item in body["targets"]:
        own = (item.get("options") or {}) if isinstance(item, dict) else {}
        try:
            _check_together(Options(**{**shared, **own}))
        except TargetError:
            return False
    return True
