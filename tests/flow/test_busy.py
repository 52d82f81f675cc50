"""Busy: when a refused target is tried again, to the second, and when it is enough."""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from flow_desk import ALICE, CAROL, Heard, Lines, drained, running, targets
from trio.testing import MockClock

from sift_batch import (
    Caller,
    Config,
    Result,
    RetryLater,
    Target,
    TargetError,
    TargetStatus,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, ScriptedFetch

Refusal = Callable[[], RetryLater]


class Refusing:
    """A fetch that refuses each target as often as there are refusals, and writes down when it was asked."""

    def __init__(self, *refusals: Refusal, latency: float = 0.0, for_ever: bool = False) -> None:
        self.refusals = refusals
        self.latency = latency
        self.for_ever = for_ever
        self.tries: list[float] = []

    async def __call__(self, caller: Caller, target: Target) -> Result:
        """Refuse, or give the number of the try."""
        self.tries.append(trio.current_time())
        await trio.sleep(self.latency)
        number = len(self.tries) - 1
        if self.for_ever:
            raise self.refusals[number % len(self.refusals)]()
        if number < len(self.refusals):
            raise self.refusals[number]()
        return Result(str(number))


async def _tried(fetch: Refusing, **config: Any) -> TargetStatus:
    """Drain one target with this fetch; return it. The times are in `fetch.tries`."""
    async with running(fetch, **config) as runner:
        submission = await runner.submit(ALICE, targets(1))
        _, (target,) = await drained(runner, submission.id)
    return target


def after(seconds: float) -> Callable[[], Awaitable[None]]:
    """Return a `ready` that returns after so many seconds."""

    async def ready() -> None:
        await trio.sleep(seconds)

    return ready


def breaking(error: BaseException, seconds: float = 0.0) -> Callable[[], Awaitable[None]]:
    """Return a `ready` that raises after so many seconds."""

    async def ready() -> None:
        await trio.sleep(seconds)
        raise error

    return ready


# ---- when


async def test_without_a_time_the_wait_doubles_up_to_a_minute(autojump_clock: MockClock) -> None:
    """A busy answer without a time waits `retry_wait`, doubled at each further one, never above 60 s."""
    fetch = Refusing(*[RetryLater] * 9)
    target = await _tried(fetch)
    assert target.status == "done"
    assert fetch.tries == [0, 2, 6, 14, 30, 62, 122, 182, 242, 302]


async def test_the_first_wait_is_the_configured_one(autojump_clock: MockClock) -> None:
    """`retry_wait` is the first wait, in fractions of a second too."""
    fetch = Refusing(*[RetryLater] * 3)
    await _tried(fetch, retry_wait=0.25)
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
    target = await _tried(fetch)
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
        object(),
    ],
    ids=repr,
)
async def test_a_retry_after_that_is_no_time_counts_as_none(odd: Any, autojump_clock: MockClock) -> None:
    """A `retry_after` that is not finite, not above 0 or no number gives the usual doubling wait."""
    fetch = Refusing(*[lambda: RetryLater(retry_after=odd)] * 3)
    target = await _tried(fetch)
    assert target.status == "done"
    assert fetch.tries == [0, 2, 6, 14]


async def test_a_short_retry_after_keeps_tries_apart(autojump_clock: MockClock) -> None:
    """Tries of one target are at least 0.1 s apart, however short its `retry_after`."""
    fetch = Refusing(*[lambda: RetryLater(retry_after=1e-9)] * 3)
    await _tried(fetch)
    assert fetch.tries == pytest.approx([0, 0.1, 0.2, 0.3])


async def test_ready_decides_when_there_is_no_time(autojump_clock: MockClock) -> None:
    """With a `ready` and no `retry_after` the next try comes when it returns, and not before."""
    fetch = Refusing(lambda: RetryLater(ready=after(33)), lambda: RetryLater(ready=after(0.5)))
    await _tried(fetch)
    assert fetch.tries == [0, 33, 33.5]


async def test_ready_may_come_before_the_time(autojump_clock: MockClock) -> None:
    """With both, the next try comes when `ready` returns or after `retry_after`, whichever is first."""
    fetch = Refusing(
        lambda: RetryLater(retry_after=50, ready=after(7)),
        lambda: RetryLater(retry_after=5, ready=after(70)),
        lambda: RetryLater(retry_after=5, ready=trio.sleep_forever),
    )
    await _tried(fetch)
    assert fetch.tries == [0, 7, 12, 17]


async def test_an_odd_time_beside_a_ready_never_waits_for_ever(autojump_clock: MockClock) -> None:
    """With a `ready` that hangs and a `retry_after` that is no time, the usual doubling wait is kept."""
    fetch = Refusing(*[lambda: RetryLater(retry_after=-1, ready=trio.sleep_forever)] * 2)
    await _tried(fetch)
    assert fetch.tries == [0, 2, 6]


async def test_a_ready_that_returns_at_once_keeps_tries_apart(autojump_clock: MockClock) -> None:
    """After a `ready` that returns at once the next try is still 0.1 s away, but for the gate's."""
    for reason in ("host", "retry_after", "anything"):
        fetch = Refusing(*[lambda reason=reason: RetryLater(ready=after(0), reason=reason)] * 3)
        await _tried(fetch)
        gaps = [b - a for a, b in zip(fetch.tries, fetch.tries[1:], strict=False)]
        assert gaps == pytest.approx([0.1] * 3)


async def test_after_a_ready_of_the_gate_the_next_try_comes_at_once(autojump_clock: MockClock) -> None:
    """After a `ready` of reason `gate` the next try comes in the same moment."""
    fetch = Refusing(*[lambda: RetryLater(ready=after(0), reason="gate")] * 3)
    await _tried(fetch)
    assert fetch.tries == [0] * 4


async def test_a_gate_without_ready_keeps_tries_apart(autojump_clock: MockClock) -> None:
    """A refusal of reason `gate` whose `ready` did not end the wait keeps tries 0.1 s apart."""
    fetch = Refusing(lambda: RetryLater(ready=trio.sleep_forever, retry_after=0.01, reason="gate"))
    await _tried(fetch)
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
    await _tried(fetch)
    assert fetch.tries == [0, 2, 6, 9]


async def test_a_ready_that_raises_late_loses_no_time(autojump_clock: MockClock) -> None:
    """A `ready` that raises after the wait without it would have been over is followed by a try at once."""
    fetch = Refusing(lambda: RetryLater(ready=breaking(ValueError(), 50)))
    await _tried(fetch)
    assert fetch.tries == [0, 50]


@pytest.mark.parametrize("ready", ["soon", 5, lambda: None, lambda: 5, lambda wrong: wrong], ids=range(5))
async def test_a_ready_that_is_no_async_function_counts_as_not_given(
    ready: Any, autojump_clock: MockClock
) -> None:
    """Something in place of a `ready` that can't be called or awaited leaves the wait without it."""
    fetch = Refusing(lambda: RetryLater(ready=ready))
    await _tried(fetch)
    assert fetch.tries == [0, 2]


async def test_a_ready_that_ends_the_program_passes(autojump_clock: MockClock) -> None:
    """A `KeyboardInterrupt` in a `ready` comes out of the runner bare."""
    fetch = Refusing(lambda: RetryLater(ready=breaking(BaseExceptionGroup("g", [KeyboardInterrupt()]), 1)))
    with pytest.raises(KeyboardInterrupt):
        await _tried(fetch)


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
        await _tried(fetch)
    assert fetch.tries == [0, 2]


# ---- when it is enough


async def test_a_target_is_busy_for_so_long_and_no_longer(autojump_clock: MockClock) -> None:
    """After `retry_for` busy seconds a target is `failed` (`busy`) with a hint; the last try ends them."""
    fetch = Refusing(RetryLater, for_ever=True)
    target = await _tried(fetch, retry_for=600)
    assert fetch.tries == [0, 2, 6, 14, 30, 62, 122, 182, 242, 302, 362, 422, 482, 542, 600]
    assert (target.status, target.code, target.retryable, target.http_status) == ("failed", "busy", True, 429)
    assert target.error
    assert "600" in target.hint


async def test_the_last_try_may_succeed(autojump_clock: MockClock) -> None:
    """The try at the end of `retry_for` counts like any other: when it succeeds the target is done."""
    fetch = Refusing(*[RetryLater] * 3)
    target = await _tried(fetch, retry_for=10)
    assert fetch.tries == [0, 2, 6, 10]
    assert target.result == Result("3")


@pytest.mark.parametrize("seconds", [601, 86_400, 9_999_999_999, 1e300, 10**30])
async def test_a_retry_after_beyond_the_end_means_the_end(seconds: float, autojump_clock: MockClock) -> None:
    """A `retry_after` that is longer than what is left of `retry_for` means its end, and no day is lost."""
    fetch = Refusing(lambda: RetryLater(retry_after=seconds), for_ever=True)
    target = await _tried(fetch, retry_for=600)
    assert fetch.tries == [0, 600]
    assert target.code == "busy"


async def test_a_ready_that_hangs_ends_with_the_time(autojump_clock: MockClock) -> None:
    """A `ready` that never returns is left at the end of `retry_for`, for a last try."""
    fetch = Refusing(lambda: RetryLater(ready=trio.sleep_forever), for_ever=True)
    target = await _tried(fetch, retry_for=100)
    assert fetch.tries == [0, 100]
    assert target.code == "busy"


async def test_with_no_time_at_all_the_first_refusal_fails(autojump_clock: MockClock) -> None:
    """With `retry_for=0` a target fails at its first busy answer."""
    fetch = Refusing(RetryLater, for_ever=True)
    target = await _tried(fetch, retry_for=0)
    assert fetch.tries == [0]
    assert target.code == "busy"


async def test_with_no_end_a_target_waits_on(autojump_clock: MockClock) -> None:
    """With an infinite `retry_for` a target is tried each minute, for days if need be."""
    fetch = Refusing(*[RetryLater] * 2_000)
    target = await _tried(fetch, retry_for=math.inf, job_timeout=math.inf)
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
    target = await _tried(fetch, retry_for=100)
    assert target.status == "done"
    assert fetch.tries == [0, 5_000, 5_700, 5_708, 6_608, 6_640]


@pytest.mark.parametrize("reason", ["host", "retry_after", "", "GATE", "gates", None, 5, ["gate"], b"gate"])
async def test_every_other_reason_counts(reason: Any, autojump_clock: MockClock) -> None:
    """Any reason but `gate` runs the account down, known, unknown or no word at all."""
    fetch = Refusing(lambda: RetryLater(reason=reason, retry_after=60), for_ever=True)
    target = await _tried(fetch, retry_for=100)
    assert fetch.tries == [0, 60, 100]
    assert target.code == "busy"


async def test_only_the_waits_count(autojump_clock: MockClock) -> None:
    """The time that the tries themselves take is not counted as busy."""
    fetch = Refusing(lambda: RetryLater(retry_after=50), for_ever=True, latency=30)
    await _tried(fetch, retry_for=100)
    assert fetch.tries == [0, 80, 160]


async def test_a_refusal_without_our_init_is_busy_all_the_same(autojump_clock: MockClock) -> None:
    """A subclass of `RetryLater` that never called its `__init__` is a plain busy answer."""

    class Unborn(RetryLater):
        def __init__(self) -> None:
            Exception.__init__(self)

    fetch = Refusing(Unborn, Unborn)
    assert (await _tried(fetch)).status == "done"
    assert fetch.tries == [0, 2, 6]


# ---- while it waits


async def test_a_wait_writes_nothing_to_the_store(autojump_clock: MockClock) -> None:
    """From the first busy answer to the last the store is asked nothing, and the job stays as it was."""
    fetch = ScriptedFetch(busy={0: 40})
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner)
        async with open_runner(
            store, fetch, Config(retry_for=1e6, job_timeout=1e6, sweep_every=1e6)
        ) as runner:
            submission = await runner.submit(ALICE, targets(1))
            await fetch.wait_ended(1)
            await trio.testing.wait_all_tasks_blocked()
            asked = list(store.calls)
            before = await inner.job(submission.id, caller=None, now=0, ttl=1e9)
            await fetch.wait_ended(40)
            await trio.testing.wait_all_tasks_blocked()
            assert await inner.job(submission.id, caller=None, now=0, ttl=1e9) == before
            assert store.calls == asked
            await runner.wait(submission.id)


async def test_while_it_waits_nothing_is_in_flight(autojump_clock: MockClock) -> None:
    """A target that waits is not in flight, though its state is `running` and its job has its worker."""
    heard = Heard()
    fetch = ScriptedFetch(busy={0: 1}, latency=1)
    async with running(fetch, hooks=heard) as runner:
        submission = await runner.submit(ALICE, targets(1))
        await trio.sleep(1)
        status = await runner.status(submission.id)
        assert status is not None
        assert status.targets[0].status == "running"
        counts = runner.statistics()
        assert (counts.in_flight, counts.running, counts.queued) == (0, 1, 0)
        assert heard.of("in_flight") == [(0,), (1,), (0,)]
        await runner.wait(submission.id)


@pytest.mark.parametrize("ready", [None, trio.sleep_forever])
async def test_a_cancel_ends_a_wait_at_once(ready: Any, autojump_clock: MockClock) -> None:
    """A cancel while a target waits puts it back to `pending` and settles the job in that moment."""
    ended: list[float] = []

    async def noticing() -> None:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())

    fetch = Refusing(lambda: RetryLater(ready=noticing if ready else None), for_ever=True)
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, targets(2))
        await trio.sleep(1)
        assert await runner.cancel(submission.id)
        job, stored = await drained(runner, submission.id)
        assert trio.current_time() == 1
        assert (job.status, job.settled, job.targets_done) == ("cancelled", True, 0)
        assert [t.status for t in stored] == ["pending", "pending"]
        await trio.sleep(1_000)
    assert len(fetch.tries) == 1
    assert ended == ([1] if ready else [])


async def test_leaving_ends_a_wait_at_once(autojump_clock: MockClock) -> None:
    """Leaving `open_runner` while a target waits costs no grace, and the target is not tried again."""
    fetch = Refusing(lambda: RetryLater(retry_after=500), for_ever=True)
    async with running(fetch, shutdown_grace=30) as runner:
        await runner.submit(ALICE, targets(1))
        await trio.sleep(1)
    assert trio.current_time() == 1
    assert len(fetch.tries) == 1


async def test_progress_says_why_a_target_waits(autojump_clock: MockClock) -> None:
    """While a target waits, `progress` gives the reason of the last refusal and the second since when."""
    fetch = Refusing(
        lambda: RetryLater(reason="gate", ready=after(10)),
        lambda: RetryLater(reason="retry_after", retry_after=10),
        lambda: RetryLater(reason="nonsense", retry_after=10),
    )
    seen = []
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, targets(1))
        for _ in range(3):
            await trio.sleep(5)
            progress = runner.progress(submission.id)
            assert progress is not None
            seen.append((progress.reason, progress.since))
            await trio.sleep(5)
        await runner.wait(submission.id)
    assert seen == [("gate", 1_000_000), ("retry_after", 1_000_010), ("host", 1_000_020)]


async def test_each_end_of_a_wait_is_told(autojump_clock: MockClock) -> None:
    """The `busy` hook is called each time a wait ends, by a cancel too, with its reason and its length."""
    heard, log = Heard(), Lines()
    fetch = Refusing(
        lambda: RetryLater(reason="gate", ready=after(7)),
        lambda: RetryLater(),
        lambda: RetryLater(reason="retry_after", retry_after=30),
        for_ever=True,
    )
    async with running(fetch, hooks=heard, log=log) as runner:
        submission = await runner.submit(ALICE, targets(1))
        await trio.sleep(20)
        await runner.cancel(submission.id)
        await runner.wait(submission.id)
    assert heard.of("busy") == [("gate", 7.0), ("host", 4.0), ("retry_after", 9.0)]
    assert [(line["idx"], line["reason"]) for line in log.of("target.busy")] == [
        (0, "gate"),
        (0, "host"),
        (0, "retry_after"),
    ]


async def test_a_restricted_callers_waits_are_not_told(autojump_clock: MockClock) -> None:
    """A busy wait of a restricted caller calls no hook and logs no line."""
    heard, log = Heard(), Lines()
    fetch = Refusing(RetryLater, RetryLater)
    async with running(fetch, hooks=heard, log=log) as runner:
        await runner.wait((await runner.submit(CAROL, targets(1))).id)
    assert heard.of("busy") == []
    assert log.of("target.busy") == []


async def test_the_seconds_of_a_target_are_those_of_its_tries(autojump_clock: MockClock) -> None:
    """The seconds given to the `target` hook add up its tries and leave its waits out."""
    heard = Heard()
    fetch = Refusing(RetryLater, lambda: RetryLater(retry_after=100), latency=3)
    async with running(fetch, hooks=heard) as runner:
        await runner.wait((await runner.submit(ALICE, targets(1))).id)
    ((error, seconds, _),) = heard.of("target")
    assert (error, seconds) == (None, 9.0)
