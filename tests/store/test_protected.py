"""Can a Ctrl-C slip in between a block and what opens and closes a store for it?"""

import contextlib
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import trio

from sift_batch import open_reader, open_store
from sift_batch._store import files, sqlite
from sift_batch.testing._ledger import OWNER, T0

pytestmark = pytest.mark.real


def _interrupt_at(line: int) -> Callable[[], bool]:
    """Raise SIGINT at the n-th line in contextlib's frames; say whether it came so far."""
    left = line

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal left
        if frame.f_code.co_filename != contextlib.__file__ or frame.f_code.co_name not in (
            "__aenter__",
            "__aexit__",
        ):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return trace

    sys.settrace(trace)
    return lambda: left <= 0


def _opened(connections: list[sqlite3.Connection]) -> int:
    """Return how many of these are still open."""
    opened = 0
    for connection in connections:
        with contextlib.suppress(sqlite3.ProgrammingError):
            connection.execute("SELECT 1")
            opened += 1
    return opened


@pytest.mark.parametrize("owned", [False, True], ids=["alone", "owned"])
@pytest.mark.parametrize("opener", [open_store, open_reader])
def test_a_ctrl_c_at_the_edge_of_the_block_leaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opener: Any, owned: bool
) -> None:
    """Whichever of contextlib's lines a Ctrl-C strikes, no connection stays open and the lock is free."""
    path = tmp_path / "jobs.sift"
    connections: list[sqlite3.Connection] = []
    real_connect = files.connect

    def connect(path: Path, mode: str) -> sqlite3.Connection:
        connections.append(real_connect(path, mode))
        return connections[-1]

    async def use(opened: Callable[[Path], AbstractAsyncContextManager[Any]]) -> None:
        try:
            async with opened(path) as it:
                if owned and isinstance(it, sqlite.FileStore):
                    await it.acquire(OWNER, now=T0)
            await trio.lowlevel.checkpoint()
        finally:
            # Here and not after the run: Trio closes at its end what a generator has left open.
            left_open.append(_opened(connections))

    async def make() -> None:
        async with open_store(path):
            pass

    trio.run(make)
    monkeypatch.setattr(files, "connect", connect)
    left_open: list[int] = []
    interrupted = 0
    before = sys.gettrace()
    for line in range(1, 100):
        came = _interrupt_at(line)
        try:
            trio.run(use, opener)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        assert left_open.pop() == 0, f"line {line}"
        connections.clear()
        if not came():
            break
        lock = files.OwnerLock(path)
        lock.acquire()
        lock.release()
    assert interrupted > 3
