"""Who has shown interest in a job? Reading touches it, at most once a second.

The engine's reads are pure: a job lives on because the service says so here. Which reads count is the
routes' business.
"""

from collections.abc import Callable
from typing import Final

import trio

from sift_batch import Caller, Runner, StoreError

_EVERY: Final = 1.0


class Leases:
    """Touches jobs for their callers."""

    def __init__(self, runner: Runner, *, clock: Callable[[], float] = trio.current_time) -> None:
        self._runner = runner
        self._clock = clock
        # When each job was touched, the longest ago first. Written here alone; who is older than a
        # second is forgotten at the next touch, so it never holds more than a second's jobs.
        self._touched: dict[tuple[str, str], float] = {}

    async def touch(self, caller: Caller, job_id: str) -> None:
        """Bump the lease of a job of this caller, unless that was done less than a second ago.

        An unknown job is passed over, and so is one of another caller. A store that takes no write, as on a
        full disk, costs the lease its bump and not the reader what is stored: the next reader tries again.
        """
        now = self._clock()
        while self._touched and (oldest := next(iter(self._touched))):
            if now - self._touched[oldest] < _EVERY:
                break
            del self._touched[oldest]
        if (caller.name, job_id) in self._touched:
            return
        self._touched[caller.name, job_id] = now
        try:
            await self._runner.touch(job_id, caller=caller)
        except StoreError:
            self._touched.pop((caller.name, job_id), None)
