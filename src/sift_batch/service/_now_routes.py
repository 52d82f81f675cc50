"""What does one page say, now? The interactive fetch; and how much a caller may ask for.

It goes through the same pipeline as a job's targets, before them, and is stored nowhere.
"""

import math
from typing import Final

import trio

from sift_batch import JobState, Result, RetryLater, TargetError

from ._codes import TARGET_CODES
from ._parts import part_of
from ._problems import BadItem, Problem
from ._reading_routes import MAX_WAIT
from ._request import Request, ended
from ._response import Response, json_response
from ._room import bytes_of_chars
from ._schema_types import LimitsView, ProblemMore
from ._submissions import FetchOrder, bad_options, read_fetch_order
from ._views import JOBS, result_view, step
from ._waiting import End

PATIENCE: Final = 5.0
"""Seconds that a fetch waits for a slot."""

ANSWER_WITHIN: Final = 55.0
_GATE_RETRY: Final = 2
_REASONS_OF_THE_GATE: Final = ("gate", "host")


async def fetch(request: Request) -> Response:
    """`POST /v1/fetch`."""
    request.query().check()
    order = read_fetch_order(await request.json())
    fetcher, bad = request.shared.fetcher, list[BadItem]()
    began = trio.current_time()
    # Before it is fetched: a page for which there is no room would be thrown away.
    await request.reserve(bytes_of_chars(request.shared.config.result_max_bytes), seconds=PATIENCE)

    async def news() -> Result:
        # First what needs no site: a bad option is told even where the site can't be reached.
        refused: TargetError | None = None
        try:
            await fetcher.check(order.target)
        except TargetError as error:
            refused = error
        if refused is not None:
            bad.extend(await bad_options(order.target.options, fetcher, "/options"))
            raise refused
        return await fetcher.interactive(request.caller, order.target, patience=PATIENCE)

    try:
        result = await request.open.wait(news, seconds=began + ANSWER_WITHIN - trio.current_time())
    except RetryLater as busy:
        raise _busy(busy, order) from None
    except TargetError as error:
        raise _failed(error, bad) from None
    if isinstance(result, End):
        raise _ended(result, order)
    view = result_view(result)
    if order.max_chars is not None:
        view["content"], rest = part_of(result.content, 0, order.max_chars)
        if rest is not None:
            hint = f"the first {rest:,} of {len(result.content):,} characters; raise max_chars for more"
            more = {"truncated": True, "chars_total": len(result.content), "code": "truncated", "hint": hint}
            meta = view["meta"]
            view["meta"] = {**more, **meta} if result.meta.get("truncated") else {**meta, **more}
    return request.answer(view)


async def limits(request: Request) -> Response:
    """`GET /v1/limits`: what this caller may do, and what it has; nothing of all callers together."""
    request.query().check()
    config, gate = request.shared.config, request.shared.gate.statistics()
    live: list[str] = []
    # In this order: a job that starts meanwhile is in one of them, or in both.
    for state in (JobState.QUEUED, JobState.RUNNING):
        jobs = await request.runner.jobs(request.caller, status=state, limit=config.jobs_per_caller)
        live += [job.id for job in jobs if job.id not in live]
    view: LimitsView = {
        "targets_per_job": config.targets_per_job,
        "jobs_per_caller": config.jobs_per_caller,
        "result_max_bytes": config.result_max_bytes,
        "max_body_bytes": request.shared.limits.body_bytes,
        "ttl_seconds": math.floor(config.ttl) if math.isfinite(config.ttl) else None,
        "max_wait_seconds": MAX_WAIT,
        "gate": {"total": gate.total, "per_host": gate.per_host},
        "live_jobs": live,
        "stored_bytes": await _stored_bytes(request),
    }
    return json_response(view)


async def _stored_bytes(request: Request) -> int:
    """Bytes of all stored jobs of the caller."""
    total, before, most = 0, None, 200
    while True:
        try:
            jobs = await request.runner.jobs(request.caller, before=before, limit=most)
        except LookupError:
            # The job that the last page ended with went meanwhile: count again.
            total, before = 0, None
            continue
        total += sum(job.nbytes for job in jobs)
        if len(jobs) < most:
            return total
        before = jobs[-1].id


def _busy(busy: RetryLater, order: FetchOrder) -> Problem:
    if busy.reason in _REASONS_OF_THE_GATE:
        return Problem(
            "gate_busy",
            "all slots are taken, or the host is held",
            retry_after=_seconds(busy, _GATE_RETRY),
            next_step=step("POST", JOBS, order.as_job),
        )
    return Problem("busy", retry_after=_seconds(busy, _GATE_RETRY), more=_about_target(429))


def _seconds(busy: RetryLater, otherwise: int) -> float:
    seconds = busy.retry_after
    return seconds if seconds is not None and math.isfinite(seconds) and seconds > 0 else otherwise


def _failed(error: TargetError, bad: list[BadItem]) -> Problem:
    code = error.code if error.code in TARGET_CODES else "internal"
    more = _about_target(error.status)
    reason = getattr(error, "reason", "")
    if reason:
        more["reason"] = reason
    errors = bad or ([BadItem("/options", code, error.message)] if code == "bad_option" else [])
    return Problem(code, error.message, hint=error.hint, retryable=error.retryable, errors=errors, more=more)


def _ended(end: End, order: FetchOrder) -> Problem:
    if end is End.TIME:
        within = f"no answer within {ANSWER_WITHIN:g} seconds"
        return Problem("timeout", within, next_step=step("POST", JOBS, order.as_job), more=_about_target(504))
    return ended(end)


def _about_target(status: int) -> ProblemMore:
    return {"origin": "target", "http_status": status}
