"""Submitting the same again: whose job answers, when, and what that changes."""

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from flow_desk import ALICE, BOB, START, Heard, drained, running, targets
from trio.testing import MockClock

from sift_batch import (
    Caller,
    CallerBusyError,
    Job,
    JobsBusyError,
    Options,
    Runner,
    Submission,
    Target,
    TargetError,
)
from sift_batch.testing import ScriptedFetch, WallClock


async def _job(runner: Runner, job_id: str) -> Job:
    job = await runner.job(job_id)
    assert job is not None
    return job


@pytest.mark.parametrize("count", [20, 50])
async def test_equal_submits_at_once_make_one_job(count: int, autojump_clock: MockClock) -> None:
    """Equal submits at the same time get one id, one job and one drain, and exactly one of them made it."""
    fetch = ScriptedFetch()
    got: list[Submission] = []
    async with running(fetch) as runner:

        async def submit() -> None:
            got.append(await runner.submit(ALICE, targets(2)))

        async with trio.open_nursery() as nursery:
            for _ in range(count):
                nursery.start_soon(submit)
        await runner.drain()
        assert len({submission.id for submission in got}) == 1
        assert [submission.reused for submission in got].count(False) == 1
        assert len(await runner.jobs()) == 1
    assert fetch.order == ["http://a.test/0", "http://a.test/1"]


async def test_different_submits_at_once_break_no_cap(autojump_clock: MockClock) -> None:
    """Fifty different submits at once make no more jobs than the caller, and all together, may have."""
    fetch = ScriptedFetch(hang=[0])
    made: list[str] = []

    async with running(fetch, jobs_total=4) as runner:

        async def submit(caller: Caller, n: int) -> None:
            with contextlib.suppress(CallerBusyError, JobsBusyError):
                made.append((await runner.submit(caller, targets(1, f"h{n}.test"))).id)

        async with trio.open_nursery() as nursery:
            for n in range(50):
                nursery.start_soon(submit, ALICE, n)
        assert len(made) == 1
        async with trio.open_nursery() as nursery:
            for n in range(50):
                nursery.start_soon(submit, Caller(f"c{n}"), n)
        assert len(made) == 4
        assert len(await runner.jobs()) == 4
        assert runner.statistics().queued + runner.statistics().running == 4
        fetch.release()


async def test_a_queued_or_running_job_answers(autojump_clock: MockClock) -> None:
    """An equal submit gets the id of a queued or running job, and changes nothing of it but the lease."""
    clock, heard = WallClock(START), Heard()
    fetch = ScriptedFetch(hang=["http://b.test/0", "http://a.test/1"])
    async with running(fetch, now=clock, hooks=heard) as runner:
        await runner.submit(BOB, targets(1, "b.test"))
        await fetch.wait_started(1)
        first = await runner.submit(ALICE, targets(3))
        before = await _job(runner, first.id)
        await trio.sleep(10)
        assert await runner.submit(ALICE, targets(3)) == (first.id, True)
        after = await _job(runner, first.id)
        assert (after.status, after.lease) == ("queued", before.lease + 10)
        fetch.release("http://b.test/0")
        await fetch.wait_started(3)
        running_job = await _job(runner, first.id)
        for _ in range(20):
            assert await runner.submit(ALICE, targets(3)) == (first.id, True)
        assert await _job(runner, first.id) == running_job
        fetch.release()
        job, _ = await drained(runner, first.id)
        assert job.status == "done"
    assert len(heard.of("job")) == 4 + 21
    assert heard.of("job").count(("reused",)) == 21
    assert fetch.order.count("http://a.test/0") == 1


async def test_a_done_or_partial_job_answers(autojump_clock: MockClock) -> None:
    """A finished job that is done or partial answers an equal submit with its results, lease bumped."""
    clock = WallClock(START)
    fetch = ScriptedFetch(fail=["http://p.test/1"])
    async with running(fetch, now=clock) as runner:
        for host, state in (("d.test", "done"), ("p.test", "partial")):
            first = await runner.submit(ALICE, targets(2, host))
            job, _ = await drained(runner, first.id)
            assert job.status == state
            await trio.sleep(100)
            calls = len(fetch.calls)
            assert await runner.submit(ALICE, targets(2, host)) == (first.id, True)
            assert (await _job(runner, first.id)).lease == job.lease + 100
            assert len(fetch.calls) == calls


async def test_a_failed_job_is_not_reused(autojump_clock: MockClock) -> None:
    """A failed job does not answer: the equal submit makes a new job that fetches again."""
    fetch = ScriptedFetch()
    fetch.answer("http://a.test/0", TargetError("first"), "second")
    async with running(fetch) as runner:
        first = await runner.submit(ALICE, targets(1))
        assert (await drained(runner, first.id))[0].status == "failed"
        second = await runner.submit(ALICE, targets(1))
        assert (second.reused, second.id != first.id) == (False, True)
        assert (await drained(runner, second.id))[0].status == "done"
        # From now on the new one answers; the old one keeps its error.
        assert await runner.submit(ALICE, targets(1)) == (second.id, True)
        assert (await _job(runner, first.id)).status == "failed"


async def test_a_cancelled_job_is_not_reused(autojump_clock: MockClock) -> None:
    """A cancelled job does not answer, not even while its last fetch is in flight."""
    fetch = ScriptedFetch(hang=["http://a.test/0"])
    async with running(fetch) as runner:
        first = await runner.submit(ALICE, targets(2))
        await fetch.wait_started(1)
        await runner.cancel(first.id)
        second = await runner.submit(ALICE, targets(2))
        assert (second.reused, second.id != first.id) == (False, True)
        fetch.release()
        assert (await drained(runner, second.id))[0].status == "done"


async def test_a_lapsed_job_does_not_answer(autojump_clock: MockClock) -> None:
    """A lapsed job does not answer an equal submit, swept or not; one second earlier it does."""
    clock = WallClock(START)
    async with running(ScriptedFetch(), now=clock, ttl=100, sweep_every=1e6) as runner:
        first = await runner.submit(ALICE, targets(1))
        await drained(runner, first.id)
        clock.jump(100)
        assert await runner.submit(ALICE, targets(1)) == (first.id, True)
        clock.jump(101)
        second = await runner.submit(ALICE, targets(1))
        assert not second.reused


async def test_the_lease_is_never_bumped_backwards(autojump_clock: MockClock) -> None:
    """An equal submit after the wall clock went back leaves the lease as it was."""
    clock = WallClock(START)
    async with running(ScriptedFetch(), now=clock) as runner:
        first = await runner.submit(ALICE, targets(1))
        job, _ = await drained(runner, first.id)
        clock.jump(-50)
        assert (await runner.submit(ALICE, targets(1))).reused
        assert (await _job(runner, first.id)).lease == job.lease


async def test_no_cap_applies_to_a_job_that_answers(autojump_clock: MockClock) -> None:
    """A job that answers is not refused by caps that are full."""
    fetch = ScriptedFetch(hang=[0])
    async with running(fetch, jobs_total=1) as runner:
        first = await runner.submit(ALICE, targets(1))
        assert await runner.submit(ALICE, targets(1)) == (first.id, True)
        fetch.release()


async def test_the_newest_reusable_job_answers(autojump_clock: MockClock) -> None:
    """Of several finished jobs with the same key, the one that was submitted last answers."""
    async with running(ScriptedFetch()) as runner:
        ids = []
        for _ in range(3):
            submission = await runner.submit(ALICE, targets(1), max_age=0)
            await runner.wait(submission.id)
            ids.append(submission.id)
        assert len(set(ids)) == 3
        assert await runner.submit(ALICE, targets(1)) == (ids[-1], True)


async def test_callers_do_not_share_jobs(autojump_clock: MockClock) -> None:
    """The same targets of another caller are another job, whatever else the two callers share."""
    async with running(ScriptedFetch()) as runner:
        first = await runner.submit(Caller("alice", "w", "k"), targets(1))
        await runner.wait(first.id)
        other = await runner.submit(Caller("bob", "w", "k"), targets(1))
        assert not other.reused
        # Workspace and key are no part of who it is.
        assert await runner.submit(Caller("alice", "v", "l"), targets(1)) == (first.id, True)


async def test_whatever_can_change_a_result_makes_another_job(autojump_clock: MockClock) -> None:
    """Targets that differ in a byte of the URL, in any option, in order or in number are not equal."""
    plain = Target("http://a.test/a")
    series: list[list[Target]] = [
        [plain],
        [plain, plain],
        [Target("http://a.test/A")],
        [Target("http://a.test/a/")],
        [Target("HTTP://a.test/a")],
        [Target("http://a.test/%61")],
        [Target("http://a.test/a#f")],
        [Target("http://a.test/a\0")],
        [Target("http://a.test/é")],
        [Target("http://a.test/e\u0301")],
        [plain, Target("http://a.test/b")],
        [Target("http://a.test/b"), plain],
        *(
            [Target(plain.url, options)]
            for options in (
                Options(mode="x"),
                Options(question="x"),
                Options(pages="x"),
                Options(grep="x"),
                Options(jq="x"),
                Options(context=False),
                Options(context=True),
                Options(recover=True),
            )
        ),
    ]
    async with running(ScriptedFetch(), jobs_per_caller=99, jobs_total=99) as runner:
        submissions = [await runner.submit(ALICE, one) for one in series]
        assert len({submission.id for submission in submissions}) == len(series)
        assert not any(submission.reused for submission in submissions)
        # Empty options are the same as none.
        assert (await runner.submit(ALICE, [Target(plain.url, Options(mode="", recover=False))])).reused
        await runner.drain()


@asynccontextmanager
async def _aged(seconds: int) -> AsyncIterator[tuple[Runner, WallClock, str]]:
    """A runner with one job of ALICE's that finished so many seconds ago."""
    clock = WallClock(START)
    async with running(ScriptedFetch(), now=clock) as runner:
        submission = await runner.submit(ALICE, targets(1))
        await runner.wait(submission.id)
        clock.jump(seconds)
        yield runner, clock, submission.id


async def test_max_age_counts_from_the_finish(autojump_clock: MockClock) -> None:
    """With `max_age` a finished job answers only while it finished less than so many whole seconds ago."""
    async with _aged(10) as (runner, _, job_id):
        assert await runner.submit(ALICE, targets(1), max_age=11) == (job_id, True)
        assert await runner.submit(ALICE, targets(1), max_age=10.5) == (job_id, True)
        assert not (await runner.submit(ALICE, targets(1), max_age=10)).reused


async def test_max_age_of_infinity_is_none(autojump_clock: MockClock) -> None:
    """An infinite `max_age` takes any finished job that has not lapsed."""
    async with _aged(86_400) as (runner, _, job_id):
        assert await runner.submit(ALICE, targets(1), max_age=float("inf")) == (job_id, True)


@pytest.mark.parametrize("seconds", [0, -1, -3_600])
async def test_max_age_of_zero_always_fetches_again(seconds: int, autojump_clock: MockClock) -> None:
    """A `max_age` of 0 fetches again in the second of the finish, and after the wall clock went back."""
    async with _aged(seconds) as (runner, _, _job_id):
        assert not (await runner.submit(ALICE, targets(1), max_age=0)).reused


async def test_a_live_job_answers_whatever_max_age_says(autojump_clock: MockClock) -> None:
    """A queued or running job answers with `max_age=0` too."""
    fetch = ScriptedFetch(hang=[0])
    async with running(fetch) as runner:
        first = await runner.submit(ALICE, targets(1))
        assert await runner.submit(ALICE, targets(1), max_age=0) == (first.id, True)
        await fetch.wait_started(1)
        assert await runner.submit(ALICE, targets(1), max_age=0) == (first.id, True)
        fetch.release()


async def test_a_live_job_answers_behind_one_that_is_too_old(autojump_clock: MockClock) -> None:
    """A finished job that is newer, but too old for `max_age`, does not hide a live one."""
    clock = WallClock(START)
    fetch = ScriptedFetch()
    async with running(fetch, now=clock, jobs_per_caller=3) as runner:
        first = await runner.submit(ALICE, targets(1))
        await runner.wait(first.id)
        fetch.hang("http://a.test/0")
        live = await runner.submit(ALICE, targets(1), max_age=0)
        newest = await runner.rerun(ALICE, first.id)  # with nothing left to fetch: finished at once
        assert await runner.submit(ALICE, targets(1), max_age=20) == (newest.id, True)
        await trio.sleep(20)
        assert await runner.submit(ALICE, targets(1), max_age=20) == (live.id, True)
        fetch.release()


@pytest.mark.parametrize(
    ("max_age", "error"),
    [
        (-1, ValueError),
        (float("nan"), ValueError),
        ("1", TypeError),
        (True, TypeError),
        (-float("inf"), ValueError),
    ],
)
async def test_a_bad_max_age_is_refused(
    max_age: float, error: type[Exception], autojump_clock: MockClock
) -> None:
    """A `max_age` that is below 0, NaN or no number is refused by name, and nothing is stored."""
    async with running(ScriptedFetch()) as runner:
        with pytest.raises(error, match="max_age"):
            await runner.submit(ALICE, targets(1), max_age=max_age)
        assert await runner.jobs() == []
