"""Which keys let whom in, and until when? What is kept of the entries of a callers file while it is in force.

It reads no file and asks no clock. Next: `_callers`, which puts one set of keys in the place of another.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sift_batch import Caller

from ._caller_entries import Entry


@dataclass(frozen=True, slots=True, repr=False)
class HeldKey:
    """One key, by its digest, with whom it lets in and the second from which on it does not."""

    digest: bytes
    caller: Caller
    expires_at: float


def held_keys(entries: Iterable[Entry]) -> tuple[HeldKey, ...]:
    """Return the keys that let somebody in: those of all who are not revoked."""
    return tuple(
        HeldKey(
            digest,
            Caller(entry.name, entry.workspace, digest.hex(), entry.caller_class),
            entry.expires_at,
        )
        for entry in entries
        if not entry.revoked
        for digest in entry.keys
    )


def active(held: Iterable[HeldKey], now: float) -> tuple[frozenset[str], frozenset[str]]:
    """Return who is let in at a second, by name, and with which keys, as `Caller.key_sha256` has them."""
    callers = [item.caller for item in held if item.expires_at > now]
    return frozenset(item.name for item in callers), frozenset(item.key_sha256 for item in callers)


def next_expiry(held: Iterable[HeldKey], now: float) -> float:
    """Return the next second at which somebody is shut out; infinite if there is none."""
    return min((item.expires_at for item in held if item.expires_at > now), default=math.inf)
