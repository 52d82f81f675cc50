"""How do pieces of a body become lines, and lines become server-sent events?

Next: `_calls`, which hands them on.
"""

from collections.abc import AsyncIterator
from typing import NamedTuple

from ._problems import Unreachable


async def lines_of(
    pieces: AsyncIterator[bytes], limit: int, *, keep_blank: bool = False
) -> AsyncIterator[bytes]:
    """Yield the lines of a body, without their ends. Raises `Unreachable` for one longer than `limit`."""
    held: list[bytes] = []  # the beginning of a line whose end has not come, and `size`, its bytes
    size = 0
    async for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for part in ended:
            line = b"".join((*held, part)).removesuffix(b"\r")
            held.clear()
            size = 0
            if line or keep_blank:
                yield line
        held.append(rest)
        size += len(rest)
        if size > limit:
            raise too_long()
    if size:
        yield b"".join(held)


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
