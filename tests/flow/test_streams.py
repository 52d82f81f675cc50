"""What does a reader get while a job runs?"""
# ruff: noqa: PT012, PERF401 - streams are read step by step on purpose

import gc
from typing import Any

import pytest
import trio
from flow_stage import ALICE, BOB, Stage, audit, idle, series, stage, wide

from sift_batch import Job, JobState, JobStatus, StoreError, TargetStatus, open_runner, open_store
from sift_batch.testing import FaultyStore, ScriptedFetch

KINDS = ["watch", "results"]


async def all_of(stream: Any) -> list[Any]:
    """Return all steps of a stream."""
    async with stream as steps:
        return [step async for step in steps]


def nobody_follows(on: Stage) -> None:
    """Check that the runner remembers no reader."""
    assert not on.runner._feeds._feeds


async def test_watch_yields_at_once_and_at_each_new_version(autojump_clock: object) -> None:
    """`watch` gives the state at once, then each new version as it comes, to the settled one."""
    seen: list[tuple[float, JobStatus]] = []
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(3)
        async with on.runner.watch(job_id) as statuses:
            async for status in statuses:
                seen.append((trio.current_time(), status))
        assert [time for time, _ in seen[-3:]] == pytest.approx([1, 2, 3])
        versions = [status.job.version for _, status in seen]
        assert versions == sorted(set(versions))
        assert [status.job.targets_done for _, status in seen][-4:] == [0, 1, 2, 3]
        assert seen[0][0] == 0
        last = seen[-1][1]
        assert last.job.settled
        assert last.job.status is JobState.DONE
        assert all(target.result is None for _, status in seen for target in status.targets)
        nobody_follows(on)


async def test_version_rises_by_one_with_each_stored_change(autojump_clock: object) -> None:
    """A reader who keeps up sees each version once: start, each target, end; a moved lease is none."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        blocker = await on.submit(1, "blocker")
        job_id = await on.submit(3)
        versions = []
        async with on.runner.watch(job_id) as statuses:
            async for status in statuses:
                versions.append(status.job.version)
                await on.runner.touch(job_id)
        assert versions == list(range(versions[0], versions[0] + 5))
        assert (await on.job(blocker)).status is JobState.DONE


async def test_a_slow_reader_gets_the_latest_and_no_backlog(autojump_clock: object) -> None:
    """A reader that was away finds one step waiting, with the state of now; nothing is slowed down by it."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(20)
        async with on.runner.watch(job_id) as statuses:
            await anext(statuses)
            await trio.sleep(10.5)
            status = await anext(statuses)
            assert status.job.targets_done == 10
            await trio.sleep(50)
            status = await anext(statuses)
            assert status.job.settled
            with pytest.raises(StopAsyncIteration):
                await anext(statuses)
            with pytest.raises(StopAsyncIteration):
                await anext(statuses)
        job = await on.job(job_id)
        assert job.finished_at == job.created_at + 20


async def test_watch_ends_with_the_settled_state_and_not_with_the_terminal_one(
    autojump_clock: object,
) -> None:
    """After a cancel `watch` gives the cancelled state, goes on, and ends once the fetch is stored."""
    async with stage(fetch=ScriptedFetch(latency=10)) as on:
        job_id = await on.submit(3)
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(on.runner.cancel, job_id)
            seen = await all_of(on.runner.watch(job_id))
        states = [(status.job.status, status.job.settled, status.job.targets_done) for status in seen]
        assert states[-2:] == [(JobState.CANCELLED, False, 0), (JobState.CANCELLED, True, 1)]


async def test_results_come_once_in_order_as_they_come(autojump_clock: object) -> None:
    """`results` gives each finished target once, in `idx` order, with its result, when it is stored."""
    seen: list[tuple[float, TargetStatus]] = []
    fetch = ScriptedFetch(latency=1, fail=[2])
    async with stage(fetch=fetch) as on:
        job_id = await on.submit(20)
        async with on.runner.results(job_id) as targets:
            async for target in targets:
                seen.append((trio.current_time(), target))
        assert [target.idx for _, target in seen] == list(range(20))
        assert [time for time, _ in seen] == pytest.approx([1.0 + index for index in range(20)])
        for _, target in seen:
            if target.idx == 2:
                assert (target.status.value, target.error) == ("failed", "scripted failure")
            else:
                assert target.result is not None
                assert target.result.content == f"content of {target.url}"
        nobody_follows(on)


@pytest.mark.parametrize("start", [0, 1, 7, 8, 9, 19, 20, 21, 10**30])
async def test_results_resume_at_an_index(autojump_clock: object, start: int) -> None:
    """`start` gives what is left from there on, while the job runs and after."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(20)
        during = await all_of(on.runner.results(job_id, start=start))
        await on.runner.drain()
        after = await all_of(on.runner.results(job_id, start=start))
        assert (
            [target.idx for target in during] == [target.idx for target in after] == list(range(20))[start:]
        )


@pytest.mark.parametrize("start", [-1, "0", None, 1.0, True])
async def test_an_absurd_start_is_refused(autojump_clock: object, start: Any) -> None:
    """A start that is no whole number of at least 0 is refused at once."""
    async with stage() as on:
        with pytest.raises((TypeError, ValueError)):
            on.runner.results("0" * 32, start=start)


async def test_results_pass_over_what_never_finished(autojump_clock: object) -> None:
    """Once the job has settled, `results` passes over what was never fetched and ends."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(20)
        async with on.runner.results(job_id) as targets:
            seen = [(await anext(targets)).idx for _ in range(3)]
            await on.runner.cancel(job_id)
            seen += [target.idx async for target in targets]
        assert seen == [0, 1, 2, 3]
        assert [target.idx for target in await all_of(on.runner.results(job_id))] == seen


async def test_results_of_a_rerun_are_in_order(autojump_clock: object) -> None:
    """The results of a rerun come in `idx` order, whether they were carried over or fetched again."""
    fetch = ScriptedFetch(latency=1, fail=[1, 3, 12])
    async with stage(fetch=fetch) as on:
        first = await on.done(14)
        for index in (1, 3, 12):
            fetch.answer(index, "second time")
        again = (await on.runner.rerun(ALICE, first.id)).id
        seen = await all_of(on.runner.results(again))
        assert [target.idx for target in seen] == list(range(14))
        contents = [target.result.content for target in seen if target.result]
        assert [contents[index] for index in (1, 3, 12)] == ["second time"] * 3
        assert len(fetch.calls) == 17
        audit(on.rows, on.runner, settled=True)


async def test_wait_returns_the_settled_job(autojump_clock: object) -> None:
    """`wait` returns once the job has settled, at once when it has already."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(3)
        job = await on.runner.wait(job_id)
        assert trio.current_time() == pytest.approx(3)
        assert job == await on.runner.job(job_id) == await on.runner.wait(job_id, caller="alice")
        nobody_follows(on)


@pytest.mark.parametrize("job_id", ["0" * 32, "", "a/b", "\ud800", "x" * 10_000, None, 7, b"0"])
async def test_an_unknown_id_ends_everything_at_once(autojump_clock: object, job_id: Any) -> None:
    """An id that is not there, or is no id at all, is waited for by nobody: None, and empty streams."""
    async with stage() as on:
        assert await on.runner.wait(job_id) is None
        assert await on.runner.job(job_id) is None
        assert await on.runner.status(job_id) is None
        assert await all_of(on.runner.watch(job_id)) == []
        assert await all_of(on.runner.results(job_id)) == []
        assert on.runner.progress(job_id) is None
        assert not await on.runner.cancel(job_id)
        assert not await on.runner.delete(job_id)
        await on.runner.touch(job_id)
        assert trio.current_time() == 0
        nobody_follows(on)


async def test_another_callers_job_is_an_unknown_id(autojump_clock: object) -> None:
    """Every by-id call with another caller's name answers as for an unknown id, while the job is live too."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(3)
        await trio.sleep(0.5)
        for caller in (BOB, "bob", "", "alice ", "ALICE", "\0", "\ud800", "x" * 100_000):
            assert await on.runner.wait(job_id, caller=caller) is None
            assert await on.runner.job(job_id, caller=caller) is None
            assert await on.runner.status(job_id, caller=caller) is None
            assert await all_of(on.runner.watch(job_id, caller=caller)) == []
            assert await all_of(on.runner.results(job_id, caller=caller)) == []
            assert on.runner.progress(job_id, caller=caller) is None
            assert not await on.runner.delete(job_id, caller=caller)
            assert not await on.runner.cancel(job_id, caller=caller)
            assert await on.runner.jobs(caller) == []
            assert await on.runner.gone(job_id, caller=caller) is None
        assert (await on.runner.wait(job_id, caller=ALICE)) is not None


async def take_away(on: Stage, job_id: str, how: str) -> None:
    """Let a settled job go."""
    if how == "deleted":
        assert await on.runner.delete(job_id)
    elif how == "lapsed":
        on.clock.jump(10**6)
    else:
        await on.done(1, "newer")
        await idle()
        assert await on.runner.gone(job_id, caller=ALICE) == "budget"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["deleted", "lapsed", "evicted"])
async def test_a_job_that_goes_while_it_is_read_raises(autojump_clock: object, kind: str, how: str) -> None:
    """A job that is evicted, deleted or lapses while a stream reads it raises `LookupError` there."""
    async with stage(wide(max_bytes=1 if how == "evicted" else 2**20), fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(20)
        async with getattr(on.runner, kind)(job_id) as steps:
            await anext(steps)
            await on.runner.wait(job_id)
            await take_away(on, job_id, how)
            with pytest.raises(LookupError):
                for _ in range(30):
                    await anext(steps)
            with pytest.raises(LookupError):
                await anext(steps)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_parked_reader_hears_that_its_job_went(autojump_clock: object, kind: str) -> None:
    """A stream that waits for news raises `LookupError` in the moment in which the job is deleted."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(2)
        ended = []

        async def read() -> None:
            with pytest.raises(LookupError):
                async with getattr(on.runner, kind)(job_id) as steps:
                    async for _ in steps:
                        # Away while the job settles and is deleted.
                        await trio.sleep(5)
            ended.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await on.runner.wait(job_id)
            assert await on.runner.delete(job_id)
        assert ended == [pytest.approx(5 if kind == "watch" else 6)]


async def test_a_wait_that_has_seen_the_job_gets_it(autojump_clock: object) -> None:
    """A `wait` gets the settled job even if it is deleted or evicted in that very moment."""
    waited: list[Job | None] = []
    async with stage(wide(max_bytes=1, workers=2), fetch=ScriptedFetch(latency=1)) as on:
        ids = [await on.submit(1, f"job {index}") for index in range(6)]

        async def wait(job_id: str) -> None:
            waited.append(await on.runner.wait(job_id))

        async def delete(job_id: str) -> None:
            # All the turns of the run loop in which the last jobs settle.
            await trio.sleep(3)
            for _ in range(50):
                await on.runner.delete(job_id)

        async with trio.open_nursery() as nursery:
            for job_id in ids:
                nursery.start_soon(wait, job_id)
            nursery.start_soon(delete, ids[-1])
        assert all(job is not None and job.settled for job in waited)
        assert sorted(job.id for job in waited if job) == sorted(ids)
        assert len(await on.runner.jobs()) <= 1


async def test_breaking_out_costs_nothing(autojump_clock: object) -> None:
    """Breaking out of a stream, raising in it or never reading it leaves nothing behind and stops nothing."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(10)
        for kind in KINDS:
            async with getattr(on.runner, kind)(job_id) as steps:
                async for _ in steps:
                    break
            async with getattr(on.runner, kind)(job_id):
                pass
            with pytest.raises(ZeroDivisionError):
                async with getattr(on.runner, kind)(job_id) as steps:
                    async for _ in steps:
                        raise ZeroDivisionError
            with trio.move_on_after(0.5):
                async with getattr(on.runner, kind)(job_id) as steps:
                    async for _ in steps:
                        pass
            nobody_follows(on)
            # Not even entered, and dropped.
            getattr(on.runner, kind)(job_id)
        gc.collect()
        nobody_follows(on)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.targets_done == 10


async def test_an_abandoned_stream_holds_up_nobody(autojump_clock: object) -> None:
    """A stream that was entered and is never read again costs the job nothing."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(10)
        async with on.runner.watch(job_id), on.runner.results(job_id):
            job = await on.runner.wait(job_id)
        assert job is not None
        assert job.finished_at == job.created_at + 10
        nobody_follows(on)


async def test_a_closed_stream_is_over(autojump_clock: object) -> None:
    """A stream that is read before its block or after it raises: it is never taken for a whole one."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(3)
        for kind in KINDS:
            stream = getattr(on.runner, kind)(job_id)
            with pytest.raises(RuntimeError, match="async with"):
                await anext(stream)
            async with stream as steps:
                await anext(steps)
            with pytest.raises(trio.ClosedResourceError):
                await anext(steps)
            with pytest.raises(RuntimeError, match="once"):
                await stream.__aenter__()


async def test_a_stream_that_gave_everything_ends_whole(autojump_clock: object) -> None:
    """Once the last target was given, the stream ends, even if the job is deleted in that moment."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(3)
        async with on.runner.results(job_id) as results:
            for _ in range(3):
                await anext(results)
            await on.runner.wait(job_id)
            assert await on.runner.delete(job_id)
            with pytest.raises(StopAsyncIteration):
                await anext(results)


async def test_many_readers_of_one_job_all_get_everything(autojump_clock: object) -> None:
    """Fifty readers of one job all see it to its end."""
    ends: list[tuple[str, int]] = []
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(10)

        async def read(kind: str) -> None:
            if kind == "wait":
                job = await on.runner.wait(job_id)
                assert job is not None
                ends.append((kind, job.targets_done))
            else:
                seen = await all_of(getattr(on.runner, kind)(job_id))
                ends.append((kind, len(seen) if kind == "results" else seen[-1].job.targets_done))

        async with trio.open_nursery() as nursery:
            for index in range(51):
                nursery.start_soon(read, ["wait", "watch", "results"][index % 3])
        assert [count for _, count in ends] == [10] * 51
        nobody_follows(on)


async def test_one_reading_of_a_change_serves_all_who_watch(autojump_clock: object) -> None:
    """However many watch a job, the store is asked for each change as often as for one of them."""
    async with stage(wide(sweep_every=10**6), fetch=ScriptedFetch(latency=1), faulty=True) as on:
        assert isinstance(on.store, FaultyStore)
        asked = []
        for watchers in (1, 50):
            job_id = await on.submit(10, "someone")
            before = on.store.calls.count("status")
            async with trio.open_nursery() as nursery:
                for _ in range(watchers):
                    nursery.start_soon(all_of, on.runner.watch(job_id))
            asked.append(on.store.calls.count("status") - before)
            await on.runner.delete(job_id)
        # The first to come reads alone; who came meanwhile read together.
        assert asked[0] <= asked[1] <= asked[0] + 1


class HeldReading(FaultyStore):
    """A store whose first answer to `status` comes late: with what was so when it was asked."""

    held: trio.Event | None = None

    async def status(self, *args: Any, **options: Any) -> JobStatus | None:
        """Answer; late, if the next answer is held."""
        found = await super().status(*args, **options)
        held, self.held = self.held, None
        if held is not None:
            await held.wait()
        return found


async def test_a_reading_that_began_before_the_question_is_no_answer(autojump_clock: object) -> None:
    """Who comes while the store is being read for another sees what was stored before they came."""
    async with (
        open_store(":memory:") as store,
        open_runner(HeldReading(store), ScriptedFetch(latency=1)) as runner,
    ):
        held = runner._ledger.store
        assert isinstance(held, HeldReading)
        submission = await runner.submit(ALICE, series(3))
        seen: dict[str, int] = {}

        async def first_of(name: str) -> None:
            async with runner.watch(submission.id) as statuses:
                seen[name] = (await anext(statuses)).job.targets_done

        async with trio.open_nursery() as nursery:
            held.held = release = trio.Event()
            nursery.start_soon(first_of, "early")
            await trio.sleep(2.5)
            nursery.start_soon(first_of, "late")
            await trio.sleep(0.1)
            assert seen == {}
            release.set()
        assert seen == {"early": 0, "late": 2}


@pytest.mark.parametrize("how", ["fails", "is cancelled"])
async def test_a_reading_that_came_to_nothing_is_done_again(autojump_clock: object, how: str) -> None:
    """A reader whose reading fails, or who is cancelled in it, takes nothing from those who wait with it."""
    async with (
        open_store(":memory:") as store,
        open_runner(HeldReading(store), ScriptedFetch(latency=10)) as runner,
    ):
        held = runner._ledger.store
        assert isinstance(held, HeldReading)
        submission = await runner.submit(ALICE, series(2))
        seen: list[int] = []
        refused: list[float] = []

        async def first_of() -> None:
            try:
                async with runner.watch(submission.id) as statuses:
                    seen.append((await anext(statuses)).job.targets_done)
            except StoreError:
                refused.append(trio.current_time())

        async with runner.watch(submission.id) as before, trio.open_nursery() as others:
            await anext(before)
            await trio.sleep(15)
            with trio.CancelScope() as first:
                async with trio.open_nursery() as alone:
                    if how == "fails":
                        held.fail(1, operations=["status"])
                    else:
                        held.held = trio.Event()
                    alone.start_soon(first_of)
                    if how == "is cancelled":
                        await trio.testing.wait_all_tasks_blocked()
                    for _ in range(5):
                        others.start_soon(first_of)
                    await trio.testing.wait_all_tasks_blocked()
                    if how == "is cancelled":
                        first.cancel()
        assert seen == [1] * 5
        assert len(refused) == (how == "fails")


async def test_no_reader_polls(autojump_clock: object) -> None:
    """While nothing happens to a job its readers ask the store nothing."""
    async with stage(wide(sweep_every=10**6), fetch=ScriptedFetch(latency=10_000), faulty=True) as on:
        assert isinstance(on.store, FaultyStore)
        job_id = await on.submit(1)

        async def results() -> None:
            await all_of(on.runner.results(job_id))

        async def watch() -> None:
            await all_of(on.runner.watch(job_id))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(results)
            nursery.start_soon(watch)
            nursery.start_soon(on.runner.wait, job_id)
            nursery.start_soon(on.runner.drain)
            await trio.sleep(1)
            before = len(on.store.calls)
            await trio.sleep(200)
            assert len(on.store.calls) == before
            nursery.cancel_scope.cancel()


async def test_drain_waits_for_everything_and_stops_nothing(autojump_clock: object) -> None:
    """`drain` returns once no job is live or unsettled, later submits included; then at once."""
    async with stage(wide(workers=2), fetch=ScriptedFetch(latency=1)) as on:
        await on.runner.drain()
        ids = [await on.submit(3, f"job {index}") for index in range(3)]
        cancelled = await on.submit(3, "cancelled")

        async def more() -> None:
            await trio.sleep(4)
            ids.append(await on.submit(5, "late"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(more)
            await trio.sleep(3.5)
            await on.runner.cancel(cancelled)
            await on.runner.drain()
            assert trio.current_time() == pytest.approx(9)
        for job_id in ids:
            assert (await on.job(job_id)).status is JobState.DONE
        audit(on.rows, on.runner, settled=True)


async def test_drain_waits_for_unsettled_jobs(autojump_clock: object) -> None:
    """`drain` waits for the fetch in flight of a cancelled job."""
    async with stage(fetch=ScriptedFetch(latency=10)) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        await on.runner.cancel(job_id)
        await on.runner.drain()
        assert trio.current_time() == pytest.approx(10)


@pytest.mark.parametrize("offset", range(25))
@pytest.mark.parametrize("kind", ["wait", *KINDS])
async def test_a_reader_that_comes_at_any_moment_gets_the_whole(
    autojump_clock: object, kind: str, offset: int
) -> None:
    """A reader that comes in any turn of the run loop while a job runs misses nothing and never hangs."""
    async with stage() as on:
        job_id = await on.submit(4)
        for _ in range(offset):
            await trio.lowlevel.checkpoint()
        with trio.fail_after(1):
            if kind == "wait":
                job = await on.runner.wait(job_id)
                assert job is not None
                assert job.settled
            elif kind == "watch":
                assert (await all_of(on.runner.watch(job_id)))[-1].job.settled
            else:
                assert [target.idx for target in await all_of(on.runner.results(job_id))] == [0, 1, 2, 3]


async def test_pages_of_jobs_fit_together(autojump_clock: object) -> None:
    """`jobs` pages newest first, by caller and state; a page after a job that is gone is a `LookupError`."""
    async with stage(wide(workers=4), fetch=ScriptedFetch(fail=["https://host.example/4/0"])) as on:
        ids = [await on.submit(1, str(index), ALICE if index % 2 else BOB) for index in range(25)]
        await on.runner.drain()
        newest_first = ids[::-1]
        found: list[str] = []
        while page := await on.runner.jobs(before=found[-1] if found else None, limit=7):
            found += [job.id for job in page]
        assert found == newest_first
        assert [job.id for job in await on.runner.jobs("alice")] == [
            x for x in newest_first if ids.index(x) % 2
        ]
        assert [job.id for job in await on.runner.jobs(BOB, status=JobState.FAILED)] == [ids[4]]
        assert [job.id for job in await on.runner.jobs(limit=1)] == newest_first[:1]
        assert await on.runner.jobs("nobody") == []
        with pytest.raises(LookupError):
            await on.runner.jobs(ALICE, before=ids[0])  # another caller's
        await on.runner.delete(ids[10])
        with pytest.raises(LookupError):
            await on.runner.jobs(before=ids[10])
        assert len(await on.runner.jobs(before=ids[11])) == 10
        for limit in (0, -1, 1.5, "7"):
            with pytest.raises((TypeError, ValueError)):
                await on.runner.jobs(limit=limit)  # type: ignore[arg-type]


async def test_delete_removes_settled_jobs_alone(autojump_clock: object) -> None:
    """`delete` is False for a live, unsettled or unknown job, and removes a settled one whole, once."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(2)
        queued = await on.submit(1, "queued")
        await trio.sleep(0.5)
        assert not await on.runner.delete(job_id)
        assert not await on.runner.delete(queued)
        await on.runner.cancel(job_id)
        assert not await on.runner.delete(job_id)
        await on.runner.wait(job_id)
        assert await on.runner.delete(job_id)
        assert not await on.runner.delete(job_id)
        assert await on.runner.job(job_id) is None
        assert await on.runner.gone(job_id, caller=ALICE) == "deleted"
        assert await on.runner.gone("0" * 32, caller=ALICE) is None
        assert await on.runner.gone(queued, caller=ALICE) is None
        await on.runner.drain()
        audit(on.rows, on.runner, settled=True)
        assert len(series(2)) == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stream_has_one_reader(autojump_clock: object, kind: str) -> None:
    """A second task that reads the same stream object is refused, so that nothing is given twice."""
    async with stage(fetch=ScriptedFetch(latency=5)) as on:
        job_id = await on.submit(2)
        async with getattr(on.runner, kind)(job_id) as steps, trio.open_nursery() as nursery:
            if kind == "watch":
                await anext(steps)
                await anext(steps)
            nursery.start_soon(anext, steps)
            await trio.testing.wait_all_tasks_blocked()
            with pytest.raises(trio.BusyResourceError):
                await anext(steps)
