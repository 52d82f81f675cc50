"""How does a transaction get from a Trio task to a thread and back?

Each transaction is one plain function of a connection, so no task can ever wait inside one, and no
cancellation can leave one open. Three ways to run it:

- `Writer`, in `writer.py`: one thread of its own that owns the one connection that writes.
- `Threads`: a worker thread of anyio's, one at a time, for reads.
- `Inline`: on the spot, for stores in memory and for tests on a mock clock.

All three keep one promise: `Cancelled` means that nothing happened, a return means that it did.
Nothing here knows what a job is. Next room: `writer.py`, then `steps.py`.
"""

import sqlite3
from collections.abc import Callable
from typing import Protocol, TypeVar

import anyio
import anyio.to_thread
import trio
from trio.lowlevel import enable_ki_protection

from .._model.errors import StoreError

T = TypeVar("T")
Step = Callable[[sqlite3.Connection], T]


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
            return transaction(self._connection, step)
        except Exception as exc:
            error = store_error(exc)
            raise error from error.__cause__
        finally:
            # The step is done, whatever came of it: a cancellation must not hide that.
            await trio.lowlevel.cancel_shielded_checkpoint()


@enable_ki_protection
def transaction(connection: sqlite3.Connection, step: Step[T]) -> T:
    """Run one step in a transaction of its own: committed when it returns, rolled back when it raises."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        value = step(connection)
        connection.execute("COMMIT")
    except BaseException:
        rollback(connection)
        raise
    return value


def rollback(connection: sqlite3.Connection) -> None:
    """Roll back the transaction, if there is one."""
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


async def close_in_thread(connection: sqlite3.Connection) -> None:
    """Close a connection in a thread; it is closed whatever this raises."""
    try:
        await in_thread(connection.close)
    finally:
        # A Ctrl-C that has waited for a checkpoint is raised before the thread begins. Closing again is
        # no error.
        connection.close()


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
