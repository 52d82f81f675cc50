"""Which key does a request carry, and is it one that we know?

Keys are made here and never chosen by people: 32 random bytes. That is what makes one plain SHA-256
enough to keep in place of a key. Nothing here knows who a key belongs to, or reads a file. Next:
`_caller_entries`, which says what a callers file holds.
"""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar

PREFIX: Final = "siftb_"
"""What every key begins with, so that scanners for leaked secrets can find one."""

_RANDOM_BYTES: Final = 32
_KEY: Final = re.compile(rb"[A-Za-z0-9_-]{16,256}")
_BEARER: Final = re.compile(rb"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9_-]{16,256})")
_DIGEST: Final = re.compile(r"sha256:([0-9a-fA-F]{64})", re.ASCII)


class Held(Protocol):
    """Whatever is kept for one key: the digest is all that is asked of it here."""

    @property
    def digest(self) -> bytes:
        """The 32 bytes of the key's SHA-256."""
        ...


HeldKey = TypeVar("HeldKey", bound=Held)


def new_key() -> str:
    """Return a key that nobody has had before: the prefix and 52 characters of base32."""
    return PREFIX + base64.b32encode(secrets.token_bytes(_RANDOM_BYTES)).decode("ascii").rstrip("=")


def digest_of(key: bytes) -> bytes:
    """Return the 32 bytes that are kept in place of a key."""
    return hashlib.sha256(key).digest()


def digest_text(digest: bytes) -> str:
    """Return a digest as a callers file writes it: `sha256:` and 64 hexadecimal digits."""
    return f"sha256:{digest.hex()}"


def read_digest(text: str) -> bytes | None:
    """Return the digest that a callers file writes so; None if it is none."""
    found = _DIGEST.fullmatch(text)
    return None if found is None else bytes.fromhex(found[1])


def read_key(text: bytes) -> bytes | None:
    """Return the key that a key file holds, one line end behind it left away; None if it is none."""
    key = text.removesuffix(b"\n").removesuffix(b"\r")
    return key if _KEY.fullmatch(key) else None


def bearer_key(headers: Sequence[bytes]) -> bytes | None:
    """Return the key of a request, given the values of all its `Authorization` headers.

    None unless there is exactly one header, of the scheme Bearer, with a key of the right form. Never
    raises, whatever the bytes.
    """
    # A second header could be what another server on the way has looked at: one of two is none.
    if len(headers) != 1:
        return None
    found = _BEARER.fullmatch(headers[0])
    return None if found is None else found[1]


def matching(key: bytes, held: Iterable[HeldKey]) -> HeldKey | None:
    """Return what is held for a key, or None.

    Takes as long for a key that is known as for one that isn't: every digest is compared, each in
    constant time, and the loop does not end early.
    """
    given = digest_of(key)
    found = None
    for item in held:
        if hmac.compare_digest(item.digest, given):
            found = item
    return found
