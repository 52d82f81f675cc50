"""The log of a service that embeds the engine: registered events, and what a sealed process counts.

An event has a name and fields of closed kinds, as the engine's own have, so that nothing of a request
can get into a line. `SERVICE_EVENTS` lists those of the service. For a whole process, call
`sift_batch.seal_logging` first.
"""

from ._model.events import EventLog
from ._observe.lines import tripwire
from ._observe.log import open_event_log as open_log
from ._observe.seal import unsealed_handlers
from ._observe.service_events import SERVER_TROUBLE, SERVICE_EVENTS, failure

__all__ = [
    "SERVER_TROUBLE",
    "SERVICE_EVENTS",
    "EventLog",
    "failure",
    "held_back",
    "open_log",
    "unsealed_handlers",
]


def held_back() -> int:
    """Return how many lines of this process looked like they hold an address, and were not written."""
    return tripwire.count
