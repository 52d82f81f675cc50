"""How does a cancellation strike at the Nth step? An instrument that counts steps and strikes once.

It can cancel the scope round the whole runner or round the body, the scope of whoever waits in one call
of a kind, cancel a job by way of the runner, or raise a real SIGINT. Steps of all tasks count, as long
as there is something to strike; when a round ends before the strike, every step has had its turn.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import trio

CALLS: Final = (
    "submit", "rerun", "cancel", "delete", "touch", "job", "status", "jobs", "gone", "wait",
    "watch", "results", "drain", "check", "visit",
)  # fmt: skip
JOBS: Final = ("one", "two", "three", "four", "five", "six")
TARGETS: Final = ("runner", "body", "signal", *CALLS, *(f"job {name}" for name in JOBS))
"""What can be struck."""


class Strike(trio.abc.Instrument):
    """Strikes at step `number` of those at which `armed` says yes."""

    def __init__(self, number: int, armed: Callable[[], bool], strike: Callable[[], None]) -> None:
        self._number = number
        self._armed = armed
        self._strike = strike
        self.steps = 0

    @property
    def struck(self) -> bool:
        """Whether it has struck."""
        return self.steps >= self._number

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count, and strike when it is time."""
        if self.steps < self._number and self._armed():
            self.steps += 1
            if self.steps == self._number:
                self._strike()


class Scopes:
    """The open scopes that can be struck, by what they stand for."""

    def __init__(self) -> None:
        self._open: dict[str, list[trio.CancelScope]] = {}

    @contextmanager
    def open(self, what: str) -> Iterator[trio.CancelScope]:
        """Stand in a scope that a strike at `what` cancels."""
        with trio.CancelScope() as scope:
            scopes = self._open.setdefault(what, [])
            scopes.append(scope)
            try:
                yield scope
            finally:
                scopes.remove(scope)

    def any(self, what: str) -> bool:
        """Whether there is one to strike."""
        return bool(self._open.get(what))

    def cancel(self, what: str) -> None:
        """Strike them."""
        for scope in self._open.get(what, ()):
            scope.cancel()


def interrupt() -> None:
    """Do what a Ctrl-C does, at this very moment."""
    signal.raise_signal(signal.SIGINT)
