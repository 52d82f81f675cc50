"""What must end the program: does it, at once and bare?"""
# ruff: noqa: PT012 - what raises here is a whole block

import signal
from typing import Any

import pytest
import trio
import trio.testing
from flow_stage import ALICE, audit, idle, left_clean, series, stage, wide

from sift_batch import (
    Caller,
    Result,
    Target,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, ScriptedFetch


def _in_group(error: BaseException, depth: int) -> BaseException:
    for _ in range(depth):
        error = BaseExceptionGroup("nursery", [ValueError("beside it"), error])
    return error


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt("now"), SystemExit(7)], ids=["interrupt", "exit"])
async def test_what_ends_the_program_comes_out_of_a_fetch_bare(
    autojump_clock: object, error: BaseException, depth: int
) -> None:
    """A KeyboardInterrupt or SystemExit in a fetch, in groups too, ends the grace and comes out bare."""
    fetch = ScriptedFetch(hang=["https://host.example/other/0"], latency=1)

    async def fatal(caller: Caller, target: Target) -> Result:
        raise _in_group(error, depth)

    fetch.answer("https://host.example/page/0", fatal)
    async with left_clean() as store:
        with pytest.raises(type(error)) as caught:
            async with open_runner(store, fetch, wide(workers=3)) as runner:
                await runner.submit(ALICE, series(1, "other"))
                await runner.submit(ALICE, series(2))
                await runner.submit(ALICE, series(2, "third"))
                await trio.sleep_forever()
        assert caught.value is error
        assert trio.current_time() == pytest.approx(1)
        (other,) = [call for call in fetch.calls if "other" in call.target.url]
        assert isinstance(other.error, trio.Cancelled)
        audit(store)


async def test_what_ends_the_program_does_not_wait_for_a_store_in_trouble(autojump_clock: object) -> None:
    """A KeyboardInterrupt in a fetch of a cancelled job ends at once though the store does not settle it."""

    async def fatal(caller: Caller, target: Target) -> Result:
        await trio.sleep(2)
        raise KeyboardInterrupt

    async with open_store(":memory:") as store:
        faulty = FaultyStore(store)
        with pytest.raises(KeyboardInterrupt), trio.fail_after(1_000):
            async with open_runner(faulty, fatal, wide()) as runner:
                job_id = (await runner.submit(ALICE, series(2))).id
                await trio.sleep(1)
                assert await runner.cancel(job_id)
                faulty.fail(operations={"settle"})
                await trio.sleep_forever()
        assert trio.current_time() == pytest.approx(2)


async def test_two_fatal_fetches_give_one_bare_exception(autojump_clock: object) -> None:
    """When several fetches in flight raise KeyboardInterrupt, one comes out, and it is bare."""
    async with left_clean() as store:
        with pytest.raises(KeyboardInterrupt):
            async with open_runner(
                store, ScriptedFetch(fail={0: KeyboardInterrupt}, latency=1), wide(workers=3)
            ) as runner:
                for name in "abc":
                    await runner.submit(ALICE, series(1, name))
                await trio.sleep_forever()


@pytest.mark.parametrize("where", ["lapsed", "sweep", "begin", "record", "evict"])
async def test_an_interrupt_in_the_engines_own_tasks_comes_out_bare(
    autojump_clock: object, where: str
) -> None:
    """A KeyboardInterrupt in any of the engine's tasks (here in a step of the store) comes out bare."""

    class Hit:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return hit if name == where else getattr(self._store, name)

    async def hit(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    async with left_clean() as store:
        with pytest.raises(KeyboardInterrupt):
            async with stage(wide(ttl=10, max_bytes=1), store=Hit(store)) as on:
                await on.submit(1)
                await on.submit(2)
                await trio.sleep_forever()


async def test_an_interrupt_in_a_fetch_beats_a_cancelled_scope(autojump_clock: object) -> None:
    """A KeyboardInterrupt of a fetch comes out even when the surrounding scope is cancelled as well."""
    async with left_clean() as store:
        fetch = ScriptedFetch(fail={0: KeyboardInterrupt}, latency=5)
        with pytest.raises(KeyboardInterrupt), trio.move_on_after(2):
            async with open_runner(store, fetch, wide()) as runner:
                await runner.submit(ALICE, series(1))
                await trio.sleep_forever()


async def test_an_interrupt_in_a_fetch_ends_the_waits_of_others(autojump_clock: object) -> None:
    """After a KeyboardInterrupt in a fetch, waits and drains of tasks outside the block end as closed."""
    ended = []
    async with open_store(":memory:") as store, trio.open_nursery() as nursery:
        with pytest.raises(KeyboardInterrupt):
            async with open_runner(
                store, ScriptedFetch(fail={0: KeyboardInterrupt}, latency=5), wide()
            ) as runner:
                job_id = (await runner.submit(ALICE, series(2))).id

                async def closed(name: str, method: Any, *args: Any) -> None:
                    with pytest.raises(trio.ClosedResourceError):
                        await method(*args)
                    ended.append(name)

                nursery.start_soon(closed, "wait", runner.wait, job_id)
                nursery.start_soon(closed, "drain", runner.drain)
                await trio.sleep_forever()
        await idle()
        assert sorted(ended) == ["drain", "wait"]
        nursery.cancel_scope.cancel()


def test_a_ctrl_c_during_the_grace_ends_it_at_once() -> None:
    """A KeyboardInterrupt during the grace ends it: fetches are cancelled, and it comes out bare."""
    times = []

    async def main() -> None:
        async with left_clean() as store:
            fetch = ScriptedFetch(hang=[0])
            async with trio.open_nursery() as nursery:

                async def interrupt() -> None:
                    await trio.sleep(5)
                    signal.raise_signal(signal.SIGINT)

                nursery.start_soon(interrupt)
                try:
                    async with open_runner(store, fetch, wide(shutdown_grace=1_000)) as runner:
                        await runner.submit(ALICE, series(1))
                        await trio.sleep(1)
                except KeyboardInterrupt:
                    times.append(trio.current_time())

    trio.run(
        main,
        clock=trio.testing.MockClock(autojump_threshold=0),
        restrict_keyboard_interrupt_to_checkpoints=True,
    )
    assert times == [pytest.approx(5)]


def test_a_second_ctrl_c_ends_the_grace_that_the_first_began() -> None:
    """Ctrl-C in the body begins the closing with its grace; a second one ends the grace."""
    times: list[float] = []

    async def main() -> None:
        async with left_clean() as store:
            fetch = ScriptedFetch(hang=[0])

            async def interrupts() -> None:
                for _ in range(2):
                    await trio.sleep(5)
                    signal.raise_signal(signal.SIGINT)

            trio.lowlevel.spawn_system_task(interrupts)
            with pytest.raises(KeyboardInterrupt):
                async with open_runner(store, fetch, wide(shutdown_grace=1_000)) as runner:
                    await runner.submit(ALICE, series(1))
                    await trio.sleep_forever()
            times.append(trio.current_time())

    trio.run(
        main,
        clock=trio.testing.MockClock(autojump_threshold=0),
        restrict_keyboard_interrupt_to_checkpoints=True,
    )
    assert times == [pytest.approx(10)]
