"""What keeps the store small: who sweeps, who keeps the byte budget, who wipes?

One task, woken every `sweep_every` seconds and whenever there may be something to do: after a submit
(something may have lapsed), after a job settled (the budget may be exceeded). What the store refuses
is tried again at the next turn. A job is removed in one step that asks again whether it still may be.
"""

from collections.abc import Awaitable, Callable, Sequence

import trio

from .._model.config import Config
from .._model.crash import crash_point
from .._model.errors import StoreError
from .._model.store import Removed
from .feeds import Feeds
from .ledger import Ledger
from .signals import Signals


class Upkeep:
    """The sweeper."""

    def __init__(self, config: Config, ledger: Ledger, feeds: Feeds, signals: Signals) -> None:
        self._config = config
        self._ledger = ledger
        self._feeds = feeds
        self._signals = signals
        self._woken = trio.Event()
        # Bytes of all stored jobs, counted along from what the restart step found.
        self.stored_bytes = 0
        self.erasure_pending = False
        # No settled job has an older lease, as far as is known; None: ask the store.
        self._oldest_lease: int | None = None

    def add_bytes(self, nbytes: int) -> None:
        """Count bytes that were stored (or removed, below 0)."""
        self.stored_bytes += nbytes
        self._signals.call("stored", self.stored_bytes)

    def after_submit(self) -> None:
        """Wake up if anything may have lapsed."""
        oldest, now = self._oldest_lease, self._ledger.now()
        if oldest is None or now - oldest > self._config.ttl:
            self._woken.set()
        elif now < oldest:
            # The clock went back: what is stored from now on has older leases.
            self._oldest_lease = now

    def after_settle(self, lease: int) -> None:
        """Wake up if the stored jobs are over their budget."""
        if self._oldest_lease is not None:
            self._oldest_lease = min(self._oldest_lease, lease)
        if self.stored_bytes > self._config.max_bytes:
            self._woken.set()

    def removed(self, removed: Removed) -> None:
        """Note that a job is gone from the store."""
        self.add_bytes(-removed.nbytes)
        if removed.restricted:
            self.erasure_pending = True
            self._woken.set()
        self._feeds.changed(removed.job_id)

    async def run(self) -> None:
        """Sweep, keep the budget, wipe; for ever."""
        while True:
            self._woken = trio.Event()
            await self._turn("sweep", self._sweep)
            await self._turn("evict", self._evict)
            if self.erasure_pending:
                await self._turn("erase", self._erase)
            with trio.move_on_after(self._config.sweep_every):
                await self._woken.wait()

    async def _turn(self, operation: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except StoreError as exc:
            self._ledger.trouble(operation, exc)
            # What has lapsed may be there still: the next submit looks again.
            self._oldest_lease = None

    async def _sweep(self) -> None:
        swept = 0
        refused: StoreError | None = None
        seen: Sequence[str] = ()
        try:
            while True:
                lapsed = await self._ledger.lapsed()
                self._oldest_lease = lapsed.oldest_lease
                if self._oldest_lease is None:
                    self._oldest_lease = self._ledger.now()
                if not lapsed.job_ids or lapsed.job_ids == seen:
                    break
                seen = lapsed.job_ids
                for job_id in seen:
                    crash_point("sweep: found")
                    try:
                        removed = await self._ledger.sweep(job_id)
                    except StoreError as exc:
                        # One that can't be removed must not keep the others.
                        refused = refused or exc
                        continue
                    if removed is not None:
                        swept += 1
                        self.removed(removed)
        finally:
            if swept:
                self._signals.call("swept", swept)
                self._signals.log.event("store.swept", jobs=swept)
        if refused is not None:
            raise refused

    async def _evict(self) -> None:
        jobs = nbytes = 0
        try:
            while self.stored_bytes > self._config.max_bytes:
                removed = await self._ledger.evict(self._config.max_bytes)
                if removed is None:
                    return
                jobs += 1
                nbytes += removed.nbytes
                self.removed(removed)
        finally:
            if jobs:
                self._signals.call("evicted", jobs, nbytes)
                self._signals.log.event("store.evicted", jobs=jobs)

    async def _erase(self) -> None:
        self.erasure_pending = not await self._ledger.erase()
