"""What if the store refuses, at whichever step?"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import trio
from flow_stage import ALICE, Stage, Told, audit, change, dump, idle, select, series, stage, wide

from sift_batch import JobState, RetryLater, StoreError, open_runner, open_store
from sift_batch.testing import FaultyStore, ScriptedFetch


def faults(on: Stage) -> FaultyStore:
    """Return the stage's faulty store."""
    assert isinstance(on.store, FaultyStore)
    return on.store


async def test_a_refused_result_is_offered_again_and_not_fetched_again(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """A result that the store refuses is offered after 1, 2, 4 … 30 s; no fetch is called meanwhile."""
    asked: list[float] = []

    class Noting(FaultyStore):
        async def record(self, *args: Any, **kwargs: Any) -> Any:
            asked.append(trio.current_time())
            return await super().record(*args, **kwargs)

    fetch = ScriptedFetch(latency=1)
    async with stage(fetch=fetch, wrap=Noting) as on:
        faults(on).fail(8, operations={"record"})
        job_id = await on.submit(2)
        await trio.sleep(50)
        assert len(fetch.calls) == 1
        progress = on.runner.progress(job_id)
        assert progress is not None
        assert (progress.reason, progress.since) == ("store", int(on.clock()) - 49)
        # The fetch has come back: what is left to do is to store what it gave.
        assert on.runner.statistics().in_flight == 0
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE
        assert len(fetch.calls) == 2
        gaps = [after - before for before, after in itertools.pairwise(asked)]
        assert gaps[:8] == pytest.approx([1, 2, 4, 8, 16, 30, 30, 30])
        # One warning for the whole spell, with the job's id.
        (warning,) = heard("store.trouble")
        assert (warning["job_id"], warning["step"]) == (job_id, "record")
        audit(on.rows, on.runner, settled=True)


@pytest.mark.parametrize("step", ["begin", "record"])
async def test_each_spell_has_one_warning(
    autojump_clock: object, heard: Callable[[str], list[Any]], step: str
) -> None:
    """Each spell of refusals has one warning that names the job, and `progress` says store during it."""
    fetch = ScriptedFetch(latency=1)
    async with stage(fetch=fetch, faulty=True) as on:
        for spell in range(1, 4):
            faults(on).fail(4, operations={step})
            job_id = await on.submit(1, f"job {spell}")
            await trio.sleep(5)
            progress = on.runner.progress(job_id)
            assert progress is not None
            assert progress.reason == "store"
            await on.runner.drain()
            assert [(event["step"], event["job_id"]) for event in heard("store.trouble")][spell - 1 :] == [
                (step, job_id)
            ]


async def test_a_refused_start_is_told_of_the_job_that_waits_for_it(autojump_clock: object) -> None:
    """While the store refuses to start jobs, those that workers ask for say store, the others queue."""
    async with stage(wide(workers=2), faulty=True) as on:
        faults(on).fail(3, operations={"begin"})
        ids = [await on.submit(1, f"job {index}") for index in range(3)]
        await trio.sleep(0.5)

        def reasons() -> list[str]:
            found = [on.runner.progress(job_id) for job_id in ids]
            return [progress.reason for progress in found if progress is not None]

        assert reasons() == ["store", "store", "queue"]
        await on.runner.drain()
        audit(on.rows, on.runner, settled=True)


async def test_a_cancel_does_not_end_the_offers(autojump_clock: object) -> None:
    """A result in flight at a cancel is offered until it is stored, and then the job settles."""
    async with stage(faulty=True) as on:
        faults(on).fail(6, operations={"record"})
        job_id = await on.submit(3)
        await trio.sleep(5)
        assert await on.runner.cancel(job_id)
        assert not (await on.job(job_id)).settled
        job = await on.runner.wait(job_id)
        assert job is not None
        assert (job.status, job.targets_done) == (JobState.CANCELLED, 1)
        assert len(on.fetch.calls) == 1
        audit(on.rows, on.runner, settled=True)


async def test_a_refused_settling_is_offered_again(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """A cancelled job whose way back to `pending` the store refuses settles once it is accepted."""
    fetch = ScriptedFetch()

    async def busy_later(*_: object) -> Any:
        await trio.sleep(5)
        raise RetryLater

    fetch.answer(0, busy_later)
    async with stage(fetch=fetch, faulty=True) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        assert await on.runner.cancel(job_id)
        faults(on).fail(3, operations={"settle"})
        await trio.sleep(5)
        assert not (await on.job(job_id)).settled
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.settled
        assert await on.states(job_id) == ["pending", "pending"]
        assert [event["step"] for event in heard("store.trouble")] == ["settle"]
        assert trio.current_time() == pytest.approx(5 + 1 + 2 + 4)
        audit(on.rows, on.runner, settled=True)


async def test_a_refused_end_by_timeout_lets_no_target_start(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """While the store refuses to end a job whose time is up, none of its targets starts."""
    fetch = ScriptedFetch(latency=10)
    async with stage(wide(job_timeout=5), fetch=fetch, faulty=True) as on:
        job_id = await on.submit(3)
        faults(on).fail(4, operations={"stop"})
        for second in (6, 11, 13, 19):
            await trio.sleep(second - trio.current_time())
            progress = on.runner.progress(job_id)
            assert progress is not None
            assert (progress.reason, progress.since) == ("store", int(on.clock()) - second + 5)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert (job.status, job.error) == (JobState.FAILED, "timeout")
        assert trio.current_time() == pytest.approx(5 + 1 + 2 + 4 + 8)
        assert len(fetch.calls) == job.targets_done == 1
        (warning,) = heard("store.trouble")
        assert (warning["job_id"], warning["step"]) == (job_id, "stop")
        audit(on.rows, on.runner, settled=True)


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_refused_end_by_timeout_gives_way(autojump_clock: object, how: str) -> None:
    """A job whose timeout the store refuses can still be cancelled, and the runner can be left."""
    async with open_store(":memory:") as store:
        async with stage(wide(job_timeout=5, shutdown_grace=3), store=store, faulty=True) as on:
            on.fetch.busy(0, error=RetryLater(ready=trio.sleep_forever, reason="gate"))
            job_id = await on.submit(3)
            faults(on).fail(1_000, operations={"stop"})
            await trio.sleep(50)
            if how == "cancel":
                faults(on).recover()
                assert await on.runner.cancel(job_id)
                job = await on.runner.wait(job_id)
                assert job is not None
                assert job.status in (JobState.CANCELLED, JobState.FAILED)
                audit(store, on.runner, settled=True)
        assert trio.current_time() <= 53
        audit(store)


@pytest.mark.parametrize(
    "step", ["submit", "rerun", "delete", "touch", "job", "status", "jobs", "gone", "check"]
)
async def test_what_a_caller_asks_for_is_refused_as_a_store_error(autojump_clock: object, step: str) -> None:
    """A call whose step the store refuses raises `StoreError` and has changed nothing."""
    told = Told()
    async with stage(faulty=True, hooks=told) as on:
        job_id = (await on.done(2)).id
        before = dump(on.rows)
        calls: dict[str, Callable[[], Any]] = {
            "submit": lambda: on.runner.submit(ALICE, series(1, "new")),
            "rerun": lambda: on.runner.rerun(ALICE, job_id),
            "delete": lambda: on.runner.delete(job_id),
            "touch": lambda: on.runner.touch(job_id),
            "job": lambda: on.runner.job(job_id),
            "status": lambda: on.runner.status(job_id),
            "jobs": lambda: on.runner.jobs(),
            "gone": lambda: on.runner.gone(job_id, caller=ALICE),
            "check": lambda: on.runner.check(),
        }
        faults(on).fail(1, operations={step})
        with pytest.raises(StoreError):
            await calls[step]()
        assert dump(on.rows) == before
        assert not on.runner._roster._coming
        audit(on.rows, on.runner, settled=True)
        assert told.of("refused") == ([("store",)] if step in ("submit", "rerun") else [])
        await calls[step]()


@pytest.mark.parametrize("step", ["job", "status"])
async def test_streams_and_waits_raise_what_the_store_refuses(autojump_clock: object, step: str) -> None:
    """A wait or stream whose read the store refuses raises `StoreError`, and the job goes on."""
    async with stage(fetch=ScriptedFetch(latency=1), faulty=True) as on:
        job_id = await on.submit(3)
        faults(on).fail(2, operations={step})
        if step == "job":
            with pytest.raises(StoreError):
                await on.runner.wait(job_id)
        else:
            for stream in (on.runner.watch(job_id), on.runner.results(job_id)):
                async with stream as steps:
                    with pytest.raises(StoreError):
                        await anext(steps)
        faults(on).recover()
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE
        assert not on.runner._feeds._feeds


@pytest.mark.parametrize("step", ["lapsed", "sweep", "evict", "erase"])
async def test_upkeep_that_is_refused_is_tried_again_at_its_next_turn(
    autojump_clock: object, heard: Callable[[str], list[Any]], step: str
) -> None:
    """A refused sweep, eviction or wiping is logged, harms nobody, and is done at the next turn."""
    from flow_stage import SECRETIVE

    config = wide(ttl=30, sweep_every=60, max_bytes=1 if step == "evict" else 2**20)
    async with stage(config, faulty=True) as on:
        await idle()
        faults(on).fail(1, operations={step})
        await on.done(1, "one", SECRETIVE)
        await on.done(1, "two", SECRETIVE)
        await trio.sleep(62)
        assert len(heard("store.trouble")) == 1
        await trio.sleep(120)
        assert len(heard("store.trouble")) == 1
        assert select(on.rows, "SELECT count(*) FROM batch_job") == [(0,)]
        assert not on.runner.statistics().erasure_pending
        audit(on.rows, on.runner, settled=True)
        assert (await on.done(1, "three")).status is JobState.DONE


async def test_a_log_that_could_not_be_wiped_is_wiped_later(autojump_clock: object) -> None:
    """As long as a reader keeps the log from being wiped, that is still to do, and is tried at each turn."""
    from flow_stage import SECRETIVE

    class Kept(FaultyStore):
        reader_is_there = True

        async def erase(self, owner: str) -> bool:
            return await super().erase(owner) and not self.reader_is_there

    async with stage(wide(ttl=30, sweep_every=60), wrap=Kept) as on:
        await on.done(1, "one", SECRETIVE)
        await trio.sleep(200)
        assert select(on.rows, "SELECT count(*) FROM batch_job") == [(0,)]
        assert on.runner.statistics().erasure_pending
        Kept.reader_is_there = False
        await trio.sleep(61)
        assert not on.runner.statistics().erasure_pending


async def test_after_a_refused_sweep_the_next_submit_sweeps(autojump_clock: object) -> None:
    """What a refused sweep left is swept after the next submit, not only at the next turn of the clock."""
    async with stage(wide(ttl=10, sweep_every=60), faulty=True) as on:
        old = await on.done(1, "old")
        await trio.sleep(55)
        faults(on).fail(1, operations={"sweep"})
        await trio.sleep(6)  # the sweep of the 60th second is refused
        await on.submit(1, "new")
        await idle()
        assert select(on.rows, "SELECT count(*) FROM batch_job WHERE id = ?", old.id) == [(0,)]


async def test_a_refused_restart_comes_out_of_open_runner(autojump_clock: object) -> None:
    """A `StoreError` of the restart step comes out of `open_runner`, and the store is free again."""
    async with open_store(":memory:") as store:
        faulty = FaultyStore(store, fail_at=1)
        with pytest.raises(StoreError):
            async with open_runner(faulty, ScriptedFetch()):
                raise AssertionError
        async with open_runner(faulty, ScriptedFetch()) as runner:
            await runner.check()


@pytest.mark.parametrize(
    "error", [OSError("disk"), KeyError("x"), RuntimeError(), ExceptionGroup("g", [OSError()])]
)
async def test_whatever_a_store_raises_is_a_store_error(autojump_clock: object, error: Exception) -> None:
    """A store that raises anything at all, once at each step, ends no runner and loses no result."""

    class Odd:
        def __init__(self, store: Any) -> None:
            self._store, self.armed = store, set[str]()

        def __getattr__(self, name: str) -> Any:
            method = getattr(self._store, name)

            async def odd(*args: Any, **kwargs: Any) -> Any:
                if name in self.armed:
                    self.armed.discard(name)
                    raise error
                return await method(*args, **kwargs)

            return odd

    async with stage(wide(max_bytes=1), wrap=Odd) as on:
        odd: Any = on.store
        odd.armed |= {"begin", "record", "lapsed", "evict"}
        assert (await on.done(2)).status is JobState.DONE
        odd.armed |= {"submit", "job", "stop"}
        with pytest.raises(StoreError):
            await on.submit(1, "other")
        with pytest.raises(StoreError):
            await on.runner.job("0" * 32)
        with pytest.raises(StoreError):
            await on.runner.cancel("0" * 32)
        assert (await on.done(2, "other")).status is JobState.DONE
        audit(on.rows, on.runner, settled=True)


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("end", ["done", "cancel", "timeout", "busy"])
@pytest.mark.parametrize("number", range(1, 15))
async def test_a_store_that_fails_at_any_call_loses_nothing(
    autojump_clock: object, number: int, end: str, times: int
) -> None:
    """Whichever call of the store fails: the job ends once, counters fit, each fetch is called once."""
    told = Told()
    fetch = ScriptedFetch(latency=2)
    if end == "busy":
        fetch.busy(1, error=RetryLater(ready=trio.sleep_forever, reason="gate"))
    async with open_store(":memory:") as store:
        faulty = FaultyStore(store)
        config = wide(job_timeout=5 if end == "timeout" else 1_000, ttl=10_000)
        async with stage(config, fetch=fetch, hooks=told, store=store, wrap=lambda _: faulty) as on:
            faulty._passing, faulty._failing = number - 1, times

            async def insist(call: Callable[..., Any], *args: Any) -> Any:
                while True:
                    try:
                        return await call(*args)
                    except StoreError:
                        await trio.sleep(0.25)

            job_id = (await insist(on.runner.submit, ALICE, series(4))).id
            await trio.sleep(3)
            if end in ("cancel", "busy"):
                assert await insist(on.runner.cancel, job_id)
            job = await insist(on.runner.wait, job_id)
            await on.runner.drain()
            wanted = {"done": "done", "cancel": "cancelled", "busy": "cancelled", "timeout": "failed"}[end]
            assert job.status.value == wanted
            assert [values[0] for values in told.of("job")] == ["created", wanted]
            assert len({call.target.url for call in fetch.calls}) == len(fetch.calls)
            assert len(told.of("target")) == job.targets_done
            audit(store, on.runner, settled=True)
            faulty.recover()
        async with open_runner(store, fetch):
            pass


async def test_a_refused_release_does_not_hide_how_the_block_ended(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """A store that can't be released is logged; what the body raised comes out all the same."""
    error = ValueError("mine")
    async with open_store(":memory:") as store:
        with pytest.raises(ValueError, match="mine") as caught:
            async with open_runner(FaultyStore(store, operations={"release"}, fail_at=1), ScriptedFetch()):
                raise error
        assert caught.value is error
        assert [event["step"] for event in heard("store.trouble")] == ["release"]


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_job_that_was_lost_is_let_go(
    autojump_clock: object, heard: Callable[[str], list[Any]], cancelled: bool
) -> None:
    """A job whose rows are another owner's changes no more here; waits end, and the worker goes on."""
    async with stage(fetch=ScriptedFetch(latency=10)) as on:
        job_id = await on.submit(3)
        await trio.sleep(5)
        ended = []

        async def closed(method: Callable[..., Any], *args: Any) -> None:
            with pytest.raises(trio.ClosedResourceError):
                await method(*args)
            ended.append(trio.current_time())

        async def watch() -> None:
            async with on.runner.watch(job_id) as statuses:
                async for _ in statuses:
                    pass

        async with trio.open_nursery() as nursery:
            nursery.start_soon(closed, on.runner.wait, job_id)
            nursery.start_soon(closed, watch)
            await trio.sleep(1)
            if cancelled:
                assert await on.runner.cancel(job_id)
            change(on.rows, "UPDATE batch_job SET owner = 'another' WHERE id = ?", job_id)
            before = select(on.rows, "SELECT * FROM batch_job")
            await on.runner.drain()
        assert ended == [pytest.approx(10)] * 2
        assert select(on.rows, "SELECT * FROM batch_job") == before
        assert [event["job_id"] for event in heard("job.lost")] == [job_id]
        assert on.runner.statistics().running == 0
        assert (await on.done(1, "next")).status is JobState.DONE


async def test_two_refused_steps_of_a_job_are_one_spell(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """While the store refuses both a job's result and its end by timeout, one warning is enough."""
    async with stage(wide(job_timeout=5), fetch=ScriptedFetch(latency=10), faulty=True) as on:
        job_id = await on.submit(2)
        faults(on).fail(operations={"stop", "record"})
        await trio.sleep(100)
        progress = on.runner.progress(job_id)
        assert progress is not None
        assert (progress.reason, progress.since) == ("store", int(on.clock()) - 95)
        faults(on).recover()
        job = await on.runner.wait(job_id)
        assert job is not None
        assert (job.status, job.error, job.targets_done) == (JobState.FAILED, "timeout", 1)
        assert [event["job_id"] for event in heard("store.trouble")] == [job_id]
