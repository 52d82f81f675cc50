"""How does somebody look at a store beside its runner? Reads only, from any process.

A `Reader` never writes: its connection is opened `mode=ro` and may make SQLite's side files, nothing
else. It has no clock of its own kind of lapse: without `ttl` it shows what is stored, lapsed or not.
"""

import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import trio
from trio.lowlevel import enable_ki_protection

from .._model.lifecycle import JobState
from .._model.values import Caller, Job, JobStatus, caller_name
from . import files
from .bridge import Threads, in_thread
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
        """Return the job and its targets with `start <= idx < stop`, or None. Raises `StoreError`."""
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
        """
        found = await self._reads.jobs(
            caller=caller_name(caller),
            status=status,
            before=before,
            limit=limit,
            now=int(self._now()),
            ttl=self._ttl,
        )
        if found is None:
            raise LookupError("the job to list from is not there (any more); list from the newest again")
        return found


@asynccontextmanager
@enable_ki_protection
async def open_reader(
    path: str | os.PathLike[str], *, ttl: float = float("inf"), now: Callable[[], float] = time.time
) -> AsyncIterator[Reader]:
    """Open an existing store for reading, beside a running owner if there is one.

    With `ttl`, jobs that have lapsed by the clock `now` are left out, as a runner leaves them out.
    Raises `StoreVersionError` for a store of a newer version and `StoreError` for what is no store.
    """
    resolved = files.resolve(path)
    connection = await in_thread(files.connect_reader, resolved)
    try:
        yield Reader(SqliteReads(Threads(connection)), ttl, now)
    finally:
        with trio.CancelScope(shield=True):
            await in_thread(connection.close)
