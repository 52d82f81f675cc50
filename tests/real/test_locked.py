"""What does a runner do when its file is locked for seconds?"""

import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
import trio
from real_audit import Child
from real_rows import check_rows

from sift_batch import (
    Caller,
    Config,
    JobState,
    Result,
    Target,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch

pytestmark = pytest.mark.real

CALLER = Caller("tester")
LOCKED = 3.0
# Far above any stall on a busy machine, far below what a loop would stand still that waits for the lock.
STALL = 1.5


def targets(count: int, name: str = "page") -> list[Target]:
    """Return targets that no other test has."""
    return [Target(f"http://host/{name}/{number}") for number in range(count)]


async def test_a_lock_held_by_another_process_never_blocks_the_loop(tmp_path: Path) -> None:
    """A file locked for 3 s delays stores and submits, refuses none, loses none, and never the loop."""
    path = tmp_path / "jobs.sift"
    late: list[float] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        await trio.sleep(0.02)
        return Result("x" * 1_000)

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await trio.sleep(0.01)
            late.append(time.perf_counter() - began)

    config = Config(jobs_per_caller=10, workers=2)
    async with open_store(path) as store, open_runner(store, fetch, config) as runner:
        first, _ = await runner.submit(CALLER, targets(20, "first"))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            with Child("lock", path, seconds=LOCKED) as other:
                await trio.to_thread.run_sync(other.read_until, "locked")
                began = time.perf_counter()
                second, _ = await runner.submit(CALLER, targets(5, "second"))
                waited = time.perf_counter() - began
                await trio.to_thread.run_sync(other.end)
            await runner.drain()
            nursery.cancel_scope.cancel()
        assert waited > LOCKED / 2, "the file was to be locked"
        for job_id in (first, second):
            job = await runner.job(job_id)
            assert job is not None
            assert job.status is JobState.DONE
        assert max(late) < STALL
    check_rows(path)


async def test_an_opening_that_is_cancelled_while_the_file_is_locked_leaves_nothing(tmp_path: Path) -> None:
    """Cancelled while another process has the file, an opening ends soon and leaves no thread, no lock."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store, open_runner(store, ScriptedFetch()):
        pass
    with Child("lock", path, seconds=30) as other:
        await trio.to_thread.run_sync(other.read_until, "locked")
        for _ in range(5):
            began = time.perf_counter()
            with trio.move_on_after(0.05) as scope:
                async with open_store(path) as store, open_runner(store, ScriptedFetch()):
                    raise AssertionError("the file was to be locked")
            assert scope.cancelled_caught
            assert time.perf_counter() - began < STALL
            assert not [thread for thread in threading.enumerate() if thread.name.startswith("sift_batch")]
        other.kill()
    async with open_store(path) as store, open_runner(store, ScriptedFetch()) as runner:
        await runner.check()


async def test_a_cancelled_submit_leaves_no_transaction_open(tmp_path: Path) -> None:
    """Wherever a submit is cancelled, the file can be written from outside, and a stored job drains."""
    path = tmp_path / "jobs.sift"
    random, stored = Random(1), 0
    config = Config(jobs_per_caller=100, jobs_total=100)
    async with open_store(path) as store, open_runner(store, ScriptedFetch(), config) as runner:
        for number in range(30):
            with trio.move_on_after(random.random() / 200):
                await runner.submit(CALLER, targets(3, f"cancelled {number}"))
                stored += 1
            await runner.drain()
            with closing(sqlite3.connect(path, isolation_level=None, timeout=1)) as outside:
                outside.execute("BEGIN IMMEDIATE")
                outside.execute("ROLLBACK")
        jobs = await runner.jobs()
        assert len(jobs) >= stored
        assert {job.status for job in jobs} <= {JobState.DONE}
    check_rows(path)
