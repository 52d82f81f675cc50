"""In which context a fetch runs, and what of it the next one sees."""

import contextvars

import pytest
import trio
from flow_desk import ALICE, BOB, drained, running, targets
from trio.testing import MockClock

from sift_batch import Attempt, Caller, Result, RetryLater, Target, attempt, open_runner, open_store

place = contextvars.ContextVar[str]("place", default="nowhere")
left = contextvars.ContextVar[str]("left", default="nothing")


async def test_a_fetch_runs_in_the_context_of_open_runner(autojump_clock: MockClock) -> None:
    """A fetch sees the context variables as they were where `open_runner` was entered, at every try."""
    seen: list[str] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        seen.append(place.get())
        await trio.lowlevel.checkpoint()
        seen.append(place.get())
        if target.url.endswith("/1") and len(seen) < 6:
            raise RetryLater
        return Result("")

    async with open_store(":memory:") as store:
        place.set("made")
        context_manager = open_runner(store, fetch)
        place.set("entered")
        async with context_manager as runner:
            place.set("inside")
            submission = await runner.submit(ALICE, targets(3))
            place.set("after")
            await runner.wait(submission.id)
            other = await runner.submit(BOB, targets(1))
            await runner.wait(other.id)
    assert seen == ["entered"] * 10


async def test_a_fetch_never_sees_the_submitters_context(autojump_clock: MockClock) -> None:
    """Whoever submits, cancels or waits, in whatever context, the fetch sees nothing of it."""
    seen: list[str] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        seen.append(place.get())
        return Result("")

    async with running(fetch, jobs_per_caller=9, jobs_total=9) as runner:

        async def submit(n: int) -> None:
            place.set(f"submitter {n}")
            await runner.wait((await runner.submit(ALICE, targets(2, f"h{n}.test"))).id)

        async with trio.open_nursery() as nursery:
            for n in range(5):
                nursery.start_soon(submit, n)
    assert seen == ["nowhere"] * 10


@pytest.mark.parametrize("workers", [1, 2])
async def test_nothing_that_a_fetch_sets_reaches_another(workers: int, autojump_clock: MockClock) -> None:
    """What a fetch sets in its context, whether it returns, raises or is busy, no other call ever sees."""
    seen: list[str] = []
    ends = 0

    async def fetch(caller: Caller, target: Target) -> Result:
        nonlocal ends
        seen.append(left.get())
        left.set(target.url)
        await trio.sleep(0.1)
        left.set(target.url + "#")
        ends += 1
        if ends % 4 == 1:
            raise RetryLater(retry_after=1)
        if ends % 4 == 2:
            raise ValueError
        return Result("")

    async with running(fetch, jobs_per_caller=9, jobs_total=9, workers=workers) as runner:
        for n in range(4):
            await runner.submit(ALICE, targets(4, f"h{n}.test"))
        await runner.drain()
    assert len(seen) > 16
    assert set(seen) == {"nothing"}


async def test_nothing_that_ready_sets_reaches_the_next_try(autojump_clock: MockClock) -> None:
    """What a `ready` sets in its context no call of the fetch ever sees."""
    seen: list[str] = []

    async def ready() -> None:
        left.set("ready, before")
        await trio.sleep(1)
        left.set("ready, after")

    async def fetch(caller: Caller, target: Target) -> Result:
        seen.append(left.get())
        if len(seen) == 2:
            raise RetryLater(ready=ready, reason="gate")
        if len(seen) in {1, 3}:
            raise RetryLater(ready=ready)
        return Result("")

    async with running(fetch) as runner:
        await drained(runner, (await runner.submit(ALICE, targets(2))).id)
    assert seen == ["nothing"] * 5


async def test_the_variable_names_the_attempt(autojump_clock: MockClock) -> None:
    """In a fetch, `sift_batch.attempt` says job, index and number of the try, in its child tasks too."""
    seen: list[Attempt] = []

    async def child() -> None:
        seen.append(attempt.get())

    async def fetch(caller: Caller, target: Target) -> Result:
        mine = attempt.get()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
        assert attempt.get() == mine == seen[-1]
        if mine.idx == 1 and mine.number < 3:
            raise RetryLater
        return Result("")

    async with running(fetch) as runner:
        ids = [(await runner.submit(caller, targets(3))).id for caller in (ALICE, BOB)]
        await runner.drain()
    assert attempt.name == "sift_batch.attempt"
    assert seen == [
        Attempt(job_id, idx, number)
        for job_id in ids
        for idx, number in ((0, 1), (1, 1), (1, 2), (1, 3), (2, 1))
    ]


async def test_the_variable_is_set_nowhere_else(autojump_clock: MockClock) -> None:
    """Outside a fetch, in the application's tasks and in a `ready`, no attempt is set."""
    seen: list[object] = []

    async def ready() -> None:
        seen.append(attempt.get(None))

    async def fetch(caller: Caller, target: Target) -> Result:
        if attempt.get().number == 1:
            raise RetryLater(ready=ready)
        return Result("")

    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, targets(2))
        await runner.wait(submission.id)
        seen.append(attempt.get(None))
    assert seen == [None] * 3


async def test_jobs_side_by_side_have_their_own_attempts(autojump_clock: MockClock) -> None:
    """Fetches at the same time each see their own attempt, from their first step to their last."""

    async def fetch(caller: Caller, target: Target) -> Result:
        mine = attempt.get()
        for _ in range(5):
            await trio.sleep(0.1)
            assert attempt.get() == mine
        return Result(f"{mine.job_id} {mine.idx}")

    async with running(fetch, workers=5, workers_limit=5, jobs_per_caller=9, jobs_total=9) as runner:
        ids = [(await runner.submit(ALICE, targets(4, f"h{n}.test"))).id for n in range(5)]
        for job_id in ids:
            _, stored = await drained(runner, job_id)
            assert [t.result.content for t in stored if t.result] == [f"{job_id} {n}" for n in range(4)]
