"""What does the server report? Names out of a closed set, one call each, nothing of a request.

It writes no log: `on_event` of `serve` counts, or does nothing.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal, get_args

ServerEvent = Literal[
    "connection_opened",
    "connection_closed",
    "connection_failed",  # a fault of the server itself, contained
    "evicted",  # closed to make room: it lingered, had sent no whole request, or answered nobody's
    "refused_full",
    "accept_failed",
    "bad_request",
    "slow_head",
    "slow_body",
    "body_too_large",
    "slow_reader",
    "disconnected",  # the client left before its answer was complete
    "app_failed",  # the application raised, or answered nothing
    "forced_close",  # something still ran at the end of the grace
]
SERVER_EVENTS: Final[tuple[str, ...]] = get_args(ServerEvent)
"""All names, for a metric's label."""

OnEvent = Callable[[ServerEvent], None]


def contained(on_event: OnEvent | None) -> OnEvent:
    """`on_event`, so that what it raises never reaches a connection or the accept loop."""

    def tell(event: ServerEvent) -> None:
        if on_event is not None:
            with suppress(Exception):  # a count that fails must not cost a connection
                on_event(event)

    return tell
