"""What does a route get? One request, its caller, and everything of the service that routes use.

Values. The door makes a `Request` after it knows who sends it; `Resources` live as long as the service.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import trio

from sift_batch import Caller, Config, Gate, JobStatus, Runner

from ._asgi import Scope, Send
from ._bulletins import Bulletins
from ._cursors import Cursors
from ._deleted import Deleted
from ._json_body import is_large, parse_json, read_body
from ._leases import Leases
from ._limits import ServerLimits
from ._locks import Locks
from ._problems import Problem
from ._query import Query
from ._response import Response, json_response
from ._room import Held, SharedRoom
from ._schema_types import JobView
from ._submissions import Fetcher
from ._views import JOBS, failed_in_vain, job_view, running_in, step
from ._waiting import End, OpenRequest, OpenRequests

BEARER: Final = (b"www-authenticate", b"Bearer")
ROOM_PATIENCE: Final = 10.0
_ROOM_RETRY: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What all requests share."""

    runner: Runner
    fetcher: Fetcher
    gate: Gate
    config: Config
    limits: ServerLimits
    cursors: Cursors
    leases: Leases
    room: SharedRoom
    open: OpenRequests
    deleted: Deleted = field(default_factory=Deleted)
    bulletins: Bulletins = field(default_factory=Bulletins)
    bodies: Locks = field(default_factory=Locks)
    """Whose large body is looked through, or is the next one of that caller's."""
    body_threads: trio.CapacityLimiter = field(default_factory=lambda: trio.CapacityLimiter(1))
    """One at a time: each more would take a turn from the loop."""
    reruns: Locks = field(default_factory=Locks)
    """Which jobs are being run again now: see `_job_routes`."""


@dataclass(frozen=True, slots=True, repr=False)
class Request:
    """One request of a caller. `args` are the variable parts of its path, as they came."""

    scope: Scope
    send: Send
    caller: Caller
    args: tuple[str, ...]
    open: OpenRequest
    shared: Resources
    held: Held

    @property
    def runner(self) -> Runner:
        """The engine."""
        return self.shared.runner

    def header(self, name: bytes) -> str:
        """All values of a header, joined; empty if there is none."""
        found = [value for key, value in self.scope["headers"] if key == name]
        return b", ".join(found).decode("latin-1")

    def query(self, *known: str) -> Query:
        """The query, which may have these names."""
        return Query(self.scope["query_string"], known)

    async def json(self) -> Any:
        """The body's JSON value. Raises `Problem`, and `ClientGone` when the client leaves."""
        raw = await read_body(self.scope["headers"], self.open.receive)
        if not is_large(raw):
            return parse_json(raw)
        found = await self.open.wait(lambda: self._looked_through(raw))
        if isinstance(found, End):
            raise ended(found)
        return found

    async def _looked_through(self, raw: bytes) -> Any:
        # Each caller has one in line, so that its others hold up nobody else's.
        async with self.shared.bodies.alone(self.caller.name):
            return await trio.to_thread.run_sync(
                parse_json, raw, limiter=self.shared.body_threads, abandon_on_cancel=True
            )

    async def reserve(self, nbytes: int, *, seconds: float = ROOM_PATIENCE) -> None:
        """Hold room for results until the answer is out. Raises `Problem` if there is none for too long."""
        if not nbytes or self.held.take_now(nbytes):
            return
        end = await self.open.wait(lambda: self.held.take(nbytes), seconds=seconds)
        if end is End.TIME:
            raise Problem("server_busy", "too many results are on their way", retry_after=_ROOM_RETRY)
        if end is not None:
            raise ended(end)

    def check_allowed(self) -> None:
        """Raise `Problem` if the caller was let in, but would not be now: a body may take half a minute."""
        if self.open.end is End.REVOKED:
            raise unauthorized()

    async def status(self, job_id: str) -> JobStatus:
        """The job and its targets without results. Raises `Problem` if it is not there (any more)."""
        found = await self.runner.status(job_id, results=False, caller=self.caller)
        if found is None:
            raise await self.missing(job_id)
        return found

    def answer(self, value: Any) -> Response:
        """An answer with results, for which as much room is held as it takes until it is out."""
        response = json_response(value)
        self.held.keep(len(response.body))
        return response

    async def missing(self, job_id: str) -> Problem:
        """The problem of a job that is not there: gone, to whom it belonged; to all others unknown."""
        reason = await self.runner.gone(job_id, caller=self.caller)
        if reason is None:
            return Problem("unknown_job", next_step=step("GET", JOBS))
        return Problem("gone", _GONE.get(reason, ""), more={"reason": reason})

    async def touched(self, job_id: str) -> JobStatus:
        """The job, its lease bumped before it is read."""
        await self.shared.leases.touch(self.caller, job_id)
        return await self.status(job_id)

    def view(self, found: JobStatus) -> JobView:
        """The view of a job. Without its targets, as a list of jobs has it, less is said of what failed."""
        job = found.job
        progress = self.runner.progress(job.id, caller=self.caller)
        running = 0 if job.settled else running_in(found.targets)
        in_vain = failed_in_vain(found.targets) if job.settled and found.targets else None
        ttl = self.shared.config.ttl
        return job_view(job, running=running, progress=progress, ttl=ttl, in_vain=in_vain)


Route = Callable[[Request], Awaitable[Response | None]]
"""Returns the answer, or None when it has sent its own."""


def ended(end: End) -> Problem:
    """The problem of a request that was told to end before it had its answer."""
    return unauthorized() if end is End.REVOKED else Problem("store_unavailable", "the service stops")


def unauthorized() -> Problem:
    """The one answer to whoever has no valid key."""
    return Problem("unauthorized", headers=[BEARER])


_GONE = {
    "ttl": "nobody has read the job for as long as jobs are kept",
    "budget": "the job made room for newer ones",
    "deleted": "the job was deleted",
}
