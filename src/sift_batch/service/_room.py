"""How much of all results may be in memory at the same time? As many bytes as the setting says.

A request reserves what it is about to read and gives it back when its answer is made; what is being sent
is bounded by the server's own limits. First come, first
served: a large page is not overtaken for ever by small ones.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

import trio

from sift_batch import TargetStatus

_BYTES_A_CHAR: Final = 8  # in the result, in JSON and in UTF-8
_BYTES_A_TARGET: Final = 2**12


def bytes_of(targets: Iterable[TargetStatus]) -> int:
    """What the results of some targets may take until they are an answer; read without their results."""
    return sum(target.chars * _BYTES_A_CHAR + _BYTES_A_TARGET for target in targets)


class Room:
    """So many bytes, shared by all requests."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._free = total
        self._line = trio.StrictFIFOLock()
        self._changed = trio.Event()

    @property
    def free(self) -> int:
        """Bytes that nobody holds."""
        return self._free

    @asynccontextmanager
    async def hold(self, nbytes: int) -> AsyncIterator[None]:
        """Hold `nbytes` as long as the block lasts; more than there are at all counts as all of them."""
        wanted = min(nbytes, self._total)
        async with self._line:
            while self._free < wanted:
                await self._changed.wait()
            self._free -= wanted
        try:
            yield
        finally:
            self._free += wanted
            self._changed.set()
            self._changed = trio.Event()
