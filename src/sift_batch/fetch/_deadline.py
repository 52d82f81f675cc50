"""How long may one target keep the network busy?

One span of seconds for everything but reading the page: look-up, connections, hops, bodies, waits
between tries. It bounds nothing by itself: `_hops` spends it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from ._errors import FetchError


class Deadline:
    """A total of seconds that begins with the first slot and stands still while a page is read."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        # Set once by `start`, moved by `stopped`; None before the first slot.
        self._end: float | None = None

    def start(self) -> None:
        """Begin, unless it has begun."""
        if self._end is None:
            self._end = trio.current_time() + self._seconds

    @property
    def left(self) -> float:
        """The seconds that are left, at least 0."""
        return self._seconds if self._end is None else max(0.0, self._end - trio.current_time())

    @contextmanager
    def running(self) -> Iterator[None]:
        """Bound a block. Raises `FetchError` `timeout` when the time is up; work that is done counts."""
        self.start()
        with trio.move_on_after(self.left) as scope:
            yield
        if scope.cancelled_caught:
            raise FetchError("timeout", "the page took too long", hint="the site is slow; try again later")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Don't count a block."""
        began = trio.current_time()
        try:
            yield
        finally:
            if self._end is not None:
                self._end += trio.current_time() - began
