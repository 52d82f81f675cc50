"""Is the runner closing, and how long may fetches in flight go on?

A fetch and the store of its result stand in a shield, so that a cancel ends everything else of a job
but them. The shield always has a deadline once the runner closes: this module gives each shield its
deadline, however late closing begins. Next room: `workers.py` begins the closing, `drain.py` shields.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio


class Closing:
    """The one place that knows how far the runner is on its way out."""

    def __init__(self) -> None:
        # `begun` and `over` only ever become true; no target starts once `begun` is.
        self.begun = False
        self.over = False
        self.grace_end = math.inf
        self._shields: set[trio.CancelScope] = set()
        # Unparked whenever the end of the grace is set or moved.
        self.moved = trio.lowlevel.ParkingLot()

    @contextmanager
    def shield(self) -> Iterator[trio.CancelScope]:
        """Stand in a scope that no cancellation reaches but the end of the grace."""
        with trio.CancelScope(shield=True, deadline=self.grace_end) as scope:
            self._shields.add(scope)
            try:
                yield scope
            finally:
                self._shields.discard(scope)

    def begin(self, grace: float) -> None:
        """Let what is in flight go on for `grace` seconds from now."""
        self.begun = True
        self._end_at(trio.current_time() + grace)

    def end_grace(self) -> None:
        """End the grace at once."""
        self.begun = True
        self._end_at(trio.current_time())

    def _end_at(self, deadline: float) -> None:
        self.grace_end = min(self.grace_end, deadline)
        for scope in list(self._shields):
            scope.deadline = min(scope.deadline, self.grace_end)
        self.moved.unpark_all()

    async def check_accepting(self) -> None:
        """Raise `trio.ClosedResourceError` once no new work is taken; `Cancelled` goes before it."""
        # Closing may have begun with a cancellation of the very scope that this call stands in.
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.begun:
            raise trio.ClosedResourceError("this runner is closing or closed")

    def check_open(self) -> None:
        """Raise `trio.ClosedResourceError` once nothing can be asked any more."""
        if self.over:
            raise trio.ClosedResourceError("this runner is closed")
