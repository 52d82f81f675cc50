"""The site says that it has no room now, or that it wants a pause: how long is its host left alone?

`Holds` turns an answer of HTTP into a hold at the gate, for every job and for interactive fetches alike,
and knows afterwards why a host is held: because it was busy, which a target has patience with only for
so long, or for a pause of good manners, which is nobody's failure. Nothing waits here; the gate and the
engine wait. Next: `_reply`, which reads a Retry-After.
"""

import math
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import trio

from .._gate.gate import Gate
from .._gate.hosts import host_key
from .._model.errors import RetryLater
from ._reply import retry_after

if TYPE_CHECKING:
    from ._client import Answer

_FIRST_HOLD: Final = 2.0
LONGEST_HOLD: Final = 60.0
"""How far the holds grow of a host that does not say for how long it is busy."""
_HOSTS: Final = 1_024


@dataclass(slots=True)
class _Host:
    """Why one host is held. Times are Trio's; what never was lies infinitely far back.

    `spell` is the last hold, and `spell_began` when it began, of a host that was busy without saying for
    how long (0: of one that was not). `busy_until` and `pause_until` are the ends of its holds.
    """

    spell: float = 0.0
    spell_began: float = -math.inf
    busy_until: float = -math.inf
    pause_until: float = -math.inf

    def idle(self, now: float) -> bool:
        return not self.spell and max(self.busy_until, self.pause_until) <= now


class Holds:
    """Keeps hosts that ask for patience from being called, for everybody behind one gate."""

    def __init__(self, gate: Gate, *, limit: float) -> None:
        self._gate = gate
        self._limit = limit
        # Written by `heed` and `pause` alone; the longest untouched are forgotten first.
        self._hosts: OrderedDict[str, _Host] = OrderedDict()

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
        host = self._host(key)
        if seconds is None:
            seconds = _grown(host, sent)
        self._gate.hold(url, seconds)
        # Noted after the gate, so that it never ends before the gate's: each refusal finds its reason.
        host.busy_until = max(host.busy_until, trio.current_time() + seconds)
        raise RetryLater("the site asks for patience", retry_after=seconds, reason=reason)

    def give_way(self, url: str) -> None:
        """Raise `RetryLater` if the host said meanwhile, to another fetch, that it is busy.

        For who holds a slot of it and is about to ask once more.
        """
        host, now = self._hosts.get(host_key(url)), trio.current_time()
        if host is not None and now < host.busy_until:
            left = _until(host.busy_until, now)
            raise RetryLater("the site asks for patience", retry_after=left, reason="retry_after")

    def pause(self, url: str, seconds: float) -> None:
        """Hold the host for good manners, so many seconds and at most the limit; 0 for not at all."""
        seconds = min(seconds, self._limit)
        if seconds > 0:
            host = self._host(host_key(url))
            self._gate.hold(url, seconds)
            host.pause_until = max(host.pause_until, trio.current_time() + seconds)

    def explain(self, url: str, refusal: RetryLater) -> tuple[RetryLater, bool]:
        """Return the gate's refusal as it is to be told, and whether a busy answer of the host is behind it.

        A pause counts as waiting for the gate, whatever its length: nobody's patience ends by it.
        """
        host = self._hosts.get(host_key(url))
        if refusal.reason == "gate" or host is None:
            return refusal, False
        now = trio.current_time()
        if now < host.busy_until:
            # The gate's hold may be longer by a pause; that part is no spell of being busy.
            left = min(refusal.retry_after or math.inf, _until(host.busy_until, now))
            return RetryLater(refusal.message, retry_after=left, reason=refusal.reason), True
        if now < host.pause_until:
            message = "the site asks for a pause between pages"
            return RetryLater(message, retry_after=refusal.retry_after, reason="gate"), False
        return refusal, False  # the application's own hold

    def _host(self, key: str) -> _Host:
        host = self._hosts.setdefault(key, _Host())
        self._hosts.move_to_end(key)
        if len(self._hosts) > _HOSTS:
            self._hosts.popitem(last=False)
        return host

    def _end_spell(self, key: str, sent: float) -> None:
        host = self._hosts.get(key)
        # An answer to a request from before the hold says nothing about the time after it.
        if host is not None and sent > host.spell_began:
            host.spell, host.spell_began = 0.0, -math.inf
            if host.idle(trio.current_time()):
                del self._hosts[key]


def _grown(host: _Host, sent: float) -> float:
    """Return the seconds of the next hold of a host that does not say for how long it is busy."""
    now = trio.current_time()
    if not host.spell:
        host.spell, host.spell_began = _FIRST_HOLD, now
    elif sent > host.spell_began:
        host.spell, host.spell_began = min(2 * host.spell, LONGEST_HOLD), now
    # else two requests were under way at the same time, and the host was busy once, not twice
    return max(host.spell_began + host.spell - now, _FIRST_HOLD)


def _until(end: float, now: float) -> float:
    # Rounding down would have the target come back a moment too early.
    return end - now + math.ulp(end)
