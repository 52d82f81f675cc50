"""How do the steps of many tasks get through the one connection that writes?

A thread of its own has the connection. What waits at the same time is committed together, so that eight
jobs share one fsync; a hop through a worker thread for every transaction would cost more than the
transaction (docs/decisions/0002-writer-thread.md has the measurement). `Cancelled` means that the step
never ran, a return that it is committed.

What a step does is not known here. Next room: `steps.py`.
"""

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import outcome
import trio
from trio.lowlevel import Abort, RaiseCancelT, Task, enable_ki_protection

from .._model.crash import crash_point
from .._model.errors import StoreError
from .bridge import Step, T, rollback, store_error, transaction

LOCK_PATIENCE: Final = 30.0
"""How long a transaction waits for another process to let go of the file, in seconds."""

_LINGER_TICKS: Final = 3
_SHARE_SECONDS: Final = 0.005
_THREAD_NAME: Final = "sift_batch store"


class _Ticket:
    """One step that a task waits for."""

    __slots__ = ("bare", "claimed", "outcome", "step", "task", "withdrawn")

    def __init__(self, step: Step[Any], task: Task, bare: bool) -> None:
        self.step = step
        self.task = task
        self.bare = bare
        # Under the writer's lock: a ticket is either withdrawn by its task or claimed by the thread.
        self.withdrawn = False
        self.claimed = False
        self.outcome: outcome.Outcome[Any] | None = None


class Writer:
    """One thread with the one connection that writes. Steps that wait together commit together.

    A group is handed over when as many steps wait as the last time, or a few turns of the run loop
    later: the tasks that the last commit woke are about to come back, and one fsync for all of them
    beats two. A lone step is handed over at once.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._token = trio.lowlevel.current_trio_token()
        self._queue: queue.SimpleQueue[list[_Ticket] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        # Written by Trio's thread only: what is not handed over yet, every ticket whose task still waits,
        # whether the thread has a group, how many steps the next group should have, and how many turns
        # it may still wait for them.
        self._waiting: list[_Ticket] = []
        self._undelivered: set[_Ticket] = set()
        self._busy = False
        self._expected = 1
        self._patience = 0
        self._ticking = False
        # Written by Trio's thread only: no more steps are taken; what the thread died of, if it did; and
        # who waits for its end, which comes last.
        self._closed = False
        self._fault: BaseException | None = None
        self._ended = False
        self._closers: list[Task] = []
        trio.lowlevel.start_thread_soon(self._work, self._thread_ended, _THREAD_NAME)

    @enable_ki_protection
    async def run(self, step: Step[T], *, bare: bool = False) -> T:
        """Run one step; a `bare` one outside any transaction, which a checkpoint of the log needs."""
        # A call in a cancelled scope has done nothing: the thread might be quicker than the abort.
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise self._failed() if self._fault else StoreError("the store is closed")
        ticket = _Ticket(step, trio.lowlevel.current_task(), bare)
        self._undelivered.add(ticket)
        self._waiting.append(ticket)
        self._plan()

        def abort(_: RaiseCancelT) -> Abort:
            with self._lock:
                if ticket.claimed:
                    return Abort.FAILED
                ticket.withdrawn = True
            self._undelivered.discard(ticket)
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            return Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        assert ticket.outcome is not None
        return ticket.outcome.unwrap()  # type: ignore[no-any-return]

    @enable_ki_protection
    async def aclose(self) -> None:
        """Finish what waits, move the log into the file, close the connection, end the thread.

        Neither a cancellation nor a Ctrl-C cuts it short: once this returns or raises, nothing writes.
        """
        if not self._closed:
            self._closed = True
            if self._waiting:
                self._queue.put(self._waiting)
                self._waiting = []
            self._queue.put(None)
        if not self._ended:
            self._closers.append(trio.lowlevel.current_task())
            # Not an event: a Ctrl-C would end the wait for it, and the file's lock be given back too early.
            await trio.lowlevel.wait_task_rescheduled(lambda _: Abort.FAILED)
        else:
            await trio.lowlevel.cancel_shielded_checkpoint()

    # ---- Trio's thread

    def _plan(self) -> None:
        if self._busy or not self._waiting:
            return
        if self._patience <= 0 or len(self._waiting) >= self._expected:
            self._busy = True
            group, self._waiting = self._waiting, []
            self._queue.put(group)
        elif not self._ticking:
            self._ticking = True
            self._token.run_sync_soon(self._tick)

    def _tick(self) -> None:
        self._ticking = False
        self._patience -= 1
        self._plan()

    def _deliver(self, done: list[_Ticket], left: int) -> None:
        for ticket in done:
            self._undelivered.discard(ticket)
            trio.lowlevel.reschedule(ticket.task)
        if not left:
            self._busy = False
            self._expected = len(done) + len(self._waiting)
            self._patience = _LINGER_TICKS if self._expected > 1 else 0
            self._plan()

    def _thread_ended(self, end: outcome.Outcome[None]) -> None:
        # Called in the thread. What it has delivered before comes before this in Trio's queue.
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._end, end)

    def _end(self, end: outcome.Outcome[None]) -> None:
        self._closed = self._ended = True
        if isinstance(end, outcome.Error):
            self._fault = end.error
        # None are left, unless the thread died of what it did not expect: nobody must wait for ever.
        for ticket in self._undelivered:
            if ticket.outcome is None:
                ticket.outcome = outcome.Error(self._failed())
            trio.lowlevel.reschedule(ticket.task)
        self._undelivered.clear()
        self._waiting.clear()
        for task in self._closers:
            trio.lowlevel.reschedule(task)

    def _failed(self) -> StoreError:
        error = StoreError("the store's thread has failed; close the store and open it again")
        error.__cause__ = self._fault
        return error

    # ---- the writer's thread

    def _work(self) -> None:
        try:
            while (group := self._queue.get()) is not None:
                for done, left in self._do(group):
                    self._token.run_sync_soon(self._deliver, done, left)
        except trio.RunFinishedError:
            pass  # the run is over: nobody waits any more
        finally:
            try:
                crash_point("close: log not moved yet")
                _checkpoint(self._connection)
            finally:
                self._connection.close()

    def _do(self, group: list[_Ticket]) -> Iterator[tuple[list[_Ticket], int]]:
        """Do the steps of a group; yield those that are done, and how many are left, commit by commit."""
        bare = [ticket for ticket in group if ticket.bare]
        if bare:
            group = [ticket for ticket in group if not ticket.bare]
            claimed = [ticket for ticket in bare if self._claim(ticket)]
            for ticket in claimed:
                ticket.outcome = outcome.capture(ticket.step, self._connection)
            yield claimed, len(group)
        while group:
            try:
                begun = self._begin(group)
            except Exception as exc:
                claimed = [ticket for ticket in group if self._claim(ticket)]
                for ticket in claimed:
                    ticket.outcome = outcome.Error(store_error(exc))
                yield claimed, 0
                return
            if not begun:
                yield [], 0
                return
            done, group = self._commit(group)
            yield done, len(group)

    def _commit(self, group: list[_Ticket]) -> tuple[list[_Ticket], list[_Ticket]]:
        """Commit as many steps as fit into a few milliseconds; return them, and those that are left.

        Whoever waits for the first of three hundred must not wait for the last.
        """
        until = time.monotonic() + _SHARE_SECONDS
        done: list[_Ticket] = []
        outcomes: list[outcome.Outcome[Any]] = []
        last: outcome.Outcome[Any] = outcome.Value(None)
        waiting = iter(group)
        for ticket in waiting:
            # One by one, and only now: what is left waits for the next transaction, perhaps behind
            # another process's lock, and can be withdrawn as long as it does.
            if not self._claim(ticket):
                continue
            done.append(ticket)
            last = outcome.capture(ticket.step, self._connection)
            outcomes.append(last)
            if isinstance(last, outcome.Error) or time.monotonic() > until:
                break
        if isinstance(last, outcome.Value):
            crash_point("commit: not yet")
            last = outcome.capture(self._connection.execute, "COMMIT")
        if isinstance(last, outcome.Error):
            self._recover(done, last.error)
        else:
            crash_point("commit: done")
            for ticket, value in zip(done, outcomes, strict=True):
                ticket.outcome = value
        return done, list(waiting)

    def _recover(self, claimed: list[_Ticket], exc: BaseException) -> None:
        """After a fault: each step of a shared commit again, alone, so that only the faulty one fails.

        On a full disk a lone one too, after the log was moved. Once: what fails then has found no room.
        """
        try:
            rollback(self._connection)
            full = getattr(exc, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
            if full:
                # It may be the log that fills the disk, and most of what it holds has its place in the file.
                # It is moved after commits only, and there will be none.
                _checkpoint(self._connection)
            if full or len(claimed) > 1:
                for ticket in claimed:
                    ticket.outcome = outcome.capture(_alone, self._connection, ticket.step)
                return
        except Exception as failure:
            exc = failure
        for ticket in claimed:
            if ticket.outcome is None:
                ticket.outcome = outcome.Error(store_error(exc) if isinstance(exc, Exception) else exc)

    def _claim(self, ticket: _Ticket) -> bool:
        """Take a ticket for good; False if its task has withdrawn it."""
        with self._lock:
            ticket.claimed = not ticket.withdrawn
            return ticket.claimed

    def _begin(self, group: list[_Ticket]) -> bool:
        """Begin a transaction; False if every step was withdrawn while the file was locked."""
        # None is open, unless the last one could not be rolled back.
        rollback(self._connection)
        deadline = time.monotonic() + LOCK_PATIENCE
        while True:
            try:
                # SQLite's own patience (`schema.LOCK_TRY_MILLISECONDS`) is short, for the look below.
                self._connection.execute("BEGIN IMMEDIATE")
                return True
            except sqlite3.OperationalError as exc:
                locked = exc.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not locked or time.monotonic() > deadline:
                    raise
                if all(ticket.withdrawn for ticket in group):
                    return False


def _alone(connection: sqlite3.Connection, step: Step[T]) -> T:
    try:
        return transaction(connection, step)
    except Exception as exc:
        error = store_error(exc)
        raise error from error.__cause__


def _checkpoint(connection: sqlite3.Connection) -> None:
    # A reader or a full disk may keep the log where it is; the next owner moves it.
    with contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
