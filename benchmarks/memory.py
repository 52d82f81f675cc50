"""Does the process grow with the jobs it has finished? Bytes kept for each settled job.

Jobs of one target are submitted and drained, 500 at a time; the byte budget keeps the store small. After
each block the memory that Python holds is read, and the slope over the blocks is the result: 0 if nothing
is kept. What the process as a whole holds (RSS) is shown beside it.
"""

import gc
import math
import os
import statistics
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import measure
from measure import Number

BLOCK = 500
BLOCKS = 7
# A slope of a few bytes is the allocator's noise: one kept reference would be 8 bytes and its object.
NOISE = 8


def engine(path: str) -> dict[str, float]:
    import trio

    import sift_batch

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        return sift_batch.Result("x" * 100)

    async def main() -> dict[str, float]:
        # No deadlines: Trio keeps up to a thousand of those that are over, now more of them, now fewer.
        config = sift_batch.Config(
            jobs_total=10**6,
            jobs_per_caller=10**6,
            workers=8,
            workers_limit=8,
            max_bytes=100_000,
            target_timeout=math.inf,
            job_timeout=math.inf,
        )
        held, resident = [], []
        async with (
            sift_batch.open_store(path, durability="normal") as store,
            sift_batch.open_runner(store, fetch, config) as runner,
        ):
            for block in range(BLOCKS):
                for number in range(BLOCK):
                    target = sift_batch.Target(f"http://host{number % 97}.example/{block}/{number}")
                    await runner.submit(sift_batch.Caller(f"caller {number % 89}"), [target])
                await runner.drain()
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
                resident.append(_resident())
        return {"python": _slope(held), "resident": _slope(resident)}

    tracemalloc.start()
    return trio.run(main)


def _resident() -> int:
    statm = Path("/proc/self/statm")
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0


def _slope(bytes_held: list[int]) -> float:
    """Return the bytes that one more job costs, from the second block on: caches fill in the first."""
    jobs = [block * BLOCK for block in range(BLOCKS)]
    return statistics.linear_regression(jobs[1:], bytes_held[1:]).slope


def numbers() -> Iterator[Number]:
    with measure.folder(tmpfs=True) as where:
        slopes = measure.in_child(__file__, "engine", path=str(where / "jobs"))
    yield Number(name="kept for a settled job", values=[slopes["python"]], unit="bytes", at_most=NOISE)
    yield Number(name="growth of the process for a settled job", values=[slopes["resident"]], unit="bytes")


if __name__ == "__main__":
    measure.run(numbers, {"engine": engine})
