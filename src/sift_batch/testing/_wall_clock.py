"""What time is it, in a test? A wall clock that follows Trio's, and jumps when told to.

Stored times come from the `now=` of `open_runner`. On Trio's mock clock they should move with it, and
a test of clocks that are set back or forward moves them alone.
"""

import trio


class WallClock:
    """A `now` for `open_runner`: unix seconds that pass as Trio's clock does.

        clock = WallClock(start=1_000_000)
        async with open_runner(store, fetch, now=clock) as runner:
            await trio.sleep(60)  # clock() is 1_000_060.0
            clock.jump(-3600)     # somebody sets the wall clock back by an hour

    Outside a run, and in a thread, the time stands still at what was last read. In a next run it
    goes on from there, as soon as it is read.
    """

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        # Where this clock stood when Trio's clock of the current run stood at `_base`.
        self._offset = float(start)
        self._base = 0.0
        self._token: trio.lowlevel.TrioToken | None = None
        self._last = self._offset
        self()  # made in a run, it starts now and not when it is first read

    def __call__(self) -> float:
        """Return the time in unix seconds."""
        try:
            token, trios = trio.lowlevel.current_trio_token(), trio.current_time()
        except RuntimeError:
            return self._last
        if token is not self._token:
            self._token, self._base, self._offset = token, trios, self._last
        self._last = self._offset + (trios - self._base)
        return self._last

    def jump(self, seconds: float) -> None:
        """Move this clock alone by `seconds`, forward or back. Trio's clock does not notice."""
        self()
        self._offset += seconds
        self._last += seconds
