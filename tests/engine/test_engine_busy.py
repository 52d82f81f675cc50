"""The account of `busy.py`: how waits add up and when they are enough."""

import math

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from sift_batch import Config
from sift_batch._engine.attempt import Busy
from sift_batch._engine.busy import Patience, Wait, wait_out

_busy = st.builds(
    Busy,
    st.one_of(st.none(), st.floats(1e-9, 1e12)),
    st.booleans(),
    st.sampled_from([None, trio.sleep_forever, "no function"]),
    st.sampled_from(["gate", "host", "retry_after"]),
)


@given(st.lists(_busy, max_size=40), st.floats(0, 1e6), st.floats(1e-3, 1e4))
def test_waits_never_add_up_to_more_than_is_allowed(
    answers: list[Busy], allowed: float, first: float
) -> None:
    """Waits that are not the gate's add up to `retry_for` at most, and the gate's never end it."""
    patience = Patience(Config(retry_for=allowed, retry_wait=first))
    spent = 0.0
    for busy in answers:
        wait = patience.plan(busy)
        if busy.reason == "gate":
            assert wait is not None
            assert wait.limit > 0
            continue
        if wait is None:
            assert spent == pytest.approx(allowed, abs=1e-5)
            continue
        assert 0 < wait.fallback <= wait.limit
        assert wait.limit <= allowed - spent
        patience.waited(wait, wait.limit)
        spent += wait.limit
    assert spent <= allowed * (1 + 1e-9)


@given(st.integers(1, 200), st.floats(1e-3, 60))
def test_the_backoff_doubles_and_stays_below_a_minute(answers: int, first: float) -> None:
    """The n-th wait without a time is `retry_wait` times 2**(n-1), and 60 s at most."""
    patience = Patience(Config(retry_for=math.inf, retry_wait=first))
    for n in range(answers):
        wait = patience.plan(Busy(None, False, None, "host"))
        assert wait is not None
        assert wait.limit == min(first * 2.0**n, 60)


async def test_a_wait_that_is_cancelled_ends_its_ready(autojump_clock: MockClock) -> None:
    """A cancelled wait passes `Cancelled` on and leaves no `ready` behind."""
    ended = []

    async def ready() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())

    with trio.move_on_after(5) as scope:
        await wait_out(Wait(math.inf, 9, ready, "host"))
    assert scope.cancelled_caught
    assert ended == [5]


@pytest.mark.parametrize("reason", ["gate", "host"])
async def test_every_wait_lets_others_run(reason: str, autojump_clock: MockClock) -> None:
    """A wait is a checkpoint however its `ready` behaves."""

    async def at_once() -> None:
        pass

    with trio.testing.assert_checkpoints():
        await wait_out(Wait(9, 9, at_once, reason))
