"""How do rules that are no coroutines step through one long Trio run?

The run is a guest of the thread that the rules run in (Trio's guest mode). It moves only while a call is
under way, and its clock stands still between two calls, so between two rules nothing happens at all.
Each call ends when every task is idle and no thread of the store works any more. Next: `machine_world`.
"""

import queue
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import outcome
import trio

from sift_batch.testing import ThreadAutojumpClock

T = TypeVar("T")

SETTLE: Final = 1e-4
"""Virtual seconds that pass at the end of each call: they can't before everything is idle."""

_PATIENCE: Final = 60.0
"""Real seconds without a sign of life after which a call counts as hanging."""


class StalledError(Exception):
    """The run did not come to rest: something in it waits for ever."""


class _SteppedClock(ThreadAutojumpClock):
    """Jumps like its base, but only while a call is under way."""

    held = True

    def jump(self, seconds: float) -> None:
        if not self.held:
            super().jump(seconds)


class Host:
    """One Trio run, moved on by `call`. `close` ends it; what it raised comes out there."""

    def __init__(self) -> None:
        self.clock = _SteppedClock()
        self._turns: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._stop = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._ended: outcome.Outcome[None] | None = None
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._turns.put,
            done_callback=self._note_end,
            clock=self.clock,
        )
        self._pump(lambda: self._nursery is not None)

    @property
    def time(self) -> float:
        """Trio's clock: between two calls it stands still."""
        return self.clock.current_time()

    @property
    def nursery(self) -> trio.Nursery:
        """Where tasks live that are longer than a call."""
        assert self._nursery is not None
        return self._nursery

    def call(self, work: Callable[..., Awaitable[T]], *args: Any) -> T:
        """Run `work` in a task, let everything come to rest, and return what it returned."""
        answer: list[outcome.Outcome[T]] = []

        async def task() -> None:
            self.clock.held = False
            given = await outcome.acapture(work, *args)
            await trio.sleep(SETTLE)
            self.clock.held = True
            answer.append(given)

        assert self._token is not None
        self._token.run_sync_soon(self.nursery.start_soon, task)
        self._pump(lambda: bool(answer))
        return answer[0].unwrap()

    def close(self) -> None:
        """End the run, all its tasks cancelled; raise what it raised."""
        if self._ended is None:
            assert self._token is not None
            self.clock.held = False
            self._token.run_sync_soon(self._stop.set)
            self._pump(lambda: self._ended is not None)
        assert self._ended is not None
        self._ended.unwrap()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            await self._stop.wait()
            nursery.cancel_scope.cancel()

    def _note_end(self, ended: outcome.Outcome[None]) -> None:
        self._ended = ended

    def _pump(self, over: Callable[[], bool]) -> None:
        while not over():
            if self._ended is not None:
                self._ended.unwrap()
                raise StalledError("the run is over")
            try:
                turn = self._turns.get(timeout=_PATIENCE)
            except queue.Empty:
                raise StalledError(f"nothing moved for {_PATIENCE:g} seconds") from None
            turn()
