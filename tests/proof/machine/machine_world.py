"""The real thing: a runner on a store in a file, a reader beside it, and a fetch that does as it is told.

Everything here runs inside the machine's one Trio run, through `Host.call`. A call of the fetch waits
until a rule says what it gives. Followers are tasks that read along and write down what they got.
Next: `machine_rules`, which plays this against the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio
import trio.testing

from sift_batch import (
    Caller,
    Config,
    Job,
    JobStatus,
    Reader,
    Result,
    Runner,
    Store,
    Target,
    attempt,
    open_reader,
    open_runner,
    open_store,
)

Answer = Callable[[], Result]
"""What a call of the fetch does once it is told: return a result, or raise."""


@dataclass
class Call:
    """One call of the fetch, under way."""

    number: int
    caller: Caller
    target: Target
    told: trio.Event = field(default_factory=trio.Event)
    answer: Answer | None = None


@dataclass
class Follower:
    """Somebody who reads along: what they got so far, and how it ended (None: not yet)."""

    kind: str
    job_id: str
    caller: str | None
    known: bool
    got: list[Any] = field(default_factory=list)
    end: str | None = None


class World:
    """One store in a file through all of its lives."""

    def __init__(self, path: Path, config: Config, wall: float) -> None:
        self.path = path
        self.config = config
        self.wall = wall
        self.runner: Runner
        self.reader: Reader
        self.starts: list[tuple[str, int, int]] = []
        self.calls: dict[tuple[str, int], Call] = {}
        self.ready: dict[str, trio.Event] = {}
        self.followers: list[Follower] = []
        self.wrap: Callable[[Store], Any] = lambda store: store
        self._left = trio.Event()
        self._over = trio.Event()

    async def open(self, nursery: trio.Nursery) -> None:
        """Begin a life; its runner is there when this returns."""
        await nursery.start(self._live)

    async def _live(self, task_status: trio.TaskStatus[None]) -> None:
        self._left, self._over = trio.Event(), trio.Event()
        try:
            async with (
                open_store(self.path, durability="normal") as store,
                open_reader(self.path, ttl=self.config.ttl, now=lambda: self.wall) as self.reader,
                open_runner(self.wrap(store), self._fetch, self.config, now=lambda: self.wall) as self.runner,
            ):
                task_status.started()
                await self._left.wait()
        finally:
            self._over.set()

    async def close(self, last: Answer | None) -> None:
        """End this life; with `last`, the fetches in flight give that as soon as it closes."""
        self._left.set()
        await trio.testing.wait_all_tasks_blocked()
        if last is not None:
            for key in list(self.calls):
                self.tell(key, last)
        await self._over.wait()

    async def _fetch(self, caller: Caller, target: Target) -> Result:
        which = attempt.get()
        key = which.job_id, which.idx
        assert key not in self.calls, "one target is fetched twice at once"
        self.starts.append(which)
        call = self.calls[key] = Call(which.number, caller, target)
        try:
            await call.told.wait()
        finally:
            del self.calls[key]
        assert call.answer is not None
        return call.answer()

    def tell(self, key: tuple[str, int], answer: Answer) -> None:
        """Let a call of the fetch go on."""
        self.calls[key].answer = answer
        self.calls[key].told.set()

    def ready_of(self, job_id: str) -> Callable[[], Any]:
        """Return a `ready` for a busy answer of that job, which `ready[job_id]` lets return."""
        self.ready[job_id] = trio.Event()
        return self.ready[job_id].wait

    async def follow(self, follower: Follower) -> None:
        """Read along until the end, whatever it is."""
        self.followers.append(follower)
        reads = {"wait": self._wait, "results": self._results, "watch": self._watch}
        try:
            await reads[follower.kind](follower)
        except (LookupError, trio.ClosedResourceError) as exc:
            follower.end = type(exc).__name__
        else:
            follower.end = ""

    async def _wait(self, follower: Follower) -> None:
        job = await self.runner.wait(follower.job_id, caller=follower.caller)
        follower.got += [] if job is None else [job]

    async def _results(self, follower: Follower) -> None:
        async with self.runner.results(follower.job_id, caller=follower.caller) as targets:
            async for target in targets:
                follower.got.append(target)

    async def _watch(self, follower: Follower) -> None:
        async with self.runner.watch(follower.job_id, caller=follower.caller) as statuses:
            async for status in statuses:
                follower.got.append(status)

    async def read_all(self, ids: list[str]) -> tuple[list[Job], list[JobStatus | None], Any]:
        """Return what a runner's readers get: all jobs, these jobs with their targets, the statistics."""
        jobs = await self.runner.jobs(limit=10_000)
        return jobs, [await self.runner.status(job_id) for job_id in ids], self.runner.statistics()
