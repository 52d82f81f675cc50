"""Who works now, and who must stop?

The foreman hosts everything that runs: the workers, each of which asks the store for the job that was
submitted first and drains it; the upkeep; the timekeeper. And it is the way out. Three scopes matter:

- the *engine's* own shield round all of it, so that a cancellation from outside does not tear the
  work apart but begins the closing (`watch` notices it, whatever the body does meanwhile);
- the *work* scope inside, cancelled when closing begins: nothing new starts, waits end;
- the shields of fetches in flight inside that, which get their deadline then (`closing.py`).

The nursery can't be seen from outside: what the body raised is raised as it was, and nothing of ours
comes wrapped in a group. Next room: `drain.py`.
"""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import trio
from trio.lowlevel import Abort, RaiseCancelT, enable_ki_protection

from .._model.crash import crash_point
from .._model.lifecycle import JobEvent
from .._model.store import Work
from .drain import Drain, Shop
from .ending import Ending
from .roster import LiveJob
from .upkeep import Upkeep

_STUCK_AFTER: Final = 5.0


class Foreman:
    """Hosts the tasks of one runner, and ends them."""

    def __init__(self, shop: Shop, upkeep: Upkeep, ending: Ending, workers: int) -> None:
        self._shop = shop
        self._upkeep = upkeep
        self._ending = ending
        self._workers = workers
        # One permit for each job that was stored and that no worker has asked for yet.
        self._queued = trio.Semaphore(0)
        self._work_scope = trio.CancelScope()
        self._body_scope = trio.CancelScope()
        self._ended = trio.Event()
        self._watcher: trio.lowlevel.Task | None = None
        self._watched = trio.Event()
        # When the timekeeper looks at the jobs next.
        self._next_look = math.inf
        # What a fetch raised that must end the program.
        self._fatal: BaseException | None = None

    def job_stored(self) -> None:
        """Let a worker look for a queued job."""
        self._queued.release()

    # ---- the way in and out

    @asynccontextmanager
    @enable_ki_protection
    async def host(self) -> AsyncIterator[None]:
        """Run the engine round the block; what the block raises comes out as itself."""
        error: BaseException | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_engine)
            nursery.start_soon(self._guard, self._watch)
            try:
                with self._body_scope:
                    yield
            except BaseException as exc:  # noqa: ASYNC103 - raised again once all work has ended
                error = exc
            error = await self._close(error)
        try:
            if error is not None:
                raise error
        finally:
            del error

    async def _close(self, error: BaseException | None) -> BaseException | None:
        """Wait until all work has ended; return what is to be raised."""
        interrupt: BaseException | None = None
        # Until both tasks are over: a Ctrl-C that met the nursery's own wait would come out in a group.
        while not (self._ended.is_set() and self._watched.is_set()):
            # A Ctrl-C in the grace ends it; everything else waits for its end.
            try:
                with trio.CancelScope(shield=True):
                    self.begin_closing()
                    await self._ended.wait()
                    self._release_watcher()
                    await self._watched.wait()
            except (KeyboardInterrupt, SystemExit) as exc:
                self._shop.closing.end_grace()
                interrupt = exc
        fatal, self._fatal = self._fatal, None  # not kept: it has the frames of the fetch
        return fatal or interrupt or error

    def begin_closing(self) -> None:
        """Start nothing more, and give what is in flight its grace. Safe to repeat."""
        if self._work_scope.cancel_called:
            return
        self._shop.closing.begin(self._shop.config.shutdown_grace)
        crash_point("closing: begun")
        self._work_scope.cancel()
        self._shop.feeds.closing()
        self._shop.roster.changed.unpark_all()
        # Told last: a logger may end the program.
        self._shop.signals.log.event(
            "runner.closing",
            live=self._shop.roster.live,
            in_flight=self._shop.roster.in_flight,
            grace=min(self._shop.config.shutdown_grace, 1e9),
        )

    async def _watch(self) -> None:
        """Begin the closing when the surrounding scope is cancelled, even if the body goes on."""
        self._watcher = trio.lowlevel.current_task()

        def noticed(_: RaiseCancelT) -> Abort:
            # From this moment no submit is taken. The rest is done a turn later, by this task, since
            # Trio is in the middle of delivering a cancellation now.
            self._shop.closing.begun = True
            self._release_watcher()
            return Abort.FAILED

        try:
            await trio.lowlevel.wait_task_rescheduled(noticed)
            if not self._ended.is_set():
                self.begin_closing()
        finally:
            self._watched.set()

    def _release_watcher(self) -> None:
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            trio.lowlevel.reschedule(watcher)

    # ---- the work

    @enable_ki_protection
    async def _run_engine(self) -> None:
        try:
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as timed:
                    timed.start_soon(self._guard, self._keep_time, timed)
                    with self._work_scope:
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(self._guard, self._upkeep.run)
                            for _ in range(self._workers):
                                nursery.start_soon(self._guard, self._work)
                    timed.cancel_scope.cancel()
        finally:
            self._shop.closing.begun = True
            self._ended.set()

    @enable_ki_protection
    async def _guard(self, work: Callable[..., Awaitable[None]], *args: object) -> None:
        """Run one of the engine's tasks; what must end the program does so, and comes out bare."""
        # Protected like everything here but the fetch: a Ctrl-C that struck between two steps of the
        # engine's own would cut them apart. It reaches the main task at its next checkpoint instead.
        try:
            await work(*args)
        except (KeyboardInterrupt, SystemExit) as exc:
            self._end_at_once(exc)

    async def _work(self) -> None:
        while True:
            await self._queued.acquire()
            await self._drain_next()

    async def _drain_next(self) -> None:
        # A function of its own, so that an idle worker holds nothing of the job that it had.
        shop = self._shop
        trio.lowlevel.current_task().context = shop.context.copy()
        work = await self._begin()
        live = None if work is None else shop.roster.stored(work.job.id)
        if work is None or live is None or live.settled:
            return  # it was ended from outside while it was queued
        self._note_begin(live)
        await Drain(shop, live, work.job, work.targets).run()

    async def _begin(self) -> Work | None:
        """Ask the store for the job that was submitted first; a refusal is told as that job's."""
        shop = self._shop
        expected = shop.roster.next_queued()
        if expected is None:
            return await shop.ledger.offer("begin", shop.ledger.begin, None)
        expected.asked_for = True
        try:
            return await shop.ledger.offer("begin", shop.ledger.begin, expected)
        finally:
            expected.asked_for = False

    def _note_begin(self, live: LiveJob) -> None:
        shop = self._shop
        live.queued = False
        live.draining = True
        live.wait_for("", None)
        live.started = trio.current_time()
        live.deadline = live.started + shop.config.job_timeout
        shop.feeds.changed(live.id)
        if self._next_look == math.inf:
            # As long as the timekeeper sees one job, it looks in time for those that begin meanwhile.
            shop.closing.moved.unpark_all()
        live.log.event("job.started")

    def _end_at_once(self, exc: BaseException) -> None:
        """A fetch raised what must end the program: no grace, and the body ends as well."""
        if self._fatal is None:
            self._fatal = exc
        self._shop.closing.end_grace()
        self.begin_closing()
        self._body_scope.cancel()

    # ---- the clock

    async def _keep_time(self, nursery: trio.Nursery) -> None:
        """End jobs whose time is up, and tell of fetches that can't be ended."""
        while True:
            # Woken as well when the first job begins and when the grace of the closing is set or moved.
            self._next_look = self._next_due()
            with trio.move_on_at(self._next_look):
                await self._shop.closing.moved.park()
            self._end_overdue(nursery)
            self._warn_stuck(trio.current_time())

    def _end_overdue(self, nursery: trio.Nursery) -> None:
        now = trio.current_time()
        for live in self._shop.roster.jobs():
            if live.deadline <= now and not live.expiring and not live.ended:
                live.expiring = True
                nursery.start_soon(self._guard, self._expire, live)

    def _next_due(self) -> float:
        running = [live for live in self._shop.roster.jobs() if live.draining]
        if not running:
            return math.inf
        # The time of a job that has ended already is of no interest: its last fetch may go on for long.
        due = [live.deadline for live in running if not (live.expiring or live.ended)]
        due += [self._stuck_at(live) for live in running if live.fetching and not live.warned]
        # Jobs and attempts that begin meanwhile are due later than this.
        config = self._shop.config
        meanwhile = min(config.target_timeout + _STUCK_AFTER, config.job_timeout)
        return min([trio.current_time() + meanwhile, *due])

    def _stuck_at(self, live: LiveJob) -> float:
        return min(live.attempt_deadline, self._shop.closing.grace_end) + _STUCK_AFTER

    async def _expire(self, live: LiveJob) -> None:
        # However often the store refuses: no target starts any more.
        live.stops += 1
        try:
            await self._shop.ledger.offer(
                "stop",
                lambda: self._ending.stop(live.id, JobEvent.TIMEOUT, caller=None, error="timeout"),
                live,
            )
        finally:
            self._ending.stop_over(live)

    def _warn_stuck(self, now: float) -> None:
        """Log each job with a fetch whose time was up 5 s before `now` and that goes on all the same."""
        for live in self._shop.roster.jobs():
            if live.fetching and not live.warned and self._stuck_at(live) <= now:
                live.warned = True
                live.log.event("fetch.stuck")
