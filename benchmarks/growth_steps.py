"""What does each thing that an application or the engine does cost, on one given store?

Each function opens the store, does one group of things a few times and returns the median of each in
milliseconds. They use the public surface, except that sweep, evict and the question whether anything
has lapsed are the store's own operations: the engine does them by itself, when nobody can time them.
The file changes a little; a caller that wants the same store again keeps a copy.
"""

import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import growth_store
from growth_store import BEGAN, TTL, Clock, Filling

SAMPLES = 15
FEW = 7
"""How often something is done that takes a job away."""
_LATER = BEGAN + TTL / 2


class Times:
    """How long each operation took, each time."""

    def __init__(self) -> None:
        self._taken: defaultdict[str, list[float]] = defaultdict(list)

    @contextmanager
    def of(self, operation: str, *, parts: int = 1) -> Iterator[None]:
        """Time one operation; with `parts`, each of as many that were done together."""
        began = time.perf_counter()
        yield
        self._taken[operation].append((time.perf_counter() - began) * 1_000 / parts)

    def medians(self) -> dict[str, float]:
        """Return the median of each operation, in milliseconds."""
        return {operation: statistics.median(taken) for operation, taken in self._taken.items()}


class _Fetch:
    """A fetch that tells when a job has begun, and waits there until it may go on."""

    def __init__(self, content: str) -> None:
        self._content = content
        self.hold()

    def hold(self) -> None:
        import trio

        self.begun, self.go = trio.Event(), trio.Event()

    async def __call__(self, _: Any, __: Any) -> Any:
        import sift_batch

        self.begun.set()
        await self.go.wait()
        return sift_batch.Result(self._content)


def calls(path: Path, filling: Filling, known: list[tuple[str, str]]) -> dict[str, float]:
    """Time what callers ask for, through a runner. `known`: ids and callers of stored jobs."""
    import trio

    import sift_batch

    times, clock = Times(), Clock(_LATER)

    async def main() -> None:
        fetch = _Fetch("x" * filling.result)
        async with (
            sift_batch.open_store(path, durability="normal") as store,
            sift_batch.open_runner(store, fetch, growth_store.unlimited(workers=1), now=clock) as runner,
        ):
            await runner.job(known[0][0])
            for number, (job_id, caller) in enumerate((known * SAMPLES)[:SAMPLES]):
                await _looks(runner, times, job_id, caller)
                clock.now += 1
                with times.of("touch"):
                    await runner.touch(job_id)
                new = await _one_job(runner, times, fetch, filling, number)
                with times.of("rerun"):
                    again = await runner.rerun(sift_batch.Caller(caller), job_id)
                for gone in (new, again.id):
                    with times.of("delete"):
                        assert await runner.delete(gone)

    trio.run(main)
    return times.medians()


async def _looks(runner: Any, times: Times, job_id: str, caller: str) -> None:
    with times.of("poll, summary"):
        assert await runner.status(job_id, results=False) is not None
    with times.of("poll, results"):
        assert await runner.status(job_id) is not None
    with times.of("page of a caller's jobs"):
        assert await runner.jobs(caller, limit=5)
    with times.of("page of all jobs"):
        assert await runner.jobs(limit=5)


async def _one_job(runner: Any, times: Times, fetch: _Fetch, filling: Filling, number: int) -> str:
    """Submit a new job, and then the same once more; drain it."""
    import sift_batch

    fetch.hold()
    # Nobody's first job: the same caller has others.
    caller = sift_batch.Caller(growth_store.caller_of(number % filling.series))
    targets = [sift_batch.Target(url) for url in growth_store.urls_of(f"new/{number}", filling.targets)]
    with times.of("submit"):
        job_id, reused = await runner.submit(caller, targets)
    assert not reused
    await fetch.begun.wait()
    with times.of("store a target", parts=filling.targets):
        fetch.go.set()
        await runner.wait(job_id)
    with times.of("submit the same again"):
        assert (await runner.submit(caller, targets)).reused
    return str(job_id)


def fetch_anew(path: Path, filling: Filling) -> dict[str, float]:
    """Time submits of the one series that every job of the store has: fetched again, and answered."""
    import trio

    import sift_batch

    times, clock = Times(), Clock(_LATER)

    async def main() -> None:
        fetch = _Fetch("x" * filling.result)
        fetch.go.set()
        async with (
            sift_batch.open_store(path, durability="normal") as store,
            sift_batch.open_runner(store, fetch, growth_store.unlimited(workers=1), now=clock) as runner,
        ):
            targets = [sift_batch.Target(url) for url in growth_store.urls_of("0", filling.targets)]
            caller = sift_batch.Caller(growth_store.caller_of(0))
            for _ in range(SAMPLES):
                clock.now += 1
                # Every job of the series is older than that, so none answers.
                with times.of("submit, max_age=60"):
                    job_id, reused = await runner.submit(caller, targets, max_age=60)
                assert not reused
                await runner.wait(job_id)
                assert await runner.delete(job_id)
                with times.of("submit, max_age=0"):
                    job_id, reused = await runner.submit(caller, targets, max_age=0)
                assert not reused
                await runner.wait(job_id)
                with times.of("submit the same again"):
                    assert (await runner.submit(caller, targets)).id == job_id
                assert await runner.delete(job_id)

    trio.run(main)
    return times.medians()


def upkeep(path: Path) -> dict[str, float]:
    """Time what the engine does by itself, on the store alone: it has at least 15 jobs."""
    import trio

    import sift_batch

    times = Times()

    async def main() -> None:
        async with sift_batch.open_store(path, durability="normal") as opened:
            store: Any = opened
            now, owner = int(_LATER), "bench"
            await store.acquire(owner, now=now)
            for _ in range(SAMPLES):
                with times.of("has anything lapsed?"):
                    assert not (await store.lapsed(now=now, ttl=TTL)).job_ids
            for _ in range(FEW):
                with times.of("evict a job"):
                    assert await store.evict(owner, max_bytes=0, now=now, ttl=TTL) is not None
            late = int(_LATER + 2 * TTL)
            for job_id in (await store.lapsed(now=late, ttl=TTL)).job_ids[:FEW]:
                with times.of("sweep a lapsed job"):
                    assert await store.sweep(owner, job_id, now=late, ttl=TTL) is not None
            await store.release(owner)

    trio.run(main)
    return times.medians()


def opening(path: Path, known: list[tuple[str, str]]) -> dict[str, float]:
    """Time what it takes until a runner, or a reader, is there."""
    import trio

    import sift_batch

    times, clock = Times(), Clock(_LATER)

    async def fetch(_: Any, __: Any) -> sift_batch.Result:
        raise AssertionError("nothing is to be fetched")

    async def main() -> None:
        for _ in range(FEW):
            async with AsyncExitStack() as stack:
                with times.of("open"):
                    store = await stack.enter_async_context(sift_batch.open_store(path, durability="normal"))
                    config = growth_store.unlimited(workers=1)
                    await stack.enter_async_context(sift_batch.open_runner(store, fetch, config, now=clock))
            async with AsyncExitStack() as stack:
                with times.of("open a reader"):
                    opened = sift_batch.open_reader(path, ttl=TTL, now=clock)
                    reader = await stack.enter_async_context(opened)
                    assert await reader.job(known[0][0]) is not None

    trio.run(main)
    return times.medians()


def among_live(path: Path, live: int) -> dict[str, float]:
    """Time what depends on how many jobs wait: `live` of them, one target each, in a new store."""
    import trio

    import sift_batch

    times, clock = Times(), Clock(BEGAN)

    async def submit(runner: Any, name: str) -> str:
        targets = [sift_batch.Target(url) for url in growth_store.urls_of(name, 1)]
        submission = await runner.submit(sift_batch.Caller("bench"), targets)
        return str(submission.id)

    async def main() -> None:
        config = growth_store.unlimited(workers=1)
        async with sift_batch.open_store(path, durability="normal") as store:
            async with sift_batch.open_runner(store, _Fetch(""), config, now=clock) as runner:
                left = iter(range(live))

                async def fill() -> None:
                    for number in left:
                        await submit(runner, f"live/{number}")

                async with trio.open_nursery() as nursery:
                    for _ in range(growth_store.AT_ONCE):
                        nursery.start_soon(fill)
                for number in range(SAMPLES):
                    with times.of("submit"):
                        job_id = await submit(runner, f"new/{number}")
                    with times.of("poll, summary"):
                        assert await runner.status(job_id, results=False) is not None
                    with times.of("progress"):
                        assert runner.progress(job_id) is not None
                    with times.of("cancel"):
                        assert await runner.cancel(job_id)
            async with AsyncExitStack() as stack:
                with times.of("open, failing them"):
                    opened = sift_batch.open_runner(store, _Fetch(""), config, now=clock)
                    await stack.enter_async_context(opened)

    trio.run(main)
    return times.medians()
