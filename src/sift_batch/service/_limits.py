"""How much may one client of the server take, and for how long? The limits, checked when they are made.

Plain values. `_head` counts a request's head, `_exchange` its body and its answer, `_server` the connections.
"""

import math
from dataclasses import dataclass, fields
from typing import Final

_WHOLE: Final = ("connections", "head_bytes", "header_count", "body_bytes")
_FROM_ZERO: Final = ("body_bytes", "grace_seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLimits:
    """Limits of one server: bytes, counts, seconds. A bad value raises `ValueError` with the field's name."""

    connections: int = 256
    """Open connections. One more takes the place of one that does less (`_places`): that lingers, that has
    sent no whole request, or whose request is nobody's. When all must stay, it gets a 503."""
    head_bytes: int = 16 * 1024
    """Request line and headers together; more is a 431."""
    header_count: int = 100
    """Header lines; more is a 431."""
    head_seconds: float = 5.0
    """From the first byte of a head to its last; later is a 408."""
    idle_seconds: float = 5.0
    """Without the first byte of a request, on a new connection as between two requests."""
    body_bytes: int = 1024 * 1024
    """A request's body; more is a 413, as soon as it is announced or counted."""
    body_seconds: float = 30.0
    """From the moment the application asks for the body to the body's last byte; later is a 408."""
    send_seconds: float = 30.0
    """For the client to take the next 64 KiB of an answer; later the connection is cut."""
    grace_seconds: float = 10.0
    """After `stop`, for requests that run; what still runs then is cancelled and cut."""
    linger_seconds: float = 2.0
    """For a refused client to stop sending and read why, before the connection is closed under it."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value, name = getattr(self, field.name), field.name
            kinds = int if name in _WHOLE else (int, float)
            if isinstance(value, bool) or not isinstance(value, kinds) or not math.isfinite(value):
                raise ValueError(f"{name} is not a {'whole ' if name in _WHOLE else ''}number")
            if value < 0 or (value == 0 and name not in _FROM_ZERO):
                raise ValueError(f"{name} is too small")
