"""How much of all results may be in memory at the same time? As many bytes as the setting says.

A request holds what it is about to read, then what its answer takes, until the client has taken all of it:
slow readers are what fills a memory. One caller gets a part of the room, so that its slow readers keep
nobody else from reading. First come, first served: a large page is not overtaken for ever by small ones.
"""

from collections.abc import Iterable
from typing import Final

import trio

from sift_batch import TargetStatus

_BYTES_A_CHAR: Final = 8  # in the result, in JSON and in UTF-8
_BYTES_A_TARGET: Final = 2**12
_PARTS: Final = 4
"""One caller gets one of so many parts of the room."""


def bytes_of(targets: Iterable[TargetStatus]) -> int:
    """What the results of some targets may take until they are an answer; read without their results."""
    return sum(bytes_of_chars(target.chars) for target in targets)


def bytes_of_chars(chars: int) -> int:
    """What a result of so many characters may take until it is an answer."""
    return chars * _BYTES_A_CHAR + _BYTES_A_TARGET


class Room:
    """So many bytes, shared by all who ask. More than there are at all counts as all of them."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._free = total
        self._line = trio.StrictFIFOLock()
        self._changed = trio.Event()

    @property
    def free(self) -> int:
        """Bytes that nobody holds."""
        return self._free

    def take_now(self, nbytes: int) -> int:
        """Take bytes if they are there and nobody waits for some; return how many were taken."""
        wanted = min(nbytes, self.total)
        if self._line.locked() or self._free < wanted:
            return 0
        self._free -= wanted
        return wanted

    async def take(self, nbytes: int) -> int:
        """Wait for bytes; return how many were taken. A cancel takes none."""
        wanted = min(nbytes, self.total)
        async with self._line:
            while self._free < wanted:
                await self._changed.wait()
            self._free -= wanted
        return wanted

    def give(self, nbytes: int) -> None:
        """Give bytes back."""
        self._free += nbytes
        self._changed.set()
        self._changed = trio.Event()


class SharedRoom(Room):
    """The room of all callers, and a part of it for each caller that holds some."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        # Each with how many requests use it: the last one takes it out.
        self._parts: dict[str, tuple[Room, int]] = {}

    @property
    def callers(self) -> int:
        """Callers that hold some, or wait for some."""
        return len(self._parts)

    def enter(self, caller: str) -> Room:
        """Return the part of a caller; `leave` it."""
        part, users = self._parts.get(caller) or (Room(max(1, self.total // _PARTS)), 0)
        self._parts[caller] = (part, users + 1)
        return part

    def leave(self, caller: str) -> None:
        """End one use of a caller's part."""
        part, users = self._parts.pop(caller)
        if users > 1:
            self._parts[caller] = (part, users - 1)


class Held:
    """What one request holds, until it is closed. It takes again once it keeps nothing."""

    def __init__(self, room: SharedRoom, caller: str) -> None:
        self._room, self._caller = room, caller
        self._part: Room | None = None
        # Of the caller's part, and of the room: a cancel between the two leaves both right.
        self._of_part = self._of_all = 0

    def take_now(self, nbytes: int) -> bool:
        """Take bytes if they are there; whether that was done."""
        part = self._enter()
        self._of_part = part.take_now(nbytes)
        self._of_all = self._room.take_now(self._of_part) if self._of_part else 0
        if not self._of_all:
            part.give(self._of_part)
            self._of_part = 0
        return self._of_all > 0

    async def take(self, nbytes: int) -> None:
        """Wait for bytes."""
        self._of_part = await self._enter().take(nbytes)
        self._of_all = await self._room.take(self._of_part)

    def keep(self, nbytes: int) -> None:
        """Give back what is more than `nbytes`."""
        if self._part is not None:
            more = max(0, self._of_part - nbytes)
            self._part.give(more)
            self._of_part -= more
            more = max(0, self._of_all - nbytes)
            self._room.give(more)
            self._of_all -= more

    def close(self) -> None:
        """Give all back."""
        if self._part is not None:
            self.keep(0)
            self._part = None
            self._room.leave(self._caller)

    def _enter(self) -> Room:
        if self._part is None:
            self._part = self._room.enter(self._caller)
        return self._part
