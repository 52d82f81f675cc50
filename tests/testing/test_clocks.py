"""Do the two clocks say what they promise?"""

import threading
import time
from functools import partial
from math import inf
from pathlib import Path

import anyio.to_thread
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sift_batch._store.sqlite import open_store
from sift_batch.testing import ThreadAutojumpClock, WallClock


@pytest.fixture
def clock() -> ThreadAutojumpClock:
    """Give each test's run a clock of its own."""
    return ThreadAutojumpClock()


async def test_a_day_of_sleeps_takes_no_time(clock: ThreadAutojumpClock) -> None:
    """A day slept a minute at a time passes in well under a second."""
    started = time.perf_counter()
    for _ in range(24 * 60):
        await trio.sleep(60)
    assert trio.current_time() == 86_400
    assert time.perf_counter() - started < 2


@pytest.mark.real
async def test_time_stands_still_while_a_thread_works(clock: ThreadAutojumpClock) -> None:
    """A thread of 0.2 real seconds takes no virtual time, and no timeout strikes meanwhile."""
    with trio.move_on_after(5) as timeout:
        await trio.to_thread.run_sync(time.sleep, 0.2)
        await anyio.to_thread.run_sync(time.sleep, 0.05)
    assert not timeout.cancelled_caught
    assert trio.current_time() == 0


@pytest.mark.real
async def test_time_passes_for_a_task_waiting_on_a_token_that_no_thread_holds(
    clock: ThreadAutojumpClock,
) -> None:
    """Waiting for a limiter's token stops no clock unless a thread that is waited for holds it."""
    limiter = trio.CapacityLimiter(1)
    async with limiter, trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.to_thread.run_sync, time.sleep, 0, limiter=limiter))
        await wait_all_tasks_blocked()
        await trio.sleep(1_000)
        assert trio.current_time() == 1_000
        nursery.cancel_scope.cancel()


@pytest.mark.real
async def test_time_stands_still_for_all_who_queue_for_a_thread(clock: ThreadAutojumpClock) -> None:
    """Threads that run one after another behind a limiter all run at one virtual moment."""
    limiter = trio.CapacityLimiter(1)
    with trio.move_on_after(1) as timeout:
        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(partial(trio.to_thread.run_sync, time.sleep, 0.02, limiter=limiter))
    assert not timeout.cancelled_caught
    assert trio.current_time() == 0


@pytest.mark.real
async def test_time_passes_for_a_thread_that_sleeps_in_trio(clock: ThreadAutojumpClock) -> None:
    """A thread that has called back into Trio to sleep does not stop the clock it sleeps on."""
    await trio.to_thread.run_sync(trio.from_thread.run, trio.sleep, 500)
    assert trio.current_time() == 500


@pytest.mark.real
@pytest.mark.parametrize("durability", ["full", "normal"])
async def test_steps_of_a_store_in_a_file_take_no_virtual_time(
    clock: ThreadAutojumpClock, tmp_path: Path, durability: str
) -> None:
    """Opening, writing, reading and closing a store in a file take no virtual time at all."""
    with trio.move_on_after(0.001) as timeout:
        async with open_store(tmp_path / "jobs.sift", durability=durability) as store:  # type: ignore[arg-type]
            await store.acquire("owner", now=1)
            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(partial(store.check, "owner", now=1))
            await store.lapsed(now=1, ttl=1)
            await store.release("owner")
    assert not timeout.cancelled_caught
    assert trio.current_time() == 0


@pytest.mark.real
def test_nothing_to_wait_for_costs_nothing() -> None:
    """While no task has a deadline, or a thread works, the clock burns no CPU."""

    async def main() -> None:
        event, token = trio.Event(), trio.lowlevel.current_trio_token()
        timer = threading.Timer(0.3, token.run_sync_soon, [event.set])
        timer.start()
        burnt = time.thread_time()
        await event.wait()
        await trio.to_thread.run_sync(time.sleep, 0.2)
        assert time.thread_time() - burnt < 0.1
        timer.join()

    trio.run(main, clock=ThreadAutojumpClock())


def test_one_clock_serves_run_after_run() -> None:
    """A second run with the same clock goes on from the first one's time."""
    clock = ThreadAutojumpClock()

    async def main() -> float:
        await trio.sleep(10)
        return trio.current_time()

    assert [trio.run(main, clock=clock) for _ in range(3)] == [10, 20, 30]


async def test_those_who_wait_for_idleness_go_first(clock: ThreadAutojumpClock) -> None:
    """A task in wait_all_tasks_blocked, with a cushion or not, runs before the clock jumps."""
    woken: list[float] = []

    async def sleeper() -> None:
        await trio.sleep(1)

    async def watcher(cushion: float) -> None:
        await wait_all_tasks_blocked(cushion)
        woken.append(trio.current_time())
        await wait_all_tasks_blocked(cushion)
        woken.append(trio.current_time())
        await trio.sleep(3)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeper)
        for cushion in (0.0, 0.0, 0.01):
            nursery.start_soon(watcher, cushion)
    assert woken == [0] * 6
    assert trio.current_time() == 3


async def test_what_idleness_set_in_motion_comes_before_a_jump(clock: ThreadAutojumpClock) -> None:
    """What a task does that woke because all were blocked takes its course before the clock jumps."""
    # Trio shuffles who runs first: often enough to see both orders.
    for _ in range(20):
        event, seen = trio.Event(), []

        async def waiter(event: trio.Event, seen: list[float]) -> None:
            await event.wait()
            seen.append(trio.current_time())

        async def watcher(event: trio.Event) -> None:
            await wait_all_tasks_blocked()
            event.set()
            await trio.sleep(1)

        started = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waiter, event, seen)
            nursery.start_soon(watcher, event)
        assert seen == [started]
        assert trio.current_time() == started + 1


async def test_a_manual_jump(clock: ThreadAutojumpClock) -> None:
    """A jump moves the time by hand, and never back."""
    clock.jump(5)
    assert trio.current_time() == 5
    with pytest.raises(ValueError, match="backwards"):
        clock.jump(-1)


@pytest.mark.real
def test_without_autojump_the_rate_alone_moves_time() -> None:
    """With an infinite threshold nothing jumps, and the rate makes real time pass faster."""

    async def main() -> None:
        await trio.sleep(20)

    started = time.perf_counter()
    trio.run(main, clock=ThreadAutojumpClock(rate=200, autojump_threshold=inf))
    assert 0.08 < time.perf_counter() - started < 2


def test_a_cancelled_run_ends() -> None:
    """The clock's own task never keeps a run from ending, whatever ends it."""

    async def main() -> None:
        raise RuntimeError("out")

    with pytest.raises(RuntimeError, match="out"):
        trio.run(main, clock=ThreadAutojumpClock())


async def test_the_wall_clock_follows_trios(autojump_clock: MockClock) -> None:
    """The wall clock shows its start, and moves with Trio's clock."""
    clock = WallClock(start=1_000)
    assert clock() == 1_000
    await trio.sleep(90)
    assert clock() == 1_090


async def test_the_wall_clock_jumps_alone(autojump_clock: MockClock) -> None:
    """A jump moves the wall clock both ways and leaves Trio's where it is."""
    clock = WallClock(start=1_000)
    clock.jump(3_600)
    assert clock() == 4_600
    clock.jump(-5_000)
    assert clock() == -400
    assert trio.current_time() == 0
    await trio.sleep(1)
    assert clock() == -399


def test_the_wall_clock_outside_a_run() -> None:
    """Outside a run the time stands still but for jumps, and a next run goes on from there."""
    clock = WallClock(start=1_000)

    async def main() -> None:
        clock()
        await trio.sleep(10)
        assert clock() == wanted

    for wanted in (1_010, 1_025):
        trio.run(main, clock=MockClock(autojump_threshold=0))
        assert clock() == wanted
        clock.jump(5)
        assert clock() == wanted + 5


async def test_the_wall_clock_in_a_thread(clock: ThreadAutojumpClock) -> None:
    """In a thread the wall clock shows what was last read in the run."""
    wall = WallClock(start=5)
    await trio.sleep(2)
    assert wall() == 7
    assert await trio.to_thread.run_sync(wall) == 7
