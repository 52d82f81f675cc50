"""How does a transaction get from a Trio task to a thread and back?

Each transaction is one plain function of a connection, so no task can ever wait inside one, and no
cancellation can leave one open. Three ways to run it:

- `Writer`: one thread of its own, one connection. What waits at the same time is committed together,
  so that eight jobs share one fsync. A hop through a worker thread for every transaction costs more
  than the transaction (docs/decisions/0002-writer-thread.md has the measurement).
- `Threads`: a worker thread of anyio's, one at a time, for reads.
- `Inline`: on the spot, for stores in memory and for tests on a mock clock.

All three keep one promise: `Cancelled` means that nothing happened, a return means that it did.
Nothing here knows what a job is. Next room: `steps.py`.
"""

import contextlib
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol, TypeVar

import anyio
import anyio.to_thread
import outcome
import trio
from trio.lowlevel import Abort, RaiseCancelT, Task, enable_ki_protection

from .._model.errors import StoreError

T = TypeVar("T")
Step = Callable[[sqlite3.Connection], T]

LOCK_PATIENCE: Final = 30.0
"""How long a transaction waits for another process to let go of the file, in seconds."""

_LOCK_TRY: Final = 0.1
_LINGER_TICKS: Final = 3
_SHARE_SECONDS: Final = 0.005
_THREAD_NAME: Final = "sift_batch store"


class Bridge(Protocol):
    """Runs steps, one after another."""

    async def run(self, step: Step[T]) -> T:
        """Run one step and return what it returns. A checkpoint. Raises `StoreError`."""


def store_error(exc: Exception) -> StoreError:
    """Return what stands for `exc` outside the store: its kind by name, never a bound value."""
    if isinstance(exc, StoreError):
        return exc
    name = getattr(exc, "sqlite_errorname", None) or type(exc).__name__
    error = StoreError(f"the store could not do this step ({name})")
    error.__cause__ = exc
    return error


class Inline:
    """Runs each step on the spot, in the calling task: no threads, nothing shared, deterministic."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def run(self, step: Step[T]) -> T:
        await trio.lowlevel.checkpoint_if_cancelled()
        try:
            return _transaction(self._connection, step)
        except Exception as exc:
            error = store_error(exc)
            raise error from error.__cause__
        finally:
            # The step is done, whatever came of it: a cancellation must not hide that.
            await trio.lowlevel.cancel_shielded_checkpoint()


@enable_ki_protection
def _transaction(connection: sqlite3.Connection, step: Step[T]) -> T:
    connection.execute("BEGIN IMMEDIATE")
    try:
        value = step(connection)
        connection.execute("COMMIT")
    except BaseException:
        _rollback(connection)
        raise
    return value


def _rollback(connection: sqlite3.Connection) -> None:
    # SQLite has rolled back by itself after a full disk or an I/O error.
    if connection.in_transaction:
        try:
            connection.execute("ROLLBACK")
        except sqlite3.Error:
            if connection.in_transaction:
                raise


async def in_thread(work: Callable[..., T], *arguments: object) -> T:
    """Run what opens or closes files in a thread, behind no limiter that others share.

    Whoever has taken all of the program's threads, for look-ups that hang, must not keep a store from
    closing. Not abandoned when cancelled.
    """
    return await anyio.to_thread.run_sync(work, *arguments, limiter=anyio.CapacityLimiter(1))


class Threads:
    """Runs each step in a worker thread, one at a time. For reads: no transaction is begun."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # A limiter of its own: neither a slow disk here nor a slow DNS elsewhere holds up the other.
        self._limiter = anyio.CapacityLimiter(1)

    async def run(self, step: Step[T]) -> T:
        try:
            return await anyio.to_thread.run_sync(step, self._connection, limiter=self._limiter)
        except Exception as exc:
            error = store_error(exc)
            raise error from error.__cause__


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
        # Written by Trio's thread only: what waits, whether the thread has a group, how many steps
        # the next group should have, and how many turns it may still wait for them.
        self._waiting: list[_Ticket] = []
        self._busy = False
        self._expected = 1
        self._patience = 0
        self._ticking = False
        self._closed = False
        self._ended = trio.Event()
        trio.lowlevel.start_thread_soon(self._work, self._thread_ended, _THREAD_NAME)

    @enable_ki_protection
    async def run(self, step: Step[T], *, bare: bool = False) -> T:
        """Run one step; a `bare` one outside any transaction, which a checkpoint of the log needs."""
        # A call in a cancelled scope has done nothing: the thread might be quicker than the abort.
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._closed:
            raise StoreError("the store is closed")
        ticket = _Ticket(step, trio.lowlevel.current_task(), bare)
        self._waiting.append(ticket)
        self._plan()

        def abort(_: RaiseCancelT) -> Abort:
            with self._lock:
                if ticket.claimed:
                    return Abort.FAILED
                ticket.withdrawn = True
            if ticket in self._waiting:
                self._waiting.remove(ticket)
            return Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        assert ticket.outcome is not None
        return ticket.outcome.unwrap()  # type: ignore[no-any-return]

    @enable_ki_protection
    async def aclose(self) -> None:
        """Finish what waits, move the log into the file, close the connection, end the thread."""
        if not self._closed:
            self._closed = True
            if self._waiting:
                self._queue.put(self._waiting)
                self._waiting = []
            self._queue.put(None)
        with trio.CancelScope(shield=True):
            await self._ended.wait()

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
            trio.lowlevel.reschedule(ticket.task)
        if not left:
            self._busy = False
            self._expected = len(done) + len(self._waiting)
            self._patience = _LINGER_TICKS if self._expected > 1 else 0
            self._plan()

    def _thread_ended(self, _: object) -> None:
        with contextlib.suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._ended.set)

    # ---- the writer's thread

    def _work(self) -> None:
        try:
            while (group := self._queue.get()) is not None:
                for done, left in self._do(group):
                    self._token.run_sync_soon(self._deliver, done, left)
        except trio.RunFinishedError:
            pass  # the run is over: nobody waits any more
        finally:
            _checkpoint(self._connection)
            self._connection.close()

    def _do(self, group: list[_Ticket]) -> Iterator[tuple[list[_Ticket], int]]:
        """Do the steps of a group; yield those that are done, and how many are left, commit by commit."""
        bare = [ticket for ticket in group if ticket.bare]
        if bare:
            group = [ticket for ticket in group if not ticket.bare]
            claimed = self._claim(bare)
            for ticket in claimed:
                ticket.outcome = outcome.capture(ticket.step, self._connection)
            yield claimed, len(group)
        while group:
            try:
                begun = self._begin(group)
            except Exception as exc:
                claimed = self._claim(group)
                for ticket in claimed:
                    ticket.outcome = outcome.Error(store_error(exc))
                yield claimed, 0
                return
            # Only now: a step that waits for another process's lock can still be withdrawn.
            claimed = self._claim(group)
            if not begun or not claimed:
                _rollback(self._connection)
                yield claimed, 0
                return
            done = self._commit(claimed)
            group = claimed[len(done) :]
            yield done, len(group)

    def _commit(self, claimed: list[_Ticket]) -> list[_Ticket]:
        """Commit as many steps as fit into a few milliseconds, and return them.

        Whoever waits for the first of three hundred must not wait for the last.
        """
        until = time.monotonic() + _SHARE_SECONDS
        values: list[Any] = []
        step_failed = True
        try:
            for ticket in claimed:
                values.append(ticket.step(self._connection))
                if time.monotonic() > until:
                    break
            step_failed = False
            self._connection.execute("COMMIT")
        except BaseException as exc:  # noqa: ASYNC103 - in the thread: handed to who waits
            done = claimed[: len(values) + step_failed]
            self._recover(done, exc)
        else:
            done = claimed[: len(values)]
            for ticket, value in zip(done, values, strict=True):
                ticket.outcome = outcome.Value(value)
        return done

    def _recover(self, claimed: list[_Ticket], exc: BaseException) -> None:
        """After a fault in a shared commit: each step again, alone, so that only the faulty fails."""
        try:
            _rollback(self._connection)
            if len(claimed) > 1:
                for ticket in claimed:
                    ticket.outcome = outcome.capture(_alone, self._connection, ticket.step)
                return
        except Exception as failure:
            exc = failure
        for ticket in claimed:
            if ticket.outcome is None:
                ticket.outcome = outcome.Error(store_error(exc) if isinstance(exc, Exception) else exc)

    def _claim(self, group: list[_Ticket]) -> list[_Ticket]:
        with self._lock:
            claimed = [ticket for ticket in group if not ticket.withdrawn]
            for ticket in claimed:
                ticket.claimed = True
        return claimed

    def _begin(self, group: list[_Ticket]) -> bool:
        """Begin a transaction; False if every step was withdrawn while the file was locked."""
        deadline = time.monotonic() + LOCK_PATIENCE
        while True:
            try:
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
        return _transaction(connection, step)
    except Exception as exc:
        error = store_error(exc)
        raise error from error.__cause__


def _checkpoint(connection: sqlite3.Connection) -> None:
    # A reader or a full disk may keep the log where it is; the next owner moves it.
    with contextlib.suppress(sqlite3.Error):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def lock_try_milliseconds() -> int:
    """Return SQLite's own patience with a locked file, between two looks at withdrawn steps."""
    return int(_LOCK_TRY * 1000)
