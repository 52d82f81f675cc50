"""Which target goes into which job?

Deals a window of targets out to jobs so that the jobs that run side by side, and the targets of one
job, are on different hosts as far as the window allows: no job then waits long for one slow host. It
submits nothing. Next: `submitter`.
"""

import itertools
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

TARGETS_PER_JOB: Final = 32

T = TypeVar("T")


def windows(items: Iterable[T], parallel: int) -> Iterator[list[T]]:
    """Cut `items` into runs that fill at most `parallel` jobs."""
    source = iter(items)
    while window := list(itertools.islice(source, parallel * TARGETS_PER_JOB)):
        yield window


def deal(hosts: Sequence[str], parallel: int) -> list[list[int]]:
    """Return at most `parallel` jobs, each a list of indexes into `hosts`.

    Every index comes once; no job has more than one target more than another.
    """
    jobs: list[list[int]] = [[] for _ in range(min(parallel, len(hosts)))]
    dealt: list[Counter[str]] = [Counter() for _ in jobs]
    row: list[int] = []
    for index in _alternate(hosts):
        # Row by row, each job one target a row, and of those that have none yet the one with the fewest
        # of this host. By position alone, four hosts and eight jobs would give every job a host of its
        # own, and a slow host would stop its jobs for good.
        row = row or list(range(len(jobs)))
        host = hosts[index]
        job = min(row, key=lambda number: dealt[number][host])
        row.remove(job)
        jobs[job].append(index)
        dealt[job][host] += 1
    return jobs


def _alternate(hosts: Sequence[str]) -> Iterator[int]:
    """Yield the indexes so that the hosts take turns, each host's own in order."""
    by_host: dict[str, deque[int]] = {}
    for index, host in enumerate(hosts):
        by_host.setdefault(host, deque()).append(index)
    turns = deque(by_host.values())
    while turns:
        host_turn = turns.popleft()
        yield host_turn.popleft()
        if host_turn:
            turns.append(host_turn)
