"""The site says that it has no room now: how long is its host left alone, and when is it enough?

`Holds` turns an answer of HTTP into a hold at the gate, for every job and for interactive fetches alike.
`Jobs` remembers which jobs have lost a target to a busy host: their later targets there get one try
each. Nothing waits here; the gate and the engine wait. Next: `_reply`, which reads a Retry-After.
"""

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import trio

from .._gate.gate import Gate
from .._gate.hosts import host_key
from .._model.errors import RetryLater
from .._model.values import Attempt
from ._reply import retry_after

if TYPE_CHECKING:
    from ._client import Answer

_FIRST_HOLD: Final = 2.0
_LONGEST_HOLD: Final = 60.0
_HOSTS: Final = 1_024
_JOBS: Final = 512


@dataclass(slots=True)
class _Spell:
    """A host that was busy without saying for how long: the last hold, and when it began."""

    seconds: float
    began: float


class Holds:
    """Keeps hosts that ask for patience from being called, for everybody behind one gate."""

    def __init__(self, gate: Gate, *, limit: float) -> None:
        self._gate = gate
        self._limit = limit
        # Written by `heed` alone; the longest untouched are forgotten first.
        self._spells: OrderedDict[str, _Spell] = OrderedDict()

    def heed(self, url: str, answer: "Answer", *, sent: float) -> None:
        """Return if the answer is not busy; else hold the host and raise `RetryLater`.

        `sent` is when the request went out. Call it in the slot, so that the next in line finds the hold.
        """
        key, named = host_key(url), answer.headers.get("retry-after")
        if not (answer.status == 429 or (answer.status == 503 and named is not None)):
            self._end_spell(key, sent)
            return
        seconds = None if named is None else retry_after(named, time.time(), self._limit)
        reason = "host" if seconds is None else "retry_after"
        if seconds is None:
            seconds = self._grow(key, sent)
        self._gate.hold(url, seconds)
        raise RetryLater("the site asks for patience", retry_after=seconds, reason=reason)

    def _end_spell(self, key: str, sent: float) -> None:
        spell = self._spells.get(key)
        # An answer to a request from before the hold says nothing about the time after it.
        if spell is not None and sent > spell.began:
            del self._spells[key]

    def _grow(self, key: str, sent: float) -> float:
        now = trio.current_time()
        spell = self._spells.pop(key, None)
        if spell is None:
            spell = _Spell(_FIRST_HOLD, now)
        elif sent > spell.began:
            spell = _Spell(min(2 * spell.seconds, _LONGEST_HOLD), now)
        # else two requests were under way at the same time, and the host was busy once, not twice
        self._spells[key] = spell
        if len(self._spells) > _HOSTS:
            self._spells.popitem(last=False)
        return max(spell.began + spell.seconds - now, _FIRST_HOLD)


@dataclass(slots=True)
class _Job:
    """One job: the target whose last call found a host busy, and the hosts that cost it a target."""

    busy: tuple[int, str] | None = None
    lost_to: set[str] = field(default_factory=set)


class Jobs:
    """Knows the jobs that have lost a target to a busy host.

    The engine does not tell a fetch that a target has failed. But targets go in order: when a later one
    is called, the one that was busy last is not tried again.
    """

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
