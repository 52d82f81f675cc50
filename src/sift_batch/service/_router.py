"""Which route is this path's? A table over the bytes of the path as they came; nothing is decoded.

A path that two readers could read in two ways (escapes, empty parts, dots) is simply not in the table. A
part that stands for an id may hold anything: what is no id is looked up like any other, and not found.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from . import _event_routes, _job_routes, _now_routes, _reading_routes, _result_routes
from ._problems import Problem
from ._request import Route

_ANY: Final = "*"

_JOB: Final = ("v1", "batch", _ANY)
ROUTES: Final[Mapping[tuple[str, ...], Mapping[str, Route]]] = {
    ("v1", "batch"): {"GET": _job_routes.list_jobs, "POST": _job_routes.submit},
    _JOB: {"GET": _reading_routes.job, "DELETE": _job_routes.delete},
    (*_JOB, "targets"): {"GET": _reading_routes.targets},
    (*_JOB, "targets", _ANY): {"GET": _result_routes.target},
    (*_JOB, "results"): {"GET": _result_routes.results},
    (*_JOB, "events"): {"GET": _event_routes.events},
    (*_JOB, "cancel"): {"POST": _job_routes.cancel},
    (*_JOB, "rerun"): {"POST": _job_routes.rerun},
    ("v1", "fetch"): {"POST": _now_routes.fetch},
    ("v1", "limits"): {"GET": _now_routes.limits},
}


class Found(NamedTuple):
    """A route, and what stands in the variable parts of its path."""

    route: Route
    args: tuple[str, ...]


def find_route(raw_path: bytes, method: str) -> Found:
    """Return the route of a request. Raises `Problem`: `unknown_path`, `method_not_allowed`."""
    parts = _parts(raw_path)
    pattern = _match(parts)
    if pattern is None:
        raise Problem("unknown_path")
    methods = ROUTES[pattern]
    route = methods.get("GET" if method == "HEAD" else method)
    if route is None:
        raise not_allowed(methods)
    return Found(route, tuple(part for part, name in zip(parts, pattern, strict=True) if name == _ANY))


def pattern_of(raw_path: bytes) -> tuple[str, ...] | None:
    """Return the key in `ROUTES` of a path, whatever the method; None if there is none."""
    return _match(_parts(raw_path))


def _parts(raw_path: bytes) -> list[str]:
    """Return the parts of a path behind its first slash; none for what is no such path."""
    first, *parts = raw_path.decode("latin-1").split("/")
    return [] if first or not all(parts) else parts


def _match(parts: list[str]) -> tuple[str, ...] | None:
    for pattern in ROUTES:
        if len(pattern) == len(parts) and all(map(_fits, pattern, parts)):
            return pattern
    return None


def not_allowed(methods: Mapping[str, object]) -> Problem:
    """The problem of a method that a path does not have."""
    names = sorted({*methods, *(("HEAD",) if "GET" in methods else ())})
    return Problem("method_not_allowed", headers=[(b"allow", ", ".join(names).encode())])


def _fits(name: str, part: str) -> bool:
    return name in (part, _ANY)
