"""What does a client stand on? One exchange after another, over a network or inside one process.

Next: `_http`, the one over a network.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

Headers = Sequence[tuple[bytes, bytes]]


class Transport(Protocol):
    """Carries requests to a service. Raises `Unreachable` when nothing answers, or no HTTP."""

    def request(
        self, method: str, path: str, headers: Headers, body: bytes, *, seconds: float
    ) -> AbstractAsyncContextManager[tuple[int, Headers, AsyncIterator[bytes]]]:
        """Send a request; give status, headers and the pieces of the body as they come.

        `path` has its query with it. `seconds` bound the time until the head is there; how long the pieces
        may take is the caller's to bound. They end when the body is whole; one that was cut off raises
        `Unreachable`. Leaving the block, or a cancel, ends the exchange. A redirect is an answer like any
        other.
        """
        ...
