"""How does a program on the outside talk to a service? A small client of its HTTP API, on Trio.

It knows paths and bodies no better than its caller does: it sends a key, bounds what comes back in time
and size, follows no redirect, and tells a problem of the service from an answer that is none. Next:
`_calls` (the client), then `_http` (the network under it).
"""

from ._calls import Answer, Client, Event
from ._http import open_client
from ._problems import BadServer, ServiceProblem, Unreachable, stranger
from ._transport import Transport

__all__ = [
    "Answer",
    "BadServer",
    "Client",
    "Event",
    "ServiceProblem",
    "Transport",
    "Unreachable",
    "open_client",
    "stranger",
]
