"""Has a job lost a target to a busy host? Then its later targets there get one try each.

The engine does not tell a fetch that a target has failed. But targets go in order: when a later one is
called, the one that was busy last is not tried again. Which answers are busy is for `_busy` to say, what
follows for the target is for `_fetcher`.
"""

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from .._model.values import Attempt

_JOBS: Final = 512


@dataclass(slots=True)
class _Job:
    """One job: the target whose last call found a host busy, and the hosts that cost it a target."""

    busy: tuple[int, str] | None = None
    lost_to: set[str] = field(default_factory=set)


class Jobs:
    """Knows the jobs that have lost a target to a busy host."""

    def __init__(self) -> None:
        # Only jobs that met a busy host have an entry; the longest untouched are forgotten first.
        self._jobs: OrderedDict[str, _Job] = OrderedDict()

    def called(self, now: Attempt | None) -> None:
        """Note that a target is called. `now` says which; None for a call outside any job."""
        job = None if now is None else self._jobs.get(now.job_id)
        if now is None or job is None or job.busy is None:
            return
        idx, host = job.busy
        if now.idx > idx:
            job.lost_to.add(host)
        job.busy = None

    def answered(self, now: Attempt | None, hosts: Iterable[str]) -> None:
        """Note that these hosts have answered a request of the call: they have room again."""
        job = None if now is None else self._jobs.get(now.job_id)
        if job is not None:
            job.lost_to.difference_update(hosts)

    def found_busy(self, now: Attempt | None, host: str) -> bool:
        """Note that the call found `host` busy; True if that is enough for its job."""
        if now is None:
            return False
        job = self._jobs.setdefault(now.job_id, _Job())
        self._jobs.move_to_end(now.job_id)
        if len(self._jobs) > _JOBS:
            self._jobs.popitem(last=False)
        if host in job.lost_to:
            return True
        job.busy = (now.idx, host)
        return False
