"""Does the process live, and can it take work? Two words for anybody, with no details.

They are open without a key, so they cost next to nothing: the store is asked at most once a second.
"""

from typing import Final

import trio

from sift_batch import Runner, StoreError

from ._response import Response, text_response

_KEPT: Final = 1.0
_PATIENCE: Final = 3.0
_AFTER_TROUBLE: Final = 3.0


class Health:
    """Answers the health paths."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._stopping = False
        # What the last look found, and until when it counts.
        self._ready = False
        self._until = float("-inf")
        # A request found the store out of order: until then it counts as that, whatever a look finds. The
        # last block of a full disk may take what a look writes, and no job.
        self._trouble_until = float("-inf")
        self._look = trio.Lock()

    def stop(self) -> None:
        """Say from now on that the service is not ready."""
        self._stopping = True

    def trouble(self) -> None:
        """A request could not use the store: say for a little while that the service is not ready."""
        self._trouble_until = trio.current_time() + _AFTER_TROUBLE

    def live(self) -> Response:
        """`GET /healthz`."""
        return text_response("ok")

    async def ready(self) -> Response:
        """`GET /readyz`."""
        return text_response("ready") if await self.is_ready() else text_response("not ready", 503)

    async def is_ready(self) -> bool:
        """Return whether work can be taken in: the store writes, and the service does not stop."""
        async with self._look:
            if trio.current_time() >= self._until:
                self._ready = await self._check()
                self._until = trio.current_time() + _KEPT
        in_trouble = trio.current_time() < self._trouble_until
        return self._ready and not in_trouble and not self._stopping

    async def _check(self) -> bool:
        try:
            with trio.move_on_after(_PATIENCE):
                await self._runner.check()
                return True
        except (StoreError, trio.ClosedResourceError):
            pass
        return False
