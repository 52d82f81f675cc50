"""What does the writer do while another process keeps the file locked?"""

import threading
import time
from pathlib import Path

import pytest
import trio
from traced import Traced, connect, insert, names, traced_writer
from trio.testing import wait_all_tasks_blocked

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
    monkeypatch.setattr("sift_batch._store.writer.LOCK_PATIENCE", 0.2)
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


async def test_what_did_not_fit_into_a_commit_can_leave(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that was left over by a shared commit, and waits for a lock now, is cancelled at once."""
    monkeypatch.setattr("sift_batch._store.writer.LOCK_PATIENCE", 3)
    monkeypatch.setattr("sift_batch._store.writer._SHARE_SECONDS", -1)
    holder = connect(path)
    locked = threading.Event()
    scope = trio.CancelScope()
    connection = connect(path)
    traced = Traced(connection)

    def trace(statement: str) -> None:
        # The holder's, the first of the group, and now that of what was left over.
        traced.statements.append(statement)
        if traced.statements.count("BEGIN IMMEDIATE") == 3 and not holder.in_transaction:
            holder.execute("BEGIN IMMEDIATE")
            locked.set()

    async def left_over() -> None:
        with scope:
            await traced.writer.run(insert("withdrawn"))

    connection.set_trace_callback(trace)
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(traced.writer.run, traced.hold)
            await traced.held()
            async with trio.open_nursery() as inner:
                inner.start_soon(traced.writer.run, insert("kept"))
                await wait_all_tasks_blocked()
                inner.start_soon(left_over)
                await wait_all_tasks_blocked()
                traced.let_go()
                assert await trio.to_thread.run_sync(locked.wait, 10)
                started = time.monotonic()
                scope.cancel()
            assert time.monotonic() - started < 0.5
    finally:
        holder.close()
        await traced.writer.aclose()
    assert scope.cancelled_caught
    assert names(path) == ["kept"]
