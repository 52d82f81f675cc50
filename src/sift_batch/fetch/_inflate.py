"""What is in a packed body, and how do we stop in time when it is far too much?

gzip as it comes, in small steps, so that no bomb unfolds further than the step that shows it. It does
not read headers, keep what it unpacks or wait for anything: the caller takes each step's bytes, counts
them and lets others run in between. Next: `_body`.
"""

import zlib
from collections.abc import Iterator
from typing import Final

from ._errors import FetchError

STEP: Final = 64 * 1024
"""No step unpacks more bytes than this."""
MEMBERS_LIMIT: Final = 1_024
"""No body has more members than this: an empty one of twenty bytes costs the work of a whole page."""

_GZIP: Final = 31  # zlib's word for: gzip only, with its checksum verified
_MAGIC: Final = b"\x1f\x8b"


class Inflater:
    """Unpacks one body of one or more gzip members.

    Whatever follows a member without being the start of another is ignored, as padding is common.
    """

    def __init__(self) -> None:
        # None between two members. What could be half of the two magic bytes waits in `_held`.
        self._member: zlib._Decompress | None = zlib.decompressobj(_GZIP)
        self._held = b""
        self._started = False
        self._padding = False
        self._members = 1

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take the next bytes and give what they unpack to, step by step; a step may be empty.

        To be used up before the next call. Raises `FetchError`: `protocol` for damaged bytes, `too_large`
        for more members than are taken.
        """
        # What a full step leaves inside needs no asking for: at least the checksum is still to be fed.
        while data and not self._padding:
            self._started = True
            if self._member is None:
                data = self._held + data
                self._held = b""
                if data == _MAGIC[:1]:
                    self._held = data
                    return
                if not data.startswith(_MAGIC):
                    self._padding = True
                    return
                self._members += 1
                if self._members > MEMBERS_LIMIT:
                    message = f"the page is packed in more than the {MEMBERS_LIMIT:,} parts that are taken"
                    raise FetchError("too_large", message)
                self._member = zlib.decompressobj(_GZIP)
            member = self._member
            try:
                piece = member.decompress(data, STEP)
            except zlib.error:
                raise FetchError("protocol", "the packed page is damaged") from None
            data = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                self._member = None
            yield piece

    def close(self) -> None:
        """Raise `FetchError`, code `protocol`, if the body ended inside a member. An empty body is whole."""
        if self._started and self._member is not None:
            raise FetchError("protocol", "the packed page is cut off")
