"""How long does a job stay readable, whatever the wall clock does?"""

from collections.abc import Callable
from typing import Any

import pytest
import trio
from flow_stage import ALICE, SECRETIVE, START, Stage, Told, audit, change, idle, select, series, stage, wide

from sift_batch import JobState, RetryLater
from sift_batch.testing import ScriptedFetch, WallClock

TTL = 100


def rows(on: Stage) -> int:
    """Return how many jobs are stored, lapsed or not."""
    return int(select(on.rows, "SELECT count(*) FROM batch_job")[0][0])


def lease(on: Stage, job_id: str) -> int:
    """Return the stored lease of a job."""
    return int(select(on.rows, "SELECT lease FROM batch_job WHERE id = ?", job_id)[0][0])


NEVER = 10.0**9


async def test_a_job_is_readable_for_exactly_its_ttl_in_whole_seconds(autojump_clock: object) -> None:
    """A job is readable while `int(now) - lease <= ttl`, and gone for every reader a second later."""
    clock = WallClock(START + 0.9)
    async with stage(wide(ttl=TTL, sweep_every=NEVER), clock=clock) as on:
        job_id = (await on.done(1)).id
        clock.jump(TTL)  # …100.9: the whole second counts
        assert await on.runner.job(job_id) is not None
        assert await on.runner.wait(job_id) is not None
        clock.jump(0.2)
        # Not swept yet, and gone for every reader and every step all the same.
        assert rows(on) == 1
        assert await on.runner.job(job_id) is None
        assert await on.runner.status(job_id) is None
        assert await on.runner.wait(job_id) is None
        assert await on.runner.jobs() == []
        assert await on.runner.jobs(ALICE, status=JobState.DONE) == []
        assert not await on.runner.cancel(job_id)
        assert not await on.runner.delete(job_id)
        assert await on.runner.gone(job_id, caller=ALICE) == "ttl"
        for stream in (on.runner.watch(job_id), on.runner.results(job_id)):
            async with stream as steps:
                assert [step async for step in steps] == []
        with pytest.raises(LookupError):
            await on.runner.rerun(ALICE, job_id)
        with pytest.raises(LookupError):
            await on.runner.jobs(before=job_id)
        await on.runner.touch(job_id)
        assert await on.runner.job(job_id) is None
        assert rows(on) == 1


async def test_an_infinite_ttl_never_lapses(autojump_clock: object) -> None:
    """With a TTL of infinity nothing lapses, and the upkeep has no trouble with it."""
    async with stage(wide(ttl=float("inf"))) as on:
        job_id = (await on.done(1)).id
        on.clock.jump(10**9)
        await trio.sleep(200)
        await on.done(1, "next")
        assert await on.runner.job(job_id) is not None


async def test_reads_never_move_the_lease_and_touch_does(autojump_clock: object) -> None:
    """Reads leave the lease alone; touch sets it to now, never backwards."""
    async with stage(wide(ttl=TTL)) as on:
        job_id = (await on.done(1)).id
        await trio.sleep(50)
        await on.runner.job(job_id)
        await on.runner.status(job_id)
        await on.runner.jobs()
        await on.runner.wait(job_id)
        await on.runner.gone(job_id, caller=ALICE)
        for stream in (on.runner.watch(job_id), on.runner.results(job_id)):
            async with stream as steps:
                assert [step async for step in steps]
        assert lease(on, job_id) == START
        before = await on.job(job_id)
        await on.runner.touch(job_id, caller="alice")
        written = on.rows._inline._connection.total_changes  # type: ignore[attr-defined]
        await on.runner.touch(job_id)  # within the same second: nothing is written
        assert on.rows._inline._connection.total_changes == written  # type: ignore[attr-defined]
        assert lease(on, job_id) == START + 50
        assert (await on.job(job_id)).version == before.version
        on.clock.jump(-30)
        await on.runner.touch(job_id)
        assert lease(on, job_id) == START + 50
        on.clock.jump(30)
        await trio.sleep(10)
        await on.runner.touch(job_id, caller="mallory")
        assert lease(on, job_id) == START + 50


async def test_a_touched_job_lives_a_whole_ttl_from_there(autojump_clock: object) -> None:
    """A job that somebody keeps touching stays for as long as they do, and a TTL longer."""
    async with stage(wide(ttl=TTL)) as on:
        job_id = (await on.done(1)).id
        for _ in range(20):
            await trio.sleep(90)
            await on.runner.touch(job_id)
        await trio.sleep(TTL)
        assert await on.runner.job(job_id) is not None
        await trio.sleep(2)
        assert await on.runner.job(job_id) is None


async def test_a_live_job_never_lapses_and_its_ttl_counts_from_its_end(autojump_clock: object) -> None:
    """A job that runs far longer than its TTL unread is fetched once, and has a whole TTL at its end."""
    async with stage(wide(ttl=3, sweep_every=0.2), fetch=ScriptedFetch(latency=10)) as on:
        job_id = await on.submit(3)
        queued = await on.submit(1, "queued")
        await trio.sleep(29)
        assert (await on.job(job_id)).status is JobState.RUNNING
        assert (await on.job(queued)).status is JobState.QUEUED
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE
        await trio.sleep(2.5)
        assert await on.runner.job(job_id) is not None
        await trio.sleep(2)
        assert await on.runner.job(job_id) is None
        assert len(on.fetch.calls) == 4


async def test_an_unsettled_job_never_lapses(autojump_clock: object) -> None:
    """A cancelled job whose fetch outlasts the TTL is there until it settles, and for a TTL."""
    async with stage(wide(ttl=5, sweep_every=1, target_timeout=1_000), fetch=ScriptedFetch(latency=60)) as on:
        job_id = await on.submit(2)
        await trio.sleep(1)
        await on.runner.cancel(job_id)
        await trio.sleep(50)
        assert not (await on.job(job_id)).settled
        await on.runner.wait(job_id)
        await trio.sleep(4)
        assert (await on.job(job_id)).settled
        await trio.sleep(3)
        assert await on.runner.job(job_id) is None
        assert await on.runner.gone(job_id, caller=ALICE) == "ttl"


async def test_each_stored_target_bumps_the_lease_of_the_whole_job(autojump_clock: object) -> None:
    """All targets of a job share one expiry, counted from the last one that was stored."""
    async with stage(wide(ttl=TTL), fetch=ScriptedFetch(latency=10)) as on:
        job_id = await on.submit(3)
        for index in range(1, 4):
            await trio.sleep(10 if index > 1 else 10.5)
            assert lease(on, job_id) == START + 10 * index


async def test_lapsed_jobs_are_swept_after_every_submit(autojump_clock: object) -> None:
    """A submit has what lapsed removed, long before the next turn of the clock."""
    told = Told()
    async with stage(wide(ttl=TTL, sweep_every=NEVER), hooks=told) as on:
        for _ in range(3):
            old = (await on.done(1, "old")).id
            reused = (await on.done(1, "reused")).id
            await trio.sleep(TTL + 2)
            assert rows(on) == 2
            await on.submit(1, "new")
            await idle()
            assert await on.runner.gone(old, caller=ALICE) == "ttl"
            assert select(on.rows, "SELECT id FROM batch_job WHERE id IN (?, ?)", old, reused) == []
            await trio.sleep(TTL + 2)
            await on.submit(1, "newer")
            await idle()
            assert rows(on) == 1
            await on.runner.drain()
            await on.runner.delete((await on.runner.jobs())[0].id)
        assert told.of("swept") == [(2,), (1,)] * 3
        audit(on.rows, on.runner, settled=True)


async def test_a_reused_submit_sweeps_too(autojump_clock: object) -> None:
    """A submit that finds an equal job has what lapsed removed as well."""
    async with stage(wide(ttl=TTL, sweep_every=NEVER)) as on:
        await on.done(1, "old")
        await trio.sleep(60)
        kept = (await on.done(1, "kept")).id
        await trio.sleep(60)
        assert (await on.runner.submit(ALICE, series(1, "kept"))) == (kept, True)
        await idle()
        assert rows(on) == 1


async def test_lapsed_jobs_are_swept_every_so_often(autojump_clock: object) -> None:
    """Without any submit, what lapsed is removed every `sweep_every` seconds."""
    async with stage(wide(ttl=TTL, sweep_every=60)) as on:
        await on.done(1)
        await trio.sleep(119)
        assert rows(on) == 1
        await trio.sleep(2)
        assert rows(on) == 0


async def test_many_lapsed_jobs_go_in_one_turn(autojump_clock: object) -> None:
    """However many jobs have lapsed, one sweep removes them all."""
    told = Told()
    async with stage(wide(ttl=TTL, sweep_every=NEVER, workers=20), hooks=told) as on:
        for index in range(600):
            await on.submit(1, f"job {index}")
        await on.runner.drain()
        assert rows(on) == 600
        await trio.sleep(TTL + 2)
        await on.submit(1, "new")
        await on.runner.drain()
        await idle()
        assert rows(on) == 1
        assert told.of("swept") == [(600,)]


@pytest.mark.parametrize("kept_by", ["touch", "clock"])
async def test_a_sweep_asks_again_before_it_removes(autojump_clock: object, kept_by: str) -> None:
    """A job that is touched, or not lapsed any more, between the look and the removal stays."""

    class Slow:
        def __init__(self, store: Any) -> None:
            self._store = store
            self.looked = trio.Event()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        async def lapsed(self, **kwargs: Any) -> Any:
            answer = await self._store.lapsed(**kwargs)
            if answer.job_ids:
                self.looked.set()
                await trio.sleep(10)
            return answer

    async with stage(wide(ttl=TTL, sweep_every=NEVER), wrap=Slow) as on:
        job_id = (await on.done(1)).id
        on.clock.jump(TTL + 1)
        await on.submit(1, "new")
        await on.store.looked.wait()  # type: ignore[attr-defined]
        # The clock was wrong for a moment: now the job is readable again, and somebody keeps it.
        if kept_by == "touch":
            on.clock.jump(-50)
            await on.runner.touch(job_id)
            on.clock.jump(50)
        else:
            on.clock.jump(-11)  # in the tenth second from now it is exactly a TTL old
        await trio.sleep(10)
        await idle()
        assert await on.runner.job(job_id) is not None


async def test_a_clock_that_is_set_back_breaks_nothing(autojump_clock: object) -> None:
    """The clock an hour back and forth: nothing is removed early, nothing lasts longer than a TTL after."""
    told = Told()
    async with stage(wide(ttl=600, sweep_every=10), fetch=ScriptedFetch(latency=1), hooks=told) as on:
        before = await on.done(1, "before")
        job_id = await on.submit(3)
        await trio.sleep(1.5)
        on.clock.jump(-3_600)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE
        during = await on.done(1, "during")
        await trio.sleep(100)
        for name in (before.id, job_id, during.id):
            assert await on.runner.job(name) is not None
        assert all(seconds >= 0 for (seconds,) in told.of("job_seconds") + told.of("queued"))
        assert all(seconds >= 0 for _, seconds, _ in told.of("target"))
        on.clock.jump(3_600)
        await trio.sleep(601)
        assert await on.runner.job(before.id) is None
        audit(on.rows, on.runner, settled=True)


async def test_a_clock_that_was_far_ahead_gives_no_job_more_than_a_ttl(autojump_clock: object) -> None:
    """A lease more than a TTL ahead of now counts as now: the job is readable, and lapses a TTL later."""
    clock = WallClock(START + 10**6)
    async with stage(wide(ttl=TTL, sweep_every=10), clock=clock) as on:
        ahead = (await on.done(1, "ahead")).id
        clock.jump(-(10**6))
        assert await on.runner.job(ahead) is not None
        now = START + int(trio.current_time())
        await trio.sleep(11)
        assert now <= lease(on, ahead) <= now + 11
        await trio.sleep(TTL - 12)
        assert await on.runner.job(ahead) is not None
        await trio.sleep(14)
        assert await on.runner.job(ahead) is None
        # A lease that is ahead by no more than a TTL stands as it is.
        slightly = (await on.done(1, "slightly")).id
        clock.jump(-90)
        await trio.sleep(50)
        assert await on.runner.job(slightly) is not None


@pytest.mark.parametrize("jump", [-1_700_000_000, 1_000 * 365 * 86_400, 10**11])
async def test_a_live_job_survives_any_jump(autojump_clock: object, jump: int) -> None:
    """Whatever the clock jumps during a job, it is fetched to its end, swept never, and there at its end."""
    async with stage(wide(ttl=60, sweep_every=1), fetch=ScriptedFetch(latency=10)) as on:
        job_id = await on.submit(3)
        await trio.sleep(5)
        on.clock.jump(jump)
        await trio.sleep(5)
        assert (await on.job(job_id)).status is JobState.RUNNING
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status is JobState.DONE
        assert trio.current_time() == pytest.approx(30)
        assert await on.runner.job(job_id) is not None
        on.clock.jump(-jump)
        await trio.sleep(3)
        assert (await on.done(1, "after")).status is JobState.DONE
        audit(on.rows, on.runner, settled=True)


async def test_a_clock_at_zero_that_jumps_to_today(autojump_clock: object) -> None:
    """A machine that boots in 1970 and then learns the time loses no live job and waits no longer."""
    fetch = ScriptedFetch()
    fetch.busy(0, 1, RetryLater(retry_after=20.0))
    clock = WallClock(0)
    async with stage(wide(ttl=60, sweep_every=1), fetch=fetch, clock=clock) as on:
        job_id = await on.submit(1)
        await trio.sleep(10)
        clock.jump(START)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert trio.current_time() == pytest.approx(20)
        assert job.created_at == 0
        assert job.finished_at == START + 20
        assert await on.runner.job(job_id) is not None


async def test_a_swept_restricted_job_is_not_remembered(autojump_clock: object) -> None:
    """`gone` knows nothing of a restricted caller's job, lapsed, swept or deleted."""
    async with stage(wide(ttl=TTL, sweep_every=NEVER)) as on:
        job_id = (await on.done(1, "a", SECRETIVE)).id
        deleted = (await on.done(1, "b", SECRETIVE)).id
        assert await on.runner.delete(deleted)
        await trio.sleep(TTL + 2)
        assert await on.runner.gone(job_id, caller=SECRETIVE) is None
        await on.submit(1, "new")
        await idle()
        assert await on.runner.gone(job_id, caller=SECRETIVE) is None
        assert await on.runner.gone(deleted, caller=SECRETIVE) is None


@pytest.mark.parametrize("state", ["done", "failed", "cancelled"])
async def test_one_ttl_for_every_terminal_state(
    autojump_clock: object, state: str, heard: Callable[[str], list[Any]]
) -> None:
    """Done, failed and cancelled jobs have the same TTL, and the sweep frees their targets."""
    fetch = ScriptedFetch(latency=1, fail=[0] if state == "failed" else [])
    async with stage(wide(ttl=TTL, sweep_every=1), fetch=fetch) as on:
        job_id = await on.submit(1)
        if state == "cancelled":
            await on.runner.cancel(job_id)
        job = await on.runner.wait(job_id)
        assert job is not None
        assert job.status.value == state
        on.clock.jump(TTL)
        await trio.sleep(0.3)
        assert await on.runner.job(job_id) is not None
        on.clock.jump(1)
        await trio.sleep(1.2)
        assert heard("store.swept")
        again = await on.runner.submit(ALICE, series(1))
        assert not again.reused


async def test_gone_forgets_after_seven_days(autojump_clock: object) -> None:
    """Why a job is gone is remembered for seven days, for its own caller alone."""
    async with stage(wide(ttl=TTL, sweep_every=3_600)) as on:
        job_id = (await on.done(1)).id
        assert await on.runner.delete(job_id)
        assert await on.runner.gone(job_id, caller="alice") == "deleted"
        assert await on.runner.gone(job_id, caller="mallory") is None
        await trio.sleep(7 * 86_400 - 5)
        assert await on.runner.gone(job_id, caller="alice") == "deleted"
        await trio.sleep(10)
        assert await on.runner.gone(job_id, caller="alice") is None
        with pytest.raises(TypeError):
            await on.runner.gone(job_id, caller=None)  # type: ignore[arg-type]


async def test_rows_written_behind_our_back_with_a_far_lease_are_put_right(autojump_clock: object) -> None:
    """A lease that some other clock wrote centuries ahead is set to now by the next sweep."""
    async with stage(wide(ttl=TTL, sweep_every=10)) as on:
        job_id = (await on.done(1)).id
        change(on.rows, "UPDATE batch_job SET lease = ?", START + 10**10)
        await trio.sleep(11)
        assert lease(on, job_id) <= START + 11
