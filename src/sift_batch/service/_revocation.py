"""What becomes of what those have under way who are let in no more? Their streams end, then their live jobs.

Who that is, `_callers` tells.
"""

from typing import Final, Protocol

import trio

from sift_batch import JobState, Runner, StoreError

from ._callers import Taken

_AGAIN_AFTER: Final = 1.0
_MOST: Final = 1_000


class Door(Protocol):
    """What is asked of the application."""

    def revoke(self, taken: Taken) -> None:
        """End the waits and streams of whoever is let in no more."""
        ...

    def revoked(self, callers: frozenset[str]) -> bool:
        """Return whether requests of such callers have not ended yet."""
        ...


async def end_taken(taken: trio.MemoryReceiveChannel[Taken], app: Door, runner: Runner) -> None:
    """End it as `taken` tells, until cancelled."""
    async with trio.open_nursery() as ending:
        async for item in taken:
            app.revoke(item)
            # Beside each other: a store that fails for one must not keep the next one's streams open.
            ending.start_soon(_end_jobs, item.callers, app, runner)


async def _end_jobs(callers: frozenset[str], app: Door, runner: Runner) -> None:
    while True:
        # Asked first: a submit that is in the store's hands now is stored when its request has ended.
        again = app.revoked(callers)
        await _cancel_jobs(callers, runner)
        if not again:
            return
        await trio.sleep(_AGAIN_AFTER)


async def _cancel_jobs(callers: frozenset[str], runner: Runner) -> None:
    left = set(callers)
    while left:
        name = next(iter(left))
        try:
            # In this order: a job that starts meanwhile is in one of them.
            for state in (JobState.QUEUED, JobState.RUNNING):
                for job in await runner.jobs(name, status=state, limit=_MOST):
                    await runner.cancel(job.id, caller=name)
            left.discard(name)
        except StoreError:
            await trio.sleep(_AGAIN_AFTER)
