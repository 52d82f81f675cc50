"""How long a fetch may take, and what counts though its time was up."""

import trio
from flow_desk import fetched_once
from trio.testing import MockClock

from sift_batch import Caller, Result, RetryLater, Target, TargetError


async def test_a_fetch_that_takes_too_long_fails(autojump_clock: MockClock) -> None:
    """A fetch that takes `target_timeout` seconds is cancelled then and `failed` (`timeout`), saying so."""
    ended: list[float] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())
        return Result("never")

    target = await fetched_once(fetch, target_timeout=7.5)
    assert ended == [7.5]
    assert (target.status, target.code, target.retryable, target.http_status) == (
        "failed",
        "timeout",
        True,
        504,
    )
    assert "7.5" in target.error


async def test_each_try_has_its_own_time(autojump_clock: MockClock) -> None:
    """`target_timeout` counts for one call: busy waits between the calls take nothing from it."""
    tries: list[float] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        tries.append(trio.current_time())
        await trio.sleep(4)
        if len(tries) < 3:
            raise RetryLater(retry_after=100)
        return Result("in time")

    assert (await fetched_once(fetch, target_timeout=5)).result == Result("in time")
    assert tries == [0, 104, 208]


async def test_a_result_counts_though_time_was_up(autojump_clock: MockClock) -> None:
    """A fetch that returns a result although its time was up has returned it."""

    async def fetch(caller: Caller, target: Target) -> Result:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return Result("late")

    assert (await fetched_once(fetch, target_timeout=5)).result == Result("late")

    async def catching(caller: Caller, target: Target) -> Result:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return Result("what there was")
        return Result("never")

    assert (await fetched_once(catching, target_timeout=5)).result == Result("what there was")


async def test_an_error_counts_though_time_was_up(autojump_clock: MockClock) -> None:
    """A fetch that raises an error of its own although its time was up has raised it."""

    async def fetch(caller: Caller, target: Target) -> Result:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise TargetError("cut off", hint="h") from None
        return Result("never")

    target = await fetched_once(fetch, target_timeout=5)
    assert (target.error, target.hint) == ("cut off", "h")


async def test_a_timeout_of_the_fetchs_own_is_no_timeout_of_the_engines(autojump_clock: MockClock) -> None:
    """A fetch may use scopes and deadlines of its own, earlier or later than the engine's."""

    async def fetch(caller: Caller, target: Target) -> Result:
        with trio.move_on_after(2):
            with trio.fail_after(1_000):
                await trio.sleep_forever()
        return Result(f"{trio.current_time():g}")

    assert (await fetched_once(fetch, target_timeout=50)).result == Result("2")
