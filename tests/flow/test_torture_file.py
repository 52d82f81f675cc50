"""Does anything break in a file, wherever a cancellation strikes?

The same flow as in memory, with the store's threads: a step is withdrawn, or it is done and finished.
"""

import sqlite3
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from flow_stage import Told, audit, stage, wide
from test_torture import a_fetch, struck_at

from sift_batch import open_store
from sift_batch.testing import ThreadAutojumpClock


def check_rows(path: Path, *, settled: bool = False) -> None:
    """Audit the rows of a store in a file that nobody has open."""
    connection = sqlite3.connect(path)
    try:
        audit(SimpleNamespace(_inline=SimpleNamespace(_connection=connection)), settled=settled)
    finally:
        connection.close()


async def flow(path: Path, told: Told, fetch: Any) -> None:
    """Let three jobs run, be read, cancelled and deleted."""
    async with (
        open_store(path) as store,
        stage(wide(workers=2), store=store, fetch=fetch, hooks=told) as on,
    ):
        one, two = await on.submit(3, "one"), await on.submit(3, "two")
        three = await on.submit(2, "three")
        async with on.runner.results(one) as targets:
            async for target in targets:
                if target.idx == 1:
                    await on.runner.cancel(two)
        await on.runner.wait(three)
        await on.runner.delete(one)
        await on.runner.drain()


@pytest.mark.real
def test_a_surrounding_scope_that_is_cancelled_at_any_step_of_its_task(tmp_path: Path) -> None:
    """Wherever the scope round a store in a file is cancelled: rows fit, jobs end once, the file is free."""

    async def main() -> None:
        for number in range(1, 500):
            told, fetch, path = Told(), a_fetch(), tmp_path / f"{number}.sift"

            async def run(path: Path = path, told: Told = told, fetch: Any = fetch) -> None:
                await flow(path, told, fetch)

            struck = await struck_at(number, run, own_task=True)
            assert fetch.in_flight == 0
            if path.exists() and path.stat().st_size:
                check_rows(path)
            async with open_store(path) as store, stage(store=store, hooks=told) as on:
                assert all(job.settled for job in await on.runner.jobs())
            check_rows(path, settled=True)
            ended = [job.id for (job,) in told.of("ended")]
            assert len(set(ended)) == len(ended)
            if not struck:
                assert number > 20
                return
        raise AssertionError("the flow never ended by itself")

    trio.run(main, clock=ThreadAutojumpClock())
