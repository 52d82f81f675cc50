"""How are results read as they come? One target a line (JSON Lines), up to now or until the job settles.

A stream that ends by its last chunk is whole; one that is cut is not, and its reader asks again.
"""

import math
from collections.abc import AsyncIterator
from typing import Final

import trio

from sift_batch import JobStatus, TargetState, TargetStatus

from ._request import Request
from ._response import Stream, json_bytes
from ._views import FINISHED, target_view
from ._waiting import End, OpenRequest

_TYPES: Final = ("application/jsonl", "application/x-ndjson")
_CHUNK: Final = 4


def wants_lines(accept: str) -> str | None:
    """Return the type of lines that an `Accept` names before plain JSON, None if it names none."""
    for item in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in item.split(";"))
        if any(parameter.replace(" ", "") in ("q=0", "q=0.0") for parameter in parameters):
            continue
        if kind in _TYPES:
            return kind
        if kind == "application/json":
            return None
    return None


async def send_lines(
    request: Request, job_id: str, content_type: str, *, status: TargetState | None, follow: bool
) -> None:
    """Send a job's targets, one a line, in input order: what is finished now, or all until it settles.

    Once it has settled, targets that were never fetched have a line too.
    """
    await request.touched(job_id)
    stream = Stream(request.send)
    await stream.start(content_type.encode(), [(b"x-accel-buffering", b"no")])
    lines = _Lines(request, job_id, stream, status)
    if await (lines.follow() if follow else lines.send_ready()):
        await stream.finish()


class _Lines:
    def __init__(self, request: Request, job_id: str, stream: Stream, status: TargetState | None) -> None:
        self._request, self._job_id, self._stream, self._status = request, job_id, stream, status
        self._next = 0  # all targets before it were sent, or are not asked for

    async def send_ready(self) -> bool:
        """Send what is finished and was not sent; False if the job is not there any more."""
        request = self._request
        while True:
            start = self._next
            stop = start + _CHUNK
            found = await request.runner.status(self._job_id, start=start, stop=stop, caller=request.caller)
            if found is None:
                return False
            for target in found.targets:
                if not _has_come(target, found):
                    return True
                view = target_view(target, settled=found.job.settled)
                self._next = target.idx + 1
                if self._status in (None, view["status"]):
                    await self._stream.put(json_bytes(view) + b"\n")
                    await request.shared.leases.touch(request.caller, self._job_id)
            if self._next >= found.job.targets_total:
                return True

    async def follow(self) -> bool:
        """Send targets as they come until the job has settled; False if that was cut short."""
        request = self._request
        try:
            async with request.runner.watch(self._job_id, caller=request.caller) as statuses:
                while True:
                    found = await next_status(request.open, statuses)
                    if not isinstance(found, JobStatus):
                        return found is None
                    if not await self.send_ready():
                        return False
        except (LookupError, trio.ClosedResourceError):
            return False


async def next_status(
    open_request: OpenRequest, statuses: AsyncIterator[JobStatus], *, seconds: float = math.inf
) -> JobStatus | End | None:
    """Wait for the next status of a watched job; None after the last one."""

    async def news() -> JobStatus | None:
        return await anext(statuses, None)

    return await open_request.wait(news, seconds=seconds)


def _has_come(target: TargetStatus, found: JobStatus) -> bool:
    return target.status in FINISHED or found.job.settled
