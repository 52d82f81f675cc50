"""How do pieces of a body become lines, and lines become server-sent events?

Next: `_calls`, which hands them on.
"""

from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple

from ._problems import Unreachable


class Lines:
    """The lines of a body, without their ends, as they come; blank ones only if they are to be kept.

    Raises `Unreachable` for a line longer than `limit`.
    """

    def __init__(self, pieces: AsyncIterator[bytes], limit: int, *, keep_blank: bool = False) -> None:
        self._pieces, self._limit, self._keep_blank = pieces, limit, keep_blank
        self._ready: deque[bytes] = deque()  # lines that have ended
        self._held: list[bytes] = []  # the beginning of one that has not, and `_size`, its bytes
        self._size = 0

    def __aiter__(self) -> "Lines":
        return self

    async def __anext__(self) -> bytes:
        while True:
            while self._ready:
                line = self._ready.popleft()
                if line or self._keep_blank:
                    return line
            piece = await anext(self._pieces, None)
            if piece is not None:
                self._take(piece)
            elif self._size:
                line, self._size = b"".join(self._held), 0
                return line
            else:
                raise StopAsyncIteration

    def _take(self, piece: bytes) -> None:
        *ended, rest = piece.split(b"\n")
        for part in ended:
            self._ready.append(b"".join((*self._held, part)).removesuffix(b"\r"))
            self._held.clear()
            self._size = 0
        self._held.append(rest)
        self._size += len(rest)
        if self._size > self._limit:
            raise too_long()


def too_long() -> Unreachable:
    """Return the error for what no service of ours would send."""
    return Unreachable("the answer is larger than any of the service's")


class Fields(NamedTuple):
    """The fields of one event, as texts."""

    name: str
    id: str
    data: str


class EventReader:
    """Takes the lines of an event stream and gives the events, by the rules of the HTML standard."""

    def __init__(self) -> None:
        self._name = ""
        self._id = ""  # stays from one event to the next
        self._data: list[str] = []
        self._size = 0

    def take(self, line: bytes, limit: int) -> Fields | None:
        """Take one line; return the event that it ends, if it ends one. Raises `Unreachable`."""
        if not line:
            name, data = self._name or "message", self._data
            self._name, self._data, self._size = "", [], 0
            return Fields(name, self._id, "\n".join(data)) if data else None
        text = line.decode("utf-8", "replace")
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._size += len(line)
            if self._size > limit:
                raise too_long()
        elif field == "event":
            self._name = value
        elif field == "id" and "\0" not in value and value.isascii():
            self._id = value[:100]
        return None
