"""What does it cost to look at a job often? A summary of a job of 32 results of 50 KB each.

A summary is `status(results=False)`: the job and the state of each target, read in one step. The floor
is the look-up of the job's row alone (`job`), through the same thread of the same store: what a summary
would cost if it read no target at all.
"""

import statistics
import time
from collections.abc import Awaitable, Callable, Iterator

import floors
import measure
from measure import Number, ratios

POLLS = 200
BLOCKS = 15


def engine(path: str) -> list[tuple[float, float]]:
    import trio

    import sift_batch

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        return sift_batch.Result("x" * 50_000)

    async def median_of(poll: Callable[[], Awaitable[object]]) -> float:
        times = []
        for _ in range(POLLS):
            began = time.perf_counter()
            await poll()
            times.append(time.perf_counter() - began)
        return statistics.median(times)

    async def main() -> list[tuple[float, float]]:
        async with (
            sift_batch.open_store(path, durability="normal") as store,
            sift_batch.open_runner(store, fetch) as runner,
        ):
            (urls,) = floors.split(floors.TARGETS_PER_JOB)
            job_id, _ = await runner.submit(
                sift_batch.Caller("bench"), [sift_batch.Target(url) for url in urls]
            )
            await runner.wait(job_id)
            return [
                (
                    await median_of(lambda: runner.status(job_id, results=False)),
                    await median_of(lambda: runner.job(job_id)),
                )
                for _ in range(BLOCKS)
            ]

    return trio.run(main)


def numbers() -> Iterator[Number]:
    with measure.folder() as where:
        times = measure.in_child(__file__, "engine", path=str(where / "jobs"))
    yield Number(
        name="summary poll of 32 x 50 KB", values=ratios(times), unit="x a look-up of its row", at_most=3
    )
    yield Number(
        name="summary poll itself", values=[1e6 * summary for summary, _ in times], unit="microseconds"
    )


if __name__ == "__main__":
    measure.run(numbers, {"engine": engine})
