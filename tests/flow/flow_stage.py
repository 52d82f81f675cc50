"""A stage for flows: a runner on a store in memory, a scripted fetch, a wall clock that follows Trio's.

`audit` reads the rows themselves and says whether they fit together; every flow may end with it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import trio
import trio.testing

from sift_batch import (
    Caller,
    CallerClass,
    Config,
    Hooks,
    Job,
    JobState,
    Runner,
    Store,
    Target,
    TargetState,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, ScriptedFetch, WallClock

ALICE = Caller("alice")
BOB = Caller("bob")
SECRETIVE = Caller("secretive", caller_class=CallerClass.RESTRICTED)
START = 1_700_000_000
WIDE = {"jobs_per_caller": 1_000, "jobs_total": 1_000, "workers_limit": 1_000}


def series(n: int = 3, name: str = "page") -> list[Target]:
    """Return `n` targets of one host."""
    return [Target(f"https://host.example/{name}/{index}") for index in range(n)]


def wide(**settings: Any) -> Config:
    """Return a config whose caps are in nobody's way."""
    return Config(**{**WIDE, **settings})


@dataclass
class Stage:
    """What a flow plays with. `store` is what the runner got, `rows` the store with the rows."""

    runner: Runner
    store: Store
    rows: Store
    fetch: ScriptedFetch
    clock: WallClock

    async def submit(self, n: int = 3, name: str = "page", caller: Caller = ALICE) -> str:
        """Submit, and return the job's id."""
        return (await self.runner.submit(caller, series(n, name))).id

    async def done(self, n: int = 1, name: str = "page", caller: Caller = ALICE) -> Job:
        """Submit, and return the job once it has settled."""
        job = await self.runner.wait(await self.submit(n, name, caller))
        assert job is not None
        return job

    async def job(self, job_id: str) -> Job:
        """Return a job that is there."""
        job = await self.runner.job(job_id)
        assert job is not None
        return job

    async def states(self, job_id: str) -> list[str]:
        """Return the states of a job's targets."""
        status = await self.runner.status(job_id, results=False)
        assert status is not None
        return [target.status.value for target in status.targets]


@asynccontextmanager
async def stage(
    config: Config | None = None,
    *,
    fetch: Any = None,
    store: Store | None = None,
    faulty: bool = False,
    hooks: Hooks | None = None,
    clock: WallClock | None = None,
    wrap: Callable[[Store], Any] | None = None,
) -> AsyncIterator[Stage]:
    """Open a stage; without `store` on a fresh one in memory, with `faulty` behind a `FaultyStore`."""
    if store is None:
        async with (
            open_store(":memory:") as fresh,
            stage(
                config, fetch=fetch, store=fresh, faulty=faulty, hooks=hooks, clock=clock, wrap=wrap
            ) as opened,
        ):
            yield opened
        return
    outer: Store = FaultyStore(store) if faulty else store
    if wrap is not None:
        outer = wrap(outer)
    fetch = ScriptedFetch() if fetch is None else fetch
    clock = WallClock(START) if clock is None else clock
    async with open_runner(outer, fetch, config or wide(), hooks=hooks, now=clock) as runner:
        yield Stage(runner, outer, store, fetch, clock)


def select(store: Any, query: str, *values: Any) -> list[Any]:
    """Ask the rows of a store in memory."""
    return store._inline._connection.execute(query, values).fetchall()  # type: ignore[no-any-return]


def change(store: Any, query: str, *values: Any) -> None:
    """Change rows of a store in memory, behind everybody's back."""
    store._inline._connection.execute(query, values)


def dump(store: Any) -> list[str]:
    """Return everything that a store in memory holds."""
    return list(store._inline._connection.iterdump())


def audit(store: Any, runner: Runner | None = None, *, settled: bool = False) -> None:
    """Check that counters equal rows and that no state contradicts another.

    With `settled`, also that nothing is live or unsettled. With `runner`, its statistics too.
    """
    finished = ("done", "failed")
    for job_id, status, is_settled, total, done, failed, nbytes, finished_at in select(
        store,
        "SELECT id, status, settled, targets_total, targets_done, targets_failed, nbytes, finished_at "
        "FROM batch_job",
    ):
        states = [row[0] for row in select(store, "SELECT status FROM batch_target WHERE job_id = ?", job_id)]
        assert len(states) == total
        assert done == sum(state in finished for state in states)
        assert failed == states.count("failed")
        (size,) = select(store, "SELECT sum(nbytes) FROM batch_target WHERE job_id = ?", job_id)[0]
        assert nbytes == size
        assert states.count("running") <= 1
        state = JobState(status)
        assert state.terminal == (finished_at is not None)
        assert not (is_settled and state.live)
        if is_settled:
            assert TargetState.RUNNING not in states
        if settled:
            assert is_settled
    if runner is not None:
        (total_bytes,) = select(store, "SELECT coalesce(sum(nbytes), 0) FROM batch_job")[0]
        statistics = runner.statistics()
        assert statistics.stored_bytes == total_bytes
        live = select(store, "SELECT count(*) FROM batch_job WHERE status IN ('queued', 'running')")[0][0]
        assert statistics.queued + statistics.running == live
        if settled:
            assert statistics.in_flight == 0


class Told(Hooks):
    """Writes down what it was told."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name in ("said", "of"):
            return super().__getattribute__(name)
        return lambda *values: self.said.append((name, *values))

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """Return the values of all calls of one hook."""
        return [values[1:] for values in self.said if values[0] == name]


@asynccontextmanager
async def left_clean() -> AsyncIterator[Store]:
    """Give a store in memory; afterwards no task is left over, and another runner may have it."""
    root = trio.lowlevel.current_root_task()
    before = _tasks(root)
    async with open_store(":memory:") as store:
        yield store
        await trio.lowlevel.checkpoint()
        assert _tasks(root) == before
        async with open_runner(store, ScriptedFetch()):
            audit(store, settled=True)


def _tasks(task: Any) -> int:
    return 1 + sum(_tasks(child) for nursery in task.child_nurseries for child in nursery.child_tasks)


async def idle() -> None:
    """Let every other task run until all of them wait."""
    await trio.testing.wait_all_tasks_blocked()
