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
        self._rest = b""
        self._interim = 0
        # The size of what is left of the current chunk with its line end; None if nothing is chunked.
        self._left: int | None = None
        self._trailer = False
        self._chunks_seen = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes. Raises `FetchError`, code `protocol`."""
        if not self.in_body:
            data = self._head(self._rest + data)
        if self.in_body and self._left is not None:
            self._chunks(self._rest + data)

    def _head(self, data: bytes) -> bytes:
        """Take heads off the front; return what follows the last one."""
        while not self.in_body:
            if not data.startswith(_START[: len(data)]):
                raise malformed()  # before it is waited for: HTTP/0.9, HTTP/2, TLS, another protocol
            size = _section(data, lines=FIELDS_LIMIT + 2)  # with a status line and a blank one
            if size is None:
                self._rest = data
                return b""
            head, data = data[:size], data[size:]
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
        self._rest = b""
        return data

    def _chunks(self, data: bytes) -> None:
        at, left = 0, self._left or 0
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
        self._left, self._rest = left, data[at:]
        if self._trailer:
            if (
                self._rest[:1] == b"\n"
                or self._rest[:2] == b"\r\n"
                or _section(self._rest, lines=FIELDS_LIMIT + 1) is not None
            ):
                self._left, self._rest = None, b""  # the end of the answer
        elif len(self._rest) >= _CHUNK_LINE_LIMIT:
            raise malformed()


def _section(data: bytes, *, lines: int) -> int | None:
    """Return the size of the fields at the start of `data`, their blank line included; None if they go on."""
    end = _END.search(data)
    section = data if end is None else data[: end.end()]
    if len(section) > HEAD_LIMIT or section.count(b"\n") > lines:
        raise FetchError("protocol", "the site's answer has more or longer headers than are taken")
    if end is None:
        return None
    if _CONTROL.search(section):
        raise malformed()
    return end.end()
