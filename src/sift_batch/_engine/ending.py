"""How does a job end, and who is told?

One place for the three ways to a terminal state (its last target, a cancel, its time being up) and for
what follows when it settles. `stop` is what a cancel and a timeout share. The race that it must win:
while the store is asked, the job's own drain goes on. So the drain is told before the store is asked
(`stops`), and starts no target until the answer is there; and the store is told whether a fetch was in
flight at that moment. If the drain stored that fetch's result meanwhile, it settles the job itself.
"""

import trio

from .._model.crash import crash_point
from .._model.lifecycle import JobEvent
from .._model.values import Job
from .feeds import Feeds
from .ledger import Ledger
from .roster import LiveJob, Roster
from .signals import Signals
from .upkeep import Upkeep


class Ending:
    """Tells memory, hooks, log and readers what the store has decided."""

    def __init__(
        self, ledger: Ledger, roster: Roster, feeds: Feeds, signals: Signals, upkeep: Upkeep
    ) -> None:
        self._ledger = ledger
        self._roster = roster
        self._feeds = feeds
        self._signals = signals
        self._upkeep = upkeep

    def ended(self, job: Job, live: LiveJob) -> None:
        """Tell that a job became terminal; called once for each, after the commit."""
        self._roster.ended(live)
        self._signals.ended(job, trio.current_time() - live.submitted)

    def settled(self, job: Job, live: LiveJob) -> None:
        """Tell that a job settled; called once for each, after the commit."""
        self._feeds.settled(job)
        self._upkeep.after_settle(job.lease)
        self._roster.settled(live)
        live.log.event("job.settled")

    async def stop(self, job_id: str, event: JobEvent, *, caller: str | None, error: str = "") -> bool:
        """End a live job from outside; False if there is none. Raises `StoreError`, changing nothing."""
        live = self._roster.find(job_id)
        if live is None:
            return await self._ledger.stop(job_id, event, caller=caller, in_flight=False) is not None
        live.stops += 1
        try:
            job = await self._ledger.stop(job_id, event, caller=caller, in_flight=live.in_flight, error=error)
            if job is None:
                return False
            crash_point("cancel: not told yet")
            self._roster.stored(live.id)
            live.stopped = event
            if live.scope is not None:
                live.scope.cancel()
            self.ended(job, live)
            if job.settled:
                self.settled(job, live)
            return True
        finally:
            self.stop_over(live)

    def stop_over(self, live: LiveJob) -> None:
        """Note that one try to end a job is over, and tell those who count on it while we close."""
        live.stop_over()
        if not live.settled:
            self._feeds.changed(live.id)
            self._roster.changed.unpark_all()
