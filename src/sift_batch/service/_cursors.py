"""Where does the next page begin? In a text that only this service can make, for one caller and one query.

A cursor holds a place and a proof. Changed, taken from another caller or put to another query, it is
refused like any text: it can't be used to ask what another caller has.
"""

import base64
import binascii
import hashlib
import hmac
from typing import Final

from sift_batch import Caller

from ._problems import BadItem, Problem

KEY_BYTES: Final = 32
_PROOF: Final = 16
_LONGEST: Final = 300


class Cursors:
    """Makes and reads cursors. `key` is 32 random bytes; those of another key are refused."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(self, caller: Caller, query: str, place: str) -> str:
        """Return the cursor of a place: an index, or what is known of the last jobs of a page."""
        raw = self._proof(caller, query, place) + place.encode()
        return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")

    def read(self, caller: Caller, query: str, cursor: str) -> str:
        """Return the place of a cursor. Raises `Problem` `bad_request`."""
        if len(cursor) > _LONGEST:
            raise refused_cursor()
        try:
            raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
            place = raw[_PROOF:].decode("ascii")
        except (ValueError, binascii.Error):
            raise refused_cursor() from None
        if not hmac.compare_digest(raw[:_PROOF], self._proof(caller, query, place)):
            raise refused_cursor()
        return place

    def _proof(self, caller: Caller, query: str, place: str) -> bytes:
        # A name holds no NUL: what is signed can be taken apart in one way only.
        text = f"{caller.name}\0{query}\0{place}".encode()
        return hmac.digest(self._key, text, hashlib.sha256)[:_PROOF]


def refused_cursor(detail: str = "is not a cursor of this list; begin again without one") -> Problem:
    """The problem of a cursor that can't be used."""
    return Problem("bad_request", errors=[BadItem("?cursor", "cursor", detail)])
