"""What is in the body of an answer, and when is it too much?

A body is taken as it comes, counted, unpacked and kept in pieces, with others getting their turn all the
while. It opens no connection and knows no status. Next: `_inflate`, which unpacks.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Final, NamedTuple

import trio

from ._errors import refused
from ._inflate import STEP, Inflater
from ._wire import Meter, too_large

# So many tiny chunks, steps or members may be dealt with before others get their turn.
_STEPS_PER_TURN: Final = 64


class Body(NamedTuple):
    """A whole body, unpacked: its pieces, and how many bytes they have together."""

    pieces: list[bytes]
    size: int


def is_packed(encoding: bytes) -> bool:
    """Return whether a Content-Encoding means gzip. Raises `FetchError` for what was not asked for."""
    codings = [coding.strip().lower() for coding in encoding.split(b",")]
    codings = [coding for coding in codings if coding not in (b"", b"identity")]
    if codings in ([b"gzip"], [b"x-gzip"]):
        return True
    if codings:
        raise refused("encoding", "the page is packed in a way that was not asked for")
    return False


async def read_body(chunks: AsyncIterator[bytes], meter: Meter, *, packed: bool, limit: int) -> Body:
    """Take a body to its end and return it unpacked, of at most `limit` bytes.

    `meter` has the limit of what comes, and what was announced. A packed body is unpacked twice: once to
    count it, and again when it is known to be whole and not too large. So a bomb never unfolds, and it
    costs a usual page a fraction of a millisecond. Raises `FetchError`: `too_large`, `protocol`.
    """
    wire_limit = meter.limit if packed else min(meter.limit, limit)
    if meter.announced is not None and meter.announced > wire_limit:
        raise too_large(meter.announced, wire_limit)
    turns = _Turns()
    taken, counter = _Pieces(wire_limit), _Counter(limit)
    async for chunk in chunks:
        meter.body += len(chunk)
        taken.add(chunk)
        await turns.take(0)
        for size in counter.feed(chunk) if packed else ():
            await turns.take(size)
    if not packed:
        return taken.close()
    counter.close()
    return await _unpack(taken.close().pieces, limit, turns)


async def _unpack(packed: list[bytes], limit: int, turns: "_Turns") -> Body:
    body, inflater = _Pieces(limit), Inflater()
    packed.reverse()
    while packed:
        # Taken off the list, so that what is unpacked takes its place.
        for piece in inflater.feed(packed.pop()):
            body.add(piece)
            await turns.take(len(piece))
    return body.close()


class _Turns:
    """Lets others run: one packet may hold thousands of chunks, and unfold to megabytes."""

    def __init__(self) -> None:
        self._steps = 0

    async def take(self, size: int) -> None:
        """Count one step that gave `size` bytes."""
        self._steps += 1
        if self._steps >= _STEPS_PER_TURN or size >= STEP:
            self._steps = 0
            await trio.lowlevel.checkpoint()


class _Counter:
    """Counts what a packed body unpacks to, up to `limit` bytes, and keeps nothing of it."""

    def __init__(self, limit: int) -> None:
        self._left = self._limit = limit
        self._inflater = Inflater()
        self.close = self._inflater.close

    def feed(self, chunk: bytes) -> Iterator[int]:
        """Take the next bytes; give the size of each step."""
        for piece in self._inflater.feed(chunk):
            self._left -= len(piece)
            if self._left < 0:
                raise too_large(None, self._limit)
            yield len(piece)


class _Pieces:
    """Collects a body up to `limit` bytes. Small pieces become big ones: each costs 33 bytes by itself."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._whole: list[bytes] = []
        self._small = bytearray()

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._limit:
            raise too_large(None, self._limit)
        if len(piece) == STEP and not self._small:
            self._whole.append(piece)
            return
        self._small += piece
        if len(self._small) >= STEP:
            self._flush()

    def close(self) -> Body:
        self._flush()
        return Body(self._whole, self.size)

    def _flush(self) -> None:
        if self._small:
            self._whole.append(bytes(self._small))
            self._small.clear()
