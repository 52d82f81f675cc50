"""How often is the disk made to write? Syncs per target while draining, and per submit, by strace.

63 jobs of 32 targets are submitted while the first fetch of each worker waits; then all are let go. What
is synced in the first phase is the submits', in the second the draining's: commits and checkpoints. There
is no floor: one commit for a target is one sync, and eight jobs can share one.
"""

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import floors
import measure
from measure import Number

JOBS = 63
TARGETS = JOBS * floors.TARGETS_PER_JOB


def engine(path: str, workers: int) -> dict[str, float]:
    import trio

    import sift_batch

    async def main() -> dict[str, float]:
        go = trio.Event()

        async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
            await go.wait()
            return sift_batch.Result("x" * 1_000)

        config = sift_batch.Config(
            jobs_total=10**6, jobs_per_caller=10**6, workers=workers, workers_limit=workers
        )
        async with (
            sift_batch.open_store(path) as store,
            sift_batch.open_runner(store, fetch, config) as runner,
        ):
            opened = time.time()
            for urls in floors.split(TARGETS):
                await runner.submit(sift_batch.Caller("bench"), [sift_batch.Target(url) for url in urls])
            submitted = time.time()
            go.set()
            await runner.drain()
            return {"opened": opened, "submitted": submitted, "drained": time.time()}

    return trio.run(main)


def _syncs(workers: int) -> tuple[int, int]:
    """Return how many syncs the submits took, and how many the draining."""
    with measure.folder() as where:
        trace = where / "trace"
        strace = ["strace", "-f", "-qq", "-ttt", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
        marks = measure.in_child(__file__, "engine", before=strace, path=str(where / "jobs"), workers=workers)
        times = _times(trace)
    submits = sum(marks["opened"] < at < marks["submitted"] for at in times)
    return submits, sum(marks["submitted"] < at < marks["drained"] for at in times)


def _times(trace: Path) -> list[float]:
    """Return when each sync began; one that another thread cut in two is written in two lines."""
    lines = [line.split() for line in trace.read_text().splitlines()]
    return [float(at) for _, at, *call in lines if call[0].startswith(("fsync(", "fdatasync("))]


def numbers() -> Iterator[Number]:
    if shutil.which("strace") is None:
        print("syncs: not measured, there is no strace here", file=sys.stderr)
        return
    submits, one = _syncs(1)
    _, eight = _syncs(8)
    unit = "syncs"
    yield Number(name="draining a target, 1 job", values=[one / TARGETS], unit=unit, at_most=1.1)
    yield Number(name="draining a target, 8 jobs", values=[eight / TARGETS], unit=unit, at_most=0.25)
    # One of them is the start of the job that waits; checkpoints are counted as well.
    yield Number(name="a submit", values=[(submits - 1) / JOBS], unit=unit, at_most=1.1)


if __name__ == "__main__":
    measure.run(numbers, {"engine": engine})
