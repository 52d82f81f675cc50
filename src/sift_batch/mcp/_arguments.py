"""Are these the arguments that a tool takes? Read strictly: a wrong one is named by its place.

What stands inside `targets` and `options` is the service's to check. No value is ever repeated. Next:
`_calls`, which uses what was read.
"""

from collections.abc import Mapping, Sized
from typing import Any, Final

View = dict[str, Any]

_KINDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}
_LONGEST_NAME: Final = 50


class BadArguments(Exception):
    """A tool does not take these arguments. `errors` has all that is wrong, as the service lists it."""

    def __init__(self, errors: list[View]) -> None:
        super().__init__("bad arguments")
        self.errors = errors


def read_arguments(schema: Mapping[str, Any], given: Mapping[str, Any]) -> View:
    """Return the arguments that a tool's schema allows; null is as good as absent.

    A number above its `maximum` counts as the maximum. Raises `BadArguments`.
    """
    properties: Mapping[str, Mapping[str, Any]] = schema["properties"]
    errors: list[View] = []
    known = f"the arguments are {', '.join(properties)}" if properties else "this tool takes no arguments"
    for name in given:
        if name not in properties:
            shown = name if len(name) <= _LONGEST_NAME and name.isascii() and name.isidentifier() else "?"
            errors.append({"pointer": f"/{shown}", "code": "unknown_field", "detail": known})
    read: View = {}
    for name, rule in properties.items():
        value = given.get(name)
        if value is None:
            if name in schema.get("required", ()):
                errors.append(_error(name, "missing", _kind(rule)))
            continue
        bad = _fault(rule, value)
        if bad is None:
            read[name] = _clamped(rule, value)
        else:
            errors.append(_error(name, *bad))
    if errors:
        raise BadArguments(errors)
    return read


def _error(name: str, code: str, allowed: str) -> View:
    return {"pointer": f"/{name}", "code": code, "detail": f"must be {allowed}"}


def _kind(rule: Mapping[str, Any]) -> str:
    return _KINDS[rule["type"]][1]


def _fault(rule: Mapping[str, Any], value: Any) -> tuple[str, str] | None:
    types, name = _KINDS[rule["type"]]
    if rule["type"] == "integer" and type(value) is float and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, types):
        return "type", name
    if "enum" in rule and value not in rule["enum"]:
        return "choice", f"one of {', '.join(rule['enum'])}"
    if "minimum" in rule and not value >= rule["minimum"]:
        return "range", f"{rule['minimum']:,} or more"
    if "maxLength" in rule and isinstance(value, Sized) and not 0 < len(value) <= rule["maxLength"]:
        return "length", f"from 1 to {rule['maxLength']:,} characters"
    return None


def _clamped(rule: Mapping[str, Any], value: Any) -> Any:
    if rule["type"] == "integer":
        value = int(value)
    return min(value, rule["maximum"]) if "maximum" in rule else value
