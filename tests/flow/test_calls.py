"""From where may a runner be called, and what holds when a call returns or is cancelled?"""

import queue
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing
from flow_stage import ALICE, START, audit, dump, idle, series, stage, wide

from sift_batch import Caller, JobState, Result, Runner, Target, TargetError, open_runner, open_store
from sift_batch.testing import ScriptedFetch

ASYNC_CALLS: dict[str, Callable[[Runner, str], Awaitable[Any]]] = {
    "submit": lambda runner, job_id: runner.submit(ALICE, series(1, "new")),
    "submit again": lambda runner, job_id: runner.submit(ALICE, series(2)),
    "rerun": lambda runner, job_id: runner.rerun(ALICE, job_id),
    "cancel": lambda runner, job_id: runner.cancel(job_id),
    "cancel unknown": lambda runner, job_id: runner.cancel("0" * 32),
    "delete": lambda runner, job_id: runner.delete(job_id),
    "touch": lambda runner, job_id: runner.touch(job_id),
    "job": lambda runner, job_id: runner.job(job_id),
    "job unknown": lambda runner, job_id: runner.job("0" * 32),
    "job no id": lambda runner, job_id: runner.job(None),  # type: ignore[arg-type]
    "status": lambda runner, job_id: runner.status(job_id),
    "jobs": lambda runner, job_id: runner.jobs(),
    "gone": lambda runner, job_id: runner.gone(job_id, caller=ALICE),
    "wait": lambda runner, job_id: runner.wait(job_id),
    "wait unknown": lambda runner, job_id: runner.wait("0" * 32),
    "drain": lambda runner, job_id: runner.drain(),
    "check": lambda runner, job_id: runner.check(),
}


@pytest.mark.parametrize("call", ASYNC_CALLS)
@pytest.mark.parametrize("file", [False, True], ids=["memory", "file"])
async def test_every_async_method_is_a_checkpoint(call: str, file: bool, tmp_path: Any) -> None:
    """Every public async method is a checkpoint when it returns, on a store in memory and in a file."""
    path = tmp_path / "jobs.sift" if file else ":memory:"
    async with (
        open_store(path) as store,
        open_runner(store, ScriptedFetch(), wide(), now=lambda: START) as runner,
    ):
        job_id = (await runner.submit(ALICE, series(2))).id
        await runner.wait(job_id)
        with trio.testing.assert_checkpoints():
            await ASYNC_CALLS[call](runner, job_id)


async def test_every_step_of_a_stream_is_a_checkpoint(autojump_clock: object) -> None:
    """Each step of a stream, ready or not, and its end, is a checkpoint."""
    async with stage() as on:
        job = await on.done(12)
        for job_id in (job.id, "0" * 32):
            for stream in (on.runner.watch(job_id), on.runner.results(job_id)):
                async with stream as steps:
                    over = 0
                    while over < 2:
                        with trio.testing.assert_checkpoints():
                            try:
                                await anext(steps)
                            except StopAsyncIteration:
                                over += 1


@pytest.mark.parametrize("call", [call for call in ASYNC_CALLS if call != "submit again"])
@pytest.mark.parametrize("live", [False, True])
async def test_a_call_in_a_cancelled_scope_has_done_nothing(
    autojump_clock: object, call: str, live: bool
) -> None:
    """A call in a cancelled scope raises `Cancelled`, and not a byte of the store has changed."""
    async with stage(wide(sweep_every=10**6), fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(2)
        if not live:
            await on.runner.wait(job_id)
        await idle()
        on.clock.jump(5)
        before = dump(on.rows)
        with trio.CancelScope() as scope:
            scope.cancel()
            await ASYNC_CALLS[call](on.runner, job_id)
        assert scope.cancelled_caught
        assert dump(on.rows) == before
        assert not on.runner._roster._coming
        await on.runner.drain()
        assert len(await on.runner.jobs()) == 1
        audit(on.rows, on.runner, settled=True)


async def test_calls_from_tasks_inside_and_outside_the_block(autojump_clock: object) -> None:
    """Any task of the run may call, also one that was started before the runner was opened."""
    box: list[Runner] = []
    ready = trio.Event()
    found = []

    async def outside() -> None:
        await ready.wait()
        (runner,) = box
        job_id = (await runner.submit(ALICE, series(2, "outside"))).id
        found.append(await runner.wait(job_id))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(outside)
        async with stage(fetch=ScriptedFetch(latency=1)) as on:
            box.append(on.runner)
            ready.set()
            await idle()
            await on.runner.drain()
            await idle()
    assert found[0] is not None
    assert found[0].status is JobState.DONE


async def test_calls_from_threads() -> None:
    """A worker thread may call through `trio.from_thread`, async methods and plain ones."""
    async with stage() as on:

        def work() -> Any:
            job_id = trio.from_thread.run(on.runner.submit, ALICE, series(2)).id
            assert trio.from_thread.run_sync(on.runner.statistics).workers == 1
            job = trio.from_thread.run(on.runner.wait, job_id)
            assert not trio.from_thread.run(on.runner.cancel, job_id)
            return job

        job = await trio.to_thread.run_sync(work)
        assert job.status is JobState.DONE


def test_guest_mode_works() -> None:
    """The engine drains in guest mode, where another loop owns the main thread."""
    host: queue.Queue[Callable[[], Any]] = queue.Queue()
    outcomes: list[Any] = []

    async def main() -> JobState:
        async with stage(fetch=ScriptedFetch(latency=5)) as on:
            job = await on.done(3)
            with trio.move_on_after(7):
                await on.submit(3, "second")
                await trio.sleep_forever()
            return job.status

    trio.lowlevel.start_guest_run(
        main,
        run_sync_soon_threadsafe=host.put,
        done_callback=outcomes.append,
        clock=trio.testing.MockClock(autojump_threshold=0),
    )
    while not outcomes:
        host.get(timeout=10)()
    assert outcomes[0].unwrap() is JobState.DONE


async def test_a_fetch_may_submit_to_its_own_runner(autojump_clock: object) -> None:
    """A fetch may submit further jobs to the runner that called it; `drain` waits for them too."""
    box: list[Runner] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        depth = int(target.url.rsplit("/", 1)[1])
        if depth < 3:
            child = await box[0].submit(caller, [Target(f"https://host.example/{depth + 1}")])
            return Result("parent", {"child": child.id})
        return Result("leaf")

    async with stage(fetch=fetch) as on:
        box.append(on.runner)
        await on.runner.submit(ALICE, [Target("https://host.example/0")])
        await on.runner.drain()
        assert [job.status for job in await on.runner.jobs()] == [JobState.DONE] * 4


async def test_drain_in_a_fetch_is_refused(autojump_clock: object) -> None:
    """`drain` called in a fetch, or in a task that a fetch started, raises `RuntimeError` at once."""
    box: list[Runner] = []
    errors: list[str] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        async def child() -> None:
            try:
                await box[0].drain()
            except RuntimeError as exc:
                errors.append(str(exc))

        if target.url.endswith("0"):
            await box[0].drain()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
        return Result("")

    async with stage(fetch=fetch) as on:
        box.append(on.runner)
        job = await on.done(2)
        assert (job.status, job.targets_failed) == (JobState.PARTIAL, 1)
        status = await on.runner.status(job.id)
        assert status is not None
        assert status.targets[0].error == errors[0]
        assert "drain" in errors[0]


async def test_a_fetch_may_drain_another_runner(autojump_clock: object) -> None:
    """`drain` of another runner is no business of this one's fetch: it waits as it does for anybody."""
    async with stage(fetch=ScriptedFetch(latency=5)) as inner:

        async def fetch(caller: Caller, target: Target) -> Result:
            await inner.submit(2)
            await inner.runner.drain()
            return Result("")

        async with stage(fetch=fetch) as outer:
            assert (await outer.done(1)).status is JobState.DONE
            assert trio.current_time() == pytest.approx(10)


async def test_a_four_line_serve_can_be_started(autojump_clock: object) -> None:
    """A `serve` of four lines gives the runner to `nursery.start` and ends with its nursery."""
    async with open_store(":memory:") as store:
        fetch = ScriptedFetch(latency=1)

        async def serve(task_status: trio.TaskStatus[Runner] = trio.TASK_STATUS_IGNORED) -> None:
            async with open_runner(store, fetch, wide()) as runner:
                task_status.started(runner)
                await trio.sleep_forever()

        async with trio.open_nursery() as nursery:
            runner: Runner = await nursery.start(serve)
            job_id = (await runner.submit(ALICE, series(3))).id
            job = await runner.wait(job_id)
            assert job is not None
            assert job.status is JobState.DONE
            await runner.submit(ALICE, series(3, "more"))
            await trio.sleep(0.5)
            nursery.cancel_scope.cancel()
        assert trio.current_time() == pytest.approx(4)
        with pytest.raises(trio.ClosedResourceError):
            runner.statistics()


async def test_several_runners_of_one_run(autojump_clock: object) -> None:
    """Runners on different stores work side by side in one run and know nothing of each other."""
    async with stage(fetch=ScriptedFetch(latency=1)) as one, stage(fetch=ScriptedFetch(latency=1)) as two:
        first, second = await one.submit(3), await two.submit(3)
        assert await one.runner.job(second) is None
        assert not await two.runner.cancel(first)
        for on, job_id in ((one, first), (two, second)):
            job = await on.runner.wait(job_id)
            assert job is not None
            assert job.status is JobState.DONE


async def test_wrong_arguments_are_refused_with_a_word(autojump_clock: object) -> None:
    """What can't be a fetch, a config or a caller is refused with a `TypeError` that says what was given."""
    async with open_store(":memory:") as store:
        with pytest.raises(TypeError, match="fetch"):
            async with open_runner(store, None):  # type: ignore[arg-type]
                raise AssertionError
        with pytest.raises(TypeError, match="config"):
            async with open_runner(store, ScriptedFetch(), {}):  # type: ignore[arg-type]
                raise AssertionError
    async with stage() as on:
        for call in (
            lambda: on.runner.submit("alice", series(1)),  # type: ignore[arg-type]
            lambda: on.runner.rerun("alice", "0" * 32),  # type: ignore[arg-type]
            lambda: on.runner.job("0" * 32, caller=7),  # type: ignore[arg-type]
            lambda: on.runner.cancel("0" * 32, caller=b"alice"),  # type: ignore[arg-type]
        ):
            with pytest.raises(TypeError):
                await call()


async def test_check_writes_and_reads_back(autojump_clock: object) -> None:
    """`check` passes on a sound store and changes nothing that a reader can see."""
    async with stage() as on:
        job = await on.done(1)
        await on.runner.check()
        assert await on.runner.job(job.id) == job
        assert await on.runner.jobs() == [job]


async def test_every_failure_of_a_job_can_be_read(autojump_clock: object) -> None:
    """When every target of a job fails, the job is failed and each error can be read."""
    fetch = ScriptedFetch(fail={index: TargetError(f"no {index}", hint="try") for index in range(5)})
    async with stage(fetch=fetch) as on:
        job = await on.done(5)
        assert (job.status, job.targets_failed, job.error) == (JobState.FAILED, 5, "")
        status = await on.runner.status(job.id)
        assert status is not None
        assert [target.error for target in status.targets] == [f"no {index}" for index in range(5)]
