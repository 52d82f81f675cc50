"""How does a list of targets become lines of results?

The main job of the command line: a runner on a store of its own, which is fed by `submitter` and read
by `printer`, until all is written, a signal asks to stop, or the disk is full. It parses nothing and
fetches nothing itself. Next: `submitter`.
"""

import errno
import math
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Final

import trio

from sift_batch import (
    Config,
    Gate,
    Hooks,
    Job,
    Runner,
    Store,
    StoreError,
    StoreInUseError,
    open_runner,
    open_store,
)

from ..fetch import open_fetcher
from .carry import Carried, beyond_use, carried_text, discard_store, find_carried, lost_text, remove_store
from .lines import Sink
from .plan import Outcome, Plan, Refused, Window
from .printer import Printer
from .screen import Screen, counted
from .signals import ending_signals
from .spread import TARGETS_PER_JOB
from .store_watch import watch_store
from .submitter import Submitter

_DRAW_EVERY: Final = 0.1
# A fetch has a minute for the network and half a one for reading the page; in this time each one that
# runs can still be stored.
_GRACE: Final = 105.0
_WINDOWS_AHEAD: Final = 64
_WAITS: Final = {
    "gate": "waiting for the gate",
    "host": "waiting for a busy host",
    "retry_after": "waiting as long as a host asked",
    "store": "waiting for the disk",
}


async def drain_batch(
    plan: Plan, sink: Sink, screen: Screen, *, on_owned: Callable[[], object] = lambda: None
) -> Outcome:
    """Fetch all targets of the plan and write their lines; return when all is said and stored.

    The first SIGINT, SIGTERM or SIGHUP stops it in good order: what is in flight is finished and stored.
    The second one ends the process at once. With a file store, a later batch carries on from there.
    `on_owned` is called once the store is this batch's own. Raises `Refused` when nothing could begin.
    """
    outcome = Outcome(len(plan.targets))
    batch = _Batch(plan, sink, screen, outcome, on_owned)
    try:
        with trio.open_signal_receiver(signal.SIGINT, *ending_signals()) as signals:
            # The fetch first: when its extra is missing, no store is made.
            async with (
                open_fetcher(plan.fetch, gate=Gate()) as fetch,
                _store_of(plan) as store,
                trio.open_nursery() as nursery,
            ):
                nursery.start_soon(batch.obey, signals)
                async with open_runner(store, fetch, _config(plan.parallel), hooks=_Told(batch)) as runner:
                    await batch.run(runner, nursery)
                # Whatever was stored while the runner closed is still to be written.
                await batch.written.wait()
                nursery.cancel_scope.cancel()
    except* StoreError as group:
        reason = _reason(_leaf(group), plan)
        outcome.error = reason if plan.store is None else f"{plan.store}: {reason}"
    if outcome.error and not outcome.began:
        raise Refused(outcome.error, outcome.error_code)
    if outcome.all_done and plan.store is not None:
        _tidy_up(plan, sink, outcome)
    return outcome


def _store_of(plan: Plan) -> AbstractAsyncContextManager[Store]:
    if plan.store is None:
        return open_store(":memory:")
    if plan.fresh:
        discard_store(plan.store)
    return open_store(plan.store)


def _config(parallel: int) -> Config:
    # Nothing lapses and nothing is evicted: the store belongs to this one command.
    return Config(
        ttl=math.inf,
        targets_per_job=TARGETS_PER_JOB,
        jobs_total=4 * parallel,
        workers=parallel,
        workers_limit=parallel,
        max_bytes=2**62,
        job_timeout=math.inf,
        shutdown_grace=_GRACE,
        sweep_every=3_600.0,
    )


def _leaf(group: BaseExceptionGroup[StoreError]) -> BaseException:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException, plan: Plan) -> str:
    if isinstance(error, StoreInUseError):
        return "another sift-batch run is using it; wait until it ends, or choose another output"
    return str(error.args[0]) if plan.store is None else beyond_use(plan.store, error)


def _tidy_up(plan: Plan, sink: Sink, outcome: Outcome) -> None:
    assert plan.store is not None
    try:
        # The lines must be safe before the store that could give them again is gone.
        sink.sync()
        with suppress(StoreError):
            remove_store(plan.store)
    except OSError as error:
        outcome.error = cant_write(error)


def cant_write(error: OSError) -> str:
    """Say why lines can't be written, and what to do."""
    reason = os.strerror(error.errno) if error.errno else "unknown reason"
    return f"the output can't be written ({reason}); make room or choose another file, and run it again"


def _stopping_text(in_flight: int) -> str:
    if not in_flight:
        return "stopping: nothing is in flight"
    flying = f"{counted(in_flight, 'fetch', 'fetches')} in flight will be finished and stored"
    return f"stopping: {flying}, in {_GRACE:.0f} s at most; a second signal ends at once"


class _Told(Hooks):
    """What the runner tells the batch."""

    def __init__(self, batch: "_Batch") -> None:
        self._batch = batch

    def target(self, error: Exception | None, seconds: float, result_bytes: int) -> None:
        self._batch.outcome.fetched += 1
        self._batch.outcome.failed += error is not None
        self._batch.screen.advance(failed=error is not None)

    def ended(self, job: Job) -> None:
        self._batch.submitter.job_ended(job.caller)

    def in_flight(self, n: int) -> None:
        self._batch.in_flight = n


class _Batch:
    def __init__(
        self, plan: Plan, sink: Sink, screen: Screen, outcome: Outcome, on_owned: Callable[[], object]
    ) -> None:
        self._plan = plan
        self._sink = sink
        self._on_owned = on_owned
        self._stopping = trio.Event()
        self.screen = screen
        self.outcome = outcome
        self.submitter = Submitter(plan)
        self.in_flight = 0
        self.written = trio.Event()

    async def run(self, runner: Runner, outer: trio.Nursery) -> None:
        """Submit, print and show until all is written or something says stop.

        What runs in `outer` goes on while the runner closes: the printer, and the look at the store.
        """
        carried = await self._look_back(runner)
        if not self._begin(carried):
            self.written.set()
            return
        send, receive = trio.open_memory_channel[Window](_WINDOWS_AHEAD)
        printer = Printer(runner, self._sink, self.outcome, store=self._plan.store)
        outer.start_soon(self._print, printer, receive)
        outer.start_soon(watch_store, runner, self._live, self.outcome, self._store_failed)
        with self.screen.progress(self.outcome.total, self.outcome.carried):
            async with trio.open_nursery() as inner:
                inner.start_soon(self._show, runner)
                inner.start_soon(self._submit, runner, carried, printer, send)
                await self._stopping.wait()
                inner.cancel_scope.cancel()

    async def obey(self, signals: AsyncIterator[int]) -> None:
        """Stop in good order at the first signal, and at once at the second."""
        async for number in signals:
            if self.outcome.signal:
                if self._plan.store is not None:
                    kept = f"what is done is kept in {self._plan.store}"
                    self.screen.note(f"stopped at once; {kept}; the same command again carries on")
                self._end_at_once(128 + number)
            self.outcome.signal = number
            self.screen.note(_stopping_text(self.in_flight))
            self._stopping.set()

    def _begin(self, carried: Carried) -> bool:
        """Take the output over. False, with the reason in the outcome, when it can't be or must not be."""
        if self._sink.has_lines and not carried.jobs and not self._plan.fresh:
            # An earlier run came to its end a moment ago, and its store went with it.
            self.outcome.error = "the output has lines that no store could give again; pass --fresh"
            return False
        if len(carried) and not self.outcome.carried:
            self.outcome.error = lost_text(self._plan.store, len(carried))
            self.outcome.error_code = 2
            return False
        self._on_owned()
        try:
            self._sink.begin()
        except OSError as error:
            self.outcome.error = cant_write(error)
            return False
        self.outcome.began = True
        return True

    async def _submit(
        self, runner: Runner, carried: Carried, printer: Printer, send: trio.MemorySendChannel[Window]
    ) -> None:
        try:
            await self.submitter.submit_all(runner, carried, printer, send)
        except StoreError as error:
            self._store_failed(error.args[0])

    async def _look_back(self, runner: Runner) -> Carried:
        if self._plan.store is None or self._plan.fresh:
            return Carried()
        carried = await find_carried(runner)
        if carried.unreadable:
            bad = counted(carried.unreadable, "stored result")
            self.screen.note(f"{bad} of an earlier run can't be read and will not be carried over")
        known = 0
        if len(carried):
            known = sum(carried.find(item.target) is not None for item in self._plan.targets)
            self.outcome.carried = known
        if carried.jobs and (known or not (len(carried) or carried.unreadable)):
            self.screen.note(carried_text(known, self.outcome.total - known, stored=len(carried)))
        return carried

    async def _print(self, printer: Printer, windows: trio.MemoryReceiveChannel[Window]) -> None:
        try:
            async with windows:
                await printer.print_all(windows)
        except OSError as error:
            hung_up = error.errno == errno.EIO and self._sink.is_terminal
            if error.errno == errno.EPIPE or hung_up:
                # Nobody reads any more, so there is nothing to finish, to keep or to say.
                self._end_at_once(self.outcome.exit_code)
            self.outcome.error = cant_write(error)
        finally:
            self._stopping.set()
            self.written.set()

    def _live(self) -> list[str]:
        return [job_id for job_id in self.submitter.live.values() if job_id]

    async def _show(self, runner: Runner) -> None:
        while True:
            doing = f"{self.in_flight} in flight"
            if not self.in_flight:
                waits = (runner.progress(job_id) for job_id in self._live())
                doing = next((_WAITS[wait.reason] for wait in waits if wait and wait.reason in _WAITS), "")
            self.screen.tick(doing)
            await trio.sleep(_DRAW_EVERY)

    def _store_failed(self, reason: str) -> None:
        # The runner would go on offering what is in flight to the store until its grace is over.
        if self.outcome.error:
            self.screen.error(self.outcome.error)
        self.screen.error(f"results can't be stored: {reason}")
        self._end_at_once(3)

    def _end_at_once(self, code: int) -> None:
        # No clean-up on purpose: what is stored is safe, the lock on the store goes with the process,
        # and whatever could still be waited for may be what hangs.
        self.screen.restore()
        os._exit(code)
