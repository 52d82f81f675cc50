"""How long a job may take: `job_timeout`, and fetches that outlast it."""

import trio
from flow_desk import ALICE, START, Heard, Lines, drained, running, targets
from trio.testing import MockClock

from sift_batch import (
    Caller,
    Config,
    Result,
    Runner,
    Submission,
    Target,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, ScriptedFetch

WIDE = {"jobs_per_caller": 100, "jobs_total": 100, "workers_limit": 100}


async def _submit_many(runner: Runner, count: int, size: int = 1) -> list[Submission]:
    return [await runner.submit(ALICE, targets(size, f"h{n}.test")) for n in range(count)]


async def test_a_job_whose_time_is_up_ends_as_by_a_cancel(autojump_clock: MockClock) -> None:
    """`job_timeout` seconds after its start a job is `failed` (`timeout`); what is in flight is stored."""
    heard, log = Heard(), Lines()
    fetch = ScriptedFetch(latency=4)
    async with running(fetch, hooks=heard, log=log, job_timeout=10) as runner:
        submission = await runner.submit(ALICE, targets(5))
        await trio.sleep(10.5)
        job = await runner.job(submission.id)
        assert job is not None
        assert (job.status, job.error, job.settled, job.finished_at) == (
            "failed",
            "timeout",
            False,
            START + 10,
        )
        job, stored = await drained(runner, submission.id)
        assert trio.current_time() == 12
        assert (job.status, job.error, job.finished_at) == ("failed", "timeout", START + 10)
        assert [t.status for t in stored] == ["done"] * 3 + ["pending"] * 2
        assert (job.targets_done, job.targets_failed) == (3, 0)
    assert len(fetch.calls) == 3
    assert heard.of("job")[1:] == [("failed",)]
    assert heard.of("job_seconds") == [(10.0,)]
    assert len(heard.of("ended")) == 1
    assert log.of("job.ended")[0]["error"] == "timeout"


async def test_the_time_of_a_job_counts_from_its_start(autojump_clock: MockClock) -> None:
    """Time in the queue does not count towards `job_timeout`; each job has its own."""
    fetch = ScriptedFetch(latency=6)
    async with running(fetch, job_timeout=10, **WIDE) as runner:
        first, second = await _submit_many(runner, 2, size=3)
        jobs = [(await drained(runner, one.id))[0] for one in (first, second)]
    assert [(job.status, job.targets_done) for job in jobs] == [("failed", 2), ("failed", 2)]
    assert [job.started_at for job in jobs] == [START, START + 12]
    assert [job.finished_at for job in jobs] == [START + 10, START + 22]


async def test_a_job_whose_time_is_up_while_a_target_waits_settles_at_once(autojump_clock: MockClock) -> None:
    """A job whose time is up in a busy spell settles then: the waiting target is `pending` again."""
    fetch = ScriptedFetch(busy={"http://a.test/1": 99})
    async with running(fetch, job_timeout=50) as runner:
        submission = await runner.submit(ALICE, targets(3))
        job, stored = await drained(runner, submission.id)
        assert trio.current_time() == 50
        assert (job.status, job.error) == ("failed", "timeout")
        assert [t.status for t in stored] == ["done", "pending", "pending"]
        calls = len(fetch.calls)
        await trio.sleep(1_000)
        assert len(fetch.calls) == calls


async def test_a_job_that_ends_in_time_is_left_alone(autojump_clock: MockClock) -> None:
    """A job that ends before its time is up keeps its state for ever."""
    async with running(ScriptedFetch(latency=4), job_timeout=10) as runner:
        submission = await runner.submit(ALICE, targets(2))
        before = await drained(runner, submission.id)
        await trio.sleep(100)
        assert await drained(runner, submission.id) == before
        assert before[0].status == "done"


async def test_the_timekeeper_rests_while_the_fetch_of_an_ended_job_goes_on(
    autojump_clock: MockClock,
) -> None:
    """A job that was cancelled, and whose fetch outlasts its `job_timeout`, keeps nobody awake."""
    fetch = ScriptedFetch(latency=200)
    async with running(fetch, job_timeout=10) as runner:
        submission = await runner.submit(ALICE, targets(2))
        await fetch.wait_started(1)
        await runner.cancel(submission.id)
        with trio.fail_after(1_000):
            job, stored = await drained(runner, submission.id)
        assert trio.current_time() == 200
        assert (job.status, job.error) == ("cancelled", "")
        assert [t.status for t in stored] == ["done", "pending"]


async def test_a_slow_store_is_no_stuck_fetch(autojump_clock: MockClock) -> None:
    """A result that the store refuses for long is no fetch that goes on: nothing warns of a stuck one."""
    log = Lines()
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner, 1, times=20, operations={"record"})
        async with open_runner(store, ScriptedFetch(), Config(target_timeout=20), log=log) as runner:
            submission = await runner.submit(ALICE, targets(1))
            job, _ = await drained(runner, submission.id)
            assert job.status == "done"
            assert trio.current_time() > 300
    assert log.of("fetch.stuck") == []
    assert len(log.of("store.trouble")) == 1


async def test_a_fetch_that_cannot_be_ended_is_told_of(autojump_clock: MockClock) -> None:
    """A fetch that goes on 5 s after its time was up is warned of once, with the job's id."""
    log, told = Lines(), []

    async def fetch(caller: Caller, target: Target) -> Result:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return Result("")

    async with running(fetch, target_timeout=20, log=log) as runner:
        submission = await runner.submit(ALICE, targets(1))
        for _ in range(10):
            await trio.sleep(10)
            told.append(len(log.of("fetch.stuck")))
        await runner.wait(submission.id)
    assert told == [0, 0, 1, 1, 1, 1, 1, 1, 1, 1]
    assert log.of("fetch.stuck") == [{"job_id": submission.id}]


async def test_a_job_without_a_timeout_goes_on(autojump_clock: MockClock) -> None:
    """With an infinite `job_timeout` and `target_timeout` nothing is ever cut off."""
    never = float("inf")
    async with running(
        ScriptedFetch(latency=1e6), job_timeout=never, target_timeout=never, sweep_every=1e6
    ) as runner:
        submission = await runner.submit(ALICE, targets(2))
        job, _ = await drained(runner, submission.id)
        assert job.status == "done"
        assert trio.current_time() == 2e6
