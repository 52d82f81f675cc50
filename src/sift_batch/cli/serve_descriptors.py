"""Has the process as many open files as its service may need? The soft limit is raised, or the start refused.

At the limit nothing can be accepted, and clients that say nothing would keep all others out: the server
closes the longest waiting of them once `service.connections` are open, and has to get that far.
"""

import resource
from typing import TYPE_CHECKING, Final

from .plan import Refused

if TYPE_CHECKING:
    from ..service._settings import Settings

_BESIDE: Final = 128
"""Store, log, listeners, metrics, look-ups, and clients that are told that the service is full."""

_EACH: Final = 4
"""A fetch in flight, with the addresses that it tries at the same time; a worker's pipes."""


def raise_descriptor_limit(settings: "Settings") -> None:
    """Raise the soft limit as far as these settings need; `Refused` when the hard one is too low."""
    connections, reserve = settings.service.connections, _reserve(settings)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + reserve
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    try:
        if hard == resource.RLIM_INFINITY or hard >= needed:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
            return
    except (OSError, ValueError):
        hard = soft  # the system has a limit of its own below the hard one
    room = hard - reserve
    lower = f", or lower service.connections to {room:,} or less" if room > 0 else ""
    raise Refused(
        f"service.connections = {connections:,} needs {needed:,} open files, and this process may have "
        f"{hard:,}; raise that limit (ulimit -n, LimitNOFILE=, nofile){lower}",
        2,
    )


def _reserve(settings: "Settings") -> int:
    return _BESIDE + _EACH * (settings.gate.total + settings.fetch.extract_workers)
