"""Who waits for news of a job, and how do they get it without polling?

A `Feed` exists while somebody follows a job and is shared by all who do; with nobody there, a change
costs one look into an empty dict. A change wakes the followers, and whoever gets to run first reads the
store for all that wait then: a slow reader finds the latest and holds up nobody. Nothing here changes a
job. Next room: `streams.py`, which reads along.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

from .._model.errors import StoreError
from .._model.values import Job, JobStatus
from .ledger import Ledger

T = TypeVar("T")


class Feed:
    """News of one job."""

    __slots__ = ("changes", "followers", "news", "read", "readings", "settled", "turn")

    def __init__(self) -> None:
        self.followers = 0
        self.changes = 0
        self.news = trio.lowlevel.ParkingLot()
        # One reads at a time; how many readings have begun; the last, and for whose job it asked.
        self.turn = trio.Lock()
        self.readings = 0
        self.read: tuple[str | None, JobStatus | None] = (None, None)
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
        if not isinstance(job_id, str):
            job_id = ""  # what can't be an id is nobody's, like any id that is not there
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
            raise trio.ClosedResourceError("this job will not settle here: the runner is closing, or lost it")

    async def read(self, answer: Awaitable[T]) -> T:
        """Return what the store answers; raise `trio.ClosedResourceError` if it was closed meanwhile."""
        try:
            return await answer
        except StoreError:
            if self.over:
                raise trio.ClosedResourceError("this runner is closed") from None
            raise

    async def status(self, feed: Feed, job_id: str, caller: str | None) -> JobStatus | None:
        """Return the job without results, or None. One reading serves all who asked before it began."""
        begun = feed.readings
        async with feed.turn:
            whose, status = feed.read
            if feed.readings == begun or whose != caller or status is None:
                feed.readings += 1
                feed.read = (None, None)  # what is read now may fail
                status = await self.read(self.ledger.status(job_id, caller, results=False))
                feed.read = (caller, status)
            return status

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
