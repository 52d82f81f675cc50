"""What do requests and answers look like? Examples, made by the code that makes the real ones.

One job of two targets, after it was submitted and after it ended; nothing here is written down as JSON.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sift_batch import (
    CallerClass,
    Job,
    JobState,
    Options,
    Progress,
    Result,
    TargetState,
    TargetStatus,
)

from ._codes import KINDS, TARGET_CODES
from ._problems import BadItem, Problem
from ._response import json_bytes
from ._schema_types import ProblemMore
from ._views import job_path, job_view, page, result_view, step, target_row, target_view

_ID: Final = "2e7194f93b02013decfe4588cedc6b4f"
_FIRST: Final = "https://example.org/"
_SECOND: Final = "https://example.com/report.pdf"
_QUESTION: Final = "what may it be used for?"
_AT: Final = 1_796_000_000
_TTL: Final = 86_400.0

_META: Final = {
    "url": _FIRST,
    "http_status": 200,
    "content_type": "text/html",
    "charset": "utf-8",
    "bytes_wire": 648,
    "bytes_decoded": 1_256,
    "chars": 67,
    "title": "Example Domain",
    "redirects": [],
    "fetched_at": "2026-11-30T08:53:20Z",
    "elapsed_seconds": 0.184,
}
_RESULT: Final = Result(
    "# Example Domain\n\nThis domain is for use in documentation examples.",
    _META,
)
_SUBMITTED: Final = Job(
    id=_ID,
    caller="",
    caller_class=CallerClass.FLEET,
    status=JobState.QUEUED,
    settled=False,
    error="",
    targets_total=2,
    targets_done=0,
    targets_failed=0,
    version=1,
    created_at=_AT,
    started_at=None,
    finished_at=None,
    lease=_AT,
    nbytes=124,
    rerun_of=None,
)
_ENDED: Final = replace(
    _SUBMITTED,
    status=JobState.PARTIAL,
    settled=True,
    targets_done=2,
    targets_failed=1,
    version=4,
    started_at=_AT,
    finished_at=_AT + 3,
    lease=_AT + 3,
    nbytes=556,
)
_DONE: Final = TargetStatus(
    idx=0,
    url=_FIRST,
    options=Options(question=_QUESTION),
    status=TargetState.DONE,
    result=_RESULT,
    error="",
    hint="",
    code="",
    http_status=200,
    retryable=False,
    chars=len(_RESULT.content),
)
_FAILED: Final = TargetStatus(
    idx=1,
    url=_SECOND,
    options=Options(question=_QUESTION, pages="1-3"),
    status=TargetState.FAILED,
    result=None,
    error="the site has no such page",
    hint="check the address, or let the option recover look for a copy in an archive",
    code="page_not_found",
    http_status=404,
    retryable=False,
    chars=0,
)

_queued = job_view(_SUBMITTED, running=0, progress=Progress("queue", _AT, None, None), ttl=_TTL)
_partial = job_view(_ENDED, running=0, progress=None, ttl=_TTL)
_rerun = job_view(
    replace(_SUBMITTED, rerun_of=_ID, id="6d1f0a3cf1b84d5d9a54b6a5f5d6a1be"),
    running=0,
    progress=None,
    ttl=_TTL,
)
_targets = [target_view(item, settled=True) for item in (_DONE, _FAILED)]
_rows = [target_row(item, settled=True) for item in (_DONE, _FAILED)]


def _event(name: str, view: Mapping[str, Any], *, version: int | None = None) -> str:
    mark = "" if version is None else f"id: {version}\n"
    return f"event: {name}\n{mark}data: {json_bytes(view).decode()}\n\n"


_JSON: Final = "application/json"
EXAMPLES: Final[Mapping[tuple[str, int, str], Any]] = {
    ("submitBatch", 202, _JSON): _queued,
    ("submitBatch", 200, _JSON): _partial,
    ("listBatches", 200, _JSON): page([_partial], None, settled=True),
    ("getBatch", 200, _JSON): _partial,
    ("listTargets", 200, _JSON): page(_rows, None, settled=True),
    ("listResults", 200, _JSON): page(_targets, None, settled=True),
    ("listResults", 200, "lines"): "".join(json_bytes(view).decode() + "\n" for view in _targets),
    ("getTarget", 200, _JSON): _targets[0],
    ("followBatch", 200, "text/event-stream"): "retry: 3000\n\n"
    + _event("job", _partial)
    + "".join(_event("target", row) for row in _rows)
    + _event("end", _partial, version=_ENDED.version),
    ("cancelBatch", 200, _JSON): {**_partial, "already_ended": True},
    ("rerunBatch", 202, _JSON): _rerun,
    ("rerunBatch", 200, _JSON): _rerun,
    ("fetchNow", 200, _JSON): result_view(_RESULT),
    ("getLimits", 200, _JSON): {
        "targets_per_job": 32,
        "jobs_per_caller": 1,
        "result_max_bytes": 262_144,
        "max_body_bytes": 1_048_576,
        "ttl_seconds": 86_400,
        "max_wait_seconds": 55,
        "gate": {"total": 8, "per_host": 2},
        "live_jobs": [],
        "stored_bytes": 556,
    },
    ("live", 200, "text/plain"): "ok",
    ("ready", 200, "text/plain"): "ready",
    ("ready", 503, "text/plain"): "not ready",
}
"""Answers, by operation, status and media type."""

ORDER_EXAMPLES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "submitBatch": {
        "urls": {"summary": "Two pages", "value": {"targets": [_FIRST, _SECOND]}},
        "options": {
            "summary": "One question to both; of the PDF its first pages; no answer older than an hour",
            "value": {
                "targets": [_FIRST, {"url": _SECOND, "options": {"pages": "1-3"}}],
                "options": {"question": _QUESTION},
                "max_age": 3_600,
            },
        },
    },
    "fetchNow": {
        "page": {"summary": "A page", "value": {"url": _FIRST}},
        "grep": {
            "summary": "Lines of it that match, and what stands round them",
            "value": {"url": _FIRST, "options": {"grep": "(?i)example", "context": True}, "max_chars": 4_000},
        },
    },
}
"""Bodies, by operation."""


def example_problem(code: str) -> Mapping[str, Any]:
    """Return a problem of this code as a client gets it."""
    job = step("GET", job_path(_ID))
    more: dict[str, ProblemMore] = {
        "too_many_targets": {"limit": 32, "given": 40},
        "no_targets": {"limit": 32, "given": 0},
        "caller_busy": {"job_id": _ID},
        "gone": {"reason": "ttl"},
        "refused": {"reason": "special_address"},
    }
    about: ProblemMore = more.get(code, {})
    if code in TARGET_CODES - {"internal"}:
        about = {**about, "origin": "target", "http_status": KINDS[code].status}
    errors = {
        "bad_request": [BadItem("/targets/1/url", "refused", "only http and https URLs can be fetched")],
        "bad_option": [BadItem("/options", "bad_option", "jq and pages exclude each other")],
    }
    waits = {"auth_failures": 42, "gate_busy": 2, "busy": 30, "not_finished": 2, "job_live": 5}
    next_steps = {"caller_busy": job, "unknown_job": step("GET", "/v1/batch"), "job_live": job}
    problem = Problem(
        code,
        errors=errors.get(code, ()),
        more=about,
        retry_after=waits.get(code),
        next_step=next_steps.get(code),
    )
    return problem.view()
