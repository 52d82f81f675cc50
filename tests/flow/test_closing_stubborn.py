"""What of fetches that do not end when they are told to?"""
# ruff: noqa: PT012 - what raises here is a whole block

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from flow_stage import ALICE, audit, left_clean, series, stage, wide

from sift_batch import (
    Caller,
    JobState,
    Result,
    Target,
    open_runner,
)
from sift_batch.testing import ScriptedFetch

STUBBORN = 100.0


async def stubborn(caller: Caller, target: Target) -> Result:
    """Take its time, whoever cancels it."""
    with trio.CancelScope(shield=True):
        await trio.sleep(STUBBORN)
    return Result("at last")


async def test_leaving_waits_for_a_fetch_that_can_not_be_cancelled(
    autojump_clock: object, heard: Callable[[str], list[Any]]
) -> None:
    """Leaving waits for a shielded fetch, and a warning says so 5 s after the grace."""
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
    """Past its target's time a shielded fetch keeps its worker; one warning comes 5 s later."""
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
        assert job is not None
        assert job.status is JobState.DONE
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
