"""Who waits for news of a job, and how do they get it without polling?

A `Feed` exists while somebody follows a job and is shared by all who do; with nobody there, a change
costs one look into an empty dict. A change wakes the followers, and each reads the store when it gets
to run: a slow reader finds the latest and holds up nobody. Streams are plain objects with
`__anext__`, so breaking out of one leaves no generator half-way. Nothing here changes a job.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, TypeVar

import trio

from .._model.errors import StoreError
from .._model.lifecycle import TargetState
from .._model.values import Job, JobStatus, TargetStatus
from .ledger import Ledger

T = TypeVar("T")
_PAGE: Final = 8
_FINISHED: Final = frozenset({TargetState.DONE, TargetState.FAILED})


class Feed:
    """News of one job."""

    __slots__ = ("changes", "followers", "news", "settled")

    def __init__(self) -> None:
        self.followers = 0
        self.changes = 0
        self.news = trio.lowlevel.ParkingLot()
        # The job as it was when it settled, so that a `wait` gets it even if it is evicted at once.
        self.settled: Job | None = None

    def change(self) -> None:
        """Wake all who follow."""
        self.changes += 1
        self.news.unpark_all()

    async def after(self, changes: int) -> None:
        """Wait until there was a change after the first `changes`."""
        while self.changes <= changes:
            await self.news.park()


class Feeds:
    """The feeds of the jobs that somebody follows."""

    def __init__(self, ledger: Ledger, may_settle: Callable[[str], bool]) -> None:
        self.ledger = ledger
        self._may_settle = may_settle
        self._feeds: dict[str, Feed] = {}
        # Whether the runner was left: what the store refuses from then on is no fault of the store's.
        self.over = False

    @contextmanager
    def follow(self, job_id: str) -> Iterator[Feed]:
        """Follow a job; the feed goes when the last follower leaves."""
        feed = self._feeds.setdefault(job_id, Feed())
        feed.followers += 1
        try:
            yield feed
        finally:
            feed.followers -= 1
            if not feed.followers:
                del self._feeds[job_id]

    def changed(self, job_id: str) -> None:
        """Tell that something of a job was stored, or that it is gone."""
        feed = self._feeds.get(job_id)
        if feed is not None:
            feed.change()

    def settled(self, job: Job) -> None:
        """Tell that a job settled."""
        feed = self._feeds.get(job.id)
        if feed is not None:
            feed.settled = job
            feed.change()

    def closing(self) -> None:
        """Wake everybody: what they wait for may never come now."""
        for feed in list(self._feeds.values()):
            feed.change()

    async def news(self, feed: Feed, changes: int, job_id: str) -> None:
        """Wait for news after the first `changes`; raise like `check_coming` if there will be none."""
        if feed.changes <= changes:
            await self.check_coming(job_id)
            await feed.after(changes)

    async def check_coming(self, job_id: str) -> None:
        """Raise `trio.ClosedResourceError` once it is certain that the job will not settle here."""
        if not self._may_settle(job_id):
            await trio.lowlevel.checkpoint_if_cancelled()
            raise trio.ClosedResourceError("the runner is closing: this job will not settle here")

    async def read(self, answer: Awaitable[T]) -> T:
        """Return what the store answers; raise `trio.ClosedResourceError` if it was closed meanwhile."""
        try:
            return await answer
        except StoreError:
            if self.over:
                raise trio.ClosedResourceError("this runner is closed") from None
            raise

    async def wait(self, job_id: str, caller: str | None) -> Job | None:
        """Return the job once it has settled, or None if it is unknown."""
        with self.follow(job_id) as feed:
            changes = feed.changes
            job = await self.read(self.ledger.job(job_id, caller))
            if job is None or job.settled:
                return job
            while feed.settled is None:
                await self.news(feed, changes, job_id)
                changes = feed.changes
            return feed.settled


class _Stream:
    """What both streams share: they follow from `async with` on, and know whether they are over."""

    def __init__(self, feeds: Feeds, job_id: str, caller: str | None) -> None:
        self._feeds = feeds
        self._job_id = job_id
        self._caller = caller
        self._following = feeds.follow(job_id)
        self._feed: Feed | None = None
        self._seen = False
        self._over = False

    def _enter(self) -> None:
        self._feed = self._following.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if self._feed is not None:
            self._feed = None
            self._following.__exit__(None, None, None)

    async def _check_over(self) -> Feed:
        if self._over or self._feed is None:
            await trio.lowlevel.checkpoint()
            raise StopAsyncIteration
        return self._feed

    def _gone(self) -> BaseException:
        """Return how the stream ends when the job is not there: at once, or as a loss."""
        self._over = True
        if not self._seen:
            return StopAsyncIteration()
        return LookupError("the job went while it was read: it lapsed, was evicted or deleted")


class Watch(_Stream):
    """Yields the job's status at each new version, the latest first seen, until it has settled."""

    def __init__(self, feeds: Feeds, job_id: str, caller: str | None) -> None:
        super().__init__(feeds, job_id, caller)
        self._version = 0

    async def __aenter__(self) -> "Watch":
        await trio.lowlevel.checkpoint()
        self._enter()
        return self

    def __aiter__(self) -> "Watch":
        return self

    async def __anext__(self) -> JobStatus:
        feed = await self._check_over()
        while True:
            changes = feed.changes
            status = await self._feeds.read(
                self._feeds.ledger.status(self._job_id, self._caller, results=False)
            )
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
        self._next = start
        self._ready: deque[TargetStatus] = deque()

    async def __aenter__(self) -> "Results":
        await trio.lowlevel.checkpoint()
        self._enter()
        return self

    def __aiter__(self) -> "Results":
        return self

    async def __anext__(self) -> TargetStatus:
        feed = await self._check_over()
        if self._ready:
            await trio.lowlevel.checkpoint()
            return self._ready.popleft()
        while True:
            changes = feed.changes
            status = await self._feeds.read(
                self._feeds.ledger.status(
                    self._job_id, self._caller, results=True, start=self._next, stop=self._next + _PAGE
                )
            )
            if status is None:
                raise self._gone()
            self._seen = True
            self._take(status)
            if self._ready:
                return self._ready.popleft()
            if self._next >= status.job.targets_total:
                self._over = True
                raise StopAsyncIteration
            if not status.job.settled:
                await self._feeds.news(feed, changes, self._job_id)

    def _take(self, status: JobStatus) -> None:
        """Take the finished targets in front; in a settled job, pass over what never finished."""
        for target in status.targets:
            if target.status in _FINISHED:
                self._ready.append(target)
            elif not status.job.settled:
                return
            self._next = target.idx + 1
