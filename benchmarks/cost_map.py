"""Where does a target's time go? The parts of `overhead.py`'s numbers, each measured by itself.

CPU of one process for each target, eight jobs at once, 1 KB results, on tmpfs: what Trio costs, what the
engine adds to it when the store answers at once, what SQLite costs when one thread does nothing else, and
the whole, split by threads. All of it is draining: what opening, submitting and closing take is not in any
part, nor in the whole. What is left between the parts and the whole is the way between the threads.
The last lines are the disk: what one synced commit takes, which no engine that commits can go below.
"""

import contextlib
import dataclasses
import math
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import floors
import measure
import overhead
from measure import Number

T = TypeVar("T")

TARGETS = 1_920
JOBS = 8
BLOB = b'{"content":"' + b"x" * 1_000 + b'","meta":{}}'


def _us(work: Callable[[], object]) -> float:
    """Return the microseconds of CPU that `work` takes for each target."""
    began = time.process_time()
    work()
    return 1e6 * (time.process_time() - began) / TARGETS


def checkpoints(path: str) -> float:
    """Two checkpoints a target: one for the fetch, one for the store."""
    import trio

    async def job() -> None:
        for _ in range(TARGETS // JOBS):
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()

    return _us(lambda: trio.run(_eight, job))


def scopes(path: str) -> float:
    """The same with a deadline round the fetch."""
    import trio

    async def job() -> None:
        for _ in range(TARGETS // JOBS):
            with trio.CancelScope(deadline=trio.current_time() + 300):
                await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()

    return _us(lambda: trio.run(_eight, job))


async def _eight(job: Any) -> None:
    import trio

    async with trio.open_nursery() as nursery:
        for _ in range(JOBS):
            nursery.start_soon(job)


async def _drained(store: Any, clocks: Callable[[], T]) -> tuple[T, T]:
    """Submit all while no job may begin, then drain; return the clocks before and after the draining."""
    import trio

    import sift_batch

    begin, open_now = store.begin, trio.Event()

    async def begin_later(owner: str, *, now: int) -> Any:
        await open_now.wait()
        return await begin(owner, now=now)

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        await trio.lowlevel.checkpoint()
        return sift_batch.Result(overhead.CONTENT)

    store.begin = begin_later
    config = sift_batch.Config(
        jobs_total=10**6, jobs_per_caller=10**6, workers=JOBS, workers_limit=JOBS, max_bytes=2**40
    )
    async with sift_batch.open_runner(store, fetch, config) as runner:
        for urls in floors.split(TARGETS):
            await runner.submit(sift_batch.Caller("bench"), [sift_batch.Target(url) for url in urls])
        before = clocks()
        open_now.set()
        await runner.drain()
        return before, clocks()


def engine_alone(path: str) -> float:
    """The engine with a store that answers after one checkpoint; submits are not counted."""
    import trio

    import sift_batch
    from sift_batch._model.store import Recorded

    async def main() -> float:
        async with sift_batch.open_store(":memory:") as store:

            async def record(owner: str, job_id: str, idx: int, outcome: Any, *, now: int) -> Recorded:
                await trio.lowlevel.checkpoint()
                if idx + 1 < floors.TARGETS_PER_JOB:
                    return Recorded(len(BLOB), None, ended=False)
                job = await store.job(job_id, caller=None, now=now, ttl=math.inf)
                assert job is not None
                done = dataclasses.replace(job, status=sift_batch.JobState.DONE, settled=True)
                return Recorded(len(BLOB), done, ended=True)

            store.record = record  # type: ignore[method-assign]
            before, after = await _drained(store, time.process_time)
            return 1e6 * (after - before) / TARGETS

    return trio.run(main)


def sqlite_alone(path: str) -> float:
    """The store's own steps in one thread, eight to a commit; submits are not counted."""
    from sift_batch import Caller, Target, TargetState
    from sift_batch._model.store import Caps, NewJob, Outcome
    from sift_batch._store import arrival, files, steps

    files.ensure_store(Path(path))
    connection = files.connect_writer(Path(path), "normal")
    ids = []
    for number, urls in enumerate(floors.split(TARGETS)):
        new = NewJob(id=f"{number:032x}", caller=Caller("bench"), targets=[Target(url) for url in urls])
        with _commit(connection):
            arrival.submit(
                connection,
                owner="owner",
                new=new,
                key=str(number),
                now=1,
                ttl=1.0,
                caps=Caps(10**6, 10**6),
                max_age=None,
            )
        ids.append(new.id)
    outcome = Outcome(status=TargetState.DONE, result=BLOB, chars=1_000)

    def drain() -> None:
        for start in range(0, len(ids), JOBS):
            part = ids[start : start + JOBS]
            for _ in part:
                with _commit(connection):
                    steps.begin(connection, owner="owner", now=1)
            for idx in range(floors.TARGETS_PER_JOB):
                with _commit(connection):
                    for job_id in part:
                        assert steps.record(
                            connection, owner="owner", job_id=job_id, idx=idx, outcome=outcome, now=1
                        )

    return _us(drain)


@contextlib.contextmanager
def _commit(connection: Any) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("COMMIT")


class _Clocks(NamedTuple):
    """CPU of the thread that reads them and of the process, and how often a thread had to wait."""

    main: float
    everything: float
    switches: int


def _clocks() -> _Clocks:
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    return _Clocks(time.thread_time(), time.process_time(), switches)


def whole(path: str) -> dict[str, float]:
    """The engine as it is: CPU of the thread that runs Trio, and of all others; submits are not counted."""
    import trio

    import sift_batch

    async def drained() -> tuple[_Clocks, _Clocks]:
        async with sift_batch.open_store(path, durability="normal") as store:
            return await _drained(store, _clocks)

    before, after = trio.run(drained)
    main, everything = after.main - before.main, after.everything - before.everything
    return {
        "main": 1e6 * main / TARGETS,
        "writer": 1e6 * (everything - main) / TARGETS,
        "switches": (after.switches - before.switches) / TARGETS,
    }


def sync(path: str) -> float:
    """One small synced commit, in microseconds."""
    connection = floors.open_database(Path(path), "full")
    taken = []
    for job in range(200):
        began = time.perf_counter()
        floors.insert_job(connection, job, ["http://host.example/"])
        taken.append(time.perf_counter() - began)
    return 1e6 * sorted(taken)[len(taken) // 2]


def _once(kind: str, *, tmpfs: bool = True) -> Any:
    with measure.folder(tmpfs=tmpfs) as where:
        return measure.in_child(__file__, kind, path=str(where / "jobs"))


KINDS: dict[str, Callable[..., Any]] = {
    "checkpoints": checkpoints,
    "scopes": scopes,
    "engine_alone": engine_alone,
    "sqlite_alone": sqlite_alone,
    "whole": whole,
    "sync": sync,
}


def numbers() -> Iterator[Number]:
    rounds = [
        {kind: _once(kind, tmpfs=kind != "sync") for kind in KINDS}
        for _ in measure.rounds(least=3, most=7, seconds=20)
    ]
    parts = [
        ("Trio: two checkpoints in each of eight tasks", "checkpoints"),
        ("Trio: the same, with a deadline round one of them", "scopes"),
        ("the engine, with a store that answers at once", "engine_alone"),
        ("SQLite: the store's steps in one thread", "sqlite_alone"),
    ]
    for name, kind in parts:
        yield Number(name=name, values=[each[kind] for each in rounds], unit="us of CPU a target")
    for name, kind in (
        ("the whole: the loop's thread", "main"),
        ("the whole: the writer's thread", "writer"),
    ):
        yield Number(
            name=name,
            values=[each["whole"][kind] for each in rounds],
            unit="us of CPU a target",
        )
    yield Number(
        name="the whole: waits of a thread for another",
        values=[each["whole"]["switches"] for each in rounds],
        unit="a target",
    )
    yield Number(name="the disk: one synced commit", values=[each["sync"] for each in rounds], unit="us")


if __name__ == "__main__":
    measure.run(numbers, KINDS)
