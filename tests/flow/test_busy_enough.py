"""When a busy target has been busy for long enough, and what never counts."""

import math
from typing import Any

import pytest
import trio
from flow_desk import (
    ALICE,
    Refusing,
    after,
    breaking,
    drained,
    running,
    targets,
    tried,
)
from trio.testing import MockClock

from sift_batch import (
    Result,
    RetryLater,
)
from sift_batch.testing import ScriptedFetch


async def test_a_target_is_busy_for_so_long_and_no_longer(autojump_clock: MockClock) -> None:
    """After `retry_for` busy seconds a target is `failed` (`busy`) with a hint; the last try ends them."""
    fetch = Refusing(RetryLater, for_ever=True)
    target = await tried(fetch, retry_for=600)
    assert fetch.tries == [0, 2, 6, 14, 30, 62, 122, 182, 242, 302, 362, 422, 482, 542, 600]
    assert (target.status, target.code, target.retryable, target.http_status) == ("failed", "busy", True, 429)
    assert target.error
    assert "600" in target.hint


async def test_the_last_try_may_succeed(autojump_clock: MockClock) -> None:
    """The try at the end of `retry_for` counts like any other: when it succeeds the target is done."""
    fetch = Refusing(*[RetryLater] * 3)
    target = await tried(fetch, retry_for=10)
    assert fetch.tries == [0, 2, 6, 10]
    assert target.result == Result("3")


@pytest.mark.parametrize("seconds", [601, 86_400, 9_999_999_999, 1e300, 10**30])
async def test_a_retry_after_beyond_the_end_means_the_end(seconds: float, autojump_clock: MockClock) -> None:
    """A `retry_after` that is longer than what is left of `retry_for` means its end, and no day is lost."""
    fetch = Refusing(lambda: RetryLater(retry_after=seconds), for_ever=True)
    target = await tried(fetch, retry_for=600)
    assert fetch.tries == [0, 600]
    assert target.code == "busy"


async def test_a_ready_that_hangs_ends_with_the_time(autojump_clock: MockClock) -> None:
    """A `ready` that never returns is left at the end of `retry_for`, for a last try."""
    fetch = Refusing(lambda: RetryLater(ready=trio.sleep_forever), for_ever=True)
    target = await tried(fetch, retry_for=100)
    assert fetch.tries == [0, 100]
    assert target.code == "busy"


async def test_with_no_time_at_all_the_first_refusal_fails(autojump_clock: MockClock) -> None:
    """With `retry_for=0` a target fails at its first busy answer."""
    fetch = Refusing(RetryLater, for_ever=True)
    target = await tried(fetch, retry_for=0)
    assert fetch.tries == [0]
    assert target.code == "busy"


async def test_with_no_end_a_target_waits_on(autojump_clock: MockClock) -> None:
    """With an infinite `retry_for` a target is tried each minute, for days if need be."""
    fetch = Refusing(*[RetryLater] * 2_000)
    target = await tried(fetch, retry_for=math.inf, job_timeout=math.inf)
    assert target.status == "done"
    assert fetch.tries[-1] == 62 + 60 * 1_995


async def test_each_target_has_its_own_account(autojump_clock: MockClock) -> None:
    """One target that was busy to the end takes nothing from the next, and the job goes on."""
    fetch = ScriptedFetch(busy={0: math.inf, 1: 3})
    async with running(fetch, retry_for=10) as runner:
        submission = await runner.submit(ALICE, targets(3))
        _, stored = await drained(runner, submission.id)
    assert [(t.status, t.code) for t in stored] == [("failed", "busy"), ("done", ""), ("done", "")]
    assert [call.started for call in fetch.calls] == [0, 2, 6, 10, 10, 12, 16, 20, 20]


async def test_the_gate_never_fails_a_target(autojump_clock: MockClock) -> None:
    """Waiting for reason `gate`, in whatever way and for however long, is not held against the target."""
    fetch = Refusing(
        lambda: RetryLater(reason="gate", ready=after(5_000)),
        lambda: RetryLater(reason="gate", retry_after=700),
        lambda: RetryLater(reason="gate"),
        lambda: RetryLater(reason="gate", ready=breaking(ValueError(), 900)),
        lambda: RetryLater(),
    )
    target = await tried(fetch, retry_for=100)
    assert target.status == "done"
    assert fetch.tries == [0, 5_000, 5_700, 5_708, 6_608, 6_640]


@pytest.mark.parametrize("reason", ["host", "retry_after", "", "GATE", "gates", None, 5, ["gate"], b"gate"])
async def test_every_other_reason_counts(reason: Any, autojump_clock: MockClock) -> None:
    """Any reason but `gate` runs the account down, known, unknown or no word at all."""
    fetch = Refusing(lambda: RetryLater(reason=reason, retry_after=60), for_ever=True)
    target = await tried(fetch, retry_for=100)
    assert fetch.tries == [0, 60, 100]
    assert target.code == "busy"


async def test_only_the_waits_count(autojump_clock: MockClock) -> None:
    """The time that the tries themselves take is not counted as busy."""
    fetch = Refusing(lambda: RetryLater(retry_after=50), for_ever=True, latency=30)
    await tried(fetch, retry_for=100)
    assert fetch.tries == [0, 80, 160]


async def test_a_refusal_without_our_init_is_busy_all_the_same(autojump_clock: MockClock) -> None:
    """A subclass of `RetryLater` that never called its `__init__` is a plain busy answer."""

    class Unborn(RetryLater):
        def __init__(self) -> None:
            Exception.__init__(self)

    fetch = Refusing(Unborn, Unborn)
    assert (await tried(fetch)).status == "done"
    assert fetch.tries == [0, 2, 6]
