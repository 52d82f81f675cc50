"""How does an address become an answer? Hop by hop, each in a slot of the gate for the host it talks to.

    admit      robots.txt may forbid the address (where it is obeyed)
    slot       the first hop gives way at once; a later one waits, so that no hop is fetched twice
    exchange   one request, tried again after a failure that passes
    heed       a busy host is held back for everybody
    next       where a redirect leads, checked like a new address

No answer is judged or read here: `_pipeline` does both. Next: `_client`, the exchange, and `_busy`.
"""

from dataclasses import dataclass
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

if TYPE_CHECKING:
    from ._client import Answer, Client

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_PASSING: Final = frozenset({408, 500, 502, 504})
_NEXT_TRY: Final = 1.0


@dataclass(slots=True, eq=False)
class Trip:
    """One call on its way. Written by the call's own task alone.

    `patience_until` is how long the first hop may wait for its slot. `tries` counts the requests of the
    hop that needed most. `status` is what the last request was answered with, None without an answer.
    `busy_host` is the host that the last refusal was about.
    """

    caller: Caller
    batch: bool
    patience_until: float
    deadline: Deadline
    tries: int = 1
    status: int | None = None
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
        **request: Any,
    ) -> Page:
        """Return what `address` gives in the end, whatever its status.

        `first` says whether the first hop is the target's: then it waits no longer than the caller's
        patience. Further keywords go to `Client.get`. If cancelled, no slot is held.

        Raises `FetchError`, or `RetryLater` if a host is busy.
        """
        passed: list[str] = []
        while True:
            await rules.admit(trip, address, first=first)
            answer, following = await self._hop(trip, address, first, rules, request)
            if following is None:
                return Page(address, answer, passed)
            passed.append(address.url)
            if following.url in passed or len(passed) > redirects:
                raise FetchError("redirect_loop", "the page redirects too often")
            address, first = following, False

    async def _hop(
        self, trip: Trip, address: Address, first: bool, rules: Rules, request: dict[str, Any]
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
                return answer, following
        except RetryLater:
            trip.busy_host = host_key(address.url)
            raise

    async def _exchange(self, trip: Trip, address: Address, request: dict[str, Any]) -> "Answer":
        with trip.deadline.running():
            sent = trio.current_time()
            answer = await self._try(trip, address, request)
        trip.status = answer.status
        self._holds.heed(address.url, answer, sent=sent)
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
            tried += 1
            trip.tries = max(trip.tries, tried)

    def _following(self, address: Address, answer: "Answer") -> Address | None:
        location = answer.headers.get("location")
        if answer.status not in _REDIRECTS or location is None:
            return None
        return self._guard.join(address, location)

    def _pause(self, trip: Trip, address: Address, following: Address | None, rules: Rules) -> None:
        seconds = min(rules.pause(trip, address), self._config.retry_after_limit)
        # A redirect within one host is one visit: a pause in the middle might outlast the deadline,
        # and the visit would begin again and again.
        stays = following is not None and host_key(following.url) == host_key(address.url)
        if seconds > 0 and not stays:
            self._gate.hold(address.url, seconds)
