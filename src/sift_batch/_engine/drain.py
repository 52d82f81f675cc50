"""The main job: one job, once, from start to finish.

    begin      its first target is marked running          (workers.py asked the store for it)
    may start  not while the runner closes or somebody is ending the job
    attempt    call the fetch and judge what came back
    wait       after a busy answer: holding nothing, ended at once by a cancel
    record     store the target, mark the next one, maybe end the job; again until it is stored
    leave      settle what was ended from outside, and let go

The store decides what the job and its targets are; this walks along and remembers nothing that is not
in the store already. Cancelling the job's scope ends a wait at once and an attempt never: the fetch
and the store of its result stand in a shield, which gets its deadline when the runner closes.
"""

import contextlib
import contextvars
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import trio

from .._model.config import Config
from .._model.crash import crash_point
from .._model.errors import TargetError
from .._model.lifecycle import TargetState
from .._model.values import Attempt, FetchFunc, Job, Target
from .._model.values import attempt as attempt_variable
from .attempt import Busy, Finished, attempt, failed
from .busy import Patience, Ready, Wait, wait_out
from .closing import Closing
from .feeds import Feeds
from .ledger import Ledger
from .roster import LiveJob, Roster
from .signals import Signals


@dataclass(frozen=True, slots=True)
class Shop:
    """What every drain works with."""

    config: Config
    fetch: FetchFunc
    context: contextvars.Context
    ledger: Ledger
    roster: Roster
    feeds: Feeds
    signals: Signals
    closing: Closing
    bytes_stored: Callable[[int], None]
    job_ended: Callable[[Job, LiveJob], None]
    job_settled: Callable[[Job, LiveJob], None]


class Drain:
    """One job on its way through a worker."""

    _shield: trio.CancelScope

    def __init__(self, shop: Shop, live: LiveJob, job: Job, targets: Sequence[tuple[int, Target]]) -> None:
        self._shop = shop
        self._live = live
        self._job_id = job.id
        self._targets = targets
        # The `ready` that has been waited for, until the target is tried again.
        self._told: Ready | None = None
        live.targets_left = len(targets)

    async def run(self) -> None:
        """Drain the job; returns when there is nothing more to do for it here."""
        live = self._live
        try:
            with trio.CancelScope() as live.scope, self._shop.closing.shield() as self._shield:
                for idx, target in self._targets:
                    if not await self._drain_target(idx, target):
                        break
        except (KeyboardInterrupt, SystemExit):
            self._shop.closing.end_grace()
            raise
        finally:
            live.scope = None
            with self._shop.closing.shield():  # its deadline comes with the closing
                await self._leave()  # noqa: ASYNC102 - the shield gets its deadline with the closing

    async def _drain_target(self, idx: int, target: Target) -> bool:
        """Bring one target to its end; False when no further target may start."""
        patience: Patience | None = None
        fetching, number = 0.0, 0
        while await self._may_start():
            number += 1
            began = trio.current_time()
            verdict = await self._attempt(idx, target, number, began)
            fetching += trio.current_time() - began
            if isinstance(verdict, Busy):
                patience = patience or Patience(self._shop.config)
                wait = patience.plan(verdict)
                if wait is not None:
                    self._live.in_flight = False
                    await self._wait_out(idx, wait, patience)
                    continue
                verdict = self._too_busy()
            return await self._record(idx, verdict, fetching)
        return False

    async def _may_start(self) -> bool:
        live = self._live
        if live.stops:
            # Somebody is ending the job: what comes of it decides whether this target starts. A slot
            # that it was told of is for others meanwhile.
            self._forgo()
            await self._stops_over()
        if live.stopped is None and not self._shop.closing.begun:
            return True
        self._forgo()
        return False

    async def _stops_over(self) -> None:
        while self._live.stops:
            await self._live.stops_over.park()

    def _forgo(self) -> None:
        """Give back what a `ready` promised, if this target will not come for it."""
        told, self._told = self._told, None
        forgo = getattr(told, "forgo", None)
        if callable(forgo):
            with contextlib.suppress(Exception):
                forgo()

    async def _attempt(self, idx: int, target: Target, number: int, began: float) -> Finished | Busy:
        live, shop = self._live, self._shop
        attempt_variable.set(Attempt(self._job_id, idx, number))
        shop.roster.fetch_began(live, began + shop.config.target_timeout)
        if not live.fetched:
            live.fetched = True
            if not live.restricted:
                shop.signals.call("queued", began - live.submitted)
        if live.log.debug_enabled:
            live.log.event("target.started", idx=idx, attempt=number)
        try:
            verdict = await attempt(
                shop.fetch,
                live.caller,
                target,
                began=began,
                allowed=shop.config.target_timeout,
                limit=shop.config.result_max_bytes,
            )
        except BaseException:
            live.in_flight = False
            raise
        finally:
            shop.roster.fetch_ended(live)
        if isinstance(verdict, Busy):
            self._told = None  # it came, and keeps its place in line
        else:
            self._forgo()  # for a fetch that has ended before it came; used promises are over
        return verdict

    async def _wait_out(self, idx: int, wait: Wait, patience: Patience) -> None:
        live, signals = self._live, self._shop.signals
        began = trio.current_time()
        live.wait_for(wait.reason, self._shop.ledger.now())
        if live.log.debug_enabled:
            live.log.event("target.busy", idx=idx, reason=wait.reason, wait=min(wait.limit, 1e9))
        self._renew_context()
        self._told = wait.ready
        if wait.ready is not None:
            wait = wait._replace(ready=self._alone(wait.ready))
        # Nothing is in flight: a cancel of the job, or the closing, ends the wait at once.
        self._shield.shield = False
        try:
            await wait_out(wait)
        finally:
            self._shield.shield = True
            waited = trio.current_time() - began
            patience.waited(wait, waited)
            live.wait_for("", None)
            if not live.restricted:
                signals.call("busy", wait.reason, waited)

    def _alone(self, ready: Ready) -> Ready:
        """Let a `ready` have a context of its own, as each call of the fetch has."""

        async def ready_alone() -> None:
            await trio.lowlevel.checkpoint()  # from here on the task runs in the renewed context
            try:
                await ready()
            finally:
                self._renew_context()

        return ready_alone

    def _too_busy(self) -> Finished:
        seconds = self._shop.config.retry_for
        error = TargetError(
            "busy",
            hint=f"the host had no room for {seconds:g} seconds; submit the target again later",
            code="busy",
            status=429,
            retryable=True,
        )
        return failed(error, self._shop.config.result_max_bytes)

    async def _record(self, idx: int, verdict: Finished, seconds: float) -> bool:
        """Store a target; False when that was the last step of the job here."""
        shop, live, ledger, job_id = self._shop, self._live, self._shop.ledger, self._job_id
        self._renew_context()
        crash_point("record: fetched")
        try:
            recorded = await ledger.offer("record", lambda: ledger.record(job_id, idx, verdict.outcome), live)
        finally:
            live.in_flight = False
        if recorded is None:
            self._lost()
            return False
        live.targets_left -= 1
        live.stored_here += 1
        self._tell_stored(idx, verdict, seconds)
        shop.bytes_stored(recorded.nbytes)
        shop.feeds.changed(job_id)
        if recorded.job is None:
            return True
        if recorded.ended:
            shop.job_ended(recorded.job, live)
        else:
            # Whoever ended the job tells of that first, even if both steps were one commit.
            await self._stops_over()
        shop.job_settled(recorded.job, live)
        return False

    def _tell_stored(self, idx: int, verdict: Finished, seconds: float) -> None:
        signals, live, outcome = self._shop.signals, self._live, verdict.outcome
        is_failed = outcome.status is TargetState.FAILED
        if live.restricted:
            signals.call("target_restricted", is_failed)
            return
        signals.call("target", verdict.error, seconds, len(outcome.result or b""))
        if live.log.debug_enabled:
            live.log.event(
                "target.stored", idx=idx, outcome=outcome.status.value, seconds=seconds, code=outcome.code
            )

    async def _leave(self) -> None:
        """Settle a job that was ended from outside, unless that has happened already."""
        live, ledger = self._live, self._shop.ledger
        try:
            self._forgo()
            await self._stops_over()
            if live.stopped is not None and not live.settled:
                job = await ledger.offer("settle", lambda: ledger.settle(self._job_id), live)
                if job is None:
                    self._lost()
                else:
                    self._shop.job_settled(job, live)
        finally:
            # Also when the grace ended first: whoever waits for the job must hear that it is over here.
            self._shop.roster.left(live)
            self._shop.feeds.changed(self._job_id)

    def _lost(self) -> None:
        """Let go of a job that the store says is not ours any more: nothing of it may be changed here."""
        self._live.log.event("job.lost")
        self._shop.roster.settled(self._live)

    def _renew_context(self) -> None:
        """Let the next call of the fetch run in a fresh copy of the context of `open_runner`.

        Trio runs each step of a task in `task.context`; a new one counts from the next time that the
        task waits. So what a fetch sets in its context never reaches the next one.
        """
        trio.lowlevel.current_task().context = self._shop.context.copy()
