"""Which jobs go when there are too many bytes?"""

import contextlib
import random
from typing import Any

import pytest
import trio
from flow_stage import ALICE, BOB, SECRETIVE, Stage, Told, audit, idle, select, series, stage, wide

from sift_batch import Caller, JobState, Result, RetryLater, SubmitError, Target, open_store
from sift_batch.testing import ScriptedFetch

KB = 1_000


async def sized(caller: Caller, target: Target) -> Result:
    """Return as many characters as the number at the end of the path says."""
    await trio.sleep(1)
    return Result("x" * int(target.url.rsplit("/", 1)[1]))


def of_size(nbytes: int, name: str = "a") -> list[Target]:
    """Return one target whose result has that many bytes."""
    return [Target(f"https://host.example/{name}/{nbytes}")]


async def stored(on: Stage, nbytes: int, name: str = "a", caller: Caller = ALICE) -> str:
    """Store a job of about that many bytes; return its id once it has settled and upkeep is idle."""
    job_id = (await on.runner.submit(caller, of_size(nbytes, name))).id
    await on.runner.wait(job_id)
    await idle()
    return job_id


def left(on: Stage) -> list[str]:
    """Return the ids of all stored jobs, in order of submission."""
    return [row[0] for row in select(on.rows, "SELECT id FROM batch_job ORDER BY rowid")]


def budget(nbytes: int, **settings: object) -> Any:
    """Return a config with this byte budget, swept by nothing but its own events."""
    return wide(max_bytes=nbytes, result_max_bytes=10**7, sweep_every=10**6, **settings)


async def test_eviction_takes_the_oldest_leases_and_stops_as_soon_as_the_rest_fits(
    autojump_clock: object,
) -> None:
    """Twelve jobs of 1 MB in a budget of 10 MB: the oldest go, no more than must."""
    told = Told()
    async with stage(budget(10_000 * KB), fetch=sized, hooks=told) as on:
        ids = [await stored(on, 1_000 * KB - 500, f"job {index}") for index in range(12)]
        assert left(on) == ids[2:]
        assert [await on.runner.gone(job_id, caller=ALICE) for job_id in ids[:3]] == [
            "budget",
            "budget",
            None,
        ]
        assert await on.runner.job(ids[0]) is None
        assert [jobs for jobs, _ in told.of("evicted")] == [1, 1]
        assert told.of("stored")[-1] == (on.runner.statistics().stored_bytes,)
        audit(on.rows, on.runner, settled=True)


async def test_eviction_goes_on_until_it_fits(autojump_clock: object) -> None:
    """After one big job as many small ones go as it takes, in one turn."""
    told = Told()
    async with stage(budget(5_000 * KB), fetch=sized, hooks=told) as on:
        ids = [await stored(on, 50 * KB, f"job {index}") for index in range(99)]
        assert left(on) == ids
        big = await stored(on, 4_000 * KB, "big")
        kept = left(on)
        assert kept[-1] == big
        assert kept[:-1] == ids[len(ids) - len(kept) + 1 :]
        assert len(told.of("evicted")) == 1
        assert 5_000 * KB - 51 * KB < on.runner.statistics().stored_bytes <= 5_000 * KB
        audit(on.rows, on.runner, settled=True)


async def test_a_touched_job_outlives_newer_ones(autojump_clock: object) -> None:
    """Eviction goes by lease, not by age: somebody's touch keeps an old job."""
    async with stage(budget(350 * KB), fetch=sized) as on:
        ids = [await stored(on, 100 * KB, f"job {index}") for index in range(3)]
        await on.runner.touch(ids[0])
        await trio.sleep(2)
        last = await stored(on, 100 * KB, "last")
        assert left(on) == [ids[0], ids[2], last]


async def test_equal_leases_go_in_order_of_submission(autojump_clock: object) -> None:
    """Of jobs with the same lease the one that was submitted first goes first."""
    async with stage(budget(350 * KB, workers=4), fetch=sized) as on:
        ids = [(await on.runner.submit(ALICE, of_size(100 * KB, f"{index}"))).id for index in range(4)]
        await on.runner.drain()
        await idle()
        assert left(on) == ids[1:]


async def test_what_was_just_finished_stays_whatever_its_size(autojump_clock: object) -> None:
    """A job over the whole budget is readable once it is finished, until a newer one is."""
    async with stage(budget(10 * KB), fetch=sized) as on:
        small = [await stored(on, 1 * KB, f"small {index}") for index in range(5)]
        big = await stored(on, 500 * KB, "big")
        assert left(on) == [big]
        status = await on.runner.status(big)
        assert status is not None
        assert status.targets[0].chars == 500 * KB
        newest = await stored(on, 1 * KB, "newest")
        assert left(on) == [newest]
        assert await on.runner.gone(small[0], caller=ALICE) == "budget"
        audit(on.rows, on.runner, settled=True)


async def test_live_and_unsettled_jobs_are_never_evicted(autojump_clock: object) -> None:
    """A live job far over the budget stays whole, and so does a cancelled one whose fetch goes on."""
    async with stage(budget(10 * KB, workers=3, targets_per_job=40), fetch=sized) as on:
        targets = [Target(f"https://host.example/{index}/{20 * KB}") for index in range(20)]
        live = (await on.runner.submit(ALICE, targets)).id
        await trio.sleep(4.5)
        unsettled = (await on.runner.submit(BOB, of_size(50 * KB, "unsettled"))).id
        await trio.sleep(0.5)
        await on.runner.cancel(unsettled)
        first = await stored(on, KB, "first")
        assert set(left(on)) >= {live, first}
        job = await on.runner.wait(live)
        assert job is not None
        assert job.targets_done == 20
        status = await on.runner.status(live)
        # It is the newest now: all of it can be read.
        assert status is not None
        assert all(target.result is not None for target in status.targets)
        await idle()
        assert left(on) == [live]
        audit(on.rows, on.runner, settled=True)


async def test_an_unsettled_job_alone_stays(autojump_clock: object) -> None:
    """A cancelled job with a fetch in flight is not evicted, though it is over the budget and old."""
    fetch = ScriptedFetch(results={0: "x" * 200 * KB}, latency={1: 100})
    async with stage(budget(10 * KB, workers=2), fetch=fetch) as on:
        job_id = await on.submit(3)
        await trio.sleep(1)
        await on.runner.cancel(job_id)
        other = (await on.done(1, "other")).id
        await on.done(1, "another")
        await idle()
        assert job_id in left(on)
        assert other not in left(on)
        await on.runner.wait(job_id)
        await idle()
        audit(on.rows, on.runner, settled=True)


async def test_the_budget_is_kept_at_each_sweep_too(autojump_clock: object) -> None:
    """What a lower budget finds on opening is evicted by the first sweep."""
    async with open_store(":memory:") as store:
        async with stage(budget(10**9), store=store, fetch=sized) as on:
            ids = [await stored(on, 100 * KB, f"job {index}") for index in range(5)]
        async with stage(budget(250 * KB), store=store, fetch=sized) as on:
            await idle()
            assert left(on) == ids[3:]
            audit(store, on.runner, settled=True)


async def test_a_lease_far_ahead_does_not_save_a_job(autojump_clock: object) -> None:
    """A lease more than a TTL ahead of now counts as now when the oldest is looked for."""
    async with stage(budget(250 * KB, ttl=100), fetch=sized) as on:
        on.clock.jump(10**6)
        ahead = await stored(on, 100 * KB, "ahead")
        on.clock.jump(-(10**6))
        second = await stored(on, 100 * KB, "second")
        third = await stored(on, 100 * KB, "third")
        assert len(left(on)) == 2
        assert third in left(on)
        # Both leases count as now or just before; the tie goes by submission.
        assert ahead not in left(on) or second not in left(on)


async def test_bytes_are_counted_and_not_characters(autojump_clock: object) -> None:
    """A job's size is in bytes of UTF-8 of url, options, result, error and hint."""
    async with stage(fetch=ScriptedFetch(results={0: "ü" * 100})) as on:
        job = await on.done(1)
        url = "https://host.example/page/0"
        assert job.nbytes == len(url) + len("{}") + len('{"content":"","meta":{}}') + 200


@pytest.mark.parametrize("seed", range(6))
async def test_the_count_of_bytes_is_right_after_any_history(autojump_clock: object, seed: int) -> None:
    """After any sequence of submits, cancels, deletes, reruns, sweeps and restarts the counts fit."""
    dice = random.Random(seed)

    async def fetch(caller: Caller, target: Target) -> Result:
        await trio.sleep(dice.random() * 3)
        roll = dice.random()
        if roll < 0.1:
            raise RetryLater(retry_after=2.0)
        if roll < 0.2:
            raise ValueError("no" * dice.randrange(500))
        return Result("é" * dice.randrange(3_000))

    async with open_store(":memory:") as store:
        ids: list[str] = []
        for _ in range(3):
            config = wide(max_bytes=20 * KB, ttl=60, sweep_every=7, workers=3, retry_for=5, shutdown_grace=1)
            async with stage(config, store=store, fetch=fetch) as on:
                for _ in range(60):
                    await trio.sleep(dice.random() * 2)
                    caller = dice.choice([ALICE, BOB, SECRETIVE])
                    some = dice.choice(ids) if ids else ""
                    roll = dice.random()
                    if roll < 0.4:
                        name = str(dice.randrange(8))
                        ids.append((await on.runner.submit(caller, series(dice.randrange(1, 5), name))).id)
                    elif roll < 0.6:
                        await on.runner.cancel(some)
                    elif roll < 0.7:
                        await on.runner.delete(some)
                    elif roll < 0.8:
                        await on.runner.touch(some)
                    else:
                        with contextlib.suppress(LookupError, SubmitError):
                            ids.append((await on.runner.rerun(caller, some)).id)
                    await idle()
                    audit(store, on.runner)
                await on.runner.drain()
                await idle()
                audit(store, on.runner, settled=True)
                ids.append((await on.runner.submit(ALICE, series(3, "left over"))).id)
                await trio.sleep(1)
        async with stage(store=store) as on:
            audit(store, on.runner, settled=True)
            assert not any(
                job.status in (JobState.QUEUED, JobState.RUNNING) for job in await on.runner.jobs()
            )
