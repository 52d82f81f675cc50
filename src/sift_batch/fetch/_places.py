"""Who gets the next worker that comes free?

So many places, and two lines before them: whoever somebody waits for goes before every batch fetch, and
within a line it is first come, first served. It knows nothing of workers. Next: `_pool`, which has one
worker for each place.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


class Places:
    """Places that are taken and given back. A place is never free while somebody waits for one."""

    def __init__(self, total: int) -> None:
        self._free = total
        self._interactive = trio.lowlevel.ParkingLot()
        self._batch = trio.lowlevel.ParkingLot()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._interactive) + len(self._batch)

    def take_nowait(self) -> bool:
        """Take a place if one is free. Whoever got True gives it back."""
        if not self._free:
            return False
        self._free -= 1
        return True

    async def take(self, *, interactive: bool = False) -> None:
        """Wait for a place. If cancelled, none is taken, and nobody loses a turn."""
        await trio.lowlevel.checkpoint()
        if not self.take_nowait():
            # Whoever gives a place back gives it to one of those parked here: it is theirs once they wake.
            await (self._interactive if interactive else self._batch).park()

    def give_back(self) -> None:
        """Give a place to whoever is first in line, or make it free."""
        for line in (self._interactive, self._batch):
            if line:
                line.unpark()
                return
        self._free += 1

    @asynccontextmanager
    async def one(self, *, interactive: bool = False) -> AsyncIterator[None]:
        """Hold a place for the time of the block."""
        await self.take(interactive=interactive)
        try:
            yield
        finally:
            self.give_back()
