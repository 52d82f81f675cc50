"""What does the process hold at rest, and does it grow?

A slope through points of which some lie far out (a page cache that was filled once, an allocator that
gave back late) is taken by Theil and Sen: the median of the slopes of all pairs of points. Up to 29 % of
the points may be anything without moving it by much, whereas one of them is enough to turn a line of
least squares; a leak moves nearly every pair.
"""

import ctypes
import gc
import logging
import os
import statistics
import sys
import threading
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

MIB: Final = 2**20
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Rest(NamedTuple):
    """One look at a process that has nothing to do."""

    at: float
    rss: int
    descriptors: int
    threads: int
    tasks: int
    loggers: int
    objects: int


def rest(at: float) -> Rest:
    """Look at this process; must be called in a Trio run."""
    for _ in range(3):
        gc.collect()
    _give_back()
    rss = int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    # The listing's own descriptor is closed by the time that its names are counted.
    descriptors = sum(1 for _ in Path("/proc/self/fd").iterdir()) - 1
    return Rest(
        at,
        rss,
        descriptors,
        len(own_threads()),
        count_tasks(trio.lowlevel.current_root_task()),
        len(logging.Logger.manager.loggerDict),
        len(gc.get_objects()),
    )


def own_threads() -> list[threading.Thread]:
    """Return all threads but those that Trio keeps for a while for its next call: they end by themselves."""
    return [thread for thread in threading.enumerate() if not thread.name.startswith("Trio thread")]


def count_tasks(task: Any) -> int:
    """Count a task and all below it."""
    return 1 + sum(count_tasks(child) for nursery in task.child_nurseries for child in nursery.child_tasks)


def theil_sen(points: Sequence[tuple[float, float]]) -> float:
    """Return the median of the slopes of all pairs of points."""
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x2 != x1]
    return statistics.median(slopes) if slopes else 0.0


def after_warm_up(rests: Sequence[Rest]) -> Sequence[Rest]:
    """Return what is left of the points without the first third: caches and arenas fill up there."""
    return rests[len(rests) // 3 :]


def _give_back() -> None:
    """Let the C allocator return what it keeps for later: that is no leak, and it makes RSS jump."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
