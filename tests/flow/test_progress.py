"""Why does a job wait, how fast does it go, and what do the counts say?"""

import gc

import pytest
import trio
from flow_stage import ALICE, BOB, START, audit, idle, series, stage, wide

from sift_batch import Caller, Config, JobState, Progress, RetryLater, RunnerStatistics
from sift_batch._engine.roster import LiveJob
from sift_batch._model.store import Work
from sift_batch._model.values import Target
from sift_batch.testing import ScriptedFetch


async def test_progress_says_why_since_when_and_how_fast(autojump_clock: object) -> None:
    """`progress` gives reason and since of a wait, and pace and eta once a target is stored."""
    fetch = ScriptedFetch(latency=10)
    fetch.busy(2, 1, RetryLater(retry_after=30.0, reason="retry_after"))
    async with stage(fetch=fetch) as on:
        job_id = await on.submit(4)
        queued = await on.submit(1, "queued")
        await trio.sleep(5)
        assert on.runner.progress(job_id) == Progress("", None, None, None)
        assert on.runner.progress(queued) == Progress("queue", START, None, None)
        await trio.sleep(10)
        assert on.runner.progress(job_id) == Progress("", None, pytest.approx(15), pytest.approx(45))
        await trio.sleep(10)
        progress = on.runner.progress(job_id)
        assert progress is not None
        assert (progress.reason, progress.since) == ("retry_after", START + 20)
        assert progress.pace == pytest.approx(12.5)
        assert progress.eta == pytest.approx(25)
        await trio.sleep(30)
        assert on.runner.progress(job_id) == Progress("", None, pytest.approx(27.5), pytest.approx(55))
        await on.runner.wait(job_id)
        assert on.runner.progress(job_id) is None
        await on.runner.drain()
        assert on.runner.progress(queued) is None


@pytest.mark.parametrize("reason", ["gate", "host", "retry_after"])
async def test_each_busy_reason_is_named(autojump_clock: object, reason: str) -> None:
    """While a target waits out a busy spell `progress` has its reason, and "" again when it is fetched."""
    fetch = ScriptedFetch(latency=10)
    fetch.busy(0, 1, RetryLater(retry_after=20.0, reason=reason))
    async with stage(fetch=fetch) as on:
        job_id = await on.submit(1)
        await trio.sleep(1)
        assert on.runner.progress(job_id) == Progress(reason, START, None, None)
        await trio.sleep(20)
        assert on.runner.progress(job_id) == Progress("", None, None, None)


async def test_progress_knows_live_jobs_of_the_caller_alone(autojump_clock: object) -> None:
    """A terminal, unknown or another caller's job has no progress."""
    async with stage(fetch=ScriptedFetch(latency=10)) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        assert on.runner.progress(job_id, caller=ALICE) is not None
        assert on.runner.progress(job_id, caller="alice") is not None
        assert on.runner.progress(job_id, caller=BOB) is None
        assert on.runner.progress("0" * 32) is None
        await on.runner.cancel(job_id)
        assert on.runner.progress(job_id) is None


async def test_progress_of_a_rerun_counts_what_is_left(autojump_clock: object) -> None:
    """The eta of a rerun counts the targets that are to be fetched, not those carried over."""
    fetch = ScriptedFetch(latency=1, fail=[1, 3])
    async with stage(fetch=fetch) as on:
        first = await on.done(6)
        again = (await on.runner.rerun(ALICE, first.id)).id
        await trio.sleep(1.5)
        assert on.runner.progress(again) == Progress("", None, pytest.approx(1.5), pytest.approx(1.5))


async def test_statistics_count_what_is(autojump_clock: object) -> None:
    """`statistics` counts workers, queued and running jobs and fetches in flight, at any moment."""
    async with stage(wide(workers=2), fetch=ScriptedFetch(latency=10)) as on:
        assert on.runner.statistics() == RunnerStatistics(2, 0, 0, 0, 0, erasure_pending=False)
        ids = [await on.submit(2, f"job {index}") for index in range(5)]
        await trio.sleep(1)
        found = on.runner.statistics()
        assert (found.queued, found.running, found.in_flight) == (3, 2, 2)
        await on.runner.cancel(ids[0])
        await on.runner.cancel(ids[4])
        found = on.runner.statistics()
        # The cancelled one's fetch is still in flight.
        assert (found.queued, found.running, found.in_flight) == (2, 1, 2)
        await on.runner.drain()
        found = on.runner.statistics()
        assert (found.queued, found.running, found.in_flight) == (0, 0, 0)
        audit(on.rows, on.runner, settled=True)


async def test_workers_are_clamped_in_the_statistics(autojump_clock: object) -> None:
    """`statistics().workers` is what may really drain at the same time."""
    async with stage(Config(workers=50, workers_limit=3)) as on:
        assert on.runner.statistics().workers == 3


async def test_nothing_of_a_job_is_kept_once_it_settled(autojump_clock: object) -> None:
    """After jobs settled, however they ended, the runner holds no object of theirs, nor their targets."""
    marker = "https://kept.example/"
    keeper = Caller("keeper")  # this test's own: other tests' objects are of no interest
    async with stage(wide(workers=3, ttl=10**6), fetch=ScriptedFetch(latency=1, fail={1: KeyError})) as on:

        async def one(name: str, n: int) -> None:
            targets = [Target(f"{marker}{name}/{index}") for index in range(n)]
            job_id = (await on.runner.submit(keeper, targets)).id
            if n == 3:
                await on.runner.cancel(job_id)
            async with on.runner.watch(job_id) as statuses:
                async for _ in statuses:
                    pass
            if n == 2:
                await on.runner.rerun(keeper, job_id)

        async with trio.open_nursery() as nursery:
            for index in range(60):
                nursery.start_soon(one, str(index), index % 3 + 1)
        await on.runner.drain()
        on.fetch.calls.clear()
        await idle()
        gc.collect()
        roster, feeds = on.runner._roster, on.runner._feeds
        assert not roster._jobs
        assert not roster._coming
        assert not feeds._feeds
        assert not on.runner._foreman._shop.closing._shields
        kept = [thing for thing in gc.get_objects() if isinstance(thing, LiveJob | Work | Target)]
        assert not [job for job in kept if isinstance(job, LiveJob) and job.caller is keeper]
        assert not [work for work in kept if isinstance(work, Work) and work.job.caller == "keeper"]
        assert not [target for target in kept if isinstance(target, Target) and target.url.startswith(marker)]


async def test_cancels_of_finished_and_unknown_jobs_keep_nothing(autojump_clock: object) -> None:
    """However often finished and unknown ids are asked for, nothing is remembered of it."""
    async with stage() as on:
        job = await on.done(1)
        for index in range(300):
            await on.runner.cancel(job.id)
            await on.runner.cancel(f"{index:032x}")
            await on.runner.wait(f"{index:032x}")
            on.runner.progress(f"{index:032x}")
        roster, feeds = on.runner._roster, on.runner._feeds
        assert not roster._jobs
        assert not roster._coming
        assert not feeds._feeds
        assert job.status is JobState.DONE
        assert len(series(1)) == 1
