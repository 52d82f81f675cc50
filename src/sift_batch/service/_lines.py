"""How are results read as they come? One target a line (JSON Lines), up to now or until the job settles.

A stream that ends by its last chunk is whole; one that is cut is not, and its reader asks again.
"""

import math
from collections.abc import AsyncIterator, Sequence
from typing import Final

import trio

from sift_batch import JobStatus, TargetState, TargetStatus

from ._request import Request
from ._response import Stream, json_bytes
from ._room import bytes_of
from ._views import FINISHED, target_view
from ._waiting import End, OpenRequest

_TYPES: Final = ("application/jsonl", "application/x-ndjson")
_STILL_HERE: Final = 15.0
"""Seconds after which a space is sent, so that a reader, or a proxy, sees that the stream lives."""
_CHUNK: Final = 4
_CHUNK_CHARS: Final = 2**14
"""Read in one step; a target with more is read alone, since its reader may be slow and there may be many."""


def wants_lines(accept: str) -> str | None:
    """Return the type of lines that an `Accept` wants more than plain JSON, None if it wants none.

    By weight (RFC 9110, 12.5.1); of types with the same one, the first that is named.
    """
    best, chosen = 0.0, ""
    for item in accept.lower().split(","):
        kind, *parameters = (part.strip() for part in item.split(";"))
        weight = _weight(parameters)
        if kind in (*_TYPES, "application/json") and weight > best:
            best, chosen = weight, kind
    return chosen if chosen in _TYPES else None


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(float(value), 1.0)
            except ValueError:
                return 1.0
    return 1.0


async def send_lines(
    request: Request, job_id: str, content_type: str, *, status: TargetState | None, follow: bool
) -> None:
    """Send a job's targets, one a line, in input order: those that are finished now, or all as they come.

    Who follows gets no target before one that stands before it. Once the job has settled, targets that
    were never fetched have a line too.
    """
    found = await request.touched(job_id)
    stream = Stream(request.send)
    await stream.start(content_type.encode(), [(b"x-accel-buffering", b"no")])
    lines = _Lines(request, job_id, stream, status)
    if await (lines.follow() if follow else lines.send_ready(found.targets, gaps=True)):
        await stream.finish()


class _Lines:
    def __init__(self, request: Request, job_id: str, stream: Stream, status: TargetState | None) -> None:
        self._request, self._job_id, self._stream, self._status = request, job_id, stream, status
        self._next = 0  # all targets before it were sent, or are not asked for

    async def send_ready(self, targets: Sequence[TargetStatus], *, gaps: bool = False) -> bool:
        """Send what is finished and was not sent; False if the job is not there any more.

        `targets` are all of the job, without results. Without `gaps`, up to the first that is not finished.
        """
        request = self._request
        while self._next < len(targets):
            stop = chunk_end(targets, self._next)
            await request.reserve(bytes_of(targets[self._next : stop]), seconds=math.inf)
            lines = await self._read(stop, gaps=gaps)
            if lines is None:
                return False
            request.held.keep(sum(map(len, lines)))
            for line in lines:
                if request.open.end is End.REVOKED:
                    return False
                if line:
                    await self._stream.put(line)
                    await request.shared.leases.touch(request.caller, self._job_id)
                self._next += 1
            request.held.keep(0)
            if self._next < stop:
                return True
        return True

    async def _read(self, stop: int, *, gaps: bool) -> list[bytes] | None:
        """The lines of the next targets, empty for what is not asked for; their results are not kept."""
        runner, caller = self._request.runner, self._request.caller
        found = await runner.status(self._job_id, start=self._next, stop=stop, caller=caller)
        if found is None:
            return None
        lines: list[bytes] = []
        for target in found.targets:
            come = target.status in FINISHED or found.job.settled
            if not come and not gaps:
                break
            view = target_view(target, settled=found.job.settled)
            asked = come and self._status in (None, view["status"])
            lines.append(json_bytes(view) + b"\n" if asked else b"")
        return lines

    async def follow(self) -> bool:
        """Send targets as they come until the job has settled; False if that was cut short."""
        request, settled = self._request, False
        try:
            async with request.runner.watch(self._job_id, caller=request.caller) as statuses:
                while not settled:
                    found = await next_status(request.open, statuses, seconds=_STILL_HERE)
                    if found is End.TIME:
                        await self._stream.put(b" ")  # JSON may have space before it: no line of its own
                    elif not isinstance(found, JobStatus) or not await self.send_ready(found.targets):
                        return False  # it must end, or the job is not there any more
                    else:
                        settled = found.job.settled
        except (LookupError, trio.ClosedResourceError):
            return False
        return True


def chunk_end(targets: Sequence[TargetStatus], start: int) -> int:
    """Where the targets end that are read in one step, the one at `start` among them."""
    end, chars = start + 1, targets[start].chars
    while end < min(start + _CHUNK, len(targets)) and (chars := chars + targets[end].chars) <= _CHUNK_CHARS:
        end += 1
    return end


async def next_status(
    open_request: OpenRequest, statuses: AsyncIterator[JobStatus], *, seconds: float = math.inf
) -> JobStatus | End | None:
    """Wait for the next status of a watched job; None after the last one."""

    async def news() -> JobStatus | None:
        return await anext(statuses, None)

    return await open_request.wait(news, seconds=seconds)
