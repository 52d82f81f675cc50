"""What is submitted next?

Cuts the input into windows, deals each out to jobs, and submits them as room comes free, never so far
ahead of what is written that memory fills up. Next: the runner itself, and `printer` for what it gives.
"""

from typing import Final

import trio

from sift_batch import Caller, Runner, host_key

from .carry import Carried
from .plan import Plan, Window
from .printer import Printer
from .spread import deal, windows
from .targets import Item

# How many bytes of results in memory may wait to be written before more targets are submitted.
_MEMORY_LIMIT: Final = 64 * 2**20


class Submitter:
    """Submits the targets of one plan.

    `live` has the jobs that were submitted and have not ended: caller's name to id, "" until known.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._jobs = 0
        # Twice as many as go at once, so that a worker that gets free finds the next job waiting.
        self._room = trio.Semaphore(2 * plan.parallel)
        self.live: dict[str, str] = {}

    def job_ended(self, caller: str) -> None:
        """Give back the room of a job. One of an earlier run, which never took any, is ignored."""
        if self.live.pop(caller, None) is not None:
            self._room.release()

    async def submit_all(
        self, runner: Runner, carried: Carried, printer: Printer, out: trio.MemorySendChannel[Window]
    ) -> None:
        """Submit all targets that are not carried over; hand each window on. Raises `StoreError`."""
        async with out:
            for items in windows(self._plan.targets, self._plan.parallel):
                if self._plan.store is None:
                    while printer.behind and runner.statistics().stored_bytes > _MEMORY_LIMIT:
                        await printer.wait_written()
                window = await self._submit(runner, carried, items)
                printer.behind += 1
                await out.send(window)

    async def _submit(self, runner: Runner, carried: Carried, items: list[Item]) -> Window:
        window = Window(items)
        to_fetch: list[int] = []
        for at, item in enumerate(items):
            place = carried.find(item.target)
            if place is None:
                to_fetch.append(at)
            else:
                window.carried[at] = place
        hosts = [host_key(items[at].target.url) for at in to_fetch]
        for dealt in deal(hosts, self._plan.parallel):
            places = [to_fetch[index] for index in dealt]
            await self._room.acquire()
            self._jobs += 1
            # A caller of its own for each job: two equal jobs of one input are then never taken for one.
            caller = f"run-{self._jobs}"
            self.live[caller] = ""
            submission = await runner.submit(Caller(caller), [items[at].target for at in places], max_age=0)
            if caller in self.live:
                self.live[caller] = submission.id
            window.jobs.append((submission.id, places))
        return window
