"""A submit that is cancelled, at whatever step: nothing is left, or a job that drains."""

import pytest
import trio
from flow_desk import ALICE, BOB, Heard, StepCancel, running, targets
from trio.testing import MockClock

from sift_batch import CallerBusyError, StoreError, open_runner, open_store
from sift_batch.testing import FaultyStore, ScriptedFetch


async def test_a_submit_in_a_cancelled_scope_has_done_nothing(autojump_clock: MockClock) -> None:
    """A submit whose scope is cancelled already raises `Cancelled` and leaves nothing."""
    heard, fetch = Heard(), ScriptedFetch()
    async with running(fetch, hooks=heard) as runner:
        with trio.CancelScope() as scope:
            scope.cancel()
            await runner.submit(ALICE, targets(1))
        assert scope.cancelled_caught
        assert await runner.jobs() == []
        await runner.drain()
        assert not runner._roster._coming
    assert fetch.calls == []
    assert heard.of("job") == []
    assert set(heard.of("depth")) == {(0,)}


@pytest.mark.parametrize("of_any_task", [False, True])
async def test_a_submit_cancelled_at_any_step_leaves_nothing_or_a_job_that_drains(
    of_any_task: bool, autojump_clock: MockClock
) -> None:
    """Cancelled at its N-th step, for every N, a submit leaves nothing or one job that drains to its end."""
    for at in range(1, 60):
        fetch, heard = ScriptedFetch(), Heard()
        async with running(fetch, hooks=heard) as runner:
            got: list[str] = []
            with trio.CancelScope() as scope:
                task = None if of_any_task else trio.lowlevel.current_task()
                instrument = StepCancel(scope, at, task)
                trio.lowlevel.add_instrument(instrument)
                got.append((await runner.submit(ALICE, targets(2))).id)
            trio.lowlevel.remove_instrument(instrument)
            with trio.fail_after(60):
                await runner.drain()
            jobs = await runner.jobs()
            assert [job.id for job in jobs] == got or (len(jobs) == 1 and not got)
            assert all(job.status == "done" and job.settled for job in jobs)
            assert len(fetch.calls) == 2 * len(jobs)
            assert heard.of("job").count(("created",)) == len(jobs)
            assert heard.of("depth")[-1] == (0,)
            assert not runner._roster._coming
            # No cap is taken by what was not stored.
            await runner.submit(ALICE, targets(3))
            await runner.submit(BOB, targets(3))
        if not scope.cancel_called:
            break
    else:
        raise AssertionError("the submit never got through")


async def test_many_submits_cancelled_at_once_leave_a_consistent_store(autojump_clock: MockClock) -> None:
    """Equal submits of which some are cancelled at each step make at most one job, and that one drains."""
    for at in range(1, 40):
        fetch = ScriptedFetch()
        async with running(fetch) as runner:

            async def submit() -> None:
                await runner.submit(ALICE, targets(2))

            with trio.CancelScope() as scope:
                instrument = StepCancel(scope, at)
                async with trio.open_nursery() as nursery:
                    trio.lowlevel.add_instrument(instrument)
                    for _ in range(6):
                        nursery.start_soon(submit)
            trio.lowlevel.remove_instrument(instrument)
            with trio.fail_after(60):
                await runner.drain()
            assert len(await runner.jobs()) <= 1
            assert len(fetch.calls) in {0, 2}


async def test_a_submit_that_the_store_refuses_has_changed_nothing(autojump_clock: MockClock) -> None:
    """A submit that the store refuses raises `StoreError`, counts as refused, and can be made again."""
    heard, fetch = Heard(), ScriptedFetch()
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner, 1, operations={"submit"})
        async with open_runner(store, fetch, hooks=heard) as runner:
            with pytest.raises(StoreError):
                await runner.submit(ALICE, targets(1))
            assert await runner.jobs() == []
            assert not runner._roster._coming
            submission = await runner.submit(ALICE, targets(1))
            assert not submission.reused
            await runner.wait(submission.id)
    assert heard.of("refused") == [("store",)]
    assert len(fetch.calls) == 1


async def test_the_worker_may_begin_a_job_before_its_submit_returns(autojump_clock: MockClock) -> None:
    """A submit that is cancelled just after its commit leaves a job that is known, counted and drained."""
    # A store whose answer comes late: the step has happened, its caller hears of it a second later.
    heard, fetch = Heard(), ScriptedFetch(latency=0.25)
    async with open_store(":memory:") as store:
        submit = store.submit

        async def late(*args: object, **keywords: object) -> object:
            outcome = await submit(*args, **keywords)  # type: ignore[arg-type]
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
            return outcome

        store.submit = late  # type: ignore[method-assign, assignment]
        async with open_runner(store, fetch, hooks=heard) as runner:
            # A permit that is spare lets the worker find the job before the submitter has run again.
            runner._foreman.job_stored()
            await trio.testing.wait_all_tasks_blocked()
            with trio.move_on_after(0.5):
                await runner.submit(ALICE, targets(2))
            await runner.drain()
            (job,) = await runner.jobs()
            assert (job.status, job.settled) == ("done", True)
            with pytest.raises(CallerBusyError):
                await _two_at_once(runner)
    assert next(values for values in heard.of("job") if values != ("created",)) == ("done",)


async def _two_at_once(runner: object) -> None:
    await runner.submit(ALICE, targets(3))  # type: ignore[attr-defined]
    await runner.submit(ALICE, targets(4))  # type: ignore[attr-defined]
