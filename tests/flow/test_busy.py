"""Busy: when a refused target is tried again, to the second, and when it is enough."""

import math
from typing import Any

import pytest
import trio
from flow_desk import (
    ALICE,
    Refusing,
    after,
    breaking,
    running,
    targets,
    tried,
)
from trio.testing import MockClock

from sift_batch import (
    RetryLater,
    TargetError,
)
from sift_batch.testing import ScriptedFetch


async def test_without_a_time_the_wait_doubles_up_to_a_minute(autojump_clock: MockClock) -> None:
    """A busy answer without a time waits `retry_wait`, doubled at each further one, never above 60 s."""
    fetch = Refusing(*[RetryLater] * 9)
    target = await tried(fetch)
    assert target.status == "done"
    assert fetch.tries == [0, 2, 6, 14, 30, 62, 122, 182, 242, 302]


async def test_the_first_wait_is_the_configured_one(autojump_clock: MockClock) -> None:
    """`retry_wait` is the first wait, in fractions of a second too."""
    fetch = Refusing(*[RetryLater] * 3)
    await tried(fetch, retry_wait=0.25)
    assert fetch.tries == [0, 0.25, 0.75, 1.75]


async def test_each_target_begins_with_the_first_wait(autojump_clock: MockClock) -> None:
    """The doubling belongs to one target: the next one begins with `retry_wait` again."""
    fetch = ScriptedFetch(busy={0: 3, 1: 1})
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, targets(2))
        await runner.wait(submission.id)
    assert [call.started for call in fetch.calls] == [0, 2, 6, 14, 14, 16]


async def test_a_retry_after_is_kept_to_the_second(autojump_clock: MockClock) -> None:
    """With a valid `retry_after` the next try comes after exactly that many seconds."""
    times: list[Any] = [5, 0.5, 1.25, 300, True + 1]
    fetch = Refusing(*[lambda seconds=seconds: RetryLater(retry_after=seconds) for seconds in times])
    target = await tried(fetch)
    assert target.status == "done"
    assert fetch.tries == [0, 5, 5.5, 6.75, 306.75, 308.75]


@pytest.mark.parametrize(
    "odd",
    [
        -1,
        0,
        -0.0,
        math.nan,
        math.inf,
        -math.inf,
        -(10**400),
        10**400,
        "5",
        "soon",
        b"5",
        True,
        [5],
        5j,
        pytest.param(object(), id="object"),
    ],
    ids=repr,
)
async def test_a_retry_after_that_is_no_time_counts_as_none(odd: Any, autojump_clock: MockClock) -> None:
    """A `retry_after` that is not finite, not above 0 or no number gives the usual doubling wait."""
    fetch = Refusing(*[lambda: RetryLater(retry_after=odd)] * 3)
    target = await tried(fetch)
    assert target.status == "done"
    assert fetch.tries == [0, 2, 6, 14]


async def test_a_short_retry_after_keeps_tries_apart(autojump_clock: MockClock) -> None:
    """Tries of one target are at least 0.1 s apart, however short its `retry_after`."""
    fetch = Refusing(*[lambda: RetryLater(retry_after=1e-9)] * 3)
    await tried(fetch)
    assert fetch.tries == pytest.approx([0, 0.1, 0.2, 0.3])


async def test_ready_decides_when_there_is_no_time(autojump_clock: MockClock) -> None:
    """With a `ready` and no `retry_after` the next try comes when it returns, and not before."""
    fetch = Refusing(lambda: RetryLater(ready=after(33)), lambda: RetryLater(ready=after(0.5)))
    await tried(fetch)
    assert fetch.tries == [0, 33, 33.5]


async def test_ready_may_come_before_the_time(autojump_clock: MockClock) -> None:
    """With both, the next try comes when `ready` returns or after `retry_after`, whichever is first."""
    fetch = Refusing(
        lambda: RetryLater(retry_after=50, ready=after(7)),
        lambda: RetryLater(retry_after=5, ready=after(70)),
        lambda: RetryLater(retry_after=5, ready=trio.sleep_forever),
    )
    await tried(fetch)
    assert fetch.tries == [0, 7, 12, 17]


async def test_an_odd_time_beside_a_ready_never_waits_for_ever(autojump_clock: MockClock) -> None:
    """With a `ready` that hangs and a `retry_after` that is no time, the usual doubling wait is kept."""
    fetch = Refusing(*[lambda: RetryLater(retry_after=-1, ready=trio.sleep_forever)] * 2)
    await tried(fetch)
    assert fetch.tries == [0, 2, 6]


async def test_a_ready_that_returns_at_once_keeps_tries_apart(autojump_clock: MockClock) -> None:
    """After a `ready` that returns at once the next try is still 0.1 s away, but for the gate's."""
    for reason in ("host", "retry_after", "anything"):
        fetch = Refusing(*[lambda reason=reason: RetryLater(ready=after(0), reason=reason)] * 3)
        await tried(fetch)
        gaps = [b - a for a, b in zip(fetch.tries, fetch.tries[1:], strict=False)]
        assert gaps == pytest.approx([0.1] * 3)


async def test_after_a_ready_of_the_gate_the_next_try_comes_at_once(autojump_clock: MockClock) -> None:
    """After a `ready` of reason `gate` the next try comes in the same moment."""
    fetch = Refusing(*[lambda: RetryLater(ready=after(0), reason="gate")] * 3)
    await tried(fetch)
    assert fetch.tries == [0] * 4


async def test_a_gate_without_ready_keeps_tries_apart(autojump_clock: MockClock) -> None:
    """A refusal of reason `gate` whose `ready` did not end the wait keeps tries 0.1 s apart."""
    fetch = Refusing(lambda: RetryLater(ready=trio.sleep_forever, retry_after=0.01, reason="gate"))
    await tried(fetch)
    assert fetch.tries == pytest.approx([0, 0.1])


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        trio.ClosedResourceError(),
        GeneratorExit(),
        ExceptionGroup("g", [ValueError()]),
        TargetError("t"),
        RetryLater(retry_after=500),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_ready_that_raises_counts_as_not_given(
    error: BaseException, autojump_clock: MockClock
) -> None:
    """A `ready` that raises, whatever it is, leaves the wait that would have been without it."""
    fetch = Refusing(
        lambda: RetryLater(ready=breaking(error)),
        lambda: RetryLater(ready=breaking(error, 1)),
        lambda: RetryLater(ready=breaking(error, 1), retry_after=3),
    )
    await tried(fetch)
    assert fetch.tries == [0, 2, 6, 9]


async def test_a_ready_that_raises_late_loses_no_time(autojump_clock: MockClock) -> None:
    """A `ready` that raises after the wait without it would have been over is followed by a try at once."""
    fetch = Refusing(lambda: RetryLater(ready=breaking(ValueError(), 50)))
    await tried(fetch)
    assert fetch.tries == [0, 50]


@pytest.mark.parametrize("ready", ["soon", 5, lambda: None, lambda: 5, lambda wrong: wrong], ids=range(5))
async def test_a_ready_that_is_no_async_function_counts_as_not_given(
    ready: Any, autojump_clock: MockClock
) -> None:
    """Something in place of a `ready` that can't be called or awaited leaves the wait without it."""
    fetch = Refusing(lambda: RetryLater(ready=ready))
    await tried(fetch)
    assert fetch.tries == [0, 2]


async def test_a_ready_that_ends_the_program_passes(autojump_clock: MockClock) -> None:
    """A `KeyboardInterrupt` in a `ready` comes out of the runner bare."""
    fetch = Refusing(lambda: RetryLater(ready=breaking(BaseExceptionGroup("g", [KeyboardInterrupt()]), 1)))
    with pytest.raises(KeyboardInterrupt):
        await tried(fetch)


async def test_a_stray_cancellation_in_ready_counts_as_an_error(autojump_clock: MockClock) -> None:
    """A `Cancelled` that a `ready` kept from elsewhere is an error of the `ready`, and ends nothing."""

    async def ready() -> None:
        kept: BaseException | None = None
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as exc:
                kept = exc
        assert kept is not None
        raise kept

    fetch = Refusing(lambda: RetryLater(ready=ready))
    with trio.fail_after(100):
        await tried(fetch)
    assert fetch.tries == [0, 2]
