"""What does a runner do when its file is locked for seconds, or its disk is full?"""

import resource
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, closing, contextmanager
from pathlib import Path
from random import Random

import pytest
import trio
from real_audit import Child, check_rows

from sift_batch import (
    Caller,
    Config,
    JobState,
    Result,
    Runner,
    StoreError,
    Target,
    TargetState,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch, ThreadAutojumpClock

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


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Give a disk of 4 MB, or skip the test where none can be mounted."""
    mounted = shutil.which("mount") and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, check=False
    )
    if not mounted or mounted.returncode:
        pytest.skip("mounting a small disk is not permitted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


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
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@asynccontextmanager
async def running_job(path: Path, fetch: ScriptedFetch) -> AsyncIterator[tuple[Runner, str]]:
    """Run a job of three targets; its second fetch hangs until it is released."""
    fetch.hang(1)
    async with open_store(path) as store, open_runner(store, fetch, Config(jobs_per_caller=10)) as runner:
        job_id, _ = await runner.submit(CALLER, targets(3))
        await fetch.wait_started(2)
        yield runner, job_id


async def _is_refused(runner: Runner, fetch: ScriptedFetch, job_id: str) -> None:
    """See what a full disk does: a result is kept and offered, a submit is refused, reads work."""
    fetch.release(1)
    await fetch.wait_ended(2)
    await trio.sleep(5)
    with pytest.raises(StoreError):
        await runner.submit(CALLER, targets(1, "refused"))
    progress = runner.progress(job_id)
    assert progress is not None
    assert progress.reason == "store"
    assert len(fetch.calls) == 2, "no other target starts while a result waits for its store"
    status = await runner.status(job_id)
    assert status is not None
    assert [target.status for target in status.targets] == ["done", "running", "pending"]


async def _goes_on(runner: Runner, fetch: ScriptedFetch, job_id: str) -> None:
    """See what room does: the result is stored without a second fetch, and nothing was lost."""
    job = await runner.wait(job_id)
    assert job is not None
    assert job.status is JobState.DONE
    assert len(fetch.calls) == 3
    status = await runner.status(job_id)
    assert status is not None
    assert [target.status for target in status.targets] == [TargetState.DONE] * 3
    again, reused = await runner.submit(CALLER, targets(1, "refused"))
    assert not reused
    assert await runner.wait(again)
    assert len(await runner.jobs()) == 2, "a refused submit has left something"


def _big() -> ScriptedFetch:
    # Bigger than the log that the first steps have left, so that the disk must give new room for it.
    return ScriptedFetch(results={1: "x" * 200_000})


def test_a_full_disk_loses_nothing_and_needs_no_restart(tmp_path: Path) -> None:
    """On a full disk a submit raises `StoreError`; a result is offered until there is room, then stored."""
    with small_disk(tmp_path) as folder:

        async def main() -> None:
            fetch = _big()
            async with running_job(folder / "jobs.sift", fetch) as (runner, job_id):
                with filled(folder):
                    await _is_refused(runner, fetch, job_id)
                    assert not await runner.cancel("no job")
                await _goes_on(runner, fetch, job_id)

        trio.run(main, clock=ThreadAutojumpClock())
        check_rows(folder / "jobs.sift")


def test_a_file_that_may_not_grow_loses_nothing_and_needs_no_restart(tmp_path: Path) -> None:
    """Where the system refuses every write, the same holds as on a full disk."""
    path = tmp_path / "jobs.sift"

    async def main() -> None:
        fetch = _big()
        async with running_job(path, fetch) as (runner, job_id):
            with no_file_over(1):
                await _is_refused(runner, fetch, job_id)
                with pytest.raises(StoreError):
                    await runner.cancel(job_id)
                with pytest.raises(StoreError):
                    await runner.check()
            await _goes_on(runner, fetch, job_id)
            await runner.check()

    trio.run(main, clock=ThreadAutojumpClock())
    check_rows(path)


def test_a_runner_that_leaves_with_a_full_disk_leaves_a_sound_store(tmp_path: Path) -> None:
    """If there is no room until the grace is over, the job fails at the next start, what it had kept."""
    path = tmp_path / "jobs.sift"

    async def leave_without_room() -> str:
        fetch = _big()
        with ExitStack() as limits:
            async with running_job(path, fetch) as (_, job_id):
                limits.enter_context(no_file_over(1))
                fetch.release(1)
                await fetch.wait_ended(2)
            return job_id

    async def look(job_id: str) -> None:
        async with open_store(path) as store, open_runner(store, ScriptedFetch()) as runner:
            status = await runner.status(job_id)
            assert status is not None
            assert (status.job.status, status.job.error) == (JobState.FAILED, "restart")
            assert [target.status for target in status.targets] == ["done", "pending", "pending"]

    job_id = trio.run(leave_without_room, clock=ThreadAutojumpClock())
    check_rows(path)
    trio.run(look, job_id)
