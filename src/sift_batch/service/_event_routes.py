"""How does a page follow a job live? By server-sent events: the job, each finished target, the end.

What comes of one version is told together, and the last event of it carries the version as its id: who
resumes from there has missed nothing and gets no target twice. Who resumes from an older version may
have missed any target, so it gets all that are finished. Followers who lack the same are told in the same
bytes, made once.
"""

import math
from typing import Final

import trio

from sift_batch import JobStatus

from ._bulletins import Bulletin
from ._lines import next_status
from ._problems import Problem
from ._reading_routes import known_versions, without_bodies
from ._request import Request
from ._response import Response, Stream, json_bytes
from ._schema_types import JobView, TargetRow
from ._views import FINISHED
from ._waiting import End

_COMMENT_EVERY: Final = 15.0
_HEADERS: Final = ((b"x-accel-buffering", b"no"),)


async def events(request: Request) -> Response | None:
    """`GET /v1/batch/{id}/events`."""
    request.query().check()
    (job_id,) = request.args
    found = await request.touched(job_id)
    seen = known_versions(f'"{request.header(b"last-event-id").strip()}"')
    if found.job.settled and found.job.version in seen:
        return Response(204)
    stream = Stream(request.send)
    await stream.start(b"text/event-stream", _HEADERS)
    told = (
        {item.idx for item in found.targets if item.status in FINISHED}
        if found.job.version in seen
        else set()
    )
    await stream.put(b"retry: 3000\n\n")
    with request.shared.bulletins.read(request.caller, job_id) as bulletin:
        whole = await _Events(request, job_id, stream, told, bulletin).follow()
    if whole:
        await stream.finish()
    return None


class _Events:
    def __init__(
        self, request: Request, job_id: str, stream: Stream, told: set[int], bulletin: Bulletin
    ) -> None:
        self._request, self._job_id, self._stream, self._bulletin = request, job_id, stream, bulletin
        self._told = told  # targets that the reader knows to be finished
        self._first = True

    async def follow(self) -> bool:
        """Send events until the job has settled, or the service stops; False if it was cut short."""
        request = self._request
        try:
            async with request.runner.watch(self._job_id, caller=request.caller) as statuses:
                while True:
                    found = await next_status(request.open, statuses, seconds=_COMMENT_EVERY)
                    if isinstance(found, JobStatus):
                        await self._tell(found)
                        if found.job.settled:
                            return True
                    elif found is End.TIME:
                        await self._stream.put(b": still here\n\n")
                    else:
                        return await self._end(found)
        except trio.ClosedResourceError:
            return await self._end(End.STOPPING)
        except Problem:  # it went, or must end, while it was read
            return await self._end(request.open.end)
        except LookupError:
            return False

    async def _tell(self, found: JobStatus) -> None:
        first, request = self._first, self._request
        news = [item.idx for item in found.targets if item.status in FINISHED and item.idx not in self._told]

        async def make() -> bytes:
            return await _text(request, found, news, first=first)

        text = await self._bulletin.text((found.job.version, first, *news), make)
        request.check_allowed()
        await self._stream.put(text)
        self._first = False
        self._told.update(news)
        await request.shared.leases.touch(request.caller, self._job_id)

    async def _end(self, end: End | None) -> bool:
        if end is End.STOPPING:
            await self._stream.put(b"event: shutdown\ndata: {}\n\n")
            return True
        return False


async def _text(request: Request, found: JobStatus, news: list[int], *, first: bool) -> bytes:
    """What is told of one version, in one piece: each by itself would be a chunk, and a system call."""
    told: list[tuple[str, JobView | TargetRow]] = [
        ("target", row) for row in await without_bodies(request, found, news, patience=math.inf)
    ]
    # The first event of a stream is the job; later it follows its news.
    view = request.view(found)
    told.insert(0 if first else len(told), ("job", view))
    if found.job.settled:
        told.append(("end", view))
    pieces = [_event(name, data) for name, data in told[:-1]]
    return b"".join([*pieces, _event(*told[-1], version=found.job.version)])


def _event(name: str, view: JobView | TargetRow, *, version: int | None = None) -> bytes:
    # JSON on one line has no line end in it, so one `data:` holds it.
    mark = b"" if version is None else b"id: %d\n" % version
    return b"event: %s\n%sdata: %s\n\n" % (name.encode(), mark, json_bytes(view))
