"""When may a mock clock jump, if some of the work is done in threads?

Trio's `MockClock` jumps when every task is blocked. A task that waits for a thread is blocked too, so
a store in a file lets virtual time run away: the timeouts of a whole day pass during one commit. The
clock here looks first at what the tasks are blocked in, by Trio's public view of them.
It doesn't wait for sockets, processes, or threads that nobody waits for.
"""

from collections.abc import Iterator
from math import inf
from types import CodeType
from typing import Final

import trio
from trio.abc import Clock, Instrument
from trio.lowlevel import Task
from trio.testing import MockClock, wait_all_tasks_blocked

from .._store.writer import Writer

# A task whose frame of this code awaits nothing but its own rescheduling waits for a thread. One that
# waits for a limiter's token does not: whoever holds the token is found by itself. Nor does one whose
# thread has called back into Trio: it waits for whatever that call waits for.
_WAITS_FOR_THREAD: Final = frozenset({trio.to_thread.run_sync.__code__, Writer.run.__code__})
_RESCHEDULED: Final = trio.lowlevel.wait_task_rescheduled.__code__
_THREAD_ENDS: Final = Writer.aclose.__code__
_WAITS_FOR_IDLENESS: Final = wait_all_tasks_blocked.__code__


class ThreadAutojumpClock(Clock):
    """A mock clock that jumps to the next deadline once all tasks are blocked and no thread works.

        async def main():
            async with open_store("jobs.sift") as store:  # a file: its commits run in a thread
                await trio.sleep(86_400)                  # takes no time

        trio.run(main, clock=ThreadAutojumpClock())

    `rate` and `autojump_threshold` are those of `trio.testing.MockClock`: seconds that pass for each
    second of real time, and how long (in real seconds) all tasks must have been blocked; they can't be
    changed later. Tasks in `trio.testing.wait_all_tasks_blocked` go before a jump. One clock can serve
    any number of runs one after the other; its time goes on from run to run.
    """

    def __init__(self, rate: float = 0.0, autojump_threshold: float = 0.0) -> None:
        self._clock = MockClock(rate=rate)
        self._threshold = autojump_threshold

    def __repr__(self) -> str:
        return f"<ThreadAutojumpClock, time={self.current_time():.7f}>"

    def start_clock(self) -> None:
        """Begin to watch the run; Trio calls this."""
        # There is no task yet to start another one from: the loop does it as soon as it turns.
        trio.lowlevel.current_trio_token().run_sync_soon(trio.lowlevel.spawn_system_task, self._drive)

    def current_time(self) -> float:
        """Return the virtual time in seconds."""
        return self._clock.current_time()

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Return how long the loop may sleep, in real seconds; Trio calls this."""
        return self._clock.deadline_to_sleep_time(deadline)

    def jump(self, seconds: float) -> None:
        """Move the time forward by `seconds`; `ValueError` if they are below 0."""
        self._clock.jump(seconds)

    async def _drive(self) -> None:
        turn = _Turn(trio.lowlevel.current_task())
        trio.lowlevel.add_instrument(turn)
        try:
            while True:
                await wait_all_tasks_blocked(self._threshold)
                # Others may have waited for the same idleness: what they do now comes first.
                if not turn.others:
                    seconds = trio.lowlevel.current_statistics().seconds_to_next_deadline
                    if 0 < seconds < inf and not any(map(_holds_time, _tasks())):
                        self.jump(seconds)
                    else:
                        # Nothing to do here until some task runs again: asleep, not in a loop.
                        await turn.wait()
        finally:
            trio.lowlevel.remove_instrument(turn)


class _Turn(Instrument):
    """Knows whether another task than `driver` became runnable in this turn of the run loop."""

    def __init__(self, driver: Task) -> None:
        self._driver = driver
        self._changed = trio.Event()
        self.others = False

    def before_io_wait(self, timeout: float) -> None:
        self.others = False

    def task_scheduled(self, task: Task) -> None:
        if task is not self._driver:
            self.others = True
            self._changed.set()

    async def wait(self) -> None:
        """Return once another task becomes runnable."""
        self._changed = trio.Event()
        await self._changed.wait()


def _tasks() -> Iterator[Task]:
    root = trio.lowlevel.current_root_task()
    waiting = [] if root is None else [root]
    while waiting:
        task = waiting.pop()
        yield task
        for nursery in task.child_nurseries:
            waiting.extend(nursery.child_tasks)


def _holds_time(task: Task) -> bool:
    """Return whether time must stand still for `task`: it waits for a thread or for idleness."""
    if task is trio.lowlevel.current_task():
        return False
    before: CodeType | None = None
    for frame, _ in task.iter_await_frames():
        code = frame.f_code
        if code is _THREAD_ENDS or code is _WAITS_FOR_IDLENESS:
            return True
        if code is _RESCHEDULED and before in _WAITS_FOR_THREAD:
            return True
        before = code
    return False
