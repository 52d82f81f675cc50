"""What does an application do when its store fails? A store that fails on purpose.

It fails as a store may: a `StoreError` means that nothing happened, so a call that fails never
reaches the store behind it. What a store must do when it works is in `check_store`.
"""

from collections.abc import Collection
from math import inf

import trio

from .._model.errors import StoreError
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


class FaultyStore:
    """A `Store` around another one: the call number `fail_at` raises `StoreError`.

        async with open_store(":memory:") as inner:
            store = FaultyStore(inner, fail_at=2, operations={"record"})
            async with open_runner(store, fetch) as runner:
                ...                      # the second result is refused once, then stored
            assert store.failed == 1

    Calls count from 1, over all operations or only the named ones; `times` calls in a row fail
    (`inf`: all from there on). Without `fail_at` nothing fails until `fail` is called.

    Attributes: `calls`, the names of all operations asked for, in order; `failed`, how many of them
    failed.
    """

    def __init__(
        self,
        store: Store,
        fail_at: int | None = None,
        *,
        times: float = 1,
        operations: Collection[str] | None = None,
    ) -> None:
        if fail_at is not None and fail_at < 1:
            raise ValueError(f"calls count from 1, so fail_at can't be {fail_at}")
        self._store = store
        self.calls: list[str] = []
        self.failed = 0
        # Calls that still pass before the next failure, and how many fail then.
        self._passing = inf if fail_at is None else fail_at - 1
        self._failing = times
        self._operations = _checked(operations)

    def fail(self, times: float = inf, *, operations: Collection[str] | None = None) -> None:
        """Let the next `times` calls fail, of the named operations or of all."""
        self._operations = _checked(operations)
        self._passing, self._failing = 0, times

    def recover(self) -> None:
        """Let no call fail any more."""
        self._failing = 0

    async def _pass(self, operation: str) -> None:
        self.calls.append(operation)
        if self._operations is not None and operation not in self._operations:
            return
        if self._passing > 0:
            self._passing -= 1
        elif self._failing > 0:
            self._failing -= 1
            self.failed += 1
            await trio.lowlevel.checkpoint()
            raise StoreError(f"{operation} was made to fail")

    async def acquire(self, owner: str, *, now: int) -> Restarted:
        await self._pass("acquire")
        return await self._store.acquire(owner, now=now)

    async def release(self, owner: str) -> None:
        await self._pass("release")
        await self._store.release(owner)

    async def submit(
        self, owner: str, new: NewJob, *, now: int, ttl: float, caps: Caps, max_age: float | None
    ) -> SubmitOutcome:
        await self._pass("submit")
        return await self._store.submit(owner, new, now=now, ttl=ttl, caps=caps, max_age=max_age)

    async def rerun(
        self, owner: str, new_id: str, source_id: str, *, caller: Caller, now: int, ttl: float, caps: Caps
    ) -> RerunOutcome:
        await self._pass("rerun")
        return await self._store.rerun(owner, new_id, source_id, caller=caller, now=now, ttl=ttl, caps=caps)

    async def begin(self, owner: str, *, now: int) -> Work | None:
        await self._pass("begin")
        return await self._store.begin(owner, now=now)

    async def record(
        self, owner: str, job_id: str, idx: int, outcome: Outcome, *, now: int
    ) -> Recorded | None:
        await self._pass("record")
        return await self._store.record(owner, job_id, idx, outcome, now=now)

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
        await self._pass("stop")
        return await self._store.stop(
            owner, job_id, event, caller=caller, now=now, in_flight=in_flight, error=error
        )

    async def settle(self, owner: str, job_id: str, *, now: int) -> Job | None:
        await self._pass("settle")
        return await self._store.settle(owner, job_id, now=now)

    async def touch(self, owner: str, job_id: str, *, caller: str | None, now: int, ttl: float) -> bool:
        await self._pass("touch")
        return await self._store.touch(owner, job_id, caller=caller, now=now, ttl=ttl)

    async def delete(
        self, owner: str, job_id: str, *, caller: str | None, now: int, ttl: float
    ) -> Removed | None:
        await self._pass("delete")
        return await self._store.delete(owner, job_id, caller=caller, now=now, ttl=ttl)

    async def lapsed(self, *, now: int, ttl: float) -> Lapsed:
        await self._pass("lapsed")
        return await self._store.lapsed(now=now, ttl=ttl)

    async def sweep(self, owner: str, job_id: str, *, now: int, ttl: float) -> Removed | None:
        await self._pass("sweep")
        return await self._store.sweep(owner, job_id, now=now, ttl=ttl)

    async def evict(self, owner: str, *, max_bytes: int, now: int, ttl: float) -> Removed | None:
        await self._pass("evict")
        return await self._store.evict(owner, max_bytes=max_bytes, now=now, ttl=ttl)

    async def erase(self, owner: str) -> bool:
        await self._pass("erase")
        return await self._store.erase(owner)

    async def check(self, owner: str, *, now: int) -> None:
        await self._pass("check")
        await self._store.check(owner, now=now)

    async def job(self, job_id: str, *, caller: str | None, now: int, ttl: float) -> Job | None:
        await self._pass("job")
        return await self._store.job(job_id, caller=caller, now=now, ttl=ttl)

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
        await self._pass("status")
        return await self._store.status(
            job_id, caller=caller, now=now, ttl=ttl, results=results, start=start, stop=stop
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
        await self._pass("jobs")
        return await self._store.jobs(
            caller=caller, status=status, before=before, limit=limit, now=now, ttl=ttl
        )

    async def gone(self, job_id: str, *, caller: str, now: int, ttl: float) -> str | None:
        await self._pass("gone")
        return await self._store.gone(job_id, caller=caller, now=now, ttl=ttl)


def _checked(operations: Collection[str] | None) -> Collection[str] | None:
    if isinstance(operations, str):
        raise TypeError("operations must be a collection of names; a single str is none")
    for name in operations or ():
        # A misspelt name would be a test that can't fail.
        if name.startswith("_") or not hasattr(Store, name):
            raise ValueError(f"a store has no operation {name!r}")
    return operations
