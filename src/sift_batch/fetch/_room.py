"""How many pages may wait for a reader before no further one is fetched?

A page that has come gives its slot back, and another may be fetched in it: without a bound, bodies would
pile up in front of readers that are slower than the network. `Room` counts their bytes; while it is full,
a fetch keeps its slot of the gate, so that the network waits for the readers. It reads nothing and knows
no slot. Next: `_hops`, which takes room in the slot, and `_pipeline`, which gives it back.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import trio
from trio.lowlevel import enable_ki_protection

BYTES: Final = 64 * 2**20
"""The room of one fetcher: six of the largest pages that the default settings let in, and enough typical
ones (some 100 KB) for hundreds of callers. With what the slots hold it bounds the memory for bodies."""


@dataclass(slots=True, eq=False)
class _Waiter:
    owner: Hashable
    size: int
    event: trio.Event


class Room:
    """Bytes, taken by owners that wait in two lines: those for whom somebody waits go first."""

    def __init__(self, size: int = BYTES) -> None:
        self._size = size
        # What each owner has; the sum is at most `_size`. Whoever waits has nothing yet.
        self._taken: dict[Hashable, int] = {}
        self._lines: tuple[deque[_Waiter], deque[_Waiter]] = (deque(), deque())

    @enable_ki_protection
    async def take(self, owner: Hashable, size: int, *, interactive: bool) -> None:
        """Take room for `size` bytes; what is larger than all of it takes all of it.

        If cancelled, nothing is taken. An owner takes once, until it has given back.
        """
        waiter = _Waiter(owner, min(size, self._size), trio.Event())
        line = self._lines[0 if interactive else 1]
        line.append(waiter)
        self._admit()
        try:
            await waiter.event.wait()
        except BaseException:
            if waiter.event.is_set():
                self.give_back(owner)
            else:
                line.remove(waiter)
                self._admit()  # those behind it may need less
            raise

    @enable_ki_protection
    def give_back(self, owner: Hashable) -> None:
        """Give back what `owner` has, if it has anything."""
        if self._taken.pop(owner, None) is not None:
            self._admit()

    @property
    def taken(self) -> int:
        """The bytes that are taken."""
        return sum(self._taken.values())

    def _admit(self) -> None:
        # Strictly in order: a large page is not overtaken by small ones for ever.
        free = self._size - self.taken
        for line in self._lines:
            while line:
                if line[0].size > free:
                    return
                waiter = line.popleft()
                self._taken[waiter.owner] = waiter.size
                free -= waiter.size
                waiter.event.set()
