"""What may only one request do at a time, of those that do it to the same thing? Whatever has a lock here.

The engine's owner is this process alone, so locks in memory are enough. Each goes with its last user.
"""

from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager

import trio


class Locks:
    """A lock for each thing that somebody holds alone, or waits for. First come, first served."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, trio.Lock] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def alone(self, thing: Hashable) -> AsyncIterator[None]:
        """Hold a thing alone as long as the block lasts."""
        lock = self._locks.setdefault(thing, trio.Lock())
        try:
            async with lock:
                yield
        finally:
            if not lock.locked():
                self._locks.pop(thing, None)
