"""Is what comes from the server small and plain enough to be given to a parser?

Every byte of an answer passes here before the HTTP parser sees it: heads, interim answers, chunk sizes
and trailers under caps in bytes and lines. It gives no meaning to an answer; the parser does. It exists
because some of the parser's own patterns take time quadratic in a line that a server chooses (100 KiB
of blanks and a NUL: half a minute), and its own limit on a head is not met by one that comes in two
big pieces. Next: `_wire`, which reads through it.
"""

import re
from typing import Final

from ._errors import FetchError

HEAD_LIMIT: Final = 100 * 1024
"""No head, and no trailer section, has more bytes than this."""
FIELDS_LIMIT: Final = 256
"""No head, and no trailer section, has more fields than this."""
INTERIM_LIMIT: Final = 16
"""No more interim (1xx) answers than this come before an answer."""
CHUNKS_LIMIT: Final = 2**17
"""No body comes in more chunks than this: each costs the same work, may it hold one byte or thousands."""

_CHUNK_LINE_LIMIT: Final = 256
_CHUNK_SIZE: Final = re.compile(rb"[0-9A-Fa-f]{1,16}(?=[;\t \r])")
_START: Final = b"HTTP/1."
_END: Final = re.compile(rb"\n\r?\n")
_STATUS: Final = re.compile(rb"HTTP/1\.[0-9] ([0-9]{3})[ \r\n]")
_CHUNKED: Final = re.compile(rb"^transfer-encoding:", re.IGNORECASE | re.MULTILINE)
# What no line of a head may hold, and what would send the parser's patterns back again and again.
_CONTROL: Final = re.compile(rb"[\x00\x0b\x0c\x7f]|\r(?!\n)")
_UPGRADE: Final = 101
_BODILESS: Final = frozenset({_UPGRADE, 204, 304})


def malformed() -> FetchError:
    """Return the error of an answer that is no proper HTTP/1.1."""
    return FetchError("protocol", "the site's answer is malformed")


class Framing:
    """Follows one answer. `in_body` is true once its own head, not an interim one, is complete."""

    def __init__(self) -> None:
        self.in_body = False
        # Bytes whose line or section is not complete yet: bounded by the caps, empty inside data.
        self._rest = bytearray()
        # Of these, how many hold no end of a section, and how many lines are in them.
        self._looked = self._lines = 0
        self._interim = 0
        # The size of what is left of the current chunk with its line end; None if nothing is chunked.
        self._left: int | None = None
        self._trailer = False
        self._chunks_seen = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises `FetchError`, code `protocol`."""
        if not self.in_body:
            self._rest += data
            self._head()
            data = b""
        if self.in_body and self._left is not None:
            self._rest += data
            self._chunks()

    def _head(self) -> None:
        """Take heads off the front; what follows the last one stays."""
        while not self.in_body:
            if not self._rest.startswith(_START[: len(self._rest)]):
                raise malformed()  # before it is waited for: HTTP/0.9, HTTP/2, TLS, another protocol
            size = self._section(FIELDS_LIMIT + 2)  # with a status line and a blank one
            if size is None:
                return
            head = bytes(self._rest[:size])
            del self._rest[:size]
            status = _STATUS.match(head)
            if status is None:
                raise malformed()
            code = int(status[1])
            if 100 <= code < 200 and code != _UPGRADE:
                self._interim += 1
                if self._interim > INTERIM_LIMIT:
                    raise FetchError("protocol", "the site sends interim answers without end")
                continue
            self.in_body = True
            if code not in _BODILESS and _CHUNKED.search(head):
                self._left = 0
            else:
                self._rest.clear()

    def _chunks(self) -> None:
        data, at, left = self._rest, 0, self._left or 0
        while not self._trailer:
            taken = min(left, len(data) - at)
            at += taken
            left -= taken
            end = data.find(b"\r\n", at, at + _CHUNK_LINE_LIMIT)
            if left or end < 0:
                break
            size = _CHUNK_SIZE.match(data, at)
            if size is None:
                raise malformed()
            at = end + 2
            self._chunks_seen += 1
            left = int(size[0], 16) + 2
            self._trailer = left == 2
        if self._chunks_seen > CHUNKS_LIMIT:
            message = f"the page comes in more than the {CHUNKS_LIMIT:,} pieces that are taken"
            raise FetchError("too_large", message)
        self._left = left
        del data[:at]
        if self._trailer:
            if data[:1] == b"\n" or data[:2] == b"\r\n" or self._section(FIELDS_LIMIT + 1) is not None:
                self._left = None  # the end of the answer
                data.clear()
        elif len(data) >= _CHUNK_LINE_LIMIT:
            raise malformed()

    def _section(self, lines: int) -> int | None:
        """Return the size of the fields that wait, their blank line included; None if they go on.

        Each byte is looked at once, however few came at a time.
        """
        data = self._rest
        end = _END.search(data, max(0, self._looked - 2))
        size = len(data) if end is None else end.end()
        self._lines += data.count(b"\n", self._looked, size)
        if size > HEAD_LIMIT or self._lines > lines:
            raise FetchError("protocol", "the site's answer has more or longer headers than are taken")
        if end is None:
            self._looked = size
            return None
        self._looked = self._lines = 0
        if _CONTROL.search(data, 0, size):
            raise malformed()
        return size
