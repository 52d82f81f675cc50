"""What does a runner do while its disk is full, and after?

A disk is full in three ways here: see `crash_room.py`. One that refuses single calls, for this reason or as
a broken disk does, is in `test_crash_refused.py`.
"""

from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from crash_room import (
    DISK,
    Full,
    filled,
    move_log,
    no_file_over,
    no_growth,
    no_pages,
    no_room,
    open_once,
    small_disk,
)
from real_audit import Child
from real_rows import check_rows, rows

from sift_batch import (
    Caller,
    Config,
    JobState,
    Runner,
    StoreError,
    Target,
    TargetState,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch, ThreadAutojumpClock, WallClock

pytestmark = pytest.mark.real

CALLER = Caller("tester")
# Bigger than what the log has room for already, and small enough for the disk above once there is room.
_BIG = "x" * 40_000
_TTL = 1_000.0


def targets(count: int, name: str = "page") -> list[Target]:
    """Return targets that no other job has."""
    return [Target(f"http://host/{name}/{number}") for number in range(count)]


@pytest.fixture(params=[no_room, no_growth, no_pages])
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Full]:
    """Give one of the ways in which a disk is full, and the disk that it needs."""
    if request.param is no_room:
        with small_disk(tmp_path):
            yield request.param
    else:
        yield request.param


class Stage(NamedTuple):
    """A runner on a file, with its clock and its fetch."""

    runner: Runner
    store: Any
    fetch: ScriptedFetch
    clock: WallClock


def play(path: Path, act: Callable[[Stage], Any], fetch: ScriptedFetch, **settings: Any) -> None:
    """Let an act have a runner on the file; waits take no time."""

    async def main() -> None:
        config = Config(**{"jobs_per_caller": 10, "ttl": _TTL, **settings})
        async with open_store(path) as store:
            clock = WallClock(1_700_000_000)
            async with open_runner(store, fetch, config, now=clock) as runner:
                await act(Stage(runner, store, fetch, clock))

    trio.run(main, clock=ThreadAutojumpClock())


def test_a_running_job_waits_for_room_and_goes_on(tmp_path: Path, full: Full) -> None:
    """With no room a submit raises `StoreError` and a result is kept and offered, without a second fetch."""
    path = tmp_path / "jobs.sift"

    async def act(on: Stage) -> None:
        on.fetch.hang(1)
        job_id, _ = await on.runner.submit(CALLER, targets(3))
        await on.fetch.wait_started(2)
        async with full(path, on.store):
            on.fetch.release(1)
            await on.fetch.wait_ended(2)
            await trio.sleep(5)
            with pytest.raises(StoreError):
                await on.runner.submit(CALLER, targets(30, "refused " * 200))
            progress = on.runner.progress(job_id)
            assert progress is not None
            assert progress.reason == "store"
            assert len(on.fetch.calls) == 2, "no other target starts while a result waits for its store"
            status = await on.runner.status(job_id)
            assert status is not None
            assert [target.status for target in status.targets] == ["done", "running", "pending"]
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE
        assert len(on.fetch.calls) == 3
        again, reused = await on.runner.submit(CALLER, targets(1, "later"))
        assert not reused
        assert await on.runner.wait(again)
        assert len(await on.runner.jobs()) == 2, "a refused submit has left something"
        await on.runner.check()

    play(path, act, ScriptedFetch(results={1: _BIG}))
    check_rows(path)


def test_a_cancel_without_room_is_refused_or_done(tmp_path: Path, full: Full) -> None:
    """With no room a cancel either is stored or raises and has changed nothing; with room it is done."""
    path = tmp_path / "jobs.sift"

    async def act(on: Stage) -> None:
        on.fetch.hang(0)
        job_id, _ = await on.runner.submit(CALLER, targets(2))
        await on.fetch.wait_started(1)
        async with full(path, on.store):
            cancelled = None
            try:
                cancelled = await on.runner.cancel(job_id)
            except StoreError:
                job = await on.runner.job(job_id)
                assert job is not None
                assert job.status is JobState.RUNNING
        if cancelled is None:
            cancelled = await on.runner.cancel(job_id)
        assert cancelled
        on.fetch.release(0)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert (job.status, job.targets_done) == (JobState.CANCELLED, 1)

    play(path, act, ScriptedFetch())
    check_rows(path)


def test_jobs_can_be_removed_again_once_there_is_room(tmp_path: Path, full: Full) -> None:
    """With no room a delete either is stored or raises and the job is there, whole; with room it is done."""
    path = tmp_path / "jobs.sift"

    async def act(on: Stage) -> None:
        ids = [(await on.runner.submit(CALLER, targets(2, name))).id for name in "abc"]
        await on.runner.drain()
        refused = []
        async with full(path, on.store):
            for job_id in ids:
                try:
                    assert await on.runner.delete(job_id)
                except StoreError:
                    refused.append(job_id)
        for job_id in refused:
            status = await on.runner.status(job_id)
            assert status is not None
            assert all(target.result is not None for target in status.targets)
            assert await on.runner.delete(job_id)
        assert await on.runner.jobs() == []
        assert on.runner.statistics().stored_bytes == 0

    play(path, act, ScriptedFetch())
    check_rows(path)


def test_a_disk_that_the_store_has_filled_goes_on_once_it_is_bigger(tmp_path: Path) -> None:
    """What the store has filled itself takes no more, and goes on without a restart on a bigger disk."""
    path = tmp_path / "jobs.sift"

    async def act(on: Stage) -> None:
        ids = await _fill(on.runner)
        assert len(await on.runner.jobs()) == len(ids)
        await trio.run_process(["mount", "-o", f"remount,size={10 * DISK}", str(tmp_path)])
        assert await on.runner.delete(ids[0])
        await on.runner.submit(CALLER, targets(1, "after"))
        await on.runner.drain()
        jobs = await on.runner.jobs()
        assert len(jobs) == len(ids), "an acknowledged job is gone, or a refused one is there"
        assert {job.status for job in jobs} == {JobState.DONE}

    with small_disk(tmp_path):
        play(path, act, ScriptedFetch(results={0: "x" * 5_000}), jobs_per_caller=1_000, jobs_total=1_000)
        check_rows(path)


async def _fill(runner: Runner) -> list[str]:
    ids: list[str] = []
    for number in range(1_000):
        try:
            ids.append((await runner.submit(CALLER, targets(1, str(number)))).id)
        except StoreError:
            return ids
        with trio.move_on_after(60):
            await runner.wait(ids[-1])
    raise AssertionError("the disk was never full")


def test_a_sweep_that_finds_no_room_sweeps_once_there_is(tmp_path: Path, full: Full) -> None:
    """What has lapsed is gone for readers on a full disk too, and swept, without a restart, with room."""
    path = tmp_path / "jobs.sift"

    async def act(on: Stage) -> None:
        for name in "abc":
            await on.runner.submit(CALLER, targets(2, name))
        await on.runner.drain()
        async with full(path, on.store):
            await trio.sleep(_TTL + 100)
            assert await on.runner.jobs() == []
        await trio.sleep(100)
        assert on.runner.statistics().stored_bytes == 0

    play(path, act, ScriptedFetch())
    check_rows(path)
    assert not [row for row in rows(path) if row[0] == "batch_job"]


def test_an_eviction_that_finds_no_room_evicts_once_there_is(tmp_path: Path, full: Full) -> None:
    """Stored jobs that could not be evicted on a full disk are, without a restart, with room."""
    path = tmp_path / "jobs.sift"
    budget = 15_000

    async def act(on: Stage) -> None:
        first, _ = await on.runner.submit(CALLER, targets(1, "first"))
        await on.runner.wait(first)
        on.fetch.hang("http://host/second/0")
        second, _ = await on.runner.submit(CALLER, targets(1, "second"))
        await on.fetch.wait_started(2)
        async with full(path, on.store):
            on.fetch.release()
            await trio.sleep(200)
        await on.runner.wait(second)
        await trio.sleep(200)
        assert [job.id for job in await on.runner.jobs()] == [second]
        assert await on.runner.gone(first, caller=CALLER) == "budget"
        assert on.runner.statistics().stored_bytes <= budget

    play(path, act, ScriptedFetch(results={0: "y" * 10_000}), max_bytes=budget)
    check_rows(path)


@pytest.mark.parametrize("how", ["disk", "limit"])
def test_a_store_that_is_opened_without_room_opens_once_there_is(tmp_path: Path, how: str) -> None:
    """Without room for the restart, opening is a `StoreError` and changes nothing; with room it opens."""
    path = tmp_path / "jobs.sift"
    with small_disk(tmp_path) if how == "disk" else nullcontext():
        with Child("leave_live", path, jobs=3) as child:
            child.read_until("ready")
            child.kill()
        # The log is moved into the file, so that there is no room left in it.
        move_log(path)
        before = rows(path)
        with filled(tmp_path) if how == "disk" else no_file_over(1):
            for _ in range(2):
                with pytest.raises(StoreError):
                    trio.run(open_once, path)
        assert rows(path) == before
        trio.run(open_once, path)
        check_rows(path)
        jobs = [row for row in rows(path) if row[0] == "batch_job"]
        assert len(jobs) == 3
        assert all("restart" in job for job in jobs)


def test_a_runner_that_leaves_without_room_leaves_a_sound_store(tmp_path: Path, full: Full) -> None:
    """If there is no room until the grace is over, the job fails at the next start, what it had kept."""
    path, ids = tmp_path / "jobs.sift", []

    async def main() -> None:
        fetch = ScriptedFetch(results={1: _BIG})
        fetch.hang(1)
        async with AsyncExitStack() as limits, open_store(path) as store:
            async with open_runner(store, fetch, Config(shutdown_grace=20)) as runner:
                ids.append((await runner.submit(CALLER, targets(3))).id)
                await fetch.wait_started(2)
                await limits.enter_async_context(full(path, store))
                fetch.release(1)
                await fetch.wait_ended(2)

    async def look() -> None:
        async with open_store(path) as store, open_runner(store, ScriptedFetch()) as runner:
            status = await runner.status(ids[0])
            assert status is not None
            assert (status.job.status, status.job.error) == (JobState.FAILED, "restart")
            assert [target.status for target in status.targets] == ["done", "pending", "pending"]
            assert status.targets[0].status is TargetState.DONE

    trio.run(main, clock=ThreadAutojumpClock())
    check_rows(path)
    trio.run(look)
