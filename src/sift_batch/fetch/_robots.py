"""Does the site allow robots to read this address? (`robots=True` only)

The site's robots.txt, fetched like any page through the same client, guard and gate, and kept for a
while for the caller who needed it; nothing passes from one caller to another. Read as RFC 9309 says:
without a robots.txt all is allowed, with one that can't be had nothing is. `_hops` asks before each hop.
"""

import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import trio

from .._model.values import Caller
from ._address import Address
from ._config import FetchConfig
from ._errors import FetchError
from ._hops import Hops, Page, Rules, Trip

if TYPE_CHECKING:
    from protego import Protego

_REDIRECTS: Final = 5
_LONGEST: Final = 500 * 1024
_MOST_LINES: Final = 5_000
_LONGEST_LINE: Final = 4_096  # no URL is longer
_KEPT_FOR: Final = 3_600.0
_TROUBLE_KEPT_FOR: Final = 60.0
_MOST_KEPT: Final = 256
_MOST_BYTES_KEPT: Final = 1024 * 1024
# Above this, reading the rules would hold up the event loop for a noticeable time.
_THREAD_FROM: Final = 2 * 1024
_THREAD: Final = "sift-batch robots"  # everybody on the machine can see a thread's name
_SAME_FOR_THE_PAGE: Final = frozenset({"dns", "connect", "tls", "internal"})
# As generous as the parser: with or without a colon, and misspelt.
_AGENT: Final = re.compile(r"\s*user[- ]?agent(?:\s*:|\s)\s*([^#]*)", re.IGNORECASE)
_RULE: Final = re.compile(r"\s*(?:allow|d[a-z]+|crawl[- ]delay)(?=[\s:])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of one origin until `until`: its rules (None: everything is allowed), or trouble."""

    until: float
    rules: "Protego | None" = None
    trouble: str = ""
    size: int = 0


class Robots(Rules):
    """Keeps the rules of the sites that each caller has asked for."""

    def __init__(self, config: FetchConfig, hops: Hops) -> None:
        self._agent = config.user_agent
        self._hops = hops
        # By caller and origin; the longest unused are forgotten first. `_bytes` is the size of them all.
        self._known: OrderedDict[tuple[Caller, str], _Known] = OrderedDict()
        self._bytes = 0
        self._threads = trio.CapacityLimiter(1)

    async def admit(self, trip: Trip, address: Address, *, first: bool) -> None:
        """Return if the site allows the address. Raises `FetchError`, or `RetryLater` if it is busy."""
        known = self._recall(trip.caller, address)
        if known is None:
            known = await self._learn(trip, address, first)
            self._keep(trip.caller, address, known)
        if known.trouble:
            raise FetchError("robots", f"nothing may be fetched: {known.trouble}")
        if known.rules is not None and not await self._allows(known, address):
            raise FetchError("robots", "the site's robots.txt does not allow this page")

    def pause(self, trip: Trip, address: Address) -> float:
        """Return the site's Crawl-delay in seconds; 0 for none."""
        known = self._recall(trip.caller, address)
        if known is None or known.rules is None:
            return 0.0
        return known.rules.crawl_delay(self._agent) or 0.0

    async def _learn(self, trip: Trip, address: Address, first: bool) -> _Known:
        tries = trip.tries
        try:
            page = await self._hops.follow(
                trip,
                replace(address, target="/robots.txt"),
                first=first,
                redirects=_REDIRECTS,
                max_bytes=_LONGEST,
            )
        except FetchError as failure:
            if _concerns_the_page(failure, trip):
                raise
            return self._failed(failure)
        finally:
            trip.tries = tries
        return await self._read(page)

    def _failed(self, failure: FetchError) -> _Known:
        now = trio.current_time()
        if failure.code == "redirect_loop":
            return _Known(now + _KEPT_FOR)
        trouble = {
            "too_large": "the site's robots.txt is too large",
            "refused": "the site's robots.txt is somewhere that may not be called",
        }
        text = trouble.get(failure.code, "the site's robots.txt could not be had")
        return _Known(now + _TROUBLE_KEPT_FOR, trouble=text)

    async def _read(self, page: Page) -> _Known:
        status, now = page.answer.status, trio.current_time()
        if status >= 500:
            return _Known(now + _TROUBLE_KEPT_FOR, trouble="the site's robots.txt could not be had")
        if not 200 <= status < 300:
            return _Known(now + _KEPT_FOR)
        body = b"".join(page.answer.body)
        if len(body) <= _THREAD_FROM:
            return _parse(body, self._agent, now)
        return await trio.to_thread.run_sync(
            _parse, body, self._agent, now, thread_name=_THREAD, limiter=self._threads
        )

    async def _allows(self, known: _Known, address: Address) -> bool:
        assert known.rules is not None
        if known.size <= _THREAD_FROM:
            return known.rules.can_fetch(address.url, self._agent)
        return await trio.to_thread.run_sync(
            known.rules.can_fetch, address.url, self._agent, thread_name=_THREAD, limiter=self._threads
        )

    def _recall(self, caller: Caller, address: Address) -> _Known | None:
        key = (caller, address.origin)
        known = self._known.get(key)
        if known is not None and known.until <= trio.current_time():
            self._forget(key)
            return None
        if known is not None:
            self._known.move_to_end(key)
        return known

    def _keep(self, caller: Caller, address: Address, known: _Known) -> None:
        key = (caller, address.origin)
        self._forget(key)
        self._known[key] = known
        self._bytes += known.size
        # The newest stays whatever its size: it is needed in a moment.
        while len(self._known) > 1 and (len(self._known) > _MOST_KEPT or self._bytes > _MOST_BYTES_KEPT):
            self._forget(next(iter(self._known)))

    def _forget(self, key: tuple[Caller, str]) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._bytes -= known.size


def _concerns_the_page(failure: FetchError, trip: Trip) -> bool:
    """Return whether the page would fail in the same way, so that robots.txt is not what is wrong."""
    if failure.code == "timeout":
        return trip.deadline.left <= 0
    if trip.hop:
        return False  # where the robots.txt redirects to is no server of the page's
    if failure.code == "refused":
        # The server's addresses, and not a redirect or what came of robots.txt itself.
        return trip.status is None and failure.reason != "encoding"
    return failure.code in _SAME_FOR_THE_PAGE


def _parse(body: bytes, agent: str, now: float) -> _Known:
    from protego import Protego

    lines = list(_for_agent(body.decode("utf-8-sig", "replace"), agent.lower()))
    if len(lines) > _MOST_LINES:
        return _Known(now + _TROUBLE_KEPT_FOR, trouble="the site's robots.txt is too large")
    try:
        rules = Protego.parse("\n".join(lines))
    except Exception:
        return _Known(now + _TROUBLE_KEPT_FOR, trouble="the site's robots.txt can't be read")
    return _Known(now + _KEPT_FOR, rules=rules, size=sum(map(len, lines)))


def _for_agent(text: str, agent: str) -> Iterator[str]:
    """Give the lines of the groups that may be meant for `agent`, of all else nothing.

    The parser copies each rule to each robot of its group: thousands of both would take it minutes.
    """
    ours = naming = False
    for line in text.splitlines():
        named = _AGENT.match(line)
        if named:
            name = named[1].strip().lower()
            wanted = bool(name) and name.replace("*", "") in agent
            ours, naming = wanted or (naming and ours), True
            if wanted:
                yield line
        elif _RULE.match(line):
            naming = False
            if ours:
                # No URL is as long as such a line, but the group has had a rule.
                yield line if len(line) <= _LONGEST_LINE else "disallow:"
