"""Does a runner need the main thread, or a loop of its own? Neither: it goes where Trio goes."""

import queue
import threading
from collections.abc import Callable
from pathlib import Path

import outcome
import pytest
import trio

from sift_batch import Caller, Config, JobState, Target, open_runner, open_store
from sift_batch.testing import ScriptedFetch, ThreadAutojumpClock

pytestmark = pytest.mark.real

CALLER = Caller("tester")


async def drain_one(path: Path) -> JobState:
    """Drain a job of three targets and return how it ended."""
    async with open_store(path) as store, open_runner(store, ScriptedFetch()) as runner:
        job_id, _ = await runner.submit(CALLER, [Target(f"http://host/{idx}") for idx in range(3)])
        job = await runner.wait(job_id)
        assert job is not None
        return job.status


def test_a_runner_works_in_guest_mode(tmp_path: Path) -> None:
    """As a guest of another loop a runner opens, drains a job and closes."""
    todo: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
    ended: list[outcome.Outcome[JobState]] = []
    trio.lowlevel.start_guest_run(
        drain_one,
        tmp_path / "jobs.sift",
        run_sync_soon_threadsafe=todo.put,
        done_callback=ended.append,
        host_uses_signal_set_wakeup_fd=False,
    )
    while not ended:
        todo.get(timeout=30)()
    assert ended[0].unwrap() is JobState.DONE


def test_a_runner_works_outside_the_main_thread(tmp_path: Path) -> None:
    """In a run of another thread a runner works, and needs no signal handler."""
    ended: list[JobState] = []
    thread = threading.Thread(target=lambda: ended.append(trio.run(drain_one, tmp_path / "jobs.sift")))
    thread.start()
    thread.join(timeout=30)
    assert ended == [JobState.DONE]


def test_two_runs_of_two_threads_have_a_runner_each(tmp_path: Path) -> None:
    """Two runs at the same time, each with a store of its own, do not disturb each other."""
    ended: list[JobState] = []
    threads = [
        threading.Thread(target=lambda name=name: ended.append(trio.run(drain_one, tmp_path / name)))
        for name in ("a.sift", "b.sift")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert ended == [JobState.DONE] * 2


def test_a_runner_may_be_used_from_threads(tmp_path: Path) -> None:
    """From a thread, a submit and a wait through `trio.from_thread` work as in a task."""

    async def main() -> None:
        async with open_store(tmp_path / "jobs.sift") as store:
            async with open_runner(store, ScriptedFetch()) as runner:

                def in_thread() -> JobState:
                    targets = [Target("http://host/")]
                    job_id, _ = trio.from_thread.run(runner.submit, CALLER, targets)
                    job = trio.from_thread.run(runner.wait, job_id)
                    assert job is not None
                    return job.status

                assert await trio.to_thread.run_sync(in_thread) is JobState.DONE

    trio.run(main)


def test_one_thread_for_all_of_the_program_is_enough(tmp_path: Path) -> None:
    """With Trio's default limit of threads at 1, and that one taken, the store works on."""

    async def main() -> None:
        trio.to_thread.current_default_thread_limiter().total_tokens = 1
        taken = threading.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, taken.wait)
            await trio.testing.wait_all_tasks_blocked()
            with trio.fail_after(20):
                config = Config(jobs_per_caller=20, jobs_total=20, workers=2)
                try:
                    async with open_store(tmp_path / "jobs.sift") as store:
                        async with open_runner(store, ScriptedFetch(), config) as runner:
                            for number in range(20):
                                await runner.submit(CALLER, [Target(f"http://host/{number}")])
                            await runner.drain()
                finally:
                    taken.set()

    trio.run(main)


@pytest.fixture
def clock() -> ThreadAutojumpClock:
    """Jump over every wait, but not over the work of a thread."""
    return ThreadAutojumpClock()


async def test_hours_of_waiting_pass_while_the_store_has_its_threads(
    clock: ThreadAutojumpClock, tmp_path: Path
) -> None:
    """On the clock that knows of threads, a day of slow and busy targets drains on a store in a file."""
    fetch = ScriptedFetch(latency=3_600, busy={f"http://host/{idx}": 2 for idx in range(8)})
    config = Config(target_timeout=4_000, job_timeout=86_400)
    async with open_store(tmp_path / "jobs.sift") as store, open_runner(store, fetch, config) as runner:
        job_id, _ = await runner.submit(CALLER, [Target(f"http://host/{idx}") for idx in range(8)])
        job = await runner.wait(job_id)
    assert job is not None
    assert job.status is JobState.DONE
    # Eight hours, and for each target the waits of 2 and 4 s after its busy answers: commits take none.
    assert trio.current_time() == 8 * (3_600 + 2 + 4)
