"""How is a job now, and when does it change? The job's view, waited for if asked; its targets.

No bodies here: those are `_result_routes`' business. A look that finds nothing new (304) does not touch
the job; one that is answered does.
"""

import re
from contextlib import suppress
from typing import Final

import trio

from sift_batch import JobStatus, TargetState

from ._problems import Problem
from ._request import ROOM_PATIENCE, Request
from ._response import Response, json_response
from ._room import bytes_of
from ._schema_types import TargetRow
from ._views import job_path, page, runs, target_row

MAX_WAIT: Final = 55
PAGE_LIMIT: Final = 200
PAGE_DEFAULT: Final = 100
_CHUNK: Final = 8
_TAG: Final = re.compile(r'"(0|[1-9][0-9]{0,18})"', re.ASCII)


async def job(request: Request) -> Response:
    """`GET /v1/batch/{id}`."""
    query = request.query("wait", "until")
    seconds = query.clamped("wait", most=MAX_WAIT)
    change = query.flag("until", "change")
    if change and seconds is None:
        query.refuse("until", "goes with wait")
    query.check()
    (job_id,) = request.args
    known = known_versions(request.header(b"if-none-match"))
    if seconds:
        # Asked for first: whatever is waited for, a job that is not there is answered at once.
        version = await _version(request, job_id)
        if change and "*" in known:
            known = frozenset({version})  # whichever it is now
        if not (change and known and version not in known):
            await _wait(request, job_id, seconds, version if change else None)
    if known:
        version = await _version(request, job_id)
        if version in known or "*" in known:
            return Response(304, headers=[_etag(version)])
    found = await request.touched(job_id)
    headers = [_etag(found.job.version)]
    view = request.view(found)
    if view["poll_after"] is not None:
        headers.append((b"retry-after", b"%d" % view["poll_after"]))
    return json_response(view, headers=headers)


async def targets(request: Request) -> Response:
    """`GET /v1/batch/{id}/targets`: all of them in input order, without results."""
    query = request.query("status", "limit", "cursor")
    status = query.choice("status", TargetState)
    limit = query.whole("limit", least=1, most=PAGE_LIMIT, default=PAGE_DEFAULT) or PAGE_DEFAULT
    query.check()
    (job_id,) = request.args
    cursors, asked = request.shared.cursors, f"{job_path(job_id, 'targets')}?status={status or ''}"
    start = await start_of(request, job_id, asked, query.text("cursor"))
    found = await request.touched(job_id)
    settled = found.job.settled
    chosen = [
        target.idx
        for target in found.targets[start:]
        # What was in flight when the process ended shows as pending: so it is looked for.
        if status in (None, target_row(target, settled=settled)["status"])
    ]
    more = cursors.make(request.caller, asked, str(chosen[limit])) if len(chosen) > limit else None
    views = await without_bodies(request, found, chosen[:limit])
    return json_response(page(views, more, settled=settled))


async def start_of(request: Request, job_id: str, asked: str, cursor: str | None) -> int:
    """The index that a page of a job begins with. Raises `Problem`: first of all if the job is not there."""
    if cursor is None:
        return 0
    try:
        return int(request.shared.cursors.read(request.caller, asked, cursor))
    except Problem as problem:
        refused = problem
    # Another caller's job is an unknown one, whatever cursor comes with it.
    await _version(request, job_id)
    raise refused


async def without_bodies(
    request: Request, found: JobStatus, chosen: list[int], *, patience: float = ROOM_PATIENCE
) -> list[TargetRow]:
    """The views of some targets. The notes of a done one are in its meta: it is read, a few at a time.

    Waits for room for `patience` seconds at most. Raises `Problem` as `Request.reserve`.
    """
    job_id, settled = found.job.id, found.job.settled
    views: list[TargetRow] = []
    # Neighbours together: what lies between targets that were not chosen may be results.
    for start, stop in runs(chosen, most=_CHUNK):
        part = found.targets[start:stop]
        if all(target.status is not TargetState.DONE for target in part):
            views += [target_row(target, settled=settled) for target in part]
            continue
        await request.reserve(bytes_of(part), seconds=patience)
        read = await request.runner.status(job_id, start=start, stop=stop, caller=request.caller)
        if read is None:
            raise await request.missing(job_id)
        views += [target_row(target, settled=settled) for target in read.targets]
        request.held.keep(0)
    return views


def known_versions(header: str) -> frozenset[int | str]:
    """The versions that an `If-None-Match` names, and `*`. What is none of ours is passed over."""
    found: set[int | str] = set()
    for item in header.split(","):
        tag = item.strip().removeprefix("W/")
        if tag == "*":
            found.add("*")
        elif _TAG.fullmatch(tag):
            found.add(int(tag[1:-1]))
    return frozenset(found)


def _etag(version: int) -> tuple[bytes, bytes]:
    return b"etag", b'W/"%d"' % version


async def _version(request: Request, job_id: str) -> int:
    """The version of a job, from its row alone: its targets take ten times as long to read."""
    row = await request.runner.job(job_id, caller=request.caller)
    if row is None:
        raise await request.missing(job_id)
    return row.version


async def _wait(request: Request, job_id: str, seconds: int, version: int | None) -> None:
    """Wait until the job has settled, or changed from `version`; or until the request must end."""

    async def news() -> None:
        async with request.runner.watch(job_id, caller=request.caller) as statuses:
            async for found in statuses:
                if version not in (None, found.job.version):
                    return

    # It went, or won't settle here: what is there now is read next.
    with suppress(LookupError, trio.ClosedResourceError):
        await request.open.wait(news, seconds=seconds)
    request.check_allowed()
