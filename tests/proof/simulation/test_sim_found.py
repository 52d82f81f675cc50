"""Does anything come back that the simulation has found in the engine? Each as small as it can be."""

import pytest
import trio
import trio.testing

from sift_batch import Caller, Config, Result, Target, open_runner, open_store


@pytest.fixture
def clock() -> trio.testing.MockClock:
    """Give a mock clock that jumps."""
    return trio.testing.MockClock(autojump_threshold=0)


def test_a_rerun_with_nothing_left_keeps_the_budget(clock: trio.testing.MockClock) -> None:
    """A rerun that settles at once, and takes the stored jobs over their budget, evicts what is too much."""

    async def fetch(caller: Caller, target: Target) -> Result:
        await trio.lowlevel.checkpoint()
        return Result("x" * 100)

    async def main() -> None:
        config = Config(max_bytes=300, sweep_every=1e6)
        async with open_store(":memory:") as store, open_runner(store, fetch, config) as runner:
            first = await runner.submit(Caller("alice"), [Target("https://a.test/")])
            assert (await runner.wait(first.id)) is not None
            await trio.sleep(2)
            second = await runner.rerun(Caller("alice"), first.id)
            third = await runner.rerun(Caller("alice"), second.id)
            await trio.testing.wait_all_tasks_blocked()
            assert runner.statistics().stored_bytes <= config.max_bytes
            assert await runner.job(first.id) is None
            assert await runner.job(third.id) is not None

    trio.run(main, clock=clock)
