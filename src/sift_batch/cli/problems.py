"""What does a person at the command line read when a service says no, and what is the exit code?

The registry of codes has the words. Nothing is called here. Next: `remote`, which asks.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from .._client import ServiceProblem

_UNUSABLE: Final = frozenset(
    {
        "unauthorized",
        "auth_failures",
        "unknown_host",
        "unknown_path",
        "method_not_allowed",
        "malformed_request",
        "headers_too_large",
        "http_version",
        "not_implemented",
        "media_type",
        "caller_busy",
        "jobs_busy",
    }
)
"""Codes that are nobody's input: the service, or the way to it, can't be used now as it is."""
_AGAIN: Final = re.compile("try again( later)?")
BAD_INPUT: Final = frozenset({"refused", "bad_option"})
"""Codes of a target that could not be fetched as it was given, whatever its site says."""


def is_about_target(problem: ServiceProblem) -> bool:
    """Whether it is the page that could not be had, and not the service."""
    return problem.view.get("origin") == "target"


def exit_code_of(problem: ServiceProblem) -> int:
    """Return 1 for a page that could not be had, 3 where the service can't be used, 2 for bad input."""
    if is_about_target(problem):
        return 2 if problem.code in BAD_INPUT else 1
    if problem.status >= 500 or problem.code in _UNUSABLE:
        return 3
    if problem.code == "gate_busy":
        return 1
    return 2


def text_of(problem: ServiceProblem, job_id: str = "") -> str:
    """Return what is wrong and what to do, in one line; advice that is about a job names it, if known."""
    said = problem.detail or "the service refuses it"
    advice = _advice(problem)
    advice = advice.replace(" ID`", f" {job_id}`") if job_id else advice
    # A title is a sentence of its own; here it goes on.
    said = said[:1].lower() + said[1:] if said[1:2].islower() or said[1:2] == " " else said
    parts = [said, *_more(problem.view, problem.detail)]
    text = f"{problem.code}: " if is_about_target(problem) else ""
    text += ", ".join(parts)
    return f"{text}; {advice}" if advice else text


def _advice(problem: ServiceProblem) -> str:
    from ..service._codes import KINDS

    kind = KINDS.get(problem.code)
    # What the service adds to a code of its own accord says more than the code's own hint.
    advice = problem.hint if kind is None or problem.hint not in ("", kind.http) else kind.cli
    if problem.retry_after is None or problem.retry_after < 1:
        return advice
    again = f"try again in {problem.retry_after:.0f} s"
    if _AGAIN.search(advice):
        return _AGAIN.sub(again, advice, count=1)
    return f"{advice}; {again}" if advice else again


def _more(view: Mapping[str, Any], detail: str) -> list[str]:
    """What only some problems hold, and `detail` has not said already."""
    more = []
    if isinstance(view.get("job_id"), str):
        more.append(f"one of them is {view['job_id']}")
    errors = view.get("errors")
    if isinstance(errors, list):
        for item in errors[:3]:
            if not isinstance(item, dict) or not isinstance(item.get("pointer"), str):
                continue
            if item.get("detail") != detail:
                more.append(f"{item['pointer'].lstrip('/?')} {item.get('detail', '')}")
    return more
