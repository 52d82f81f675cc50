"""How long does a submit take? 32 targets, durability full, against a Trio loop written by hand.

Both store one job with its targets in one synced transaction off Trio's thread and return. The engine
also makes the idempotency key, looks for an equal job and checks the caps. One job waits in its fetch
meanwhile, so nothing is drained; the second number is taken while eight jobs drain.
"""

import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import floors
import measure
from measure import Number, ratios

JOBS = 40
TARGETS = JOBS * floors.TARGETS_PER_JOB


def floor(path: str) -> float:
    import trio

    async def main() -> float:
        connection = floors.open_database(Path(path), "full")
        loop = floors.TrioLoop(connection)
        times = []
        for job, urls in enumerate(floors.split(TARGETS)):
            began = time.perf_counter()
            await loop.submit(job, urls)
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    return trio.run(main)


def engine(path: str, draining: bool) -> float:
    import trio

    import sift_batch

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        await trio.sleep(0 if draining else math.inf)
        return sift_batch.Result("x" * 1_000)

    async def main() -> float:
        workers = 8 if draining else 1
        config = sift_batch.Config(
            jobs_total=10**6,
            jobs_per_caller=10**6,
            workers=workers,
            workers_limit=workers,
            shutdown_grace=0,
        )
        times = []
        async with (
            sift_batch.open_store(path) as store,
            sift_batch.open_runner(store, fetch, config) as runner,
        ):
            for urls in floors.split(TARGETS):
                targets = [sift_batch.Target(url) for url in urls]
                began = time.perf_counter()
                await runner.submit(sift_batch.Caller("bench"), targets)
                times.append(time.perf_counter() - began)
        return statistics.median(times)

    return trio.run(main)


def _one(kind: str, **arguments: Any) -> float:
    with measure.folder() as where:
        return float(measure.in_child(__file__, kind, path=str(where / "jobs"), **arguments))


def numbers() -> Iterator[Number]:
    by_hand, idle, draining = [], [], []
    for _ in measure.rounds(least=5, most=11, seconds=14):
        by_hand.append(_one("floor"))
        idle.append(_one("engine", draining=False))
        draining.append(_one("engine", draining=True))
    unit = "x a hand-written Trio loop's"
    yield Number(
        name="submit of 32 targets", values=ratios(zip(idle, by_hand, strict=True)), unit=unit, at_most=1.4
    )
    yield Number(
        name="submit of 32 targets while 8 jobs drain",
        values=ratios(zip(draining, by_hand, strict=True)),
        unit=unit,
    )
    yield Number(name="submit itself", values=[1e3 * taken for taken in idle], unit="ms")


if __name__ == "__main__":
    measure.run(numbers, {"floor": floor, "engine": engine})
