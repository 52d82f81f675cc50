"""How does somebody look at a store beside its runner? Reads only, from any process.

A `Reader` never writes: its connection is opened `mode=ro` and may make SQLite's side files, nothing
else. It does not know the runner's TTL: unless it is given one, it shows lapsed jobs too, as long as they
are stored. What can be read is in `queries.py`.
"""

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import trio
from trio.lowlevel import enable_ki_protection

from .._model.config import check_index, check_number
from .._model.lifecycle import JobState
from .._model.values import Caller, Job, JobStatus, caller_name
from .._protected import Protected
from . import files
from .bridge import Threads, close_in_thread, in_thread
from .sqlite import SqliteReads


class Reader:
    """Reads the jobs of a store that a runner may own, in this process or in another one."""

    def __init__(self, reads: SqliteReads, ttl: float, now: Callable[[], float]) -> None:
        self._reads = reads
        self._ttl = ttl
        self._now = now

    async def job(self, job_id: str, *, caller: Caller | str | None = None) -> Job | None:
        """Return the job, or None. Raises `StoreError`."""
        return await self._reads.job(job_id, caller=caller_name(caller), now=int(self._now()), ttl=self._ttl)

    async def status(
        self,
        job_id: str,
        *,
        results: bool = True,
        start: int = 0,
        stop: int | None = None,
        caller: Caller | str | None = None,
    ) -> JobStatus | None:
        """Return the job and its targets with `start <= idx < stop`, or None. Raises `StoreError`.

        `ValueError` for a `start` or `stop` below 0.
        """
        check_index("start", start)
        if stop is not None:
            check_index("stop", stop)
        return await self._reads.status(
            job_id,
            caller=caller_name(caller),
            now=int(self._now()),
            ttl=self._ttl,
            results=results,
            start=start,
            stop=stop,
        )

    async def jobs(
        self,
        caller: Caller | str | None = None,
        *,
        status: JobState | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Return at most `limit` jobs, newest submission first.

        `before` is the id of the last job of the page before; `LookupError` if it is not there.
        `ValueError` for a `status` that is no state of a job, and for a `limit` that is not above 0.
        """
        check_number("limit", limit, whole=True)
        found = await self._reads.jobs(
            caller=caller_name(caller),
            status=None if status is None else JobState(status),
            before=before,
            limit=limit,
            now=int(self._now()),
            ttl=self._ttl,
        )
        if found is None:
            raise LookupError("the job to list from is not there (any more); list from the newest again")
        return found


def open_reader(
    path: str | os.PathLike[str], *, ttl: float = float("inf"), now: Callable[[], float] = time.time
) -> AbstractAsyncContextManager[Reader]:
    """Open an existing store for reading, beside a running owner if there is one.

    With `ttl`, jobs that have lapsed by the clock `now` are left out, as a runner leaves them out.
    Raises `StoreVersionError` for a store of a newer version and `StoreError` for what is no store.
    """
    return Protected(_opened(path, ttl, now))


@asynccontextmanager
@enable_ki_protection
async def _opened(
    path: str | os.PathLike[str], ttl: float, now: Callable[[], float]
) -> AsyncIterator[Reader]:
    resolved = files.resolve(path)
    connection = await in_thread(files.connect_reader, resolved)
    try:
        yield Reader(SqliteReads(Threads(connection)), ttl, now)
    finally:
        with trio.CancelScope(shield=True):
            await close_in_thread(connection)
