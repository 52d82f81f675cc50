"""The store on SQLite: which connection does what, and who may write.

`open_store` verifies or makes a file and opens the connection that reads; it writes nothing else. The
connection that writes exists only while a runner owns the store (`acquire` to `release`), so there is
no way to write without the owner's lock. A store in memory has one connection for both and no lock.
Every method is one line: the step is in `steps.py`, `removal.py` or `queries.py`, the way to a thread
in `bridge.py` and `writer.py`.
"""

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Literal

import trio
from trio.lowlevel import enable_ki_protection

from .._model.crash import crash_point
from .._model.errors import StoreError, StoreInUseError
from .._model.idem import idem_key
from .._model.lifecycle import JobEvent, JobState
from .._model.store import (
    Caps,
    Lapsed,
    NewJob,
    Outcome,
    Recorded,
    Removed,
    RerunOutcome,
    Restarted,
    Store,
    SubmitOutcome,
    Work,
)
from .._model.values import Caller, Job, JobStatus
from .._protected import Protected
from . import arrival, files, queries, removal, schema, steps
from .bridge import Bridge, Inline, Threads, close_in_thread, in_thread, store_error
from .writer import Writer

IN_MEMORY = ":memory:"


def _query_id(job_id: object) -> str:
    """Return an id that SQLite can look up: what can't be an id finds nothing, on the same path."""
    return job_id if isinstance(job_id, str) and job_id.isascii() else ""


class SqliteReads:
    """The pure reads, over any bridge."""

    def __init__(self, reads: Bridge) -> None:
        self._reads = reads

    async def job(self, job_id: str, *, caller: str | None, now: int, ttl: float) -> Job | None:
        return await self._reads.run(
            partial(queries.select_job, job_id=_query_id(job_id), caller=caller, now=now, ttl=ttl)
        )

    async def status(
        self,
        job_id: str,
        *,
        caller: str | None,
        now: int,
        ttl: float,
        results: bool,
        start: int,
        stop: int | None,
    ) -> JobStatus | None:
        return await self._reads.run(
            partial(
                queries.select_status,
                job_id=_query_id(job_id),
                caller=caller,
                now=now,
                ttl=ttl,
                results=results,
                start=start,
                stop=stop,
            )
        )

    async def jobs(
        self,
        *,
        caller: str | None,
        status: JobState | None,
        before: str | None,
        limit: int,
        now: int,
        ttl: float,
    ) -> list[Job] | None:
        return await self._reads.run(
            partial(
                queries.select_jobs,
                caller=caller,
                status=status,
                before=None if before is None else _query_id(before),
                limit=limit,
                now=now,
                ttl=ttl,
            )
        )

    async def gone(self, job_id: str, *, caller: str, now: int, ttl: float) -> str | None:
        return await self._reads.run(
            partial(queries.select_gone, job_id=_query_id(job_id), caller=caller, now=now, ttl=ttl)
        )

    async def lapsed(self, *, now: int, ttl: float) -> Lapsed:
        return await self._reads.run(partial(queries.select_lapsed, now=now, ttl=ttl))


class SqliteStore(SqliteReads):
    """The steps, for the one owner. Subclasses say where the connections come from."""

    def __init__(self, reads: Bridge) -> None:
        super().__init__(reads)
        # The owner's token and the bridge that writes: both set by `acquire`, both unset by `release`.
        self._owner: str | None = None
        self._writes: Bridge | None = None

    def _steps_of(self, owner: str) -> Bridge:
        if self._writes is None or owner != self._owner:
            raise StoreError("this store is not owned by the runner that wants to change it")
        return self._writes

    async def submit(
        self, owner: str, new: NewJob, *, now: int, ttl: float, caps: Caps, max_age: float | None
    ) -> SubmitOutcome:
        # The key is computed here and not in the step: the file is not locked meanwhile.
        key = idem_key(new.caller.name, new.targets)
        return await self._steps_of(owner).run(
            partial(
                arrival.submit, owner=owner, new=new, key=key, now=now, ttl=ttl, caps=caps, max_age=max_age
            )
        )

    async def rerun(
        self, owner: str, new_id: str, source_id: str, *, caller: Caller, now: int, ttl: float, caps: Caps
    ) -> RerunOutcome:
        return await self._steps_of(owner).run(
            partial(
                arrival.rerun,
                owner=owner,
                new_id=new_id,
                source_id=_query_id(source_id),
                caller=caller,
                now=now,
                ttl=ttl,
                caps=caps,
            )
        )

    async def begin(self, owner: str, *, now: int) -> Work | None:
        return await self._steps_of(owner).run(partial(steps.begin, owner=owner, now=now))

    async def record(
        self, owner: str, job_id: str, idx: int, outcome: Outcome, *, now: int
    ) -> Recorded | None:
        return await self._steps_of(owner).run(
            partial(steps.record, owner=owner, job_id=job_id, idx=idx, outcome=outcome, now=now)
        )

    async def stop(
        self,
        owner: str,
        job_id: str,
        event: JobEvent,
        *,
        caller: str | None,
        now: int,
        in_flight: bool,
        error: str = "",
    ) -> Job | None:
        return await self._steps_of(owner).run(
            partial(
                steps.stop,
                owner=owner,
                job_id=_query_id(job_id),
                event=event,
                caller=caller,
                now=now,
                in_flight=in_flight,
                error=error,
            )
        )

    async def settle(self, owner: str, job_id: str, *, now: int) -> Job | None:
        return await self._steps_of(owner).run(partial(steps.settle, owner=owner, job_id=job_id, now=now))

    async def touch(self, owner: str, job_id: str, *, caller: str | None, now: int, ttl: float) -> bool:
        return await self._steps_of(owner).run(
            partial(steps.touch, job_id=_query_id(job_id), caller=caller, now=now, ttl=ttl)
        )

    async def delete(
        self, owner: str, job_id: str, *, caller: str | None, now: int, ttl: float
    ) -> Removed | None:
        return await self._steps_of(owner).run(
            partial(removal.delete, job_id=_query_id(job_id), caller=caller, now=now, ttl=ttl)
        )

    async def sweep(self, owner: str, job_id: str, *, now: int, ttl: float) -> Removed | None:
        return await self._steps_of(owner).run(partial(removal.sweep, job_id=job_id, now=now, ttl=ttl))

    async def evict(self, owner: str, *, max_bytes: int, now: int, ttl: float) -> Removed | None:
        return await self._steps_of(owner).run(partial(removal.evict, max_bytes=max_bytes, now=now, ttl=ttl))

    async def check(self, owner: str, *, now: int) -> None:
        await self._steps_of(owner).run(partial(steps.check, now=now))


class MemoryStore(SqliteStore):
    """A private store in memory: the same steps, run on the spot."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._inline = Inline(connection)
        super().__init__(self._inline)

    @enable_ki_protection
    async def acquire(self, owner: str, *, now: int) -> Restarted:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._owner is not None:
            raise StoreInUseError("another runner owns this store; close it first")
        # Before the step, which is a checkpoint: a second runner must find it taken.
        self._owner = owner
        try:
            found = await self._inline.run(partial(steps.restart, now=now))
        except BaseException:
            self._owner = None
            raise
        self._writes = self._inline
        return found

    async def release(self, owner: str) -> None:
        await trio.lowlevel.checkpoint()
        if owner == self._owner:
            self._owner = self._writes = None

    async def erase(self, owner: str) -> bool:
        await self._steps_of(owner).run(removal.adjust_overwriting)
        return True  # there is no log


class FileStore(SqliteStore):
    """A store in a file: one thread and one connection write, another connection reads."""

    def __init__(self, path: Path, reader: sqlite3.Connection, durability: str) -> None:
        super().__init__(Threads(reader))
        self._path = path
        self._durability = durability
        self._lock = files.OwnerLock(path)
        self._identity = files.identity(path)

    @enable_ki_protection
    async def acquire(self, owner: str, *, now: int) -> Restarted:
        if self._owner is not None:
            await trio.lowlevel.checkpoint()
            raise StoreInUseError("another runner owns this store; close it first")
        self._owner = owner
        try:
            connection = await in_thread(self._open_writer)
            writer = Writer(connection)
            try:
                found = await writer.run(partial(steps.restart, now=now))
            except BaseException:
                await writer.aclose()
                raise
        except BaseException as exc:
            self._owner = None
            self._lock.release()
            if isinstance(exc.__cause__, sqlite3.DatabaseError):
                with files.reported():  # by what to do: of a step that fails later, this is not known
                    raise exc.__cause__ from None  # noqa: ASYNC104 - it is no Cancelled
            if isinstance(exc, Exception) and not isinstance(exc, StoreError):
                raise store_error(exc) from exc  # noqa: ASYNC104 - an Exception, so no Cancelled
            raise
        self._writes = writer
        return found

    def _open_writer(self) -> sqlite3.Connection:
        crash_point("open: not locked yet")
        self._lock.acquire()
        try:
            self._check_identity()
            crash_point("open: locked")
            return files.connect_writer(self._path, self._durability)
        except BaseException:
            self._lock.release()
            raise

    @enable_ki_protection
    async def release(self, owner: str) -> None:
        if owner != self._owner or not isinstance(self._writes, Writer):
            await trio.lowlevel.checkpoint()
            return
        writer, self._writes = self._writes, None
        try:
            await writer.aclose()
            crash_point("close: not unlocked yet")
        finally:
            self._owner = None
            self._lock.release()

    @enable_ki_protection
    async def aclose(self) -> None:
        """Give the ownership back, if there is one still."""
        if self._owner is not None:
            await self.release(self._owner)

    async def erase(self, owner: str) -> bool:
        self._steps_of(owner)
        assert isinstance(self._writes, Writer)
        try:
            return await self._writes.run(_erase, bare=True)
        except sqlite3.Error as exc:
            raise store_error(exc) from exc

    async def submit(
        self, owner: str, new: NewJob, *, now: int, ttl: float, caps: Caps, max_age: float | None
    ) -> SubmitOutcome:
        self._check_identity()  # a file that was removed takes rows, and nobody ever finds them
        return await super().submit(owner, new, now=now, ttl=ttl, caps=caps, max_age=max_age)

    async def rerun(
        self, owner: str, new_id: str, source_id: str, *, caller: Caller, now: int, ttl: float, caps: Caps
    ) -> RerunOutcome:
        self._check_identity()
        return await super().rerun(owner, new_id, source_id, caller=caller, now=now, ttl=ttl, caps=caps)

    def _check_identity(self) -> None:
        if files.identity(self._path) != self._identity:
            raise StoreError("another file stands where the store was; restore it and start again")

    async def check(self, owner: str, *, now: int) -> None:
        self._check_identity()
        self._lock.check()
        await super().check(owner, now=now)


def _erase(connection: sqlite3.Connection) -> bool:
    removal.adjust_overwriting(connection)
    crash_point("erase: log not wiped yet")
    # Busy while a reader still looks at what the log holds.
    return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]


def open_store(
    path: str | os.PathLike[str], *, durability: Literal["full", "normal"] = "full"
) -> AbstractAsyncContextManager[Store]:
    """Open the store in the file `path`, made if there is none; ":memory:" is a private store.

    With `durability="full"` an acknowledged submit, cancel or stored target survives a power cut;
    with "normal" a killed process loses nothing and a power cut may lose the last moments. The file
    is readable by its owner alone; a link to a store is that store. Nothing is written to an
    existing file before a runner opens on the store.

    Raises `StoreVersionError` for a store of a newer version and `StoreError` for whatever else is
    no store of ours, leaving the file as it was; `StoreInUseError` if another process is making it.
    """
    return Protected(_opened(path, durability))


@asynccontextmanager
@enable_ki_protection
async def _opened(path: str | os.PathLike[str], durability: str) -> AsyncIterator[Store]:
    if durability not in ("full", "normal"):
        raise ValueError(f'durability must be "full" or "normal", not {durability!r}')
    if path == IN_MEMORY:
        connection = sqlite3.connect(IN_MEMORY, isolation_level=None)
        try:
            schema.create(connection)
            schema.configure(connection, durability=durability, in_memory=True)
            yield MemoryStore(connection)
        finally:
            connection.close()
        return
    resolved, reader = await in_thread(_open_file, path)
    try:
        store = FileStore(resolved, reader, durability)
        try:
            yield store
        finally:
            with trio.CancelScope(shield=True):
                await store.aclose()
    finally:
        with trio.CancelScope(shield=True):
            await close_in_thread(reader)


def _open_file(path: str | os.PathLike[str]) -> tuple[Path, sqlite3.Connection]:
    resolved = files.resolve(path)
    files.ensure_store(resolved)
    return resolved, files.connect_reader(resolved)
