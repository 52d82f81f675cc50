"""The desk: is the request sound, and what is its id?

`Runner` is what an application holds. It checks what comes in, asks the store for one step, and tells
the foreman that there is work; it never drains anything itself. By-id calls take `caller=`: another
caller's job is then an unknown id, found out by the same look-up. Next room: `workers.py`.
"""

import contextvars
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import trio
from trio.lowlevel import enable_ki_protection

from .._model.config import Config, check_index, check_number
from .._model.crash import crash_point
from .._model.events import EventLog
from .._model.hooks import Hooks
from .._model.lifecycle import JobEvent, JobState
from .._model.store import Store
from .._model.values import (
    Caller,
    FetchFunc,
    Job,
    JobStatus,
    Progress,
    RunnerStatistics,
    Submission,
    Target,
    TargetStatus,
    caller_name,
)
from .._model.values import attempt as attempt_variable
from .closing import Closing
from .drain import Shop
from .ending import Ending
from .feeds import Feeds
from .intake import Intake
from .ledger import Ledger
from .roster import Roster
from .signals import Signals
from .streams import Results, Watch
from .upkeep import Upkeep
from .workers import Foreman


class Runner:
    """Drains jobs in the background of the block of `open_runner`.

    Its methods may be called from any task of the run, inside or outside the block, and from threads
    through `trio.from_thread`. Every async method is a checkpoint; one that is cancelled has done
    nothing. From the moment closing begins, `submit` and `rerun` raise `trio.ClosedResourceError`;
    once the block has ended, every method does.

    The four calls that change something are protected from Ctrl-C between the store's answer and what
    follows from it: it strikes before, and nothing has happened, or after.
    """

    def __init__(
        self,
        store: Store,
        fetch: FetchFunc,
        config: Config,
        *,
        hooks: Hooks | None,
        now: Callable[[], float],
        log: EventLog,
    ) -> None:
        self._config = config
        self._closing = Closing()
        self._signals = signals = Signals(hooks, log)
        self._ledger = Ledger(store, secrets.token_hex(16), config, now, signals)
        self._roster = Roster(
            lambda live: signals.call("depth", live), lambda n: signals.call("in_flight", n)
        )
        self._feeds = Feeds(self._ledger, self._may_settle)
        self._upkeep = Upkeep(config, self._ledger, self._feeds, signals)
        self._ending = Ending(self._ledger, self._roster, self._feeds, signals, self._upkeep)
        self._workers = min(config.workers, config.workers_limit)
        shop = Shop(
            config=config,
            fetch=fetch,
            context=contextvars.copy_context(),
            ledger=self._ledger,
            roster=self._roster,
            feeds=self._feeds,
            signals=signals,
            closing=self._closing,
            bytes_stored=self._upkeep.add_bytes,
            job_ended=self._ending.ended,
            job_settled=self._ending.settled,
        )
        self._foreman = Foreman(shop, self._upkeep, self._ending, self._workers)
        self._intake = Intake(
            config, self._ledger, self._roster, signals, self._upkeep, self._foreman.job_stored
        )

    def __repr__(self) -> str:
        return f"<Runner: {self._roster.live} live, {self._roster.in_flight} in flight>"

    # ---- new jobs

    @enable_ki_protection
    async def submit(
        self, caller: Caller, targets: Iterable[Target], *, max_age: float | None = None
    ) -> Submission:
        """Store a series of targets as one job and return its id at once.

        If the caller has an equal job that is queued, running, done or partial, that one's id comes
        back with `reused=True` and its lease is bumped; no cap applies. With `max_age` a finished job
        answers only while it finished less than that many seconds ago (0: always fetch again).

        When this returns, the job and all its targets are stored. Cancelled, it leaves either
        nothing or a job that drains like any other. Raises `NoTargetsError`, `TooManyTargetsError`,
        `CallerBusyError`, `JobsBusyError`, `StoreError`, or `TypeError` for what is no `Target`.
        """
        await self._closing.check_accepting()
        return await self._intake.submit(caller, targets, max_age)

    @enable_ki_protection
    async def rerun(self, caller: Caller, job_id: str) -> Submission:
        """Store a new job of a settled job's targets and return its id.

        The `done` targets are carried over with their results and not fetched again; the `failed`
        and `pending` ones are fetched. `rerun_of` of the new job names the old one. With nothing left
        to fetch the new job is done at once.

        Raises `LookupError` for a job that is unknown or another caller's, `SubmitError` for one that
        has not settled, `CallerBusyError`, `JobsBusyError` and `StoreError`.
        """
        await self._closing.check_accepting()
        return await self._intake.rerun(caller, _id(job_id))

    # ---- one job

    @enable_ki_protection
    async def cancel(self, job_id: str, *, caller: Caller | str | None = None) -> bool:
        """Cancel a live job; False for one that is unknown or terminal.

        The job is `cancelled` when this returns. A fetch in flight finishes and is stored, and then
        the job settles; a target that waits goes back to `pending`; no further target starts.
        """
        self._closing.check_open()
        return await self._ending.stop(_id(job_id), JobEvent.CANCEL, caller=caller_name(caller))

    @enable_ki_protection
    async def delete(self, job_id: str, *, caller: Caller | str | None = None) -> bool:
        """Remove a settled job with its results; False for one that is unknown or has not settled."""
        self._closing.check_open()
        removed = await self._ledger.delete(_id(job_id), caller_name(caller))
        if removed is None:
            return False
        crash_point("delete: not told yet")
        self._signals.log.bind(job_id=removed.job_id).event("job.deleted")
        self._upkeep.removed(removed)
        return True

    async def touch(self, job_id: str, *, caller: Caller | str | None = None) -> None:
        """Set a job's lease to now, never backwards: it stays readable for a whole TTL from here.

        A lapsed job can't be touched back to life; an unknown one is passed over.
        """
        self._closing.check_open()
        await self._ledger.touch(_id(job_id), caller_name(caller))

    async def job(self, job_id: str, *, caller: Caller | str | None = None) -> Job | None:
        """Return the job as it is stored, or None for one that is unknown or lapsed. A pure read."""
        self._closing.check_open()
        return await self._ledger.job(_id(job_id), caller_name(caller))

    async def status(
        self,
        job_id: str,
        *,
        results: bool = True,
        start: int = 0,
        stop: int | None = None,
        caller: Caller | str | None = None,
    ) -> JobStatus | None:
        """Return the job and its targets with `start <= idx < stop`, or None. A pure read.

        Without `results`, no result is read from the disk and each `result` is None.
        """
        self._closing.check_open()
        check_index("start", start)
        if stop is not None:
            check_index("stop", stop)
        return await self._ledger.status(
            _id(job_id), caller_name(caller), results=results, start=start, stop=stop
        )

    async def jobs(
        self,
        caller: Caller | str | None = None,
        *,
        status: JobState | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Job]:
        """Return at most `limit` jobs, newest submission first: those of one caller, or all.

        `before` is the id of the last job of the page before. Raises `LookupError` if that one is not
        there any more, so that a short list is never taken for a whole one.
        """
        self._closing.check_open()
        check_number("limit", limit, whole=True)
        found = await self._ledger.jobs(
            caller_name(caller), None if status is None else JobState(status), before, limit
        )
        if found is None:
            raise LookupError("the job to list from is not there (any more); list from the newest again")
        return found

    async def gone(self, job_id: str, *, caller: Caller | str) -> str | None:
        """Return why a job of `caller` is gone: "ttl", "budget" or "deleted"; None if not known.

        At most 10,000 jobs are remembered, for 7 days, and none of restricted callers.
        """
        self._closing.check_open()
        name = caller_name(caller)
        if name is None:
            raise TypeError("gone needs the caller whose job it was")
        return await self._ledger.gone(_id(job_id), name)

    # ---- waiting

    async def wait(self, job_id: str, *, caller: Caller | str | None = None) -> Job | None:
        """Return the job once it has settled; None at once for one that is unknown or lapsed.

        Raises `trio.ClosedResourceError` as soon as it is certain that it will not settle here.
        """
        self._closing.check_open()
        return await self._feeds.wait(_id(job_id), caller_name(caller))

    def watch(
        self, job_id: str, *, caller: Caller | str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[JobStatus]]:
        """Follow a job: `async with runner.watch(id) as statuses: async for status in statuses`.

        Yields a status without results at once and at each new version, the latest if the reader is
        slow, and ends with the settled one. An unknown job yields nothing. Raises `LookupError` if
        the job goes while it is followed, and `trio.ClosedResourceError` like `wait`.
        """
        self._closing.check_open()
        return Watch(self._feeds, _id(job_id), caller_name(caller))

    def results(
        self, job_id: str, *, start: int = 0, caller: Caller | str | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[TargetStatus]]:
        """Read a job's finished targets, each once, in order, with results, as they come.

        Begins at index `start`. Once the job has settled, targets that never finished are passed
        over and the stream ends. An unknown job yields nothing. Raises like `watch`.
        """
        self._closing.check_open()
        check_index("start", start)
        return Results(self._feeds, _id(job_id), caller_name(caller), start)

    async def drain(self) -> None:
        """Wait until no job is live or unsettled. Stops nothing, and new submits prolong it.

        Called in a fetch of this runner it could never return, and raises `RuntimeError`.
        """
        self._closing.check_open()
        inside = attempt_variable.get(None)
        if inside is not None and self._roster.get(inside.job_id) is not None:
            raise RuntimeError("drain() in a fetch would wait for that very fetch")
        while len(self._roster):
            # Asked about every job only then: each job that ends comes by here once.
            for live in self._roster.jobs() if self._closing.begun else ():
                await self._feeds.check_coming(live.id)
            await self._roster.changed.park()
        await trio.lowlevel.checkpoint()

    async def check(self) -> None:
        """Write to the store and read back; raise `StoreError` when that can't be done."""
        self._closing.check_open()
        await self._ledger.check()

    # ---- from memory

    def progress(self, job_id: str, *, caller: Caller | str | None = None) -> Progress | None:
        """Return why a live job waits and how fast it goes; None for any other. From memory."""
        self._closing.check_open()
        live = self._roster.get(_id(job_id))
        name = caller_name(caller)
        if live is None or live.ended or (name is not None and live.caller.name != name):
            return None
        pace = eta = None
        if live.stored_here:
            pace = (trio.current_time() - live.started) / live.stored_here
            eta = pace * live.targets_left
        if live.refusals:
            return Progress("store", live.refused_since, pace, eta)
        return Progress(live.reason, live.since, pace, eta)

    def statistics(self) -> RunnerStatistics:
        """Return counts of this moment. From memory."""
        self._closing.check_open()
        jobs = [live for live in self._roster.jobs() if not live.ended]
        queued = sum(live.queued for live in jobs)
        return RunnerStatistics(
            workers=self._workers,
            queued=queued,
            running=len(jobs) - queued,
            in_flight=self._roster.in_flight,
            stored_bytes=self._upkeep.stored_bytes,
            erasure_pending=self._upkeep.erasure_pending,
        )

    def _may_settle(self, job_id: str) -> bool:
        """Whether a job that has not settled yet may still do so here."""
        live = self._roster.find(job_id)
        if live is None or self._closing.over:
            return False
        return not self._closing.begun or live.draining or live.stops > 0

    # ---- opening and closing

    @asynccontextmanager
    @enable_ki_protection
    async def opened(self) -> AsyncIterator[None]:
        """Own the store and run the engine round the block."""
        restarted = await self._ledger.acquire()
        try:
            self._upkeep.stored_bytes = restarted.stored_bytes
            for job in restarted.failed:
                self._signals.ended(job, None)
            self._tell_opened(len(restarted.failed))
            async with self._foreman.host():
                yield
        finally:
            self._closing.over = self._feeds.over = True
            # Whoever still waits must hear that nothing will come any more.
            self._feeds.closing()
            self._roster.changed.unpark_all()
            crash_point("closing: work over")
            with trio.CancelScope(shield=True):
                await self._ledger.release()
            self._signals.log.event("runner.closed", live=self._roster.live)

    def _tell_opened(self, restarted: int) -> None:
        signals, config = self._signals, self._config
        if config.workers > self._workers:
            signals.log.event("workers.clamped", asked=config.workers, limit=self._workers)
        signals.call("depth", 0)
        signals.call("in_flight", 0)
        signals.call("stored", self._upkeep.stored_bytes)
        # Sizes go to the hooks alone: a log must not differ where only the targets do.
        signals.log.event("runner.opened", workers=self._workers, restarted=restarted)


def _id(job_id: str) -> str:
    """Return the id as it is; what can be no id is unknown, but for the commonest slip there is a word."""
    if isinstance(job_id, Submission):
        raise TypeError("this is a Submission in place of a job's id; give its .id")
    return job_id


@asynccontextmanager
@enable_ki_protection
async def open_engine(
    store: Store,
    fetch: FetchFunc,
    config: Config,
    *,
    hooks: Hooks | None,
    now: Callable[[], float],
    log: EventLog,
) -> AsyncIterator[Runner]:
    """Run a `Runner` round the block: see `sift_batch.open_runner`."""
    if not callable(fetch):
        raise TypeError(f"fetch must be an async function, not {type(fetch).__name__}")
    if not isinstance(config, Config):
        raise TypeError(f"config must be a Config, not {type(config).__name__}")
    if not callable(getattr(store, "acquire", None)):
        kind = type(store).__name__
        raise TypeError(f"store must be what `async with open_store(...)` gives, not {kind}")
    if isinstance(hooks, type):
        raise TypeError(f"hooks must be an instance: {hooks.__name__}(), not the class")
    runner = Runner(store, fetch, config, hooks=hooks, now=now, log=log)
    async with runner.opened():
        yield runner
