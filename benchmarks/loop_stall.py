"""Is the application's run loop held up? The worst stall while eight jobs store 50 KB for each target.

A task sleeps for a millisecond again and again; the longest it ever comes late is the stall. The floor is
the same task in an idle loop for the same time, in the same process just after.
"""

import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial

import floors
import measure
from measure import Number, ratios

TICK = 0.001
SECONDS = 1.0
JOBS = 8


def engine(path: str) -> tuple[float, float]:
    import trio

    import sift_batch

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        await trio.lowlevel.checkpoint()
        return sift_batch.Result("x" * 50_000)

    async def worst_while(work: Callable[[], Awaitable[object]]) -> float:
        late = []
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def tick() -> None:
                while True:
                    began = time.perf_counter()
                    await trio.sleep(TICK)
                    late.append(time.perf_counter() - began - TICK)

            await work()
            nursery.cancel_scope.cancel()
        return max(late)

    async def main() -> tuple[float, float]:
        config = sift_batch.Config(jobs_total=10**6, jobs_per_caller=10**6, workers=JOBS, workers_limit=JOBS)
        async with (
            sift_batch.open_store(path) as store,
            sift_batch.open_runner(store, fetch, config) as runner,
        ):

            async def store_results() -> None:
                until = time.perf_counter() + SECONDS
                while time.perf_counter() < until:
                    for urls in floors.split(JOBS * floors.TARGETS_PER_JOB):
                        targets = [sift_batch.Target(url) for url in urls]
                        await runner.submit(sift_batch.Caller("bench"), targets, max_age=0)
                    await runner.drain()

            began = time.perf_counter()
            busy = await worst_while(store_results)
            taken = time.perf_counter() - began
            return busy, await worst_while(partial(trio.sleep, taken))

    return trio.run(main)


def _one() -> tuple[float, float]:
    with measure.folder() as where:
        busy, idle = measure.in_child(__file__, "engine", path=str(where / "jobs"))
    return busy, idle


def numbers() -> Iterator[Number]:
    worst = [_one() for _ in measure.rounds(least=5, most=9, seconds=14)]
    yield Number(
        name="worst stall while 8 jobs store 50 KB each",
        values=ratios(worst),
        unit="x an idle loop's",
        at_most=4,
    )
    yield Number(name="worst stall itself", values=[1e3 * busy for busy, _ in worst], unit="ms")
    yield Number(
        name="an idle loop's worst", values=[1e3 * statistics.median(idle for _, idle in worst)], unit="ms"
    )


if __name__ == "__main__":
    measure.run(numbers, {"engine": engine})
