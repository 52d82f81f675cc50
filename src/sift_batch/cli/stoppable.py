"""How is one piece of work run that a signal may end, with a bar for as long as it takes?

For commands that wait for a thread. The main job has its own way to stop (`batch`).
"""

import signal
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from .plan import Refused
from .screen import Screen
from .signals import ending_signals

T = TypeVar("T")

_DRAW_EVERY: Final = 0.1


class Progress:
    """How far the work is. Written by the thread that does it, one pair at a time; read when drawn."""

    def __init__(self, unit: int = 1) -> None:
        self._unit = unit
        self.parts = (0, 0)

    def __call__(self, done: int, total: int) -> None:
        """Take in how much is done, of how much."""
        self.parts = (done // self._unit, -(-total // self._unit))


def run_stoppable(
    work: Callable[[], Awaitable[T]], screen: Screen, doing: str, progress: Progress | None = None
) -> T:
    """Run the work and return what it returns.

    SIGINT, SIGTERM and SIGHUP cancel it, and are then a `Refused` with the exit code 128 and the signal's
    number. What the work raises comes out as itself.
    """
    return trio.run(_run, work, screen, doing, progress or Progress())


async def _run(work: Callable[[], Awaitable[T]], screen: Screen, doing: str, progress: Progress) -> T:
    stopped: list[int] = []
    done: list[T] = []
    failed: list[Exception] = []

    async def obey(scope: trio.CancelScope) -> None:
        with trio.open_signal_receiver(signal.SIGINT, *ending_signals()) as signals:
            started.set()
            async for number in signals:
                stopped.append(number)
                scope.cancel()

    async def draw() -> None:
        while True:
            await trio.sleep(_DRAW_EVERY)
            screen.reach(*progress.parts)
            screen.tick(doing)

    started = trio.Event()
    with screen.progress(0, 0):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(obey, nursery.cancel_scope)
            nursery.start_soon(draw)
            await started.wait()
            try:
                done.append(await work())
            except Exception as error:
                # Out here and not through the nursery, which would put it into a group.
                failed.append(error)
            nursery.cancel_scope.cancel()
    if failed:
        raise failed[0]
    if not done:
        raise Refused("stopped; nothing was changed", 128 + stopped[0])
    return done[0]
