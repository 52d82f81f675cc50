"""Does somebody try keys? Requests without a valid key, counted by address and minute.

A valid key is let in whatever its address did: behind a proxy all have the same one.
"""

import math
from typing import Final

import trio

_MINUTE: Final = 60.0
_ADDRESSES: Final = 10_000


class Attempts:
    """Counts failures; at most so many a minute from one address."""

    def __init__(self, per_minute: int) -> None:
        self._most = per_minute
        # Failures of this minute, by address; forgotten as a whole when it is over.
        self._failures: dict[str, int] = {}
        self._ends = -math.inf

    def failed(self, address: str) -> float | None:
        """Count a failure; return the seconds to wait if there were too many, else None."""
        now = trio.current_time()
        if now >= self._ends:
            self._failures.clear()
            self._ends = now + _MINUTE
        if address not in self._failures and len(self._failures) >= _ADDRESSES:
            address = ""  # all further addresses share one count: the table does not grow
        self._failures[address] = self._failures.get(address, 0) + 1
        return self._ends - now if self._failures[address] > self._most else None
