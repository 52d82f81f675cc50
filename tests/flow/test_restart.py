"""What does the next runner make of what the last one left?"""

from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel
from flow_stage import ALICE, SECRETIVE, START, Told, audit, change, dump, select, series, stage, wide

from sift_batch import JobState, StoreInUseError, open_reader, open_runner, open_store
from sift_batch.testing import FaultyStore, ScriptedFetch, WallClock


async def leave_a_mess(store: Any) -> dict[str, str]:
    """Leave jobs of every kind, as a killed process would."""
    ids = {}
    fetch = ScriptedFetch(latency=1, fail=["https://host.example/partial/0"])
    async with stage(wide(workers=3, shutdown_grace=0), store=store, fetch=fetch) as on:
        ids["done"] = (await on.done(2, "done")).id
        ids["partial"] = (await on.done(2, "partial")).id
        for name in ("running", "cancelled", "unsettled"):
            ids[name] = await on.submit(3, name, SECRETIVE if name == "running" else ALICE)
        ids["queued"] = await on.submit(3, "queued")
        await trio.sleep(1.5)
        await on.runner.cancel(ids["unsettled"])
        await on.runner.cancel(ids["cancelled"])
        await trio.lowlevel.checkpoint()
    # A settled job with a target left running: no runner of ours leaves one, an older version might.
    change(store, "UPDATE batch_job SET settled = 1 WHERE id = ?", ids["cancelled"])
    return ids


async def test_what_was_live_is_failed_and_what_was_done_is_kept(autojump_clock: object) -> None:
    """Live jobs become failed by restart, their lease now; running targets go back; results stay."""
    told = Told()
    async with open_store(":memory:") as store:
        ids = await leave_a_mess(store)
        clock = WallClock(START + 5_000)
        async with stage(store=store, hooks=told, clock=clock) as on:
            for name in ("running", "queued"):
                job = await on.job(ids[name])
                assert (job.status, job.error, job.settled) == (JobState.FAILED, "restart", True)
                assert job.finished_at == job.lease == START + 5_000
            assert await on.states(ids["running"]) == ["done", "pending", "pending"]
            for name in ("unsettled", "cancelled"):
                job = await on.job(ids[name])
                assert (job.status, job.settled) == (JobState.CANCELLED, True)
                assert "running" not in await on.states(ids[name])
            status = await on.runner.status(ids["running"])
            assert status is not None
            assert status.targets[0].result is not None
            assert (await on.job(ids["done"])).status is JobState.DONE
            assert (await on.job(ids["partial"])).status is JobState.PARTIAL
            audit(store, on.runner, settled=True)
            # Each of them is failed to the hooks, in order of submission, with no time.
            assert told.of("job") == [("failed",), ("failed",)]
            assert [job.id for (job,) in told.of("ended")] == [ids["running"], ids["queued"]]
            assert not told.of("job_seconds")
            assert told.of("depth") == [(0,)]
            # Never resumed: nothing is fetched.
            await trio.sleep(100)
            assert not on.fetch.calls


async def test_five_restarts_leave_the_rows_as_the_first_did(autojump_clock: object) -> None:
    """The second and each later restart changes no byte, however much later it comes."""
    async with open_store(":memory:") as store:
        await leave_a_mess(store)
        clock = WallClock(START)
        async with stage(store=store, clock=clock):
            pass
        before = dump(store)
        for _ in range(5):
            clock.jump(1_000)
            told = Told()
            async with stage(store=store, clock=clock, hooks=told):
                pass
            assert dump(store) == before
            assert not told.of("ended")


async def test_a_restart_is_one_change_of_each_job_that_it_changed(autojump_clock: object) -> None:
    """The version of a job rises by exactly one when a restart changes it, and of others not at all."""
    async with open_store(":memory:") as store:
        ids = await leave_a_mess(store)
        before = dict(select(store, "SELECT id, version FROM batch_job"))
        async with stage(store=store):
            after = dict(select(store, "SELECT id, version FROM batch_job"))
    kept = {ids["done"], ids["partial"]}
    assert after == {job_id: version + (job_id not in kept) for job_id, version in before.items()}


async def test_a_restart_that_fails_on_the_way_changes_nothing(autojump_clock: object) -> None:
    """A restart step that is refused or cancelled leaves every row; the next one does it whole."""
    async with open_store(":memory:") as store:
        await leave_a_mess(store)
        before = dump(store)
        with pytest.raises(Exception, match="made to fail"):
            async with open_runner(FaultyStore(store, fail_at=1), ScriptedFetch()):
                raise AssertionError
        with trio.CancelScope() as scope:
            scope.cancel()
            async with open_runner(store, ScriptedFetch()):
                raise AssertionError
        assert dump(store) == before
        async with stage(store=store):
            audit(store, settled=True)


async def test_a_failed_job_is_fetched_anew_on_a_resubmit(autojump_clock: object) -> None:
    """A job that a restart failed never answers an equal submit; a rerun carries over what was done."""
    async with open_store(":memory:") as store:
        async with stage(wide(shutdown_grace=0), store=store, fetch=ScriptedFetch(latency=1)) as on:
            job_id = await on.submit(3)
            await trio.sleep(1.5)
        async with stage(store=store) as on:
            again = await on.runner.submit(ALICE, series(3))
            assert not again.reused
            assert (await on.runner.wait(again.id)) is not None
            rerun = await on.runner.rerun(ALICE, job_id)
            job = await on.runner.wait(rerun.id)
            assert job is not None
            assert (job.status, job.rerun_of) == (JobState.DONE, job_id)
            assert len(on.fetch.calls) == 3 + 2
            audit(store, on.runner, settled=True)


async def test_stored_bytes_go_on_from_what_is_there(autojump_clock: object) -> None:
    """After a restart the statistics count the bytes that are stored, and the hook hears of them."""
    told = Told()
    async with open_store(":memory:") as store:
        await leave_a_mess(store)
        async with stage(store=store, hooks=told) as on:
            (nbytes,) = select(store, "SELECT sum(nbytes) FROM batch_job")[0]
            assert on.runner.statistics().stored_bytes == nbytes > 0
            assert told.of("stored") == [(nbytes,)]


async def test_a_second_runner_leaves_everything(autojump_clock: object) -> None:
    """A second runner on a store in use gets `StoreInUseError`, and the first one's jobs go on."""
    async with stage(fetch=ScriptedFetch(latency=1)) as on:
        job_id = await on.submit(3)
        await trio.sleep(1.5)
        before = dump(on.rows)
        for _ in range(3):
            with pytest.raises(StoreInUseError):
                async with open_runner(on.rows, ScriptedFetch()):
                    raise AssertionError
        assert dump(on.rows) == before
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE


async def test_a_second_runner_on_the_same_file_leaves_everything(tmp_path: Path) -> None:
    """A second runner on a file in use changes nothing; a reader is welcome; after the first it may."""
    path = tmp_path / "jobs.sift"
    fetch = ScriptedFetch(hang=[0])
    async with open_store(path) as store, open_store(path) as other:
        async with open_runner(store, fetch) as runner:
            job_id = (await runner.submit(ALICE, series(2))).id
            await fetch.wait_started(1)
            with pytest.raises(StoreInUseError):
                async with open_runner(other, fetch):
                    raise AssertionError
            async with open_reader(path) as reader:
                job = await reader.job(job_id)
                assert job is not None
                assert job.status is JobState.RUNNING
            fetch.release()
            job = await runner.wait(job_id)
            assert job is not None
            assert job.status is JobState.DONE
        async with open_runner(other, fetch) as runner:
            assert await runner.job(job_id) == job


def test_leases_mean_the_same_in_another_run(tmp_path: Path) -> None:
    """A lease that one run stored lapses in the next run when the wall clock says so."""
    path = tmp_path / "jobs.sift"

    async def first() -> str:
        async with (
            open_store(path) as store,
            open_runner(store, ScriptedFetch(), wide(), now=lambda: START) as on,
        ):
            job = await on.wait((await on.submit(ALICE, series(1))).id)
            assert job is not None
            return job.id

    async def second(job_id: str, later: int) -> bool:
        async with (
            open_store(path) as store,
            open_runner(store, ScriptedFetch(), wide(ttl=100), now=lambda: START + later) as on,
        ):
            return await on.job(job_id) is not None

    job_id = trio.run(first)
    assert [trio.run(second, job_id, later) for later in (0, 100, 101)] == [True, True, False]
