"""What does the engine cost? Targets per second and CPU per target, against a loop written by hand.

640 targets in jobs of 32, a fetch that does nothing, results of 1 KB, each stored before the next
target of its job begins; from the first submit until all is stored. The floor is a synchronous `sqlite3`
loop with one commit for each target and the same durability. Speed is measured on the disk, with every
commit synced; CPU on tmpfs, where the disk costs nothing.
"""

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import floors
import measure
from measure import Number, ratios

TARGETS = 640
CPU_TARGETS = 1_920
CONTENT = "x" * 1_000


def floor(path: str, durability: str, targets: int) -> dict[str, float]:
    connection = floors.open_database(Path(path), durability)
    jobs = floors.split(targets)
    began = _now()
    floors.drain_synchronously(connection, jobs, lambda _: CONTENT)
    return _since(began)


def engine(path: str, durability: Any, targets: int, workers: int) -> dict[str, float]:
    import trio

    import sift_batch

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        await trio.lowlevel.checkpoint()
        return sift_batch.Result(CONTENT)

    async def main() -> dict[str, float]:
        config = sift_batch.Config(
            jobs_total=10**6,
            jobs_per_caller=10**6,
            workers=workers,
            workers_limit=workers,
            max_bytes=2**40,
        )
        caller = sift_batch.Caller("bench")
        async with (
            sift_batch.open_store(path, durability=durability) as store,
            sift_batch.open_runner(store, fetch, config) as runner,
        ):
            began = _now()
            for urls in floors.split(targets):
                await runner.submit(caller, [sift_batch.Target(url) for url in urls])
            await runner.drain()
            return _since(began)

    return trio.run(main)


def _now() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def _since(began: tuple[float, float]) -> dict[str, float]:
    wall, cpu = _now()
    return {"wall": wall - began[0], "cpu": cpu - began[1]}


def _one(kind: str, measured: str, *, tmpfs: bool = False, **arguments: Any) -> float:
    # On tmpfs CPU alone is of interest, and syncing is left out on both sides.
    durability, targets = ("normal", CPU_TARGETS) if tmpfs else ("full", TARGETS)
    with measure.folder(tmpfs=tmpfs) as where:
        arguments |= {"path": str(where / "jobs"), "durability": durability, "targets": targets}
        return float(measure.in_child(__file__, kind, **arguments)[measured])


def numbers() -> Iterator[Number]:
    floor_wall, eight, one = [], [], []
    for _ in measure.rounds(least=5, most=15, seconds=24):
        floor_wall.append(_one("floor", "wall"))
        eight.append(_one("engine", "wall", workers=8))
        one.append(_one("engine", "wall", workers=1))
    unit = "x the floor's targets/s"
    yield Number(
        name="overhead, 8 jobs", values=ratios(zip(floor_wall, eight, strict=True)), unit=unit, at_least=1.2
    )
    yield Number(
        name="overhead, 1 job", values=ratios(zip(floor_wall, one, strict=True)), unit=unit, at_least=0.55
    )
    yield Number(name="the floor itself", values=[TARGETS / wall for wall in floor_wall], unit="targets/s")
    if not measure.TMPFS.is_dir():
        return
    floor_cpu, cpu = [], []
    for _ in measure.rounds(least=5, most=11, seconds=16):
        floor_cpu.append(_one("floor", "cpu", tmpfs=True))
        cpu.append(_one("engine", "cpu", tmpfs=True, workers=8))
    yield Number(
        name="CPU per target on tmpfs, 8 jobs",
        values=ratios(zip(cpu, floor_cpu, strict=True)),
        unit="x the floor's",
        at_most=2.6,
    )
    yield Number(
        name="CPU per target itself", values=[1e6 * used / CPU_TARGETS for used in cpu], unit="microseconds"
    )


if __name__ == "__main__":
    measure.run(numbers, {"floor": floor, "engine": engine})
