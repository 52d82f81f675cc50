"""How do the values of the model become columns, and back?

`result` is a BLOB of UTF-8 JSON. Text columns hold no lone surrogates (the caller's text was scrubbed
on its way in), so that every read succeeds. What is read back is checked no more than it must be: an
unknown option of another version is dropped rather than refused.
"""

import json
from itertools import product
from types import NoneType
from typing import Any, Final

from .._model.idem import canonical_options, scrub
from .._model.lifecycle import JobState, TargetState
from .._model.values import NO_OPTIONS, CallerClass, Job, Options, Result, Target, TargetStatus

_TEXT: Final = (str,)
_NUMBER: Final = (int,)
_NUMBER_OR_NULL: Final = (int, NoneType)
_JOB: Final[dict[str, tuple[type, ...]]] = {
    "id": _TEXT,
    "caller": _TEXT,
    "caller_class": _TEXT,
    "status": _TEXT,
    "settled": _NUMBER,
    "error": _TEXT,
    "targets_total": _NUMBER,
    "targets_done": _NUMBER,
    "targets_failed": _NUMBER,
    "version": _NUMBER,
    "created_at": _NUMBER,
    "started_at": _NUMBER_OR_NULL,
    "finished_at": _NUMBER_OR_NULL,
    "lease": _NUMBER,
    "nbytes": _NUMBER,
    "rerun_of": (str, NoneType),
}
_TARGET: Final[dict[str, tuple[type, ...]]] = {
    "idx": _NUMBER,
    "url": _TEXT,
    "options": _TEXT,
    "status": _TEXT,
    "error": _TEXT,
    "hint": _TEXT,
    "code": _TEXT,
    "http_status": _NUMBER_OR_NULL,
    "retryable": _NUMBER,
    "chars": _NUMBER,
}
JOB_COLUMNS: Final = ", ".join(_JOB)
TARGET_COLUMNS: Final = ", ".join(_TARGET)
# SQLite keeps a value of whatever type in whatever column. A damaged one must not reach those who count
# with it: a row has one of these shapes, or is refused.
_JOB_SHAPES: Final = frozenset(product(*_JOB.values()))
_TARGET_SHAPES: Final = frozenset(product(*_TARGET.values()))

_OPTION_TYPES: Final[dict[str, type]] = {
    "mode": str,
    "question": str,
    "pages": str,
    "grep": str,
    "jq": str,
    "context": bool,
    "recover": bool,
}
# Enum look-ups by value cost more than the rest of a row; these tables cost next to nothing.
_JOB_STATES: Final = {state.value: state for state in JobState}
_TARGET_STATES: Final = {state.value: state for state in TargetState}
_CLASSES: Final = {item.value: item for item in CallerClass}


def job_from(row: tuple[Any, ...]) -> Job:
    """Return the job in a row of `JOB_COLUMNS`; `ValueError` for a damaged one."""
    if tuple(map(type, row)) not in _JOB_SHAPES:
        raise ValueError("a stored job holds a value of another type than its column's")
    return Job(
        id=row[0],
        caller=row[1],
        caller_class=_CLASSES[row[2]],
        status=_JOB_STATES[row[3]],
        settled=bool(row[4]),
        error=row[5],
        targets_total=row[6],
        targets_done=row[7],
        targets_failed=row[8],
        version=row[9],
        created_at=row[10],
        started_at=row[11],
        finished_at=row[12],
        lease=row[13],
        nbytes=row[14],
        rerun_of=row[15],
    )


def target_status_from(row: tuple[Any, ...], blob: bytes | None) -> TargetStatus:
    """Return the target in a row of `TARGET_COLUMNS`, with its result; `ValueError` for a damaged one."""
    if tuple(map(type, row[: len(_TARGET)])) not in _TARGET_SHAPES:
        raise ValueError("a stored target holds a value of another type than its column's")
    return TargetStatus(
        row[0],
        row[1],
        options_from(row[2]),
        _TARGET_STATES[row[3]],
        None if blob is None else result_from(blob),
        row[4],
        row[5],
        row[6],
        row[7],
        bool(row[8]),
        row[9],
    )


def result_from(blob: bytes) -> Result:
    """Return the result that was stored as UTF-8 JSON."""
    stored = json.loads(blob)
    content, meta = stored["content"], stored["meta"]
    if type(content) is not str or type(meta) is not dict:
        raise ValueError("a stored result is damaged")
    return Result(content, meta)


def options_from(text: str) -> Options:
    """Return the options that were stored as JSON; what this version does not know is dropped."""
    if text == "{}":
        return NO_OPTIONS
    try:
        stored = json.loads(text)
    except RecursionError:
        raise ValueError("stored options are nested too deeply") from None
    if not isinstance(stored, dict):
        raise ValueError("stored options are no JSON object")
    known: dict[str, Any] = {
        name: value for name, value in stored.items() if type(value) is _OPTION_TYPES.get(name)
    }
    return Options(**known)


TargetRow = tuple[int, str, str, int]
"""Idx, url, options and their bytes."""


def target_row(idx: int, target: Target) -> TargetRow:
    """Return idx, url, options and their bytes, as a new target is stored."""
    url = scrub(target.url)
    options = canonical_options(target.options)
    return idx, url, options, utf8_length(url) + utf8_length(options)


def utf8_length(text: str) -> int:
    """Return how many bytes `text` has in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
