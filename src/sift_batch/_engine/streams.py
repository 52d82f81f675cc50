"""How does somebody read a job while it runs? `watch` and `results`.

Plain objects with `__anext__` and no tasks behind them, so breaking out of one leaves nothing half-way. Each
step reads the store, or waits for news of the job (`feeds.py`) and reads then; what a reader does not ask
for is not read. A stream that ends has given everything: whatever cuts it short raises.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self

import trio

from .._model.lifecycle import TargetState
from .._model.values import JobStatus, TargetStatus
from .feeds import Feed, Feeds

_PAGE: Final = 8
_FINISHED: Final = frozenset({TargetState.DONE, TargetState.FAILED})


class _Stream:
    """What both streams share: they follow their job inside `async with`, and know whether they are over."""

    def __init__(self, feeds: Feeds, job_id: str, caller: str | None) -> None:
        self._feeds = feeds
        self._job_id = job_id
        self._caller = caller
        self._following = feeds.follow(job_id)
        self._feed: Feed | None = None
        self._seen = False
        self._over = False
        self._left = False
        # Whether a task reads just now: a second one would get the same targets again.
        self._reading = False

    async def __aenter__(self) -> Self:
        if self._feed is not None or self._left:
            raise RuntimeError("a stream can be entered once; ask the runner for another")
        await trio.lowlevel.checkpoint()
        self._feed = self._following.__enter__()
        return self

    def __aiter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left = True
        if self._feed is not None:
            self._feed = None
            self._following.__exit__(None, None, None)

    async def _check_open(self) -> Feed:
        """Return the feed of a stream that can still give something."""
        if self._over:
            await trio.lowlevel.checkpoint()
            raise StopAsyncIteration
        if self._left:
            raise trio.ClosedResourceError("this stream was left before its end")
        if self._feed is None:
            raise RuntimeError("a stream is read inside its block: `async with runner.watch(id) as stream:`")
        return self._feed

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._reading:
            raise trio.BusyResourceError("another task reads this stream; give each its own")
        self._reading = True
        try:
            yield
        finally:
            self._reading = False

    def _gone(self) -> BaseException:
        """Return how the stream ends when the job is not there: at once, or as a loss."""
        if not self._seen:
            self._over = True
            return StopAsyncIteration()
        return LookupError("the job went while it was read: it lapsed, was evicted or deleted")


class Watch(_Stream):
    """Yields the job's status at each new version, the latest first seen, until it has settled."""

    def __init__(self, feeds: Feeds, job_id: str, caller: str | None) -> None:
        super().__init__(feeds, job_id, caller)
        self._version = 0

    async def __anext__(self) -> JobStatus:
        with self._alone():
            return await self._next_status()

    async def _next_status(self) -> JobStatus:
        feed = await self._check_open()
        while True:
            changes = feed.changes
            status = await self._feeds.status(feed, self._job_id, self._caller)
            if status is None:
                raise self._gone()
            self._seen = True
            if status.job.version != self._version:
                self._version = status.job.version
                self._over = status.job.settled
                return status
            await self._feeds.news(feed, changes, self._job_id)


class Results(_Stream):
    """Yields each finished target once, in order, as it comes, until the job has settled."""

    def __init__(self, feeds: Feeds, job_id: str, caller: str | None, start: int) -> None:
        super().__init__(feeds, job_id, caller)
        self._next_idx = start
        self._total: int | None = None
        self._ready: deque[TargetStatus] = deque()

    async def __anext__(self) -> TargetStatus:
        with self._alone():
            return await self._next_target()

    async def _next_target(self) -> TargetStatus:
        feed = await self._check_open()
        if self._ready:
            await trio.lowlevel.checkpoint()
        while not self._ready:
            if self._total is not None and self._next_idx >= self._total:
                # Every target was given or passed over: there is nothing more to ask the store for.
                self._over = True
                await trio.lowlevel.checkpoint()
                raise StopAsyncIteration
            await self._read(feed)
        return self._ready.popleft()

    async def _read(self, feed: Feed) -> None:
        """Read the next few targets, or wait for news if none of them is finished yet."""
        changes = feed.changes
        status = await self._feeds.read(
            self._feeds.ledger.status(
                self._job_id, self._caller, results=True, start=self._next_idx, stop=self._next_idx + _PAGE
            )
        )
        if status is None:
            raise self._gone()
        self._seen = True
        self._total = status.job.targets_total
        for target in status.targets:
            if target.status in _FINISHED:
                self._ready.append(target)
            elif not status.job.settled:
                break
            self._next_idx = target.idx + 1
        if not self._ready and self._next_idx < self._total and not status.job.settled:
            await self._feeds.news(feed, changes, self._job_id)
