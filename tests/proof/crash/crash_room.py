"""How is a disk made full? Three ways, each for the length of a block, and a disk small enough for the first.

A small disk that really is full, where mounting it is permitted; files that the system lets grow no more;
and a database that may have no more pages, which works everywhere.
"""

import resource
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from sift_batch import open_runner, open_store
from sift_batch.testing import ScriptedFetch

DISK: Final = 300 * 1_024

Full = Callable[[Path, Any], AbstractAsyncContextManager[None]]


@asynccontextmanager
async def no_room(path: Path, store: Any) -> AsyncIterator[None]:
    """Fill the small disk that the file is on, when the log holds nothing that could make room."""
    await _pragma(store, "wal_checkpoint(TRUNCATE)")
    with filled(path.parent):
        yield


@asynccontextmanager
async def no_growth(path: Path, store: Any) -> AsyncIterator[None]:
    """Let the system refuse every write of this process beyond the first byte of a file."""
    with no_file_over(1):
        yield


@asynccontextmanager
async def no_pages(path: Path, store: Any) -> AsyncIterator[None]:
    """Let the database have no more pages than it has."""
    await _pragma(store, "max_page_count = 1")
    try:
        yield
    finally:
        # A writer that has left took its limit with it.
        if store._writes is not None:
            with trio.CancelScope(shield=True):
                await _pragma(store, "max_page_count = 1000000")


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Leave no room on the disk for the length of the block."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while shutil.disk_usage(folder).free:
            file.write(bytes(4_096))
    try:
        yield
    finally:
        ballast.unlink()


@contextmanager
def no_file_over(nbytes: int) -> Iterator[None]:
    """Refuse writes beyond `nbytes` of any file of this process for the length of the block."""
    # The interpreter ignores the signal that comes with it.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def _pragma(store: Any, text: str) -> None:
    await store._writes.run(lambda connection: connection.execute(f"PRAGMA {text}").fetchall(), bare=True)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """Mount a disk of 300 KiB, or skip the test where that is not permitted."""
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def move_log(path: Path) -> None:
    """Move a store's log into its file, so that there is no room left in it."""
    # Nobody has the file open.
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


async def open_once(path: Path) -> None:
    """Open the store and a runner on it, see that it can be written, and leave."""
    async with open_store(path) as store, open_runner(store, ScriptedFetch()) as runner:
        await runner.check()
