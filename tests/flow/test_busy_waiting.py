"""While a target waits: what goes on, what does not, and who is told."""

from typing import Any

import pytest
import trio
from flow_desk import ALICE, CAROL, Heard, Lines, Refusing, after, drained, running, targets
from trio.testing import MockClock

from sift_batch import (
    Config,
    RetryLater,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, ScriptedFetch


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
