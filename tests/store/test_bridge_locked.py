"""What does the writer do while another process keeps the file locked?"""

import time
from pathlib import Path

import pytest
import trio
from traced import connect, insert, names, traced_writer

from sift_batch import StoreError

pytestmark = pytest.mark.real


async def test_a_locked_file_never_blocks_the_loop(path: Path) -> None:
    """While another process holds the file for a second the loop turns, and the step waits for it."""
    gaps: list[float] = []

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await trio.sleep(0.01)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    async def release() -> None:
        await trio.sleep(0.7)
        holder.execute("ROLLBACK")
        holder.close()

    holder = connect(path)
    holder.execute("BEGIN IMMEDIATE")
    async with traced_writer(path) as traced, trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        with trio.move_on_after(0.3) as patience:
            await traced.writer.run(insert("withdrawn"))
        assert patience.cancelled_caught
        started = time.monotonic()
        nursery.start_soon(release)
        await traced.writer.run(insert("kept"))
        assert 0.5 < time.monotonic() - started < 5
        nursery.cancel_scope.cancel()
    assert names(path) == ["kept"]
    assert len(gaps) > 20


async def test_a_step_behind_a_locked_file_leaves_at_once(path: Path) -> None:
    """A step that waits for another process's lock is cancelled without waiting for it."""
    holder = connect(path)
    holder.execute("BEGIN IMMEDIATE")
    try:
        async with traced_writer(path) as traced:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(traced.writer.run, insert("withdrawn"))
                    await trio.sleep(0.2)
                    started = time.monotonic()
                    scope.cancel()
            assert time.monotonic() - started < 0.5
            holder.execute("ROLLBACK")
            await traced.writer.run(insert("kept"))
    finally:
        holder.close()
    assert names(path) == ["kept"]


async def test_closing_waits_for_no_lock_on_behalf_of_nobody(path: Path) -> None:
    """Once the step that waited for another process's lock is withdrawn, the writer can close."""
    holder = connect(path)
    holder.execute("BEGIN IMMEDIATE")
    try:
        async with traced_writer(path) as traced:
            with trio.move_on_after(0.1):
                await traced.writer.run(insert("withdrawn"))
            started = time.monotonic()
        assert time.monotonic() - started < 5
    finally:
        holder.close()


async def test_impatience_ends_with_a_store_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that stays locked for longer than the writer's patience is a StoreError."""
    monkeypatch.setattr("sift_batch._store.bridge.LOCK_PATIENCE", 0.2)
    holder = connect(path)
    holder.execute("BEGIN IMMEDIATE")
    try:
        async with traced_writer(path) as traced:
            with pytest.raises(StoreError, match="BUSY"):
                await traced.writer.run(insert("never"))
            holder.execute("ROLLBACK")
            await traced.writer.run(insert("later"))
    finally:
        holder.close()
    assert names(path) == ["later"]
