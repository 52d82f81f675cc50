"""What does a runner leave behind, and what does it cost while nobody wants anything?"""

import gc
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
import trio

from sift_batch import Caller, Config, Target, open_reader, open_runner, open_store
from sift_batch.testing import ScriptedFetch

pytestmark = pytest.mark.real

CALLER = Caller("tester")


def store_threads() -> int:
    """Return how many threads work for a store now."""
    return sum(thread.name.startswith("sift_batch") for thread in threading.enumerate())


def open_files() -> set[str]:
    """Return what the process has open, by name; nothing where the system does not say."""
    found: set[str] = set()
    descriptors = Path("/proc/self/fd")
    for entry in descriptors.iterdir() if descriptors.is_dir() else ():
        try:
            found.add(str(entry.readlink()))
        except OSError:
            continue
    return found


async def use(path: Path) -> None:
    """Open everything there is, do a little, close everything."""
    async with open_store(path) as store:
        async with open_runner(store, ScriptedFetch()) as runner, open_reader(path) as reader:
            job_id, _ = await runner.submit(CALLER, [Target("http://host/")], max_age=0)
            async with runner.results(job_id) as results:
                async for _ in results:
                    pass
            async with runner.watch(job_id) as states:
                async for _ in states:
                    break
            assert await reader.job(job_id)


async def test_nothing_is_left_open_after_closing(tmp_path: Path) -> None:
    """After closing, no thread works for the store, no descriptor is open on it, no warning is due."""
    path = tmp_path / "jobs.sift"
    for _ in range(10):
        await use(path)
        assert store_threads() == 0
        assert not [name for name in open_files() if str(tmp_path) in name]
    # An unclosed resource warns when it is collected, and a warning is an error here.
    gc.collect()


async def test_threads_do_not_grow_with_the_work(tmp_path: Path) -> None:
    """However many jobs and readers there are, a store has one thread that writes and one that reads."""
    most = 0
    config = Config(jobs_per_caller=100, jobs_total=100, workers=20, workers_limit=20)
    before = threading.active_count()
    async with open_store(tmp_path / "jobs.sift") as store:
        async with open_runner(store, ScriptedFetch(), config) as runner:

            async def follow(number: int) -> None:
                nonlocal most
                targets = [Target(f"http://host/{number}/{idx}") for idx in range(4)]
                job_id, _ = await runner.submit(CALLER, targets)
                async with runner.results(job_id) as results:
                    async for _ in results:
                        await runner.status(job_id)
                        most = max(most, threading.active_count())

            async with trio.open_nursery() as nursery:
                for number in range(40):
                    nursery.start_soon(follow, number)
    # Trio keeps idle threads for ten seconds, so the one that opened the store may be there still.
    assert most - before <= 4


async def test_a_stream_left_half_way_pins_nothing(tmp_path: Path) -> None:
    """Somebody who stops reading half-way leaves no look at the file open: its log can be emptied."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store, open_runner(store, ScriptedFetch()) as runner:
        job_id, _ = await runner.submit(CALLER, [Target(f"http://host/{idx}") for idx in range(20)])
        await runner.wait(job_id)
        async with runner.results(job_id) as results, open_reader(path) as reader:
            await anext(results)
            assert await reader.status(job_id)
            with closing(sqlite3.connect(path)) as outside:
                busy, *_ = outside.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            assert not busy
            assert path.with_name(path.name + "-wal").stat().st_size == 0


class Steps(trio.abc.Instrument):
    """Counts how often any task runs."""

    def __init__(self) -> None:
        self.count = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count one step."""
        self.count += 1


async def test_an_idle_runner_does_nothing(tmp_path: Path) -> None:
    """With nothing to do, no task of a runner runs and its process uses no time: nothing polls."""
    async with open_store(tmp_path / "jobs.sift") as store:
        async with open_runner(store, ScriptedFetch()) as runner:
            job_id, _ = await runner.submit(CALLER, [Target("http://host/")])
            await runner.wait(job_id)
            await trio.testing.wait_all_tasks_blocked(0.05)
            steps = Steps()
            trio.lowlevel.add_instrument(steps)
            before = os.times()
            await trio.sleep(0.5)
            trio.lowlevel.remove_instrument(steps)
            used = os.times()
    # This test's own task, once or twice.
    assert steps.count <= 3
    assert used.user + used.system - before.user - before.system < 0.1
