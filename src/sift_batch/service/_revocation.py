"""What becomes of what those have under way who are let in no more? Their streams end, then their live jobs.

Who that is, `_callers` tells.
"""

from collections.abc import Callable
from typing import Final, Protocol

import trio

from sift_batch import JobState, Runner, StoreError

from ._callers import Taken

_AGAIN_AFTER: Final = 1.0
_MOST: Final = 1_000

LetIn = Callable[[], frozenset[str]]
"""Who is let in now, by name."""


class Door(Protocol):
    """What is asked of the application."""

    def revoke(self, taken: Taken) -> None:
        """End the waits and streams of whoever is let in no more."""
        ...

    def revoked(self, callers: frozenset[str]) -> bool:
        """Return whether requests of such callers have not ended yet."""
        ...


async def end_taken(
    taken: trio.MemoryReceiveChannel[Taken], app: Door, runner: Runner, let_in: LetIn
) -> None:
    """End it as `taken` tells, until cancelled; of whoever is let in again, nothing from then on."""
    async with trio.open_nursery() as ending:
        async for item in taken:
            app.revoke(item)
            # Beside each other: a store that fails for one must not keep the next one's streams open.
            ending.start_soon(_end_jobs, item.callers, app, runner, let_in)


async def _end_jobs(callers: frozenset[str], app: Door, runner: Runner, let_in: LetIn) -> None:
    while left := callers - let_in():
        # Asked first: a submit that is in the store's hands now is stored when its request has ended.
        again = app.revoked(left)
        await _cancel_jobs(left, runner, let_in)
        if not again:
            return
        await trio.sleep(_AGAIN_AFTER)


async def _cancel_jobs(callers: frozenset[str], runner: Runner, let_in: LetIn) -> None:
    done: set[str] = set()
    while left := callers - done - let_in():
        name = next(iter(left))
        try:
            # In this order: a job that starts meanwhile is in one of them.
            for state in (JobState.QUEUED, JobState.RUNNING):
                for job in await runner.jobs(name, status=state, limit=_MOST):
                    await runner.cancel(job.id, caller=name)
            done.add(name)
        except StoreError:
            await trio.sleep(_AGAIN_AFTER)
