"""Who gives way when every place of the server is taken? Whoever does least with its own, the longest first.

It closes nothing and counts nothing: `_server` does. What a connection does just now, it says itself; whether
a request is anybody's, the application says, by `counts`.
"""

import enum
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from ._asgi import Scope

T = TypeVar("T")

EXTENSION: Final = "sift_batch.counts"


class Rank(enum.Enum):
    """What may end to make room. The first of these gives way first."""

    LINGERS = enum.auto()
    """It has its last answer, and is only waited for to stop sending."""
    WAITS = enum.auto()
    """It has sent no whole request."""
    NOBODYS = enum.auto()
    """Its request is answered, and counts for no caller."""


class Places(Generic[T]):
    """The connections that may end to make room."""

    def __init__(self) -> None:
        # Each connection is in one of them at most; in each, the one that came first is the first.
        self._ranks: dict[Rank, dict[T, None]] = {rank: {} for rank in Rank}

    def stand(self, connection: T, rank: Rank) -> None:
        """From now on it may end for that reason, and for no other."""
        self.leave(connection)
        self._ranks[rank][connection] = None

    def leave(self, connection: T) -> None:
        """From now on it stays, or is gone."""
        for standing in self._ranks.values():
            standing.pop(connection, None)

    def of(self, rank: Rank) -> Iterable[T]:
        """Return those that may end for one reason."""
        return list(self._ranks[rank])

    def first(self) -> T | None:
        """Return the one that gives way next; None if all must stay."""
        return next((next(iter(standing)) for standing in self._ranks.values() if standing), None)


def counts(scope: Scope, *, for_somebody: bool) -> None:
    """Tell the server whether a request counts for a caller: if not, its connection may make room for others.

    A request that nothing is told of stays. Another server hears nothing.
    """
    tell = scope.get("extensions", {}).get(EXTENSION)
    if tell is not None:
        tell(for_somebody)
