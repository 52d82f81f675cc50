"""What can an operator do with a store while a runner owns it? Check it, count it, copy it.

Each is one call, from this process or another one: it opens a connection of its own that only reads,
works in a thread, and closes it. None takes the owner's lock or moves the log. A cancellation ends
SQLite's work within milliseconds and comes out once the thread is done. What is found is in `audit.py`,
`figures.py` and `backup.py`.
"""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import anyio.from_thread
import trio

from .._model.errors import StoreError
from . import files
from .audit import Audit, OnProgress, audit
from .backup import Backup, back_up
from .bridge import in_thread
from .figures import Figures, figures

T = TypeVar("T")

# Of SQLite's machine, between two looks whether the work is still wanted: some milliseconds.
_INSTRUCTIONS: Final = 20_000


async def check_store(
    path: str | os.PathLike[str], *, on_progress: OnProgress = lambda _done, _all: None
) -> Audit:
    """Return what is wrong with a store, if anything.

    `on_progress(done, all)` hears of targets, in the thread that works. Raises `StoreVersionError` for a
    store of a newer version and `StoreError` for what is no store, or can't be read at all.
    """
    return await in_thread(partial(_read, path, partial(_audit, on_progress=on_progress)))


async def count_store(
    path: str | os.PathLike[str], *, now: float, ttl: float, max_bytes: int, victims: int = 10
) -> Figures:
    """Return what is stored, by caller, and which jobs the byte budget would remove next.

    `ttl` and `max_bytes` are those of the store's runner, `now` the wall clock. Raises as `check_store`.
    """
    step = partial(figures, now=int(now), ttl=ttl, max_bytes=max_bytes, victims=victims)
    return await in_thread(partial(_read, path, step))


async def back_up_store(
    path: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    replace: bool = False,
    on_progress: OnProgress = lambda _done, _all: None,
) -> Backup:
    """Copy a store into one new file, which is checked and on the disk on return; only its user can read it.

    What was acknowledged before the call is in it. If this is cancelled or raises, `destination` is what
    it was before; a process that is killed may leave a folder `.sift-backup-…` beside it. With `replace` a
    file at `destination` is written over, in one step, unless it is a store that somebody owns.

    `on_progress(done, all)` hears of bytes, in the thread that works. Raises `StoreError`, and its
    subclass `BackupExistsError` when something would have been written over.
    """
    return await in_thread(partial(_back_up, path, Path(destination), replace, on_progress))


def _back_up(
    path: str | os.PathLike[str], destination: Path, replace: bool, on_progress: OnProgress
) -> Backup:
    source = _existing(path)

    def told(done: int, total: int) -> None:
        anyio.from_thread.check_cancelled()
        on_progress(done, total)

    try:
        return back_up(source, destination, replace=replace, on_progress=told, watch=_watch)
    except StoreError:
        # If SQLite was interrupted, this raises what `_is_cancelled` could not let out.
        anyio.from_thread.check_cancelled()
        raise


def _audit(connection: sqlite3.Connection, on_progress: OnProgress) -> Audit:
    def told(done: int, total: int) -> None:
        anyio.from_thread.check_cancelled()
        on_progress(done, total)

    return audit(connection, told)


def _read(path: str | os.PathLike[str], step: Callable[[sqlite3.Connection], T]) -> T:
    """Run a step that only reads on a connection of its own."""
    with files.reported(), contextlib.closing(files.connect_reader(_existing(path))) as connection:
        _watch(connection)
        try:
            return step(connection)
        except sqlite3.OperationalError:
            # If it was interrupted, this raises again what `_is_cancelled` could not let out.
            anyio.from_thread.check_cancelled()
            raise


def _watch(connection: sqlite3.Connection) -> None:
    connection.set_progress_handler(_is_cancelled, _INSTRUCTIONS)


def _is_cancelled() -> bool:
    """Say to SQLite whether it should stop. It takes no exception."""
    try:
        anyio.from_thread.check_cancelled()
    except trio.Cancelled:  # noqa: ASYNC103 - raised again once SQLite has stopped
        return True  # noqa: ASYNC104
    return False


def _existing(path: str | os.PathLike[str]) -> Path:
    resolved = files.resolve(path)
    if files.is_new(resolved):
        raise StoreError("there is no store here; check the path")
    return resolved
