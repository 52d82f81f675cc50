"""Who wants a slot, and where? The values that a plan decides about.

Nothing here decides anything or knows the time. The next room is `plan`.
"""

import enum
import math
from bisect import bisect_left, insort
from collections.abc import Hashable
from operator import attrgetter
from typing import Final

import trio

Order = tuple[float, float, int]
"""Where a claim stands: its place in time, its first refusal, and a number that breaks ties."""

EVERYBODY: Final[Order] = (math.inf, math.inf, -1)
"""Behind every claim that has a place in time."""

by_order: Final = attrgetter("order")


class Stage(enum.Enum):
    """How far a claim has come."""

    NEW = enum.auto()
    WAITING = enum.auto()
    IN_SLOT = enum.auto()
    PROMISED = enum.auto()
    GONE = enum.auto()


class Claim:
    """One who wants a slot of one host, from its arrival until it has left the slot.

    `name` says which target it is across several calls. With `tell` it wants to be told of a slot,
    and gets a promise `until` then in place of the slot itself. `Plan` alone changes `stage`.
    """

    __slots__ = ("batch", "host", "name", "order", "stage", "tell", "until")

    def __init__(
        self, host: "Host", name: Hashable, order: Order, *, batch: bool, tell: bool = False
    ) -> None:
        self.host = host
        self.name = name
        self.order = order
        self.batch = batch
        self.tell = tell
        self.until = math.inf
        self.stage = Stage.NEW


class Line(list[Claim]):
    """Claims in their order. Two may have the same, when one target waits twice."""

    __slots__ = ()

    def join(self, claim: Claim) -> None:
        insort(self, claim, key=by_order)

    def leave(self, claim: Claim) -> None:
        position = bisect_left(self, claim.order, key=by_order)
        while self[position] is not claim:
            position += 1
        del self[position]


class Host:
    """What a plan knows of one host in use."""

    __slots__ = ("first", "held", "held_until", "key", "limiter", "lines", "promises", "refused", "watched")

    def __init__(self, key: str, limiter: trio.CapacityLimiter) -> None:
        self.key = key
        self.limiter = limiter
        # Interactive and batch, and of each the claim that stands on the plan's front, if any.
        self.lines = (Line(), Line())
        self.first: list[Claim | None] = [None, None]
        self.promises: list[Claim] = []
        # `held` goes with the plan's view of the time. `watched` counts the entries in its calendar
        # for this host: there is one during a hold and, if it sent targets away, shortly after.
        self.held = False
        self.held_until = -math.inf
        self.watched = 0
        # Where batch targets stood that a hold sent away, so that it does not cost them their place.
        self.refused: dict[Hashable, Order] = {}

    @property
    def free(self) -> int:
        """How many slots there are to give, promised ones among them."""
        return 0 if self.held else int(self.limiter.available_tokens)

    @property
    def idle(self) -> bool:
        """Whether nothing would be lost without this entry."""
        return not (
            self.limiter.borrowed_tokens or self.lines[0] or self.lines[1] or self.promises or self.watched
        )

    def promised_before(self, order: Order) -> int:
        """Return how many slots are promised to targets that stand before `order`."""
        if order is EVERYBODY:
            return len(self.promises)
        return sum(promise.order < order for promise in self.promises)

    def has_room(self, claim: Claim) -> bool:
        """Return whether this host, if not the total, could take `claim` now.

        A promise counts against every batch claim, and against the interactive ones behind it.
        """
        free = self.free
        if not self.promises or not free:
            return free > 0
        return free > self.promised_before(EVERYBODY if claim.batch else claim.order)
