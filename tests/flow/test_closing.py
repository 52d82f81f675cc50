"""How does a runner end, whatever ends it, and what comes out of the block?"""

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from flow_stage import ALICE, Told, audit, idle, select, series, stage, wide

from sift_batch import (
    Caller,
    JobState,
    Result,
    RetryLater,
    Store,
    StoreInUseError,
    Target,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch


@asynccontextmanager
async def left_clean() -> AsyncIterator[Store]:
    """Give a store in memory; afterwards no task is left over, and another runner may have it."""
    root = trio.lowlevel.current_root_task()
    before = _tasks(root)
    async with open_store(":memory:") as store:
        yield store
        await trio.lowlevel.checkpoint()
        assert _tasks(root) == before
        async with open_runner(store, ScriptedFetch()):
            audit(store, settled=True)


def _tasks(task: Any) -> int:
    return 1 + sum(_tasks(child) for nursery in task.child_nurseries for child in nursery.child_tasks)


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
                assert job is not None and (job.status, job.error) == (JobState.FAILED, "restart")


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
        assert seen[0] is not None and seen[0].status is JobState.DONE


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
                    assert job is not None and job.targets_done == 1
        assert scope.cancel_called
        assert trio.current_time() == pytest.approx(100)
        assert len(fetch.calls) == 1


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


STUBBORN = 100.0


async def stubborn(caller: Caller, target: Target) -> Result:
    """Take its time, whoever cancels it."""
    with trio.CancelScope(shield=True):
        await trio.sleep(STUBBORN)
    return Result("at last")


async def test_leaving_waits_for_a_fetch_that_can_not_be_cancelled(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """Leaving waits for a shielded fetch, and a warning with the job's id says so 5 s after the grace."""
    async with left_clean() as store:
        async with open_runner(store, stubborn, wide(shutdown_grace=10)) as runner:
            job_id = (await runner.submit(ALICE, series(2))).id
            await trio.sleep(1)
            async with trio.open_nursery() as nursery:
                nursery.cancel_scope.shield = True

                async def look() -> None:
                    await trio.sleep(14.5)
                    assert not heard("fetch.stuck")
                    await trio.sleep(1)
                    assert [event["job_id"] for event in heard("fetch.stuck")] == [job_id]

                # From outside of the block, since the block is being left meanwhile.
                trio.lowlevel.spawn_system_task(look)
        assert trio.current_time() == pytest.approx(STUBBORN)
        assert len(heard("fetch.stuck")) == 1


async def test_no_fetch_is_called_stuck_that_reacts_to_its_cancellation(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """A fetch that ends within 5 s of its cancellation is no reason for a warning, however closing began."""

    async def slow_to_go(caller: Caller, target: Target) -> Result:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(4)
        raise AssertionError

    async def fatal(caller: Caller, target: Target) -> Result:
        await trio.sleep(1)
        raise KeyboardInterrupt

    fetch = ScriptedFetch(results={0: slow_to_go, "https://host.example/fatal/0": fatal})
    async with left_clean() as store:
        async with open_runner(store, fetch, wide(shutdown_grace=10)) as runner:
            await runner.submit(ALICE, series(1))
            await trio.sleep(1)
        with pytest.raises(KeyboardInterrupt):
            async with open_runner(store, fetch, wide(workers=2)) as runner:
                await runner.submit(ALICE, series(1))
                await runner.submit(ALICE, series(1, "fatal"))
                await trio.sleep_forever()
        assert not heard("fetch.stuck")


async def test_a_stubborn_fetch_keeps_its_worker_and_is_warned_of_while_running(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """Past its target's time a shielded fetch keeps its worker; one warning comes 5 s after; its result counts."""
    async with stage(wide(target_timeout=20), fetch=stubborn) as on:
        job_id = await on.submit(1)
        other = await on.submit(1, "other")
        await trio.sleep(24)
        assert not heard("fetch.stuck")
        await trio.sleep(2)
        assert [event["job_id"] for event in heard("fetch.stuck")] == [job_id]
        await trio.sleep(70)
        assert (await on.job(other)).status is JobState.QUEUED
        job = await on.runner.wait(job_id)
        assert job is not None and job.status is JobState.DONE
        assert len(heard("fetch.stuck")) == 1
        await on.runner.drain()
        assert len(heard("fetch.stuck")) == 2


async def test_a_fetch_that_ignores_its_cancellation_and_returns_ends_the_runner(
    autojump_clock: object,
) -> None:
    """A fetch that swallows its cancellation at the end of the grace holds nothing up and breaks nothing."""

    async def swallows(caller: Caller, target: Target) -> Result:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return Result("as if nothing happened")
        raise AssertionError

    async with left_clean() as store:
        async with open_runner(store, swallows, wide(shutdown_grace=3)) as runner:
            await runner.submit(ALICE, series(3))
            await trio.sleep(1)
        assert trio.current_time() == pytest.approx(4)
        audit(store)


# ---- what must end the program


def _in_group(error: BaseException, depth: int) -> BaseException:
    for _ in range(depth):
        error = BaseExceptionGroup("nursery", [ValueError("beside it"), error])
    return error


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("error", [KeyboardInterrupt("now"), SystemExit(7)], ids=["interrupt", "exit"])
async def test_what_ends_the_program_comes_out_of_a_fetch_bare(
    autojump_clock: object, error: BaseException, depth: int
) -> None:
    """A KeyboardInterrupt or SystemExit in a fetch, in groups too, closes without grace and comes out bare."""
    fetch = ScriptedFetch(hang=["https://host.example/other/0"], latency=1)

    async def fatal(caller: Caller, target: Target) -> Result:
        raise _in_group(error, depth)

    fetch.answer("https://host.example/page/0", fatal)
    async with left_clean() as store:
        with pytest.raises(type(error)) as caught:
            async with open_runner(store, fetch, wide(workers=3)) as runner:
                await runner.submit(ALICE, series(1, "other"))
                await runner.submit(ALICE, series(2))
                await runner.submit(ALICE, series(2, "third"))
                await trio.sleep_forever()
        assert caught.value is error
        assert trio.current_time() == pytest.approx(1)
        (other,) = [call for call in fetch.calls if "other" in call.target.url]
        assert isinstance(other.error, trio.Cancelled)
        audit(store)


async def test_two_fatal_fetches_give_one_bare_exception(autojump_clock: object) -> None:
    """When several fetches in flight raise KeyboardInterrupt, one comes out, and it is bare."""
    async with left_clean() as store:
        with pytest.raises(KeyboardInterrupt):
            async with open_runner(
                store, ScriptedFetch(fail={0: KeyboardInterrupt}, latency=1), wide(workers=3)
            ) as runner:
                for name in "abc":
                    await runner.submit(ALICE, series(1, name))
                await trio.sleep_forever()


@pytest.mark.parametrize("where", ["submit", "ended", "queued", "in_flight", "swept", "stored"])
async def test_an_interrupt_in_the_engines_own_tasks_comes_out_bare(
    autojump_clock: object, where: str
) -> None:
    """A KeyboardInterrupt that hits any of the engine's tasks (here in a hook) comes out bare."""

    class Hit(Told):
        def __getattribute__(self, name: str) -> Any:
            if name == where and len(self.of("depth")) > 1:
                raise KeyboardInterrupt
            return super().__getattribute__(name)

    async with left_clean() as store:
        hit = Hit()
        with pytest.raises(KeyboardInterrupt):
            async with stage(wide(ttl=10), store=store, hooks=hit) as on:
                if where == "submit":
                    raise KeyboardInterrupt
                await on.done(1)
                await trio.sleep_forever()


async def test_an_interrupt_in_a_fetch_beats_a_cancelled_scope(autojump_clock: object) -> None:
    """A KeyboardInterrupt of a fetch comes out even when the surrounding scope is cancelled as well."""
    async with left_clean() as store:
        fetch = ScriptedFetch(fail={0: KeyboardInterrupt}, latency=5)
        with pytest.raises(KeyboardInterrupt), trio.move_on_after(2):
            async with open_runner(store, fetch, wide()) as runner:
                await runner.submit(ALICE, series(1))
                await trio.sleep_forever()


async def test_an_interrupt_in_a_fetch_ends_the_waits_of_others(autojump_clock: object) -> None:
    """After a KeyboardInterrupt in a fetch, waits and drains of tasks outside the block end as closed."""
    ended = []
    async with open_store(":memory:") as store, trio.open_nursery() as nursery:
        with pytest.raises(KeyboardInterrupt):
            async with open_runner(
                store, ScriptedFetch(fail={0: KeyboardInterrupt}, latency=5), wide()
            ) as runner:
                job_id = (await runner.submit(ALICE, series(2))).id

                async def closed(name: str, method: Any, *args: Any) -> None:
                    with pytest.raises(trio.ClosedResourceError):
                        await method(*args)
                    ended.append(name)

                nursery.start_soon(closed, "wait", runner.wait, job_id)
                nursery.start_soon(closed, "drain", runner.drain)
                await trio.sleep_forever()
        await idle()
        assert sorted(ended) == ["drain", "wait"]
        nursery.cancel_scope.cancel()


def test_a_ctrl_c_during_the_grace_ends_it_at_once() -> None:
    """A KeyboardInterrupt during the grace ends it: fetches are cancelled, and it comes out bare."""
    times = []

    async def main() -> None:
        async with left_clean() as store:
            fetch = ScriptedFetch(hang=[0])
            async with trio.open_nursery() as nursery:

                async def interrupt() -> None:
                    await trio.sleep(5)
                    signal.raise_signal(signal.SIGINT)

                nursery.start_soon(interrupt)
                try:
                    async with open_runner(store, fetch, wide(shutdown_grace=1_000)) as runner:
                        await runner.submit(ALICE, series(1))
                        await trio.sleep(1)
                except KeyboardInterrupt:
                    times.append(trio.current_time())

    trio.run(
        main,
        clock=trio.testing.MockClock(autojump_threshold=0),
        restrict_keyboard_interrupt_to_checkpoints=True,
    )
    assert times == [pytest.approx(5)]


def test_a_second_ctrl_c_ends_the_grace_that_the_first_began() -> None:
    """Ctrl-C in the body begins the closing with its grace; a second one ends the grace."""
    times: list[float] = []

    async def main() -> None:
        async with left_clean() as store:
            fetch = ScriptedFetch(hang=[0])

            async def interrupts() -> None:
                for _ in range(2):
                    await trio.sleep(5)
                    signal.raise_signal(signal.SIGINT)

            trio.lowlevel.spawn_system_task(interrupts)
            with pytest.raises(KeyboardInterrupt):
                async with open_runner(store, fetch, wide(shutdown_grace=1_000)) as runner:
                    await runner.submit(ALICE, series(1))
                    await trio.sleep_forever()
            times.append(trio.current_time())

    trio.run(
        main,
        clock=trio.testing.MockClock(autojump_threshold=0),
        restrict_keyboard_interrupt_to_checkpoints=True,
    )
    assert times == [pytest.approx(10)]


# ---- after closing


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
                    assert job is not None and (job.status, job.targets_done) == (JobState.CANCELLED, 1)


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
                        seen.append(target.idx)

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
            assert job is not None and job.settled and job.status is JobState.CANCELLED


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
