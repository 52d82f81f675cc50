"""What does an agent do next? Steps and problems of the HTTP API, told in tools instead of paths.

Plain functions over views. The words for a problem are those of the service's registry of codes. Next:
`_fit`, which sees to it that what is told is not too long.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from .._client import ServiceProblem, Unreachable
from ..service._codes import KINDS
from ._arguments import BadArguments, View

UNREACHABLE: Final = "unreachable"
"""The one code that is not the service's: nothing sensible answers at its address."""

JOBS: Final = "/v1/batch"
_HTTP_ONLY: Final = frozenset({"type", "title", "status"})
_JOB: Final = re.compile(r"/v1/batch/([^/?]+)(?:/([a-z]+))?(?:/([0-9]+))?(?:\?(.*))?")
_NUMBERS: Final = frozenset({"offset", "max_chars"})
_ID: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class Refused(Exception):
    """A problem that is found before any request is made. `view` is what the agent is told."""

    def __init__(self, view: View) -> None:
        super().__init__("refused")
        self.view = view


def job_path(arguments: View, *parts: str) -> str:
    """Return the path of the job that a call names, or of something of it. Raises `Refused`."""
    job_id: str = arguments["job_id"]
    if not _ID.fullmatch(job_id):
        # In a path it would name something else, or nothing; the service knows no such job either.
        raise Refused(own_problem("unknown_job", next=tool_step("batch_list")))
    return "/".join((JOBS, job_id, *parts))


def tool_step(tool: str, **arguments: Any) -> View:
    """Return a next step; an argument that is None is left out."""
    return {"tool": tool, "arguments": {name: it for name, it in arguments.items() if it is not None}}


def step_of(step: object, targets: object = None) -> View | None:
    """Return a next step of the HTTP API as a tool with its arguments; None if no tool does that.

    `targets` are those of the call that was refused: a step to submit means them.
    """
    if not isinstance(step, Mapping):
        return None
    method, path = step.get("method"), step.get("path")
    if not isinstance(path, str):
        return None
    if path.partition("?")[0] == JOBS:
        if method == "GET":
            return tool_step("batch_list")
        return None if targets is None else tool_step("batch_submit", targets=targets)
    found = _JOB.fullmatch(path)
    make = _STEPS.get((method, found[2] or "")) if found is not None else None
    return None if found is None or make is None else make(found)


def _read_step(found: re.Match[str]) -> View:
    if found[3] is None:
        return tool_step("batch_targets", job_id=found[1])
    asked = {name: int(value) for name, value in parse_qsl(found[4] or "") if name in _NUMBERS}
    return tool_step("batch_read", job_id=found[1], idx=int(found[3]), **asked)


_STEPS: Final[Mapping[tuple[Any, str], Callable[[re.Match[str]], View]]] = {
    ("GET", ""): lambda found: tool_step("batch_wait", job_id=found[1]),
    ("GET", "targets"): _read_step,
    ("GET", "results"): lambda found: tool_step("batch_results", job_id=found[1]),
    ("POST", "rerun"): lambda found: tool_step("batch_rerun", job_id=found[1]),
    ("POST", "cancel"): lambda found: tool_step("batch_cancel", job_id=found[1]),
}


def problem_view(problem: ServiceProblem, targets: object = None) -> View:
    """Return a problem of the service as an agent is told it."""
    kind = KINDS.get(problem.code)
    told = {name: value for name, value in problem.view.items() if name not in _HTTP_ONLY}
    hint = problem.hint
    # A hint of its own says more than the code's; the code's own is about paths and headers.
    if kind is not None and hint in ("", kind.http):
        hint = kind.mcp
    return told | {
        "detail": problem.detail or (kind.title if kind is not None else "the service said no"),
        "hint": hint,
        "next": step_of(problem.view.get("next"), targets),
    }


def own_problem(code: str, **members: Any) -> View:
    """Return a problem that is found here and not by a service."""
    kind = KINDS[code]
    return {
        "detail": kind.title,
        "code": code,
        "retryable": kind.retryable,
        "retry_after": None,
        "hint": kind.mcp,
        "next": None,
    } | members


def bad_arguments_view(bad: BadArguments) -> View:
    """Return the problem of arguments that a tool does not take."""
    return own_problem("bad_request", detail="The tool does not take these arguments", errors=bad.errors)


def unreachable_view(error: Unreachable) -> View:
    """Return the problem of a service that can't be reached."""
    return {
        "detail": error.reason,
        "code": UNREACHABLE,
        "retryable": error.transient,
        "retry_after": None,
        "hint": "see that the service runs at the address that --server names; what was submitted goes on",
        "next": None,
    }


def job_answer(view: View, **more: Any) -> View:
    """Return the view of a job as an agent is told it: without paths, and always with a next step."""
    told = {name: value for name, value in view.items() if name != "links"}
    step = step_of(view.get("next"))
    if step is None:
        step = tool_step("batch_results" if view["settled"] else "batch_wait", job_id=view["id"])
    elif view["settled"] and view.get("hint"):
        # To run it again is one thing to do, and not always worth it: what there is can be read first.
        told["hint"] = f"{view['hint']}; batch_results has what there is"
    return told | {"next": step} | more
