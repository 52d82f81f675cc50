"""What still works while a runner closes, and after?"""
# ruff: noqa: PT012 - what raises here is a whole block

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from flow_stage import ALICE, audit, idle, left_clean, select, series, stage, wide

from sift_batch import (
    JobState,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch


async def test_while_it_closes_everything_but_new_work_goes_on(autojump_clock: object) -> None:
    """During the grace cancel, delete, touch and reads work; submit and rerun are refused."""
    async with left_clean() as store:
        with trio.CancelScope() as scope:
            async with open_runner(store, ScriptedFetch(latency=10), wide(workers=2)) as runner:
                old = await runner.wait((await runner.submit(ALICE, series(1, "old"))).id)
                assert old is not None
                job_id = (await runner.submit(ALICE, series(5))).id
                queued = (await runner.submit(ALICE, series(5, "q"))).id
                await trio.sleep(1)
                scope.cancel()
                with trio.CancelScope(shield=True):
                    await idle()
                    assert await runner.job(job_id) is not None
                    assert await runner.status(job_id) is not None
                    assert len(await runner.jobs()) == 3
                    await runner.touch(old.id)
                    await runner.check()
                    assert runner.statistics().in_flight == 2
                    assert runner.progress(job_id) is not None
                    assert await runner.delete(old.id)
                    assert await runner.gone(old.id, caller="alice") == "deleted"
                    assert await runner.cancel(job_id)
                    assert await runner.cancel(queued)
                    # A cancelled job with a fetch in flight settles here, so it can be waited for.
                    job = await runner.wait(job_id)
                    assert job is not None
                    assert (job.status, job.targets_done) == (JobState.CANCELLED, 1)


async def test_a_job_between_two_targets_settles_at_once_when_it_is_cancelled_in_the_grace(
    autojump_clock: object,
) -> None:
    """Once its fetch in flight was stored, a job that is cancelled in the grace waits for nothing more."""
    async with left_clean() as store:
        with trio.CancelScope() as scope:
            site = "https://host.example"
            fetch = ScriptedFetch(latency={f"{site}/short/0": 2, f"{site}/long/0": 20})
            async with open_runner(store, fetch, wide(workers=2)) as runner:
                job_id = (await runner.submit(ALICE, series(3, "short"))).id
                await idle()
                await runner.submit(ALICE, series(1, "long"))
                await trio.sleep(1)
                scope.cancel()
                with trio.CancelScope(shield=True):
                    await trio.sleep(2)
                    assert runner.statistics().in_flight == 1
                    assert await runner.cancel(job_id)
                    job = await runner.job(job_id)
                    assert job is not None
                    assert (job.settled, job.targets_done) == (True, 1)


async def test_a_wait_ends_with_the_last_fetch_of_its_job_and_not_of_others(autojump_clock: object) -> None:
    """A job that goes no further in the grace is not waited for, though fetches of other jobs go on."""
    async with left_clean() as store:
        site = "https://host.example"
        fetch = ScriptedFetch(latency={f"{site}/short/0": 2, f"{site}/long/0": 20})
        async with trio.open_nursery() as nursery:
            async with open_runner(store, fetch, wide(workers=2)) as runner:
                job_id = (await runner.submit(ALICE, series(3, "short"))).id
                await runner.submit(ALICE, series(1, "long"))
                ended: list[float] = []

                async def wait() -> None:
                    with pytest.raises(trio.ClosedResourceError):
                        await runner.wait(job_id)
                    ended.append(trio.current_time())

                nursery.start_soon(wait)
                await trio.sleep(1)
            assert trio.current_time() == pytest.approx(20)
        assert ended == [pytest.approx(2)]


async def test_waits_end_as_soon_as_the_job_can_not_settle_here(autojump_clock: object) -> None:
    """Closing ends the wait for a queued job at once, for a running one when its fetch in flight is over."""
    ended: dict[str, float] = {}
    async with open_store(":memory:") as store, trio.open_nursery() as nursery:
        async with open_runner(store, ScriptedFetch(latency=10), wide(), now=lambda: 1e9) as runner:
            running = (await runner.submit(ALICE, series(3, "running"))).id
            queued = (await runner.submit(ALICE, series(3, "queued"))).id

            async def closed(name: str, use: Callable[[], Any]) -> None:
                with pytest.raises(trio.ClosedResourceError):
                    await use()
                ended[name] = trio.current_time()

            async def watch(job_id: str) -> None:
                async with runner.watch(job_id) as statuses:
                    async for _ in statuses:
                        pass

            async def results(job_id: str) -> None:
                async with runner.results(job_id) as finished:
                    async for target in finished:
                        seen.append(target.idx)  # noqa: PERF401 - as they come

            seen: list[int] = []
            nursery.start_soon(closed, "wait queued", lambda: runner.wait(queued))
            nursery.start_soon(closed, "watch queued", lambda: watch(queued))
            nursery.start_soon(closed, "results queued", lambda: results(queued))
            nursery.start_soon(closed, "drain", runner.drain)
            nursery.start_soon(closed, "wait running", lambda: runner.wait(running))
            nursery.start_soon(closed, "watch running", lambda: watch(running))
            nursery.start_soon(closed, "results running", lambda: results(running))
            await trio.sleep(4)
        await idle()
        assert seen == [0]  # stored during the grace, and given first
        for name in ("wait queued", "watch queued", "results queued", "drain"):
            assert ended[name] == pytest.approx(4)
        for name in ("wait running", "watch running", "results running"):
            assert ended[name] == pytest.approx(10)


@pytest.mark.parametrize("grace", [0, 5])
async def test_nobody_waits_for_ever_for_a_cancelled_job_whose_fetch_was_cut(
    autojump_clock: object, grace: int
) -> None:
    """When the grace ends before a cancelled job's fetch does, its waiters are told that it is over."""
    ended = []
    async with left_clean() as store:
        with trio.fail_after(1_000):
            async with trio.open_nursery() as nursery:
                fetch = ScriptedFetch(hang=[0])
                async with open_runner(store, fetch, wide(shutdown_grace=grace)) as runner:
                    job_id = (await runner.submit(ALICE, series(2))).id
                    await trio.sleep(1)
                    assert await runner.cancel(job_id)

                    async def closed(name: str, method: Any, *args: Any) -> None:
                        with pytest.raises(trio.ClosedResourceError):
                            await method(*args)
                        ended.append(name)

                    async def watch() -> None:
                        async with runner.watch(job_id) as statuses:
                            async for _ in statuses:
                                pass

                    nursery.start_soon(closed, "wait", runner.wait, job_id)
                    nursery.start_soon(closed, "drain", runner.drain)
                    nursery.start_soon(closed, "watch", watch)
                    await trio.sleep(1)
        assert sorted(ended) == ["drain", "wait", "watch"]
        assert trio.current_time() == pytest.approx(2 + grace)
        async with open_runner(store, ScriptedFetch()) as runner:
            job = await runner.job(job_id)
            assert job is not None
            assert job.settled
            assert job.status is JobState.CANCELLED


async def test_after_the_exit_every_method_raises(autojump_clock: object) -> None:
    """After the block every method, async or not, raises `trio.ClosedResourceError`."""
    async with stage() as on:
        job_id = (await on.done(1)).id
        runner = on.runner
    for call in (
        lambda: runner.submit(ALICE, series(1)),
        lambda: runner.rerun(ALICE, job_id),
        lambda: runner.cancel(job_id),
        lambda: runner.delete(job_id),
        lambda: runner.touch(job_id),
        lambda: runner.job(job_id),
        lambda: runner.status(job_id),
        lambda: runner.jobs(),
        lambda: runner.gone(job_id, caller="alice"),
        lambda: runner.wait(job_id),
        lambda: runner.drain(),
        lambda: runner.check(),
    ):
        with pytest.raises(trio.ClosedResourceError):
            await call()
    for look in (
        lambda: runner.watch(job_id),
        lambda: runner.results(job_id),
        lambda: runner.progress(job_id),
        lambda: runner.statistics(),
    ):
        with pytest.raises(trio.ClosedResourceError):
            look()
    assert "Runner" in repr(runner)


@pytest.mark.parametrize("kind", ["watch", "results"])
async def test_a_stream_that_outlives_its_runner_raises(autojump_clock: object, kind: str) -> None:
    """A step of a stream whose runner and store are closed raises `trio.ClosedResourceError`."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(20)
        stream = await getattr(on.runner, kind)(job_id).__aenter__()
        await stream.__anext__()
    with pytest.raises(trio.ClosedResourceError):
        async for _ in stream:
            pass


async def test_a_runner_in_a_cancelled_scope_is_not_opened(autojump_clock: object) -> None:
    """Opening in a cancelled scope raises `Cancelled`, and the store is free."""
    async with left_clean() as store:
        with trio.CancelScope() as scope:
            scope.cancel()
            async with open_runner(store, ScriptedFetch()):
                raise AssertionError
        assert scope.cancelled_caught


async def test_a_runner_can_be_opened_again_and_again(autojump_clock: object) -> None:
    """However a runner was left, the store is free for the next one, in the same task at once."""
    async with left_clean() as store:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError):
                async with open_runner(store, ScriptedFetch(latency=1), wide()) as runner:
                    await runner.submit(ALICE, series(2))
                    raise ZeroDivisionError
            with trio.move_on_after(0.5):
                async with open_runner(store, ScriptedFetch(latency=1), wide()) as runner:
                    await runner.submit(ALICE, series(2, "other"))
                    await trio.sleep_forever()


async def test_a_store_step_that_has_begun_is_finished(autojump_clock: object) -> None:
    """A result that is on its way into the store when the grace ends is stored whole."""

    class Slow:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        async def record(self, *args: Any, **kwargs: Any) -> Any:
            with trio.CancelScope(shield=True):
                await trio.sleep(10)
                return await self._store.record(*args, **kwargs)

    async with left_clean() as store:
        slow: Any = Slow(store)
        async with open_runner(slow, ScriptedFetch(), wide(shutdown_grace=3)) as runner:
            await runner.submit(ALICE, series(1))
            await trio.sleep(1)
        assert select(store, "SELECT status, targets_done FROM batch_job") == [("done", 1)]
        audit(store, settled=True)


async def test_the_grace_ends_the_offers_of_a_store_that_refuses(autojump_clock: object) -> None:
    """A result that the store refuses is offered until the grace is over, and then given up."""
    async with left_clean() as store:
        async with stage(wide(shutdown_grace=20), store=store, faulty=True) as on:
            on.store.fail(operations={"record"})  # type: ignore[attr-defined]
            await on.submit(2)
            await trio.sleep(10)
        assert trio.current_time() == pytest.approx(30)
        audit(store)
