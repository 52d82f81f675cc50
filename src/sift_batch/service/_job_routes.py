"""What may a caller do with its jobs? Submit, list, cancel, run again, delete.

Each asks the engine for one step and shows what it said. Reading is `_reading_routes`' and
`_result_routes`' business.
"""

from contextlib import suppress
from typing import Final

from sift_batch import (
    CallerBusyError,
    Job,
    JobsBusyError,
    JobState,
    JobStatus,
    NoTargetsError,
    SubmitError,
    TooManyTargetsError,
)

from ._cursors import refused_cursor
from ._problems import Problem
from ._request import Request, ended
from ._response import Response, json_response
from ._schema_types import CancelView, JobView
from ._submissions import BatchOrder, read_batch_order
from ._views import JOBS, job_path, page, step
from ._waiting import End

LIST_LIMIT: Final = 100
LIST_DEFAULT: Final = 50
_REMEMBERED: Final = 4
"""The last jobs of a page that its cursor names: when one has gone, the list goes on from the one before."""
_STRIDE: Final = 200
_REPLAYED: Final = (b"idempotent-replayed", b"true")


async def submit(request: Request) -> Response:
    """`POST /v1/batch`."""
    request.query().check()
    body, limit = await request.json(), request.shared.config.targets_per_job

    async def look() -> BatchOrder:
        return await read_batch_order(body, limit=limit, fetcher=request.shared.fetcher)

    # Each jq program takes a moment: who leaves meanwhile wants none of it.
    order = await request.open.wait(look)
    if isinstance(order, End):
        raise ended(order)
    request.check_allowed()
    try:
        submission = await request.runner.submit(request.caller, order.targets, max_age=order.max_age)
    except SubmitError as error:
        raise refusal(error, given=len(order.targets)) from None
    return _accepted(request, await request.status(submission.id), reused=submission.reused)


async def list_jobs(request: Request) -> Response:
    """`GET /v1/batch`: own jobs, newest first."""
    query = request.query("status", "limit", "cursor")
    status = query.choice("status", JobState)
    limit = query.whole("limit", least=1, most=LIST_LIMIT, default=LIST_DEFAULT) or LIST_DEFAULT
    cursor = query.text("cursor")
    query.check()
    cursors, asked = request.shared.cursors, f"GET {JOBS}?status={status or ''}"
    place = None if cursor is None else cursors.read(request.caller, asked, cursor)
    if place is None:
        jobs = await request.runner.jobs(request.caller, status=status, limit=limit + 1)
    else:
        jobs = await _jobs_after(request, place, status, limit + 1)
    more = cursors.make(request.caller, asked, _place(jobs[:limit])) if len(jobs) > limit else None
    shown = [await _as_it_is(request, job) for job in jobs[:limit]]
    settled = all(found.job.settled for found in shown)
    return json_response(page([request.view(found) for found in shown], more, settled=settled))


async def cancel(request: Request) -> Response:
    """`POST /v1/batch/{id}/cancel`: safe to repeat."""
    request.query().check()
    (job_id,) = request.args
    # The engine says no both to a job that has ended and to one that is not there.
    cancelled = await request.runner.cancel(job_id, caller=request.caller)
    view = request.view(await request.status(job_id))
    answer: CancelView | JobView = view if cancelled else {**view, "already_ended": True}
    return json_response(answer)


async def rerun(request: Request) -> Response:
    """`POST /v1/batch/{id}/rerun`: a new job, or the one that is there already."""
    request.query().check()
    (job_id,) = request.args
    # Of two at once the second one joins what the first began.
    async with request.shared.reruns.alone((request.caller.name, job_id)):
        found = await request.status(job_id)
        job = found.job
        if not job.settled:
            raise _live(job)
        if job.targets_done - job.targets_failed == job.targets_total:
            return _accepted(request, found, reused=True)
        live = await _live_rerun(request, job_id)
        if live is not None:
            return _accepted(request, live, reused=True)
        request.check_allowed()
        try:
            submission = await request.runner.rerun(request.caller, job_id)
        except LookupError:
            raise await request.missing(job_id) from None
        except SubmitError as error:
            raise refusal(error, given=job.targets_total) from None
    return _accepted(request, await request.status(submission.id), reused=False)


async def delete(request: Request) -> Response:
    """`DELETE /v1/batch/{id}`: also the second time."""
    request.query().check()
    (job_id,) = request.args
    deleted, name = request.shared.deleted, request.caller.name
    if await request.runner.delete(job_id, caller=request.caller):
        deleted.add(name, job_id)
        return Response(204)
    job = await request.runner.job(job_id, caller=request.caller)
    if job is not None:
        raise _live(job)
    problem = await request.missing(job_id)
    if problem.more.get("reason") == "deleted" or deleted.has(name, job_id):
        return Response(204)
    raise problem


def refusal(error: SubmitError, *, given: int) -> Problem:
    """The problem of a submit or a rerun that the engine refused."""
    match error:
        case TooManyTargetsError():
            return Problem("too_many_targets", more={"limit": error.limit, "given": given})
        case NoTargetsError():
            return Problem("no_targets")
        case CallerBusyError():
            path = job_path(error.job_id)
            return Problem("caller_busy", next_step=step("GET", path), more={"job_id": error.job_id})
        case JobsBusyError():
            return Problem("jobs_busy")
        case _:
            return Problem("job_live")


def _accepted(request: Request, found: JobStatus, *, reused: bool) -> Response:
    view = request.view(found)
    headers = [(b"location", job_path(found.job.id).encode())]
    # A new job may have ended by now: even so, its first look is worth a moment.
    seconds = view["poll_after"] if reused else view["poll_after"] or 1
    if seconds is not None:
        headers.append((b"retry-after", b"%d" % seconds))
    if reused:
        headers.append(_REPLAYED)
    return json_response(view, 200 if reused else 202, headers)


def _live(job: Job) -> Problem:
    wait = step("GET", f"{job_path(job.id)}?wait=25")
    if job.status.live:
        return Problem("job_live", next_step=wait, retry_after=5)
    # Nobody can cancel it any more: there is nothing to do but wait.
    detail, hint = "The job has ended, and one fetch of it is still in flight", "wait until that is finished"
    return Problem("job_live", detail, hint=hint, next_step=wait, retry_after=5)


def _place(jobs: list[Job]) -> str:
    """Where a page of jobs ends: its last jobs, the very last one first, and when that one was made."""
    return ".".join([*(job.id for job in jobs[: -_REMEMBERED - 1 : -1]), str(jobs[-1].created_at)])


async def _jobs_after(request: Request, place: str, status: JobState | None, limit: int) -> list[Job]:
    """List from where a page ended, even if jobs of that page were deleted or have lapsed meanwhile."""
    *ids, created = place.split(".")
    for job_id in ids:
        with suppress(LookupError):
            return await request.runner.jobs(request.caller, status=status, before=job_id, limit=limit)
    # All of them went, as when each page is read and deleted. Its time is left to go by: what was made in
    # the same second is rather listed again than left out.
    found: list[Job] = []
    before = None
    while len(found) < limit:
        try:
            jobs = await request.runner.jobs(request.caller, status=status, before=before, limit=_STRIDE)
        except LookupError:
            raise refused_cursor("the list has changed; begin again without a cursor") from None
        found += [job for job in jobs if job.created_at <= int(created)]
        if len(jobs) < _STRIDE:
            break
        before = jobs[-1].id
    return found[:limit]


async def _as_it_is(request: Request, job: Job) -> JobStatus:
    """The job with its targets, for as long as they can still be running."""
    if job.settled:
        return JobStatus(job, ())
    found = await request.runner.status(job.id, results=False, caller=request.caller)
    return JobStatus(job, ()) if found is None else found


async def _live_rerun(request: Request, job_id: str) -> JobStatus | None:
    most = request.shared.config.jobs_per_caller
    for state in (JobState.QUEUED, JobState.RUNNING):
        for job in await request.runner.jobs(request.caller, status=state, limit=most):
            if job.rerun_of == job_id:
                return await request.runner.status(job.id, results=False, caller=request.caller)
    return None
