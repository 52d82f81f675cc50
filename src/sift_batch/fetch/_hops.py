"""How does an address become an answer? Hop by hop, each in a slot of the gate for the host it talks to.

    admit      robots.txt may forbid the address (where it is obeyed)
    slot       the first hop gives way at once; a later one waits, so that no hop is fetched twice
    exchange   one request, tried again after a failure that passes
    heed       a busy host is held back for everybody
    next       where a redirect leads, checked like a new address
    room       the slot is kept until there is room for the page to wait for its reader

No answer is judged or read here: `_pipeline` does both. Next: `_client`, the exchange, and `_busy`.
"""

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import trio

from .._gate.gate import Gate
from .._gate.hosts import host_key
from .._model.errors import RetryLater
from .._model.values import Caller, CallerClass
from ._address import Address
from ._busy import Holds
from ._config import FetchConfig
from ._deadline import Deadline
from ._errors import FetchError
from ._guard import Guard
from ._room import Room

if TYPE_CHECKING:
    from ._client import Answer, Client

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# What often passes by itself within a second; a failure of the exchange says so itself.
_PASSING: Final = frozenset({408, 500, 502, 504})
_NEXT_TRY: Final = 1.0


@dataclass(slots=True, eq=False)
class Trip:
    """One call on its way. Written by the call's own task alone.

    `patience_until` is how long the first hop may wait for its slot. `began` (Trio's clock) and
    `began_at` (unix seconds) are when its first request was made. `tries` counts the requests of the
    hop that needed most. `status` is what the last request was answered with, None without an answer.
    `hop` counts the redirects passed by the address that is followed now. `answered` are the hosts that
    answered and were not busy, `paused` those that are left alone for a while on account of this trip,
    and `busy_host` is the host whose busy answer, of now or before, is behind the last refusal.
    """

    caller: Caller
    batch: bool
    patience_until: float
    deadline: Deadline
    began: float | None = None
    began_at: float = 0.0
    tries: int = 1
    status: int | None = None
    hop: int = 0
    answered: set[str] = field(default_factory=set)
    paused: set[str] = field(default_factory=set)
    busy_host: str = ""

    @property
    def restricted(self) -> bool:
        """Whether the caller is of the class of which least may be told."""
        return self.caller.caller_class is CallerClass.RESTRICTED


@dataclass(frozen=True, slots=True)
class Page:
    """An answer that leads no further, where it came from, and the URLs passed on the way."""

    address: Address
    answer: "Answer"
    passed: list[str]


class Rules:
    """What a site asks of its visitors. This one asks nothing."""

    async def admit(self, trip: Trip, address: Address, *, first: bool) -> None:
        """Return if the address may be fetched; else raise `FetchError`."""

    def pause(self, trip: Trip, address: Address) -> float:
        """Return how many seconds the host is to be left alone after a fetch; 0 for none."""
        return 0.0


NO_RULES: Final = Rules()


class Hops:
    """Follows addresses, behind one gate."""

    def __init__(self, config: FetchConfig, gate: Gate, guard: Guard, client: "Client") -> None:
        self._config = config
        self._gate = gate
        self._guard = guard
        self._client = client
        self._holds = Holds(gate, limit=config.retry_after_limit)

    async def follow(
        self,
        trip: Trip,
        address: Address,
        *,
        first: bool,
        redirects: int,
        rules: Rules = NO_RULES,
        room: Room | None = None,
        home: str = "",
        **request: Any,
    ) -> Page:
        """Return what `address` gives in the end, whatever its status.

        `first` says whether the first hop is the target's: then it waits no longer than the caller's
        patience. In `room` the page's bytes are taken for `trip`, which has to give them back. Redirects
        lead to the host `home` and below it alone, if one is given. Further keywords go to `Client.get`.
        If cancelled, no slot is held.

        Raises `FetchError`, or `RetryLater` if a host is busy.
        """
        passed: list[str] = []
        while True:
            await rules.admit(trip, address, first=first)
            trip.hop = len(passed)
            answer, following = await self._hop(trip, address, first, rules, room, request)
            if following is None:
                return Page(address, answer, passed)
            passed.append(address.url)
            if following.url in passed or len(passed) > redirects:
                raise FetchError("redirect_loop", "the page redirects too often")
            if home and not f".{host_key(following.url)}".endswith(f".{home}"):
                raise FetchError("http_error", "the page redirects to another site")
            address, first = following, False

    async def _hop(
        self,
        trip: Trip,
        address: Address,
        first: bool,
        rules: Rules,
        room: Room | None,
        request: dict[str, Any],
    ) -> "tuple[Answer, Address | None]":
        patience = max(0.0, trip.patience_until - trio.current_time()) if first else trip.deadline.left
        trip.status = None
        try:
            async with self._gate.slot(address.url, patience=patience, batch=trip.batch):
                following: Address | None = None
                try:
                    answer = await self._exchange(trip, address, request)
                    following = self._following(address, answer)
                finally:
                    self._pause(trip, address, following, rules)
                if room is not None and answer.decoded:
                    with trip.deadline.stopped():  # it is the readers that are slow, and not the site
                        await room.take(trip, answer.decoded, interactive=not trip.batch)
                return answer, following
        except RetryLater as busy:
            refusal = busy
        raise self._refused(trip, address, refusal)

    def _refused(self, trip: Trip, address: Address, refusal: RetryLater) -> Exception:
        """Return what is to be told of a refusal: the site's own, or the gate's, which may be a hold's."""
        key = host_key(address.url)
        if trip.status is not None:
            trip.busy_host = key
            return refusal
        told, busy = self._holds.explain(address.url, refusal)
        if busy:
            trip.busy_host = key
        elif told is not refusal and key in trip.paused:
            # Another try would ask for that pause again, and so on for ever.
            return FetchError(
                "timeout",
                "the page redirects back to a site that wants a longer pause before it",
                hint="an operator can raise `total_timeout`",
            )
        return told

    async def _exchange(self, trip: Trip, address: Address, request: dict[str, Any]) -> "Answer":
        with trip.deadline.running():
            sent = trio.current_time()
            if trip.began is None:
                trip.began, trip.began_at = sent, time.time()
            answer = await self._try(trip, address, request)
        trip.status = answer.status
        self._holds.heed(address.url, answer, sent=sent)
        trip.answered.add(host_key(address.url))
        return answer

    async def _try(self, trip: Trip, address: Address, request: dict[str, Any]) -> "Answer":
        tried = 1
        while True:
            last = tried > self._config.retries
            try:
                answer = await self._client.get(address, **request)
            except FetchError as failure:
                if last or not failure.transient:
                    raise
            else:
                if last or answer.status not in _PASSING:
                    return answer
            await trio.sleep(_NEXT_TRY)
            self._holds.give_way(address.url)
            tried += 1
            trip.tries = max(trip.tries, tried)

    def _following(self, address: Address, answer: "Answer") -> Address | None:
        location = answer.headers.get("location")
        if answer.status not in _REDIRECTS or location is None:
            return None
        return self._guard.join(address, location)

    def _pause(self, trip: Trip, address: Address, following: Address | None, rules: Rules) -> None:
        seconds = rules.pause(trip, address)
        key = host_key(address.url)
        # A redirect within one host is one visit: a pause in the middle might outlast the deadline,
        # and the visit would begin again and again.
        if seconds > 0 and (following is None or host_key(following.url) != key):
            self._holds.pause(address.url, seconds)
            trip.paused.add(key)
