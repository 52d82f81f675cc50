"""How soon is it there? Time to import, and from an empty process to the first stored result.

The package's own import is what it adds once trio, anyio and structlog are loaded: with all that a runner
on a store in a file needs, not just the package's empty front, which imports names when they are asked for.
The floor of the cold start is a Trio loop written by hand that imports the same libraries and stores one
target of one job in a new database, with the same durability.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import floors
import measure
from measure import Number, ratios


def own_import() -> dict[str, float]:
    import anyio
    import structlog
    import trio

    del anyio, structlog, trio
    began = time.perf_counter()
    import sift_batch

    front = time.perf_counter() - began
    from sift_batch import open_runner, open_store

    whole = time.perf_counter() - began
    del sift_batch, open_runner, open_store
    return {"front": front, "whole": whole}


def floor(path: str) -> float:
    import structlog
    import trio

    del structlog

    async def main() -> float:
        loop = floors.TrioLoop(floors.open_database(Path(path), "full"))
        await loop.submit(0, ["http://host.example/0"])
        for idx, url in await loop.step(floors.pending, 0):
            await trio.lowlevel.checkpoint()
            await loop.store(0, idx, floors.encode(url, "x" * 1_000))
        return time.monotonic()

    return trio.run(main)


def engine(path: str) -> float:
    import trio

    import sift_batch

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        await trio.lowlevel.checkpoint()
        return sift_batch.Result("x" * 1_000)

    async def main() -> float:
        async with (
            sift_batch.open_store(path) as store,
            sift_batch.open_runner(store, fetch) as runner,
        ):
            caller = sift_batch.Caller("bench")
            await runner.submit(caller, [sift_batch.Target("http://host.example/0")])
            await runner.drain()
            return time.monotonic()

    return trio.run(main)


def _cold(kind: str) -> float:
    with measure.folder() as where:
        began = time.monotonic()
        # The monotonic clock is one for all processes.
        return float(measure.in_child(__file__, kind, path=str(where / "jobs"))) - began


def numbers() -> Iterator[Number]:
    for kind in ("own_import", "floor", "engine"):
        # Once unmeasured: compiled files and the system's cache are there from now on.
        _cold(kind) if kind != "own_import" else measure.in_child(__file__, kind)
    fronts, wholes, cold = [], [], []
    for _ in measure.rounds(least=7, most=15, seconds=15):
        own = measure.in_child(__file__, "own_import")
        fronts.append(1e3 * own["front"])
        wholes.append(1e3 * own["whole"])
        by_hand = _cold("floor")
        cold.append((_cold("engine"), by_hand))
    yield Number(name="own import, all that a runner needs", values=wholes, unit="ms", at_most=20)
    yield Number(name="own import, the front alone", values=fronts, unit="ms", at_most=20)
    yield Number(
        name="cold start to the first stored result",
        values=ratios(cold),
        unit="x a hand-written Trio loop's",
        at_most=1.3,
    )
    yield Number(name="cold start itself", values=[1e3 * taken for taken, _ in cold], unit="ms")


if __name__ == "__main__":
    measure.run(numbers, {"own_import": own_import, "floor": floor, "engine": engine})
