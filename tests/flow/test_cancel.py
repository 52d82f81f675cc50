"""Does a cancel do what it says, whatever it meets?"""

from typing import Any

import pytest
import trio
import trio.testing
from flow_stage import ALICE, BOB, Told, audit, idle, series, stage, wide

from sift_batch import Caller, Job, JobState, Result, RetryLater, StoreError, Target, attempt, open_store
from sift_batch.testing import FaultyStore, ScriptedFetch


async def test_only_the_fetch_in_flight_goes_on_after_a_cancel(autojump_clock: object) -> None:
    """After a cancel is acknowledged no fetch starts; the one in flight ends and is stored."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(10)
        await trio.sleep(2.5)
        assert await on.runner.cancel(job_id)
        assert (await on.job(job_id)).status is JobState.CANCELLED
        assert not (await on.job(job_id)).settled
        await trio.sleep(20)
        assert len(on.fetch.calls) == 3
        assert await on.states(job_id) == ["done"] * 3 + ["pending"] * 7
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.settled
        assert job.status is JobState.CANCELLED
        assert job.targets_done == 3
        audit(on.rows, on.runner, settled=True)


@pytest.mark.parametrize("ends", ["cancel", "close"])
async def test_a_fetch_after_a_busy_wait_goes_on_like_any_other(autojump_clock: object, ends: str) -> None:
    """What is in flight after a busy spell is finished and stored too, whether the job or the runner ends."""
    async with open_store(":memory:") as store:
        async with stage(store=store, fetch=ScriptedFetch(busy={0: 1}, latency=10)) as on:
            job_id = await on.submit(2)
            await trio.sleep(5)
            assert on.runner.statistics().in_flight == 1
            if ends == "cancel":
                assert await on.runner.cancel(job_id)
                await on.runner.wait(job_id)
        async with stage(store=store) as on:
            assert await on.states(job_id) == ["done", "pending"]
            audit(on.rows, on.runner, settled=True)


async def test_a_cancel_is_acknowledged_while_the_fetch_is_still_in_flight(autojump_clock: object) -> None:
    """The job is cancelled at once: a cancel does not wait for the fetch in flight."""
    async with stage(fetch=ScriptedFetch(latency=50)) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        before = trio.current_time()
        assert await on.runner.cancel(job_id)
        assert trio.current_time() == before
        assert on.fetch.in_flight == 1


class LateAnswer(FaultyStore):
    """Has ended a job for a while before it says so."""

    async def stop(self, *given: Any, **named: Any) -> Job | None:
        """End the job, and say so 5 s later."""
        answer = await super().stop(*given, **named)
        await trio.sleep(5)
        return answer


async def test_a_cancelled_job_is_told_as_ended_before_it_is_told_as_settled(autojump_clock: object) -> None:
    """Whoever hears that a cancelled job settled finds that its end was told, however late that was known."""
    told = Told()
    async with stage(fetch=ScriptedFetch(latency=2), wrap=LateAnswer, hooks=told) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(on.runner.cancel, job_id)
            job = await on.runner.wait(job_id)
            assert job is not None
            assert (job.status, job.targets_done) == (JobState.CANCELLED, 1)
            assert [ended.id for (ended,) in told.of("ended")] == [job_id]
        assert len(told.of("ended")) == 1
        audit(on.rows, on.runner, settled=True)


@pytest.mark.parametrize("caller", [ALICE, "alice", None])
async def test_a_cancel_of_a_queued_job_means_that_it_never_starts(
    autojump_clock: object, caller: Caller | str | None
) -> None:
    """A job that is cancelled while it is queued is settled at once and none of it is fetched."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        first = await on.submit(3, "first")
        second = await on.submit(3, "second")
        await trio.sleep(0.5)
        assert await on.runner.cancel(second, caller=caller)
        job = await on.job(second)
        assert job.status is JobState.CANCELLED
        assert job.settled
        assert job.started_at is None
        await on.runner.drain()
        assert (await on.job(first)).status is JobState.DONE
        assert not [url for url in on.fetch.order if "second" in url]
        audit(on.rows, on.runner, settled=True)


async def test_a_cancel_by_another_caller_is_a_cancel_of_an_unknown_job(autojump_clock: object) -> None:
    """Another caller's cancel returns False and changes nothing."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(2)
        assert not await on.runner.cancel(job_id, caller=BOB)
        assert not await on.runner.cancel(job_id, caller="mallory")
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE


@pytest.mark.parametrize("job_id", ["0" * 32, "", "a/b", "f" * 64, "\ud800", "\0", "ß" * 16])
async def test_a_cancel_of_an_unknown_job_is_false_at_once(autojump_clock: object, job_id: str) -> None:
    """A cancel of an id that is not there returns False at once, whatever the id looks like."""
    async with stage() as on:
        assert not await on.runner.cancel(job_id)
        assert await on.runner.wait(job_id) is None


async def test_a_terminal_job_is_left_alone(autojump_clock: object) -> None:
    """A cancel of a done, failed, partial or cancelled job returns False twice and changes no row."""
    fetch = ScriptedFetch(latency=1, fail=["https://host.example/failed/0", "https://host.example/partial/0"])
    async with stage(fetch=fetch) as on:
        ids = [
            (await on.done(2 if name == "partial" else 1, name)).id for name in ("done", "failed", "partial")
        ]
        cancelled = await on.submit(2, "cancelled")
        await trio.sleep(0.5)
        assert await on.runner.cancel(cancelled)
        assert not await on.runner.cancel(cancelled)  # terminal, not settled yet
        await on.runner.wait(cancelled)
        ids.append(cancelled)
        before = [await on.runner.status(job_id) for job_id in ids]
        states = [status.job.status.value for status in before if status]
        assert states == ["done", "failed", "partial", "cancelled"]
        for job_id in ids * 2:
            assert not await on.runner.cancel(job_id)
        assert [await on.runner.status(job_id) for job_id in ids] == before


@pytest.mark.parametrize("waits_by", ["backoff", "retry_after", "ready", "gate"])
async def test_a_target_that_waits_out_a_busy_spell_goes_back(autojump_clock: object, waits_by: str) -> None:
    """A cancel ends a busy wait at once: the target is pending again, the job settled, nothing is fetched."""
    error = {
        "backoff": RetryLater(),
        "retry_after": RetryLater(retry_after=100.0),
        "ready": RetryLater(ready=trio.sleep_forever),
        "gate": RetryLater(ready=trio.sleep_forever, reason="gate"),
    }[waits_by]
    fetch = ScriptedFetch(results={0: "first"})
    fetch.busy(1, error=error)
    async with stage(fetch=fetch) as on:
        job_id = await on.submit(3)
        await trio.sleep(1)
        calls = len(fetch.calls)
        assert await on.states(job_id) == ["done", "running", "pending"]
        assert await on.runner.cancel(job_id)
        # Settled in the very step that cancelled it: nothing of it was in flight.
        assert (await on.job(job_id)).settled
        assert await on.states(job_id) == ["done", "pending", "pending"]
        await trio.sleep(1_000)
        assert len(fetch.calls) == calls
        assert (await on.done(1, "next")).status is JobState.DONE
        audit(on.rows, on.runner, settled=True)


async def test_a_busy_fetch_that_answers_after_the_cancel_is_not_tried_again(autojump_clock: object) -> None:
    """A fetch in flight that says busy after the cancel is not tried again: its target is pending."""

    async def busy_later(caller: Caller, target: Target) -> Result:
        await trio.sleep(5)
        raise RetryLater(retry_after=1.0)

    fetch = ScriptedFetch()
    fetch.answer(0, busy_later)
    async with stage(fetch=fetch) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        assert await on.runner.cancel(job_id)
        began = trio.current_time()
        job = await on.runner.wait(job_id)
        assert trio.current_time() - began == pytest.approx(4)
        assert job is not None
        assert job.status is JobState.CANCELLED
        assert job.targets_done == 0
        assert await on.states(job_id) == ["pending", "pending"]
        await trio.sleep(100)
        assert len(fetch.calls) == 1
        audit(on.rows, on.runner, settled=True)


async def test_two_cancels_at_once_end_a_job_once(autojump_clock: object) -> None:
    """Of many cancels at the same time exactly one returns True, and the job ends once."""
    told = Told()
    answers: list[bool] = []
    async with stage(fetch=ScriptedFetch(latency=1), hooks=told) as on:
        job_id = await on.submit(4)
        await trio.sleep(1.5)

        async def cancel() -> None:
            answers.append(await on.runner.cancel(job_id))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(cancel)
        await on.runner.wait(job_id)
    assert sorted(answers) == [False] * 9 + [True]
    assert len(told.of("ended")) == len(told.of("job_seconds")) == 1
    assert told.of("job") == [("created",), ("cancelled",)]


async def test_a_job_can_be_cancelled_by_its_own_fetch(autojump_clock: object) -> None:
    """A fetch may cancel its own job: its own result is stored and nothing else of the job starts."""
    box: list[object] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        await box[0].cancel(attempt.get().job_id)  # type: ignore[attr-defined]
        return Result("last words")

    async with stage(fetch=fetch) as on:
        box.append(on.runner)
        job = await on.done(3)
        assert job.status is JobState.CANCELLED
        assert job.targets_done == 1
        audit(on.rows, on.runner, settled=True)


class SlowStep:
    """A store whose named step takes a while, before or after it is done."""

    def __init__(self, store: object, step: str, *, before: float = 0, after: float = 0) -> None:
        self._store, self._step, self._before, self._after = store, step, before, after
        self.asked = trio.Event()

    def __getattr__(self, name: str) -> object:
        method = getattr(self._store, name)
        if name != self._step:
            return method

        async def slow(*args: object, **kwargs: object) -> object:
            self.asked.set()
            with trio.CancelScope(shield=True):
                await trio.sleep(self._before)
            answer = await method(*args, **kwargs)
            with trio.CancelScope(shield=True):
                await trio.sleep(self._after)
            return answer

        return slow


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("step", ["record", "stop", "begin", "settle"])
@pytest.mark.parametrize("before", [0.0, 3.0])
@pytest.mark.parametrize("after", [0.0, 3.0])
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 4.5, 6.5])
async def test_cancel_and_the_drain_agree_on_who_came_first(
    autojump_clock: object, targets: int, step: str, before: float, after: float, at: float
) -> None:
    """Whichever store step is slow and whenever the cancel comes, its answer and the state agree."""
    told = Told()
    started_after: list[float] = []
    acknowledged: list[float] = []

    def watched(store: object) -> object:
        return SlowStep(store, step, before=before, after=after)

    fetch = ScriptedFetch(latency=1)
    async with stage(fetch=fetch, wrap=watched, hooks=told) as on:
        job_id = await on.submit(targets)
        await trio.sleep(at)
        answer = await on.runner.cancel(job_id)
        acknowledged.append(trio.current_time())
        state_then = (await on.job(job_id)).status
        job = await on.runner.wait(job_id)
        await on.runner.drain()
        assert job is not None
        assert job.settled
        assert job.status is state_then is (JobState.CANCELLED if answer else JobState.DONE)
        started_after += [call.started for call in fetch.calls if call.started > acknowledged[0]]
        assert not started_after
        assert job.targets_done == len(fetch.calls)
        audit(on.rows, on.runner, settled=True)
        assert len(told.of("ended")) == 1
        assert (await on.done(1, "next")).status is JobState.DONE


@pytest.mark.parametrize("offset", range(12))
async def test_a_cancel_in_the_start_window(autojump_clock: object, offset: int) -> None:
    """A cancel that comes any number of turns of the run loop after the submit is obeyed."""
    fetch = ScriptedFetch()
    async with stage(fetch=fetch) as on:
        job_id = await on.submit(5)
        for _ in range(offset):
            await trio.lowlevel.checkpoint()
        answer = await on.runner.cancel(job_id)
        calls = len(fetch.calls)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is (JobState.CANCELLED if answer else JobState.DONE)
        await idle()
        assert len(fetch.calls) == calls if answer else 5
        audit(on.rows, on.runner, settled=True)


@pytest.mark.parametrize("offset", range(8))
async def test_a_cancel_beside_the_last_store_ends_the_job_once(autojump_clock: object, offset: int) -> None:
    """A cancel in any turn round the store of the last target: the job ends once, and both sides agree."""
    told = Told()
    fetch = ScriptedFetch(hang=[0])
    async with stage(fetch=fetch, hooks=told) as on:
        job_id = await on.submit(1)
        await fetch.wait_started(1)
        fetch.release()
        for _ in range(offset):
            await trio.lowlevel.checkpoint()
        answer = await on.runner.cancel(job_id)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.targets_done == 1
        assert job.status is (JobState.CANCELLED if answer else JobState.DONE)
        for _ in range(100):
            await trio.sleep(1)
            assert (await on.job(job_id)).status is job.status
        assert [values[0] for values in told.of("job")] == ["created", job.status.value]
        audit(on.rows, on.runner, settled=True)


async def test_a_cancel_that_the_store_refuses_has_changed_nothing(autojump_clock: object) -> None:
    """A refused cancel raises `StoreError` and the job drains to its end as if nothing was said."""
    async with stage(fetch=ScriptedFetch(latency=1), faulty=True) as on:
        job_id = await on.submit(3)
        await trio.sleep(1.5)
        on.store.fail(1, operations={"stop"})  # type: ignore[attr-defined]
        with pytest.raises(StoreError):
            await on.runner.cancel(job_id)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE
        audit(on.rows, on.runner, settled=True)


async def test_a_refused_cancel_does_not_end_a_busy_wait(autojump_clock: object) -> None:
    """A cancel that the store refused leaves a busy target waiting for its time, not for ever."""
    fetch = ScriptedFetch()
    fetch.busy(0, 1, RetryLater(retry_after=10.0))
    async with stage(fetch=fetch, faulty=True) as on:
        job_id = await on.submit(1)
        await trio.sleep(1)
        on.store.fail(1, operations={"stop"})  # type: ignore[attr-defined]
        with pytest.raises(StoreError):
            await on.runner.cancel(job_id)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE
        assert [call.started for call in fetch.calls] == pytest.approx([0, 10])


@pytest.mark.parametrize("first", ["cancel", "timeout"])
async def test_a_cancel_and_the_job_timeout_end_a_job_once(autojump_clock: object, first: str) -> None:
    """Of a cancel and the job's timeout the first one decides the state, and the other changes nothing."""
    told = Told()
    fetch = ScriptedFetch(latency=10)
    async with stage(wide(job_timeout=5), fetch=fetch, hooks=told) as on:
        job_id = await on.submit(3)
        await trio.sleep(4 if first == "cancel" else 6)
        assert await on.runner.cancel(job_id) is (first == "cancel")
        job = await on.runner.wait(job_id)
        assert job is not None
        assert (job.status, job.error) == (
            (JobState.CANCELLED, "") if first == "cancel" else (JobState.FAILED, "timeout")
        )
        assert job.targets_done == len(fetch.calls) == 1
        await trio.sleep(100)
        assert len(told.of("ended")) == 1
        audit(on.rows, on.runner, settled=True)


async def test_a_cancel_at_the_moment_of_the_job_timeout(autojump_clock: object) -> None:
    """A cancel in the very moment of the job's timeout: one of them wins, and the answer says which."""
    told = Told()
    async with stage(wide(job_timeout=5), fetch=ScriptedFetch(latency=10), hooks=told) as on:
        job_id = await on.submit(3)
        await trio.sleep(5)
        answer = await on.runner.cancel(job_id)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is (JobState.CANCELLED if answer else JobState.FAILED)
        assert len(told.of("ended")) == 1


async def test_cancelled_work_stays_readable_until_its_lease_lapses(autojump_clock: object) -> None:
    """What was done before a cancel can be read page by page for a whole TTL from the cancel."""
    async with stage(wide(ttl=100, targets_per_job=50), fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(50)
        await trio.sleep(29.5)
        assert await on.runner.cancel(job_id)
        await on.runner.wait(job_id)
        found = []
        for start in range(0, 50, 10):
            page = await on.runner.status(job_id, start=start, stop=start + 10)
            assert page is not None
            found += [target for target in page.targets if target.result is not None]
        assert [target.idx for target in found] == list(range(30))
        await trio.sleep(99)
        assert await on.runner.job(job_id) is not None
        await trio.sleep(3)
        assert await on.runner.job(job_id) is None


async def test_the_fetch_in_flight_may_take_its_own_time_after_a_cancel(autojump_clock: object) -> None:
    """A cancel never cuts the fetch in flight: it has all of its target's time."""
    fetch = ScriptedFetch(latency=90)
    async with stage(wide(target_timeout=100), fetch=fetch) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        assert await on.runner.cancel(job_id)
        await on.runner.wait(job_id)
        assert await on.states(job_id) == ["done", "pending"]
        assert trio.current_time() == pytest.approx(90)


async def test_a_fetch_whose_time_is_up_after_a_cancel_is_stored_as_failed(autojump_clock: object) -> None:
    """A fetch in flight that takes too long after a cancel is a failed target, and the job settles."""
    async with stage(wide(target_timeout=10), fetch=ScriptedFetch(hang=[0])) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        assert await on.runner.cancel(job_id)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.CANCELLED
        assert await on.states(job_id) == ["failed", "pending"]


async def test_an_unsettled_job_holds_its_worker_until_its_fetch_has_ended(autojump_clock: object) -> None:
    """A cancelled job whose fetch goes on is unsettled and keeps its worker: no other job takes it."""
    fetch = ScriptedFetch(latency={"https://host.example/slow/0": 30})
    async with stage(fetch=fetch) as on:
        slow = await on.submit(2, "slow")
        await trio.sleep(1)
        await on.runner.cancel(slow)
        other = await on.submit(1, "other")
        await trio.sleep(20)
        assert not (await on.job(slow)).settled
        assert (await on.job(other)).status is JobState.QUEUED
        assert on.runner.statistics().in_flight == 1
        await on.runner.drain()
        assert (await on.job(other)).status is JobState.DONE


async def test_a_cancelled_cancel_has_done_nothing(autojump_clock: object) -> None:
    """A cancel in a cancelled scope raises `Cancelled`, and the job goes on."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(2)
        with trio.CancelScope() as scope:
            scope.cancel()
            await on.runner.cancel(job_id)
        assert scope.cancelled_caught
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE


async def test_cancel_in_a_finally_with_a_shield(autojump_clock: object) -> None:
    """A shielded cancel in a `finally` of a cancelled task ends the job."""
    async with open_store(":memory:") as store, stage(store=store, fetch=ScriptedFetch(latency=1)) as on:
        job_id = ""
        with trio.move_on_after(1.5):
            try:
                job_id = (await on.runner.submit(ALICE, series(5))).id
                await trio.sleep_forever()
            finally:
                with trio.move_on_after(10, shield=True):
                    await on.runner.cancel(job_id)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.CANCELLED
        assert job.targets_done == 2


async def test_a_job_cancelled_during_a_submit_of_the_same_targets_makes_way(autojump_clock: object) -> None:
    """A cancelled job does not answer an equal submit, even while its fetch is still in flight."""
    async with stage(fetch=ScriptedFetch(latency=5)) as on:
        first = await on.submit(2)
        await trio.sleep(1)
        await on.runner.cancel(first)
        again = await on.runner.submit(ALICE, series(2))
        assert not again.reused
        assert again.id != first
        job = await on.runner.wait(again.id)
        assert job is not None
        assert job.status is JobState.DONE
