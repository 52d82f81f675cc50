"""Rerun: a new job of the same targets, the done ones carried over."""

from typing import Any

import pytest
import trio
from flow_desk import ALICE, BOB, START, Heard, drained, running, targets
from trio.testing import MockClock

from sift_batch import (
    Caller,
    CallerBusyError,
    JobsBusyError,
    Options,
    Result,
    Runner,
    StoreError,
    SubmitError,
    Target,
    TargetError,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, ScriptedFetch, WallClock


async def _partial(runner: Runner, fetch: ScriptedFetch, count: int = 4) -> str:
    """Drain a job of which every second target fails the first time; return its id."""
    for n in range(1, count, 2):
        fetch.answer(f"http://a.test/{n}", TargetError("once"), "better")
    submission = await runner.submit(ALICE, targets(count))
    assert (await drained(runner, submission.id))[0].status == "partial"
    return submission.id


async def test_a_rerun_fetches_what_failed_and_carries_over_the_rest(autojump_clock: MockClock) -> None:
    """A rerun fetches the failed targets alone, in order; the done ones come along with their results."""
    fetch, heard = ScriptedFetch(), Heard()
    async with running(fetch, hooks=heard) as runner:
        source = await _partial(runner, fetch)
        fetched, told = len(fetch.calls), len(heard.of("target"))
        again = await runner.rerun(ALICE, source)
        assert (again.reused, again.id != source) == (False, True)
        job, stored = await drained(runner, again.id)
        assert fetch.order[fetched:] == ["http://a.test/1", "http://a.test/3"]
        assert [t.status for t in stored] == ["done"] * 4
        assert [t.result.content for t in stored if t.result] == [
            "content of http://a.test/0",
            "better",
            "content of http://a.test/2",
            "better",
        ]
        assert (job.status, job.rerun_of, job.targets_total, job.targets_done, job.targets_failed) == (
            "done",
            source,
            4,
            4,
            0,
        )
        # A target that is carried over calls no hook.
        assert len(heard.of("target")) == told + 2
        # The old job stays as it was.
        assert (await drained(runner, source))[0].status == "partial"


async def test_a_rerun_goes_on_in_order_behind_what_was_carried_over(autojump_clock: MockClock) -> None:
    """Behind a target that was carried over comes the next one in order, however many there are still."""
    fetch = ScriptedFetch()
    for n in (0, 3, 4, 5):
        fetch.answer(f"http://a.test/{n}", TargetError("once"), "better")
    async with running(fetch) as runner:
        source = await runner.submit(ALICE, targets(6))
        await drained(runner, source.id)
        again = await runner.rerun(ALICE, source.id)
        job, _ = await drained(runner, again.id)
    assert (job.status, job.targets_done) == ("done", 6)
    assert fetch.order[6:] == [f"http://a.test/{n}" for n in (0, 3, 4, 5)]


async def test_carried_over_targets_are_counted_from_the_start(autojump_clock: MockClock) -> None:
    """While a rerun is queued or running, its carried-over targets count as done and can be read."""
    fetch = ScriptedFetch()
    async with running(fetch) as runner:
        source = await _partial(runner, fetch)
        fetch.hang("http://a.test/1")
        again = await runner.rerun(ALICE, source)
        status = await runner.status(again.id)
        assert status is not None
        assert (status.job.status, status.job.targets_done, status.job.targets_failed) == ("queued", 2, 0)
        assert [t.status for t in status.targets] == ["done", "pending", "done", "pending"]
        assert status.targets[1].error == ""
        await fetch.wait_started(5)
        status = await runner.status(again.id)
        assert status is not None
        assert [t.status for t in status.targets] == ["done", "running", "done", "pending"]
        fetch.release()


async def test_a_rerun_fetches_what_a_cancel_left(autojump_clock: MockClock) -> None:
    """Targets that a cancel left pending are fetched by the rerun; those that were stored are not."""
    fetch = ScriptedFetch(hang=["http://a.test/1"])
    async with running(fetch) as runner:
        first = await runner.submit(ALICE, targets(4))
        await fetch.wait_started(2)
        await runner.cancel(first.id)
        fetch.release()
        await runner.wait(first.id)
        again = await runner.rerun(ALICE, first.id)
        job, _ = await drained(runner, again.id)
        assert (job.status, job.targets_done) == ("done", 4)
    assert fetch.order == [f"http://a.test/{n}" for n in range(4)]


async def test_a_rerun_with_nothing_left_is_done_at_once(autojump_clock: MockClock) -> None:
    """A rerun of a job that is all done is terminal in the same step, without a fetch or a target's hook."""
    fetch, heard = ScriptedFetch(hang=["http://b.test/0"]), Heard()
    clock = WallClock(START)
    async with running(fetch, hooks=heard, now=clock) as runner:
        first = await runner.submit(ALICE, targets(2))
        await drained(runner, first.id)
        blocker = await runner.submit(BOB, targets(1, "b.test"))  # no worker is free
        clock.jump(50)
        calls, told = len(fetch.calls), heard.of("target")
        again = await runner.rerun(ALICE, first.id)
        status = await runner.status(again.id)
        assert status is not None
        job = status.job
        assert (job.status, job.settled, job.rerun_of) == ("done", True, first.id)
        assert job.created_at == job.started_at == job.finished_at == job.lease == START + 50
        assert [t.result is not None for t in status.targets] == [True, True]
        assert heard.of("ended")[-1] == (job,)
        assert heard.of("job")[-2:] == [("created",), ("done",)]
        assert heard.of("job_seconds")[-1] == (0.0,)
        assert heard.of("target") == told
        await trio.testing.wait_all_tasks_blocked()
        assert len(fetch.calls) <= calls + 1
        assert runner.statistics().running + runner.statistics().queued == 1
        assert heard.of("stored")[-1] == (runner.statistics().stored_bytes,)
        fetch.release()
        await runner.wait(blocker.id)


async def test_a_rerun_that_fails_in_part_is_partial(autojump_clock: MockClock) -> None:
    """Carried-over targets count towards a rerun's end state: one that fails again makes it partial."""
    fetch = ScriptedFetch(fail=["http://a.test/1"])
    async with running(fetch) as runner:
        first = await runner.submit(ALICE, targets(2))
        await drained(runner, first.id)
        again = await runner.rerun(ALICE, first.id)
        job, _ = await drained(runner, again.id)
        assert (job.status, job.targets_failed) == ("partial", 1)
        all_failed = await runner.submit(BOB, [Target("http://a.test/1")])
        await drained(runner, all_failed.id)
        job, _ = await drained(runner, (await runner.rerun(BOB, all_failed.id)).id)
        assert (job.status, job.targets_failed) == ("failed", 1)


async def test_a_rerun_of_a_rerun(autojump_clock: MockClock) -> None:
    """A rerun can be run again; its source is the rerun, and every result is carried along."""
    fetch = ScriptedFetch()
    fetch.answer("http://a.test/1", TargetError("one"), TargetError("two"), "three")
    async with running(fetch) as runner:
        ids = [(await runner.submit(ALICE, targets(3))).id]
        for _ in range(2):
            await runner.wait(ids[-1])
            ids.append((await runner.rerun(ALICE, ids[-1])).id)
        job, stored = await drained(runner, ids[-1])
        assert (job.status, job.rerun_of) == ("done", ids[1])
        assert [t.result.content for t in stored if t.result][1] == "three"
    assert len(fetch.calls) == 5


async def test_only_the_callers_own_job_can_be_run_again(autojump_clock: MockClock) -> None:
    """A rerun of a job that is unknown, lapsed or another caller's raises `LookupError`, all the same."""
    clock, fetch = WallClock(START), ScriptedFetch()
    odd: list[Any] = ["0" * 32, "", "x/y", "\ud800", "é" * 99, None, 3, b"0", "a\0"]
    async with running(fetch, now=clock, ttl=100) as runner:
        first = await runner.submit(ALICE, targets(1))
        await runner.wait(first.id)
        texts = set()
        for caller, job_id in [(BOB, first.id), *((ALICE, job_id) for job_id in odd)]:
            with pytest.raises(LookupError) as caught:
                await runner.rerun(caller, job_id)
            texts.add(str(caught.value))
        assert len(texts) == 1
        clock.jump(101)
        with pytest.raises(LookupError):
            await runner.rerun(ALICE, first.id)
        with pytest.raises(TypeError):
            await runner.rerun("alice", first.id)  # type: ignore[arg-type]
        assert not runner._roster._coming


async def test_a_live_or_unsettled_job_cannot_be_run_again(autojump_clock: MockClock) -> None:
    """A rerun of a job that is queued, running, or cancelled with a fetch in flight raises `SubmitError`."""
    fetch = ScriptedFetch(hang=[0])
    async with running(fetch) as runner:
        await runner.submit(BOB, targets(1, "b.test"))
        await fetch.wait_started(1)
        queued = await runner.submit(ALICE, targets(1))
        with pytest.raises(SubmitError):
            await runner.rerun(ALICE, queued.id)
        fetch.release()
        fetch.hang("http://a.test/0")
        await fetch.wait_started(2)
        with pytest.raises(SubmitError):
            await runner.rerun(ALICE, queued.id)
        await runner.cancel(queued.id)
        with pytest.raises(SubmitError):
            await runner.rerun(ALICE, queued.id)
        fetch.release()
        await runner.wait(queued.id)
        await runner.rerun(ALICE, queued.id)


async def test_the_caps_apply_to_a_rerun(autojump_clock: MockClock) -> None:
    """A rerun takes a live job's place: the caller's cap and the cap of all refuse it, in that order."""
    fetch, heard = ScriptedFetch(fail=["http://a.test/0"]), Heard()
    async with running(fetch, hooks=heard, jobs_total=1) as runner:
        first = await runner.submit(ALICE, targets(1))
        await runner.wait(first.id)
        fetch.hang("http://b.test/0")
        own = await runner.submit(ALICE, targets(1, "b.test"))
        with pytest.raises(CallerBusyError) as caught:
            await runner.rerun(ALICE, first.id)
        assert caught.value.job_id == own.id
        fetch.release()
        await runner.wait(own.id)
        fetch.hang("http://b.test/0")
        await runner.submit(BOB, targets(1, "b.test"))
        with pytest.raises(JobsBusyError):
            await runner.rerun(ALICE, first.id)
        fetch.release()
    assert heard.of("refused") == [("caller_busy",), ("jobs_busy",)]


async def test_a_rerun_has_the_key_of_its_source(autojump_clock: MockClock) -> None:
    """A finished rerun answers an equal submit, being the newest with that key."""
    fetch = ScriptedFetch()
    async with running(fetch) as runner:
        source = await _partial(runner, fetch)
        again = await runner.rerun(ALICE, source)
        assert await runner.submit(ALICE, targets(4)) == (again.id, True)
        await runner.wait(again.id)
        assert await runner.submit(ALICE, targets(4)) == (again.id, True)


async def test_a_rerun_uses_the_credentials_of_who_asked_for_it(autojump_clock: MockClock) -> None:
    """The fetch of a rerun is given the caller of the rerun, options included as they were stored."""
    fetch = ScriptedFetch()
    fetch.answer("http://a.test/0", TargetError("once"), "ok")
    options = Options(jq=".a", context=False)
    async with running(fetch) as runner:
        first = await runner.submit(Caller("alice", "old", "k1"), [Target("http://a.test/0", options)])
        await runner.wait(first.id)
        again = await runner.rerun(Caller("alice", "new", "k2"), first.id)
        await runner.wait(again.id)
    assert fetch.calls[1].caller == Caller("alice", "new", "k2")
    assert fetch.calls[1].target == Target("http://a.test/0", options)


async def test_results_that_are_carried_over_outlive_their_source(autojump_clock: MockClock) -> None:
    """Deleting the source of a rerun takes nothing from the rerun."""
    fetch = ScriptedFetch(results={"http://a.test/0": Result("kept", {"n": [1, None]})})
    async with running(fetch) as runner:
        source = await _partial(runner, fetch)
        again = await runner.rerun(ALICE, source)
        job, stored = await drained(runner, again.id)
        assert await runner.delete(source)
        assert (await drained(runner, again.id)) == (job, stored)
        assert stored[0].result == Result("kept", {"n": [1, None]})
        assert runner.statistics().stored_bytes == job.nbytes


async def test_a_rerun_that_the_store_refuses_has_changed_nothing(autojump_clock: MockClock) -> None:
    """A rerun that the store refuses raises `StoreError` and can be asked for again."""
    fetch = ScriptedFetch(fail=["http://a.test/0"])
    async with open_store(":memory:") as inner:
        async with open_runner(FaultyStore(inner, 1, operations={"rerun"}), fetch) as runner:
            first = await runner.submit(ALICE, targets(1))
            await runner.wait(first.id)
            with pytest.raises(StoreError):
                await runner.rerun(ALICE, first.id)
            assert len(await runner.jobs()) == 1
            assert not runner._roster._coming
            await runner.wait((await runner.rerun(ALICE, first.id)).id)


async def test_a_rerun_in_a_cancelled_scope_has_done_nothing(autojump_clock: MockClock) -> None:
    """A rerun whose scope is cancelled already raises `Cancelled` and makes no job."""
    fetch = ScriptedFetch(fail=["http://a.test/0"])
    async with running(fetch) as runner:
        first = await runner.submit(ALICE, targets(1))
        await runner.wait(first.id)
        with trio.CancelScope() as scope:
            scope.cancel()
            await runner.rerun(ALICE, first.id)
        assert scope.cancelled_caught
        assert len(await runner.jobs()) == 1
