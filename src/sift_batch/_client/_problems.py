"""How can talking to a service end badly? By its own word, or because nothing sensible answers.

The texts here are our own: nothing of a library's, and nothing of what a stranger answered, except the
service's own problem document. Next: `_calls`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

_LONGEST_TEXT: Final = 2_000
_LONGEST_WAIT: Final = 86_400


class BadServer(ValueError):
    """The address of the service, or the key, is none that can be used. `reason` says why, in one line."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Unreachable(Exception):
    """Nothing answers, or not as the service does. `reason` says what was seen, in one line.

    `transient`: the same may work a moment later, as when the service starts again. `status` is that of
    an answer which is none of the service's, 0 if there was no answer.
    """

    def __init__(self, reason: str, *, transient: bool = False, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.transient = transient
        self.status = status


class ServiceProblem(Exception):
    """The service said no. `view` is its whole problem document; the rest are members of it.

    `retry_after` is seconds, None if the service names none.
    """

    def __init__(self, status: int, view: Mapping[str, Any]) -> None:
        self.status = status
        self.view = view
        self.code = _text(view.get("code"))
        self.detail = _text(view.get("detail"))
        self.hint = _text(view.get("hint"))
        self.retryable = view.get("retryable") is True
        self.retry_after = _seconds(view.get("retry_after"))
        super().__init__(self.code)


def problem_of(status: int, content_type: str, body: bytes) -> ServiceProblem | Unreachable:
    """Return what an answer of 400 or more means: a problem of the service, or somebody else's answer."""
    if content_type.partition(";")[0].strip().lower() == "application/problem+json":
        view = read_json(body)
        if isinstance(view, dict) and isinstance(view.get("code"), str):
            return ServiceProblem(status, view)
    return stranger(status)


def stranger(status: int) -> Unreachable:
    """Return the error for an answer that is not the service's."""
    # What a proxy says while the service behind it starts again.
    transient = status in (502, 503, 504)
    return Unreachable(
        f"what answers there is no sift-batch service (HTTP {status})", transient=transient, status=status
    )


def read_json(data: bytes) -> Any:
    """Return the JSON value of some bytes; `NotImplemented`, which no JSON holds, if it is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return NotImplemented


def _text(value: object) -> str:
    return value[:_LONGEST_TEXT] if isinstance(value, str) else ""


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= _LONGEST_WAIT else None
