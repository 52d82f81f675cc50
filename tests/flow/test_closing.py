"""How does a runner end when its block is left, and what comes out of it?"""
# ruff: noqa: PT011, PT012 - what raises here is a whole block

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from flow_stage import ALICE, audit, idle, left_clean, select, series, wide

from sift_batch import (
    JobState,
    RetryLater,
    StoreInUseError,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch

BODY_ERRORS = [
    ValueError("mine"),
    ExceptionGroup("mine", [ValueError("a"), KeyError("b")]),
    BaseExceptionGroup("mine", [KeyboardInterrupt(), ValueError("a")]),
    ExceptionGroup("outer", [ExceptionGroup("inner", [ValueError("a")])]),
    KeyboardInterrupt("mine"),
    SystemExit(3),
    StopIteration("mine"),
    StopAsyncIteration("mine"),
    GeneratorExit("mine"),
    StoreInUseError("mine"),
    trio.ClosedResourceError("mine"),
]


@pytest.mark.parametrize("error", BODY_ERRORS, ids=lambda error: f"{type(error).__name__}")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "fetching"])
async def test_what_the_body_raises_comes_out_as_itself(
    autojump_clock: object, error: BaseException, busy: bool
) -> None:
    """The very exception that the body raised comes out, its own groups too, with nothing round it."""
    async with left_clean() as store:
        with pytest.raises(type(error)) as caught:
            async with open_runner(store, ScriptedFetch(latency=1), wide()) as runner:
                if busy:
                    await runner.submit(ALICE, series(3))
                    await idle()
                raise error
        assert caught.value is error
        assert trio.current_time() == pytest.approx(1 if busy else 0)


async def test_a_body_error_keeps_its_cause_and_context(autojump_clock: object) -> None:
    """Cause and context of what the body raised are as the body made them."""
    async with open_store(":memory:") as store:
        with pytest.raises(ValueError) as caught:
            async with open_runner(store, ScriptedFetch()):
                try:
                    raise KeyError("context")
                except KeyError as exc:
                    raise ValueError("mine") from exc
        assert isinstance(caught.value.__cause__, KeyError)
        assert caught.value.__context__ is caught.value.__cause__


async def test_when_the_body_returns_fetches_in_flight_are_finished_and_stored(
    autojump_clock: object,
) -> None:
    """After the body no target starts; the fetch in flight ends and is stored; the job is left live."""
    async with left_clean() as store:
        fetch = ScriptedFetch(latency=10)
        async with open_runner(store, fetch, wide()) as runner:
            job_id = (await runner.submit(ALICE, series(3))).id
            queued = (await runner.submit(ALICE, series(3, "queued"))).id
            await trio.sleep(15)
        assert trio.current_time() == pytest.approx(20)
        assert len(fetch.calls) == 2
        states = select(store, "SELECT status FROM batch_target WHERE job_id = ? ORDER BY idx", job_id)
        # The next target was marked by the step that stored the last one, and never fetched.
        assert [row[0] for row in states] == ["done", "done", "running"]
        assert select(store, "SELECT status FROM batch_job ORDER BY rowid") == [("running",), ("queued",)]
        audit(store)
        async with open_runner(store, fetch, wide()) as runner:
            for left in (job_id, queued):
                job = await runner.job(left)
                assert job is not None
                assert (job.status, job.error) == (JobState.FAILED, "restart")


async def test_a_last_target_stored_in_the_grace_ends_its_job(autojump_clock: object) -> None:
    """A job whose last target is stored during the grace is done, and its waiters get it."""
    seen = []
    async with open_store(":memory:") as store, trio.open_nursery() as nursery:
        async with open_runner(store, ScriptedFetch(latency=10), wide()) as runner:
            job_id = (await runner.submit(ALICE, series(1))).id

            async def wait() -> None:
                seen.append(await runner.wait(job_id))

            nursery.start_soon(wait)
            await trio.sleep(5)
        await idle()
        assert seen[0] is not None
        assert seen[0].status is JobState.DONE


async def test_fetches_have_the_grace_and_are_then_cancelled(autojump_clock: object) -> None:
    """A fetch that is not finished within `shutdown_grace` seconds is cancelled, its target not stored."""
    async with left_clean() as store:
        fetch = ScriptedFetch(hang=[0])
        async with open_runner(store, fetch, wide(shutdown_grace=7)) as runner:
            await runner.submit(ALICE, series(2))
            await trio.sleep(1)
        assert trio.current_time() == pytest.approx(8)
        assert isinstance(fetch.calls[0].error, trio.Cancelled)
        assert select(store, "SELECT count(*) FROM batch_target WHERE result IS NOT NULL") == [(0,)]


async def test_a_job_that_is_left_live_is_not_told_as_lost(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """A job that the closing leaves for the next start is counted as live, and no warning calls it lost."""
    async with left_clean() as store:
        async with open_runner(store, ScriptedFetch(latency=5), wide()) as runner:
            await runner.submit(ALICE, series(3))
            await trio.sleep(1)
        assert not heard("job.lost")
        (closed,) = heard("runner.closed")
        assert closed["live"] == 1


async def test_without_a_grace_fetches_are_cancelled_at_once(autojump_clock: object) -> None:
    """With a grace of 0 leaving takes no time."""
    async with left_clean() as store:
        fetch = ScriptedFetch(latency=1)
        async with open_runner(store, fetch, wide(shutdown_grace=0)) as runner:
            await runner.submit(ALICE, series(2))
            await idle()
        assert trio.current_time() == 0
        assert isinstance(fetch.calls[0].error, trio.Cancelled)


async def test_a_timeout_round_the_block_comes_out_after_the_grace(autojump_clock: object) -> None:
    """A timeout round the block begins the closing and comes out up to a grace later."""
    async with left_clean() as store:
        fetch = ScriptedFetch(latency=10)
        with trio.move_on_after(3) as scope:
            async with open_runner(store, fetch, wide()) as runner:
                await runner.submit(ALICE, series(3))
                await trio.sleep_forever()
        assert scope.cancelled_caught
        assert trio.current_time() == pytest.approx(10)
        assert select(store, "SELECT targets_done FROM batch_job") == [(1,)]
        assert len(fetch.calls) == 1


async def test_closing_begins_when_the_scope_is_cancelled_though_the_body_goes_on(
    autojump_clock: object,
) -> None:
    """With the body in a shield, the surrounding scope's cancellation begins the closing all the same."""
    async with left_clean() as store:
        fetch = ScriptedFetch(latency=10)
        with trio.move_on_after(3) as scope:
            async with open_runner(store, fetch, wide(shutdown_grace=20)) as runner:
                job_id = (await runner.submit(ALICE, series(5))).id
                with trio.CancelScope(shield=True):
                    await trio.sleep(3)
                    await idle()
                    with pytest.raises(trio.ClosedResourceError):
                        await runner.submit(ALICE, series(1, "late"))
                    with pytest.raises(trio.ClosedResourceError):
                        await runner.rerun(ALICE, job_id)
                    await trio.sleep(97)
                    job = await runner.job(job_id)
                    assert job is not None
                    assert job.targets_done == 1
        assert scope.cancel_called
        assert trio.current_time() == pytest.approx(100)
        assert len(fetch.calls) == 1


async def test_the_grace_begins_with_the_cancellation_though_the_body_goes_on(
    autojump_clock: object,
) -> None:
    """A fetch has its grace from the moment of the cancellation, and not from when the body ends at last."""
    async with left_clean() as store:
        with trio.CancelScope() as scope:
            async with open_runner(store, ScriptedFetch(hang=[0]), wide(shutdown_grace=20)) as runner:
                await runner.submit(ALICE, series(2))
                await trio.sleep(3)
                scope.cancel()
                with trio.CancelScope(shield=True):
                    await trio.sleep(19)
                    assert runner.statistics().in_flight == 1
                    await trio.sleep(2)
                    assert runner.statistics().in_flight == 0
                    await trio.sleep(50)


async def test_a_submit_is_refused_from_the_moment_of_the_cancellation(autojump_clock: object) -> None:
    """In the very moment in which the surrounding scope is cancelled, submit and rerun are refused."""
    async with open_store(":memory:") as store:
        with trio.CancelScope() as scope:
            async with open_runner(store, ScriptedFetch(), wide()) as runner:
                await idle()
                with trio.CancelScope(shield=True):
                    scope.cancel()
                    with pytest.raises(trio.ClosedResourceError):
                        await runner.submit(ALICE, series(1))
                    with pytest.raises(trio.ClosedResourceError):
                        await runner.rerun(ALICE, "0" * 32)


async def test_a_call_in_the_cancelled_scope_is_cancelled_and_not_refused(autojump_clock: object) -> None:
    """A body that calls just after its scope was cancelled gets `Cancelled`: a timeout stays a timeout."""
    async with left_clean() as store:
        for call in (
            lambda runner: runner.submit(ALICE, series(1)),
            lambda runner: runner.rerun(ALICE, "0" * 32),
            lambda runner: runner.drain(),
        ):
            with trio.CancelScope() as scope:
                async with open_runner(store, ScriptedFetch(latency=1), wide()) as runner:
                    await runner.submit(ALICE, series(2, "other"))
                    await idle()
                    scope.cancel()
                    await call(runner)
            assert scope.cancelled_caught


async def test_an_error_of_a_cancelled_body_is_not_lost(autojump_clock: object) -> None:
    """An error that the body raises while the surrounding scope is cancelled comes out as itself."""
    error = ValueError("mine")
    async with left_clean() as store:
        with pytest.raises(ValueError) as caught, trio.move_on_after(3):
            async with open_runner(store, ScriptedFetch(latency=10), wide()) as runner:
                await runner.submit(ALICE, series(2))
                try:
                    await trio.sleep_forever()
                finally:
                    raise error
        assert caught.value is error


async def test_a_cancellation_during_the_grace_does_not_shorten_it(autojump_clock: object) -> None:
    """A cancellation of the surrounding scope during the grace waits for its end like everything else."""
    async with left_clean() as store:
        fetch = ScriptedFetch(latency=10)
        error = ValueError("mine")
        with pytest.raises(ValueError) as caught, trio.move_on_after(5):
            async with open_runner(store, fetch, wide()) as runner:
                await runner.submit(ALICE, series(2))
                await trio.sleep(1)
                raise error
        assert caught.value is error
        assert fetch.calls[0].error is None
        assert trio.current_time() == pytest.approx(10)


@pytest.mark.parametrize("reason", ["gate", "host", "retry_after"])
async def test_closing_ends_a_busy_wait_at_once(autojump_clock: object, reason: str) -> None:
    """A target that waits out a busy spell is not waited for: nothing of it is in flight."""
    async with left_clean() as store:
        fetch = ScriptedFetch()
        fetch.busy(0, error=RetryLater(ready=trio.sleep_forever, reason=reason))
        async with open_runner(store, fetch, wide()) as runner:
            await runner.submit(ALICE, series(2))
            await trio.sleep(5)
        assert trio.current_time() == pytest.approx(5)
        assert len(fetch.calls) == 1
