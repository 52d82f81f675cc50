"""How does the engine ask the store, and what if the store refuses?

`Ledger` adds what every step needs and no room should repeat: the owner's token, the time in whole
seconds, the time that the step took. A store of somebody else's may raise anything; past this room
only `StoreError` is left. `offer` is for the steps of a running job, which must not be lost: they are
kept and offered again until they are stored. Next room: the store itself.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import trio

from .._model.config import Config
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
from .._model.values import Caller, Job, JobStatus, Target
from .._passing import what_passes
from .roster import LiveJob
from .signals import Signals

T = TypeVar("T")
_END_OF_TIME: Final = 2**61
_FIRST_DELAY: Final = 1.0
_LAST_DELAY: Final = 30.0


class Ledger:
    """The store as this runner sees it."""

    def __init__(
        self, store: Store, owner: str, config: Config, now: Callable[[], float], signals: Signals
    ) -> None:
        self.store = store
        self._owner = owner
        self._ttl = config.ttl
        self._caps = Caps(config.jobs_per_caller, config.jobs_total)
        self._now = now
        self._last_now = 0
        self._signals = signals

    def now(self) -> int:
        """Return the wall clock in whole unix seconds; a clock that fails stands still."""
        # The clock is the application's: what it raises, or a time that no column holds, must not end
        # a drain half-way.
        try:
            now = int(self._now())
        except Exception:
            return self._last_now
        if abs(now) < _END_OF_TIME:
            self._last_now = now
        return self._last_now

    async def _asked(self, operation: str, ask: Callable[[], Awaitable[T]]) -> T:
        began = trio.current_time() if self._signals.measured else 0.0
        try:
            return await ask()
        except (StoreError, GeneratorExit):
            raise
        except BaseException as exc:  # noqa: ASYNC103 - what must pass is raised
            passes = what_passes(exc)
            if passes is not None:
                raise passes  # noqa: ASYNC104, B904 - bare: it is no consequence of the store's
            # A store may be built on a compiled extension, and some of those raise such a thing.
            raise StoreError(f"the store could not do this step ({type(exc).__name__})") from exc  # noqa: ASYNC104 - `passes` had it
        finally:
            if self._signals.measured:
                self._signals.call("store", operation, trio.current_time() - began)

    async def offer(self, operation: str, ask: Callable[[], Awaitable[T]], job: LiveJob | None) -> T:
        """Ask until the store does it: again after 1, 2, 4 … 30 s. One warning for the whole spell."""
        try:
            return await ask()
        except StoreError as exc:
            if job is None or not job.refusals:
                self.trouble(operation, exc, job)
        if job is None:
            return await self._offer_again(ask)
        if not job.refusals:
            job.refused_since = self.now()
        job.refusals += 1
        try:
            return await self._offer_again(ask)
        finally:
            job.refusals -= 1

    async def _offer_again(self, ask: Callable[[], Awaitable[T]]) -> T:
        delay = _FIRST_DELAY
        while True:
            await trio.sleep(delay)
            try:
                return await ask()
            except StoreError:
                delay = min(2 * delay, _LAST_DELAY)

    def trouble(self, operation: str, exc: StoreError, job: LiveJob | None = None) -> None:
        """Log that the store refused a step, by the kind of its error."""
        log = self._signals.log if job is None else job.log
        cause = exc.__cause__ if exc.__cause__ is not None else exc
        error = getattr(cause, "sqlite_errorname", None) or type(cause).__name__
        log.event("store.trouble", step=operation, error=str(error))

    async def acquire(self) -> Restarted:
        return await self._asked("acquire", lambda: self.store.acquire(self._owner, now=self.now()))

    async def release(self) -> None:
        """Give the ownership back. What goes wrong is logged: it must not hide how the block ended."""
        try:
            await self._asked("release", lambda: self.store.release(self._owner))
        except StoreError as exc:
            self.trouble("release", exc)

    async def submit(
        self, job_id: str, caller: Caller, targets: Sequence[Target], max_age: float | None
    ) -> SubmitOutcome:
        new = NewJob(id=job_id, caller=caller, targets=targets)
        return await self._asked(
            "submit",
            lambda: self.store.submit(
                self._owner, new, now=self.now(), ttl=self._ttl, caps=self._caps, max_age=max_age
            ),
        )

    async def rerun(self, job_id: str, source_id: str, caller: Caller) -> RerunOutcome:
        return await self._asked(
            "rerun",
            lambda: self.store.rerun(
                self._owner,
                job_id,
                source_id,
                caller=caller,
                now=self.now(),
                ttl=self._ttl,
                caps=self._caps,
            ),
        )

    async def begin(self) -> Work | None:
        return await self._asked("begin", lambda: self.store.begin(self._owner, now=self.now()))

    async def record(self, job_id: str, idx: int, outcome: Outcome) -> Recorded | None:
        return await self._asked(
            "record", lambda: self.store.record(self._owner, job_id, idx, outcome, now=self.now())
        )

    async def stop(
        self, job_id: str, event: JobEvent, *, caller: str | None, in_flight: bool, error: str = ""
    ) -> Job | None:
        return await self._asked(
            "stop",
            lambda: self.store.stop(
                self._owner,
                job_id,
                event,
                caller=caller,
                now=self.now(),
                in_flight=in_flight,
                error=error,
            ),
        )

    async def settle(self, job_id: str) -> Job | None:
        return await self._asked("settle", lambda: self.store.settle(self._owner, job_id, now=self.now()))

    async def touch(self, job_id: str, caller: str | None) -> bool:
        return await self._asked(
            "touch",
            lambda: self.store.touch(self._owner, job_id, caller=caller, now=self.now(), ttl=self._ttl),
        )

    async def delete(self, job_id: str, caller: str | None) -> Removed | None:
        return await self._asked(
            "delete",
            lambda: self.store.delete(self._owner, job_id, caller=caller, now=self.now(), ttl=self._ttl),
        )

    async def lapsed(self) -> Lapsed:
        return await self._asked("lapsed", lambda: self.store.lapsed(now=self.now(), ttl=self._ttl))

    async def sweep(self, job_id: str) -> Removed | None:
        return await self._asked(
            "sweep", lambda: self.store.sweep(self._owner, job_id, now=self.now(), ttl=self._ttl)
        )

    async def evict(self, max_bytes: int) -> Removed | None:
        return await self._asked(
            "evict", lambda: self.store.evict(self._owner, max_bytes=max_bytes, now=self.now(), ttl=self._ttl)
        )

    async def erase(self) -> bool:
        return await self._asked("erase", lambda: self.store.erase(self._owner))

    async def check(self) -> None:
        await self._asked("check", lambda: self.store.check(self._owner, now=self.now()))

    async def job(self, job_id: str, caller: str | None) -> Job | None:
        return await self._asked(
            "job", lambda: self.store.job(job_id, caller=caller, now=self.now(), ttl=self._ttl)
        )

    async def jobs(
        self, caller: str | None, status: JobState | None, before: str | None, limit: int
    ) -> list[Job] | None:
        return await self._asked(
            "jobs",
            lambda: self.store.jobs(
                caller=caller, status=status, before=before, limit=limit, now=self.now(), ttl=self._ttl
            ),
        )

    async def gone(self, job_id: str, caller: str) -> str | None:
        return await self._asked(
            "gone", lambda: self.store.gone(job_id, caller=caller, now=self.now(), ttl=self._ttl)
        )

    async def status(
        self, job_id: str, caller: str | None, *, results: bool, start: int = 0, stop: int | None = None
    ) -> JobStatus | None:
        return await self._asked(
            "status",
            lambda: self.store.status(
                job_id,
                caller=caller,
                now=self.now(),
                ttl=self._ttl,
                results=results,
                start=start,
                stop=stop,
            ),
        )
