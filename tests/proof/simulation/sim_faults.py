"""Would the simulation see it? Faults that can be put into the engine, one line of it or so each.

Each is put in from outside, while a story runs, and taken out again. A simulation that stays quiet with
one of them in place proves nothing; the tests run all of them. Nothing here is used otherwise.
"""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import trio

import sift_batch._engine.busy as busy
import sift_batch._engine.ledger as ledger
from sift_batch._engine.closing import Closing
from sift_batch._engine.drain import Drain
from sift_batch._engine.feeds import Feed, Feeds
from sift_batch._engine.ledger import Ledger
from sift_batch._engine.roster import Roster
from sift_batch._engine.signals import Signals
from sift_batch._engine.upkeep import Upkeep
from sift_batch._engine.workers import Foreman
from sift_batch._gate.gate import Gate
from sift_batch._gate.plan import Plan
from sift_batch._store.sqlite import MemoryStore, SqliteStore

Swap = Callable[[Any, str, Any], None]
FAULTS: Final[dict[str, Callable[[Swap], None]]] = {}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Run the block with one fault in the engine."""
    with ExitStack() as stack:

        def swap(owner: Any, attribute: str, value: Any) -> None:
            getattr(owner, attribute)  # a name that is no more would plant nothing
            if attribute in vars(owner):
                stack.callback(setattr, owner, attribute, vars(owner)[attribute])
            else:
                stack.callback(delattr, owner, attribute)
            setattr(owner, attribute, value)

        FAULTS[name](swap)
        yield


def _fault(plant: Callable[[Swap], None]) -> Callable[[Swap], None]:
    FAULTS[plant.__name__.lstrip("_").replace("_", "-")] = plant
    return plant


def _rows(store: Any) -> Any:
    return store._inline._connection


# ---- the gate


@_fault
def _gate_one_too_many(swap: Swap) -> None:
    """The gate gives one slot more in all than there are."""
    real = Plan.__init__

    def init(self: Plan, *, total: int, per_host: int, batch_wait: float) -> None:
        real(self, total=total, per_host=per_host, batch_wait=batch_wait)
        self.limiter.total_tokens = total + 1

    swap(Plan, "__init__", init)


@_fault
def _host_one_too_many(swap: Swap) -> None:
    """The gate gives one slot of a host more than there are."""
    real = Plan.__init__

    def init(self: Plan, *, total: int, per_host: int, batch_wait: float) -> None:
        real(self, total=total, per_host=per_host + 1, batch_wait=batch_wait)

    swap(Plan, "__init__", init)


@_fault
def _interactive_not_first(swap: Swap) -> None:
    """A batch fetch stands in line as if it had waited for long."""

    def new_order(self: Plan, now: float, *, batch: bool) -> Any:
        return (now - 1e6 if batch else now, now, next(self._numbers))

    swap(Plan, "_new_order", new_order)


@_fault
def _lost_wake_up(swap: Swap) -> None:
    """Whoever leaves a slot wakes nobody."""
    swap(Gate, "_leave", lambda self, claim: self._plan.leave(claim))


@_fault
def _promise_not_forgone(swap: Swap) -> None:
    """A job that is cancelled keeps the slot that it was told of."""
    swap(Drain, "_forgo", lambda self: None)


@_fault
def _hold_ignored(swap: Swap) -> None:
    """A hold of a host holds nothing."""
    swap(Plan, "hold", lambda self, key, until, now: None)


@_fault
def _waiter_left_in_line(swap: Swap) -> None:
    """Whoever gives up waiting for a slot stays in line."""
    real = Gate._leave

    def leave(self: Gate, claim: Any) -> None:
        if claim.stage.name != "WAITING":
            real(self, claim)

    swap(Gate, "_leave", leave)


# ---- the drain


@_fault
def _start_after_cancel(swap: Swap) -> None:
    """The drain goes on with the next target although the job was cancelled."""

    async def may_start(self: Drain) -> bool:
        return not self._shop.closing.begun

    swap(Drain, "_may_start", may_start)


@_fault
def _start_while_closing(swap: Swap) -> None:
    """The drain goes on with the next target although the runner closes."""

    async def may_start(self: Drain) -> bool:
        return self._live.stopped is None

    swap(Drain, "_may_start", may_start)


@_fault
def _fetch_not_shielded(swap: Swap) -> None:
    """A cancel of the job cuts off the fetch in flight."""

    @contextmanager
    def shield(self: Closing) -> Iterator[trio.CancelScope]:
        with trio.CancelScope(deadline=self.grace_end) as scope:
            yield scope

    swap(Closing, "shield", shield)


@_fault
def _no_job_timeout(swap: Swap) -> None:
    """A job may run for ever."""
    swap(Foreman, "_end_overdue", lambda self, nursery: None)


@_fault
def _worker_not_woken(swap: Swap) -> None:
    """One job in three is stored and nobody is told."""
    real, count = Foreman.job_stored, itertools.count(1)

    def job_stored(self: Foreman) -> None:
        if next(count) % 3:
            real(self)

    swap(Foreman, "job_stored", job_stored)


@_fault
def _cancel_forgets_the_fetch(swap: Swap) -> None:
    """A cancel settles the job although a fetch of it is in flight."""
    real = Ledger.stop

    async def stop(self: Ledger, job_id: str, event: Any, *, in_flight: bool, **asked: Any) -> Any:
        return await real(self, job_id, event, in_flight=False, **asked)

    swap(Ledger, "stop", stop)


@_fault
def _backoff_does_not_double(swap: Swap) -> None:
    """Each wait after a busy answer is as long as the first."""
    swap(busy.Patience, "_backoff", lambda self: self._config.retry_wait)


@_fault
def _tries_too_close(swap: Swap) -> None:
    """Tries of one target may follow each other at once."""
    swap(busy, "_LEAST_SECONDS", 0.0)


@_fault
def _offered_too_late(swap: Swap) -> None:
    """A step that the store has refused is offered again only after two seconds."""
    swap(ledger, "_FIRST_DELAY", 2.0)


@_fault
def _cancel_not_awaited(swap: Swap) -> None:
    """The drain starts the next target while the store is still asked to cancel the job."""

    async def may_start(self: Drain) -> bool:
        return self._live.stopped is None and not self._shop.closing.begun

    swap(Drain, "_may_start", may_start)


@_fault
def _settling_forgotten(swap: Swap) -> None:
    """A job that was cancelled in a busy wait is left unsettled."""

    async def leave(self: Drain) -> None:
        self._forgo()
        self._shop.roster.left(self._live)

    swap(Drain, "_leave", leave)


# ---- memory, readers, hooks


@_fault
def _roster_not_emptied(swap: Swap) -> None:
    """A job that has settled stays in memory."""
    real = Roster.settled

    def settled(self: Roster, job: Any) -> None:
        real(self, job)
        self._jobs[job.id] = job

    swap(Roster, "settled", settled)


@_fault
def _feed_not_told(swap: Swap) -> None:
    """Nobody who waits for a job hears that it has settled."""
    swap(Feeds, "settled", lambda self, job: None)
    swap(Feed, "change", lambda self: None)


@_fault
def _closing_not_told(swap: Swap) -> None:
    """Nobody who waits for a job hears that the runner closes."""
    swap(Feeds, "closing", lambda self: None)


@_fault
def _budget_forgotten(swap: Swap) -> None:
    """A job that settles does not wake whoever keeps the budget."""
    swap(Upkeep, "after_settle", lambda self, lease: None)


@_fault
def _end_told_twice(swap: Swap) -> None:
    """A job that is cancelled ends twice for the hooks."""
    real = Signals.ended

    def ended(self: Signals, job: Any, seconds: Any) -> None:
        real(self, job, seconds)
        if job.status == "cancelled":
            real(self, job, seconds)

    swap(Signals, "ended", ended)


@_fault
def _bytes_not_given_back(swap: Swap) -> None:
    """The bytes of a job that was removed go on counting."""
    swap(Upkeep, "removed", lambda self, removed: self._feeds.changed(removed.job_id))


# ---- the store


def _after_record(statement: str) -> Callable[[Swap], None]:
    def plant(swap: Swap) -> None:
        real = SqliteStore.record

        async def record(self: Any, owner: str, job_id: str, idx: int, outcome: Any, *, now: int) -> Any:
            before = _rows(self).execute("SELECT lease FROM batch_job WHERE id = ?", (job_id,)).fetchone()
            answer = await real(self, owner, job_id, idx, outcome, now=now)
            _rows(self).execute(statement, {"id": job_id, "lease": before and before[0]})
            return answer

        swap(MemoryStore, "record", record)

    return plant


FAULTS["count-forgotten"] = _after_record(
    "UPDATE batch_job SET targets_done = targets_done - 1 WHERE id = :id AND status = 'running'"
)
FAULTS["lease-not-bumped"] = _after_record("UPDATE batch_job SET lease = :lease WHERE id = :id")
FAULTS["result-dropped"] = _after_record(
    "UPDATE batch_target SET result = NULL WHERE job_id = :id AND idx = 1"
)


@_fault
def _restart_leaves_running(swap: Swap) -> None:
    """After a restart a target of a failed job is still marked running."""
    real = MemoryStore.acquire

    async def acquire(self: Any, owner: str, *, now: int) -> Any:
        running = (
            _rows(self).execute("SELECT job_id, idx FROM batch_target WHERE status = 'running'").fetchall()
        )
        answer = await real(self, owner, now=now)
        _rows(self).executemany(
            "UPDATE batch_target SET status = 'running' WHERE job_id = ? AND idx = ?", running
        )
        return answer

    swap(MemoryStore, "acquire", acquire)


@_fault
def _unsettled_job_evicted(swap: Swap) -> None:
    """The byte budget takes a job that is running."""
    real = SqliteStore.evict

    async def evict(self: Any, owner: str, *, max_bytes: int, now: int, ttl: float) -> Any:
        answer = await real(self, owner, max_bytes=max_bytes, now=now, ttl=ttl)
        if answer is None:
            _rows(self).execute("DELETE FROM batch_job WHERE settled = 0")
        return answer

    swap(MemoryStore, "evict", evict)


@_fault
def _cap_off_by_one(swap: Swap) -> None:
    """A caller may have one live job more than it may."""
    real = SqliteStore.submit

    async def submit(self: Any, owner: str, new: Any, *, caps: Any, **asked: Any) -> Any:
        return await real(self, owner, new, caps=caps._replace(per_caller=caps.per_caller + 1), **asked)

    swap(MemoryStore, "submit", submit)


@_fault
def _lapses_early(swap: Swap) -> None:
    """A job is gone for its readers a tenth of its time too early."""
    real = SqliteStore.job

    async def job(self: Any, job_id: str, *, caller: Any, now: int, ttl: float) -> Any:
        return await real(self, job_id, caller=caller, now=now, ttl=ttl * 0.9)

    swap(MemoryStore, "job", job)


@_fault
def _foreign_job_shown(swap: Swap) -> None:
    """A caller may read the job of another one."""
    real = SqliteStore.status

    async def status(self: Any, job_id: str, *, caller: Any, **asked: Any) -> Any:
        return await real(self, job_id, caller=None, **asked)

    swap(MemoryStore, "status", status)
