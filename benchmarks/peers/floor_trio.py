"""Hand-written Trio loops: eight jobs at once, three ways to get a result to the database.

A worker thread for each transaction; one writer task that commits all that waits together; a thread of
its own that writes, fed by a queue. Each stores a result before the next target of its job starts.
"""

import queue
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from work import AT_ONCE, Peer, Setting, Work, run

_WAYS = ("a thread hop each", "shared commits", "writer thread")

PEER = Peer(
    name="floor: Trio loop",
    packages=(),
    settings=tuple(
        Setting(f"{way}, {durability}", durable=durability == "FULL", how="WAL", workers=AT_ONCE)
        for durability in ("FULL", "NORMAL")
        for way in _WAYS
    ),
    lacks="everything but the work: no cancel, no restart, no caps, no gate",
    own_environment=False,
)

Store = Callable[[int, int, str], Awaitable[None]]


class WriterThread:
    """One thread that has the connection; what waits at the same time is committed together."""

    def __init__(self, connection: Any, store_results: Callable[..., None]) -> None:
        import trio

        self._connection = connection
        self._store_results = store_results
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._token = trio.lowlevel.current_trio_token()
        threading.Thread(target=self._work, daemon=True).start()

    async def store(self, job: int, idx: int, result: str) -> None:
        """Store one result; return once it is committed."""
        import trio

        self._queue.put((job, idx, result, trio.lowlevel.current_task()))
        await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.FAILED)

    def _work(self) -> None:
        import trio

        while True:
            group = [self._queue.get()]
            while not self._queue.empty():
                group.append(self._queue.get())
            self._store_results(self._connection, [row[:3] for row in group])
            for *_, task in group:
                self._token.run_sync_soon(trio.lowlevel.reschedule, task)


class SharedCommits:
    """A task that stores what waits, together, in one hop to a worker thread."""

    def __init__(self, loop: Any, store_results: Callable[..., None]) -> None:
        import trio

        self._loop = loop
        self._store_results = store_results
        self._waiting: list[tuple[tuple[int, int, str], trio.Event]] = []
        self._wake = trio.Event()

    async def store(self, job: int, idx: int, result: str) -> None:
        """Store one result; return once it is committed."""
        import trio

        stored = trio.Event()
        self._waiting.append(((job, idx, result), stored))
        self._wake.set()
        await stored.wait()

    async def work(self) -> None:
        """Store what waits, for ever."""
        import trio

        while True:
            await self._wake.wait()
            self._wake = trio.Event()
            group, self._waiting = self._waiting, []
            await self._loop.step(self._store_results, [row for row, _ in group])
            for _, stored in group:
                stored.set()


def drain(work: Work) -> dict[int, str]:
    import floor_sync
    import floors
    import trio

    way, durability = work.setting.split(", ")
    connection = floors.open_database(work.folder / "jobs", durability)
    loop = floors.TrioLoop(connection)

    async def job(number: int, limiter: trio.CapacityLimiter, store: Store) -> None:
        async with limiter:
            for idx, url in await loop.step(floors.pending, number):
                await trio.lowlevel.checkpoint()
                await store(number, idx, floors.encode(url, work.fetch(work.number(url))))

    async def main() -> None:
        work.begin()
        for number, batch in enumerate(work.batches):
            with work.submitting():
                await loop.submit(number, [work.url(target) for target in batch])
        limiter = trio.CapacityLimiter(work.workers)
        async with trio.open_nursery() as around:
            store: Store = loop.store
            if way == "writer thread":
                store = WriterThread(connection, floors.store_results).store
            elif way == "shared commits":
                shared = SharedCommits(loop, floors.store_results)
                around.start_soon(shared.work)
                store = shared.store
            async with trio.open_nursery() as nursery:
                for number in range(len(work.batches)):
                    nursery.start_soon(job, number, limiter, store)
            around.cancel_scope.cancel()
        work.finished()
        await work.time_look_async(lambda: loop.step(floor_sync.look))

    trio.run(main)
    return floor_sync.read_back(connection)


if __name__ == "__main__":
    sys.path.append(str(Path(__file__).resolve().parent.parent))
    run(drain)
