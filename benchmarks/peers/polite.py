"""How does a client fetch many pages politely? The child's side of `politeness.py`.

A client is one file with `prepare`: it imports what it needs and returns a function that fetches all URLs,
at most 8 at once and 2 of a host as far as it can be told to, and returns how many pages came back whole.
A client that can tell when it is open and when all is fetched says so to `CLOCK`; the wall time of another
has its opening and closing in it. CPU is that of the whole call for every client. It runs in its own
environment, so this module uses the standard library alone. What the server saw of it is the server's to say.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Sequence

TOTAL, PER_HOST = 8, 2
PAGE = 10_000
"""A page that is whole has more bytes than this."""


FetchAll = Callable[[Sequence[str]], int]


class Clock:
    """The wall time of a client: from the last `begin` to the first `end`."""

    def __init__(self) -> None:
        self.began = 0.0
        self.ended: float | None = None

    def begin(self) -> None:
        """Fetching begins now."""
        self.began = time.perf_counter()

    def end(self) -> None:
        """All is fetched."""
        if self.ended is None:
            self.ended = time.perf_counter()

    def seconds(self) -> float:
        """Return how long it took."""
        assert self.ended is not None
        return self.ended - self.began


CLOCK = Clock()


def run(prepare: Callable[[], FetchAll]) -> None:
    """Fetch what the one argument lists, and print seconds, CPU and whole pages; imports not counted."""
    urls = json.loads(sys.argv[1])
    stdout, sys.stdout = sys.stdout, sys.stderr
    fetch_all = prepare()
    cpu = _cpu()
    CLOCK.begin()
    whole = fetch_all(urls)
    CLOCK.end()
    found = {"seconds": CLOCK.seconds(), "cpu": _cpu() - cpu, "whole": whole}
    print(json.dumps(found), file=stdout, flush=True)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
