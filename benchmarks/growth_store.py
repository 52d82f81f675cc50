"""How does a store come to hold what a measurement needs? Filled through the engine, and quickly.

A few jobs are fetched; all others are reruns of them, which carry every result over and are done in the
step that stores them: a store of 100,000 targets takes seconds, and every row is one that the engine
wrote itself. Some callers, each with a series of its own, and a clock that moves on
with every job, so that each has a lease of its own. What is measured on it is in `growth_steps.py`.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import sift_batch

SAMPLES = 24
BEGAN = 1_000_000_000.0
TTL = 1_000_000_000.0
AT_ONCE = 64


class Filling(NamedTuple):
    """What a store holds: settled jobs, the targets of each, the bytes of each result.

    `series` is how many different series of targets there are, each of a caller of its own.
    """

    jobs: int
    targets: int
    result: int
    series: int = 4


class Clock:
    """A wall clock that moves only when it is told to."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return what it was told."""
        return self.now


def caller_of(number: int) -> str:
    return f"caller {number}"


def urls_of(series: str, targets: int) -> Iterator[str]:
    return (f"http://host{idx % 7}.example/{series}/{idx}" for idx in range(targets))


def unlimited(*, workers: int) -> "sift_batch.Config":
    """Return a configuration under which nothing is refused, swept or evicted."""
    import sift_batch

    return sift_batch.Config(
        jobs_total=10**9,
        jobs_per_caller=10**9,
        targets_per_job=10**6,
        workers=workers,
        workers_limit=workers,
        max_bytes=2**60,
        result_max_bytes=2**30,
        ttl=TTL,
        sweep_every=1e9,
        target_timeout=math.inf,
        job_timeout=math.inf,
        shutdown_grace=0,
    )


def fill(path: Path, filling: Filling) -> list[tuple[str, str]]:
    """Make a store in the file `path`; return ids of some of its jobs, old and new, and their callers."""
    import trio

    import sift_batch

    clock = Clock(BEGAN)
    stored: list[tuple[str, str]] = []

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        await trio.lowlevel.checkpoint()
        return sift_batch.Result("x" * filling.result)

    async def main() -> None:
        async with (
            sift_batch.open_store(path, durability="normal") as store,
            sift_batch.open_runner(store, fetch, unlimited(workers=8), now=clock) as runner,
        ):
            for number in range(min(filling.series, filling.jobs)):
                targets = [sift_batch.Target(url) for url in urls_of(str(number), filling.targets)]
                caller = caller_of(number)
                stored.append(((await runner.submit(sift_batch.Caller(caller), targets)).id, caller))
            await runner.drain()
            left = iter(range(len(stored), filling.jobs))

            async def rerun() -> None:
                for number in left:
                    clock.now += 1
                    source, caller = stored[number % filling.series]
                    stored.append(((await runner.rerun(sift_batch.Caller(caller), source)).id, caller))

            async with trio.open_nursery() as nursery:
                for _ in range(AT_ONCE):
                    nursery.start_soon(rerun)

    trio.run(main)
    return stored[:: max(1, len(stored) // SAMPLES)][:SAMPLES]
