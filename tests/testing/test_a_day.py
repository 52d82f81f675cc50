"""Can an application test a day of batches in a moment, with a store in a file?"""

import time
from pathlib import Path

import pytest
import trio

from sift_batch import Caller, Config, JobState, Target, open_runner, open_store
from sift_batch.testing import FaultyStore, ScriptedFetch, ThreadAutojumpClock, WallClock

CALLER = Caller("alice")


def _series(hour: int) -> list[Target]:
    return [Target(f"https://host{n}.example/{hour}") for n in range(3)]


@pytest.mark.real
def test_a_day_of_batches_takes_a_moment(tmp_path: Path) -> None:
    """Twenty-four jobs, an hour apart, with slow and busy hosts and a store that fails: none is lost."""
    fetch = ScriptedFetch(latency=20, busy={f"https://host1.example/{hour}": 2 for hour in range(24)})
    states: list[JobState] = []

    async def main() -> None:
        async with open_store(tmp_path / "jobs.sift") as file:
            store = FaultyStore(file, fail_at=5, times=3, operations={"record"})
            clock = WallClock(start=1_000_000)
            async with open_runner(store, fetch, Config(ttl=90_000), now=clock) as runner:
                for hour in range(24):
                    job_id = (await runner.submit(CALLER, _series(hour))).id
                    job = await runner.wait(job_id)
                    assert job is not None
                    states.append(job.status)
                    assert job.created_at == int(1_000_000 + hour * 3_600)
                    await trio.sleep_until(3_600 * (hour + 1))
                assert len(await runner.jobs(CALLER)) == 24
            assert store.failed == 3

    started = time.monotonic()
    trio.run(main, clock=ThreadAutojumpClock())
    assert time.monotonic() - started < 10
    assert states == [JobState.DONE] * 24
    assert len(fetch.order) == 24 * 5
    assert fetch.peak == 1
