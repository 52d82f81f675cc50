"""Which line is next?

Reads the results of each window of the input as they come, and writes their lines in input order. At
most one window of results is held in memory; everything further on waits in the store. Next: `lines`.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import trio

from sift_batch import Runner, StoreError, TargetStatus

from .._model.lifecycle import TargetState
from .lines import Sink, json_line, target_view
from .plan import FAILURES_SHOWN, Failure, Outcome, Window
from .targets import Item, place_of

_Finished = tuple[int, TargetStatus]


class Printer:
    """Writes windows in the order in which they are given.

    Written jobs are left in the store when that is a file: `store`, None for one in memory.
    `behind` counts windows that were given and are not written yet.
    """

    def __init__(self, runner: Runner, sink: Sink, outcome: Outcome, *, store: Path | None) -> None:
        self._runner = runner
        self._sink = sink
        self._outcome = outcome
        self._store = store
        self._moved = trio.Event()
        self.behind = 0

    async def wait_written(self) -> None:
        """Return when the next window is written."""
        await self._moved.wait()

    async def print_all(self, windows: trio.MemoryReceiveChannel[Window]) -> None:
        """Write window after window, up to the first target that will never be finished.

        With no store that keeps them, those of its window that come after it are written as well.

        Raises `OSError` when lines can't be written.
        """
        async for window in windows:
            if not await self._print(window):
                return
            self.behind -= 1
            self._moved.set()
            self._moved = trio.Event()
            if self._store is None:
                await self._forget(window)

    async def _forget(self, window: Window) -> None:
        # A runner that closes meanwhile takes its store in memory with it.
        with suppress(trio.ClosedResourceError, StoreError):
            for job_id, _ in window.jobs:
                await self._runner.delete(job_id)

    async def _print(self, window: Window) -> bool:
        send, receive = trio.open_memory_channel[_Finished](0)
        failure: OSError | None = None
        async with trio.open_nursery() as nursery:
            async with send:
                for job_id, places in window.jobs:
                    nursery.start_soon(self._follow, job_id, places, send.clone())
                nursery.start_soon(self._recall, window, send.clone())
            try:
                complete = await self._write_in_order(window, receive)
            except OSError as error:
                # Out of the nursery first: there it would be wrapped in a group.
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure
        return complete

    async def _write_in_order(self, window: Window, receive: trio.MemoryReceiveChannel[_Finished]) -> bool:
        ready: dict[int, TargetStatus] = {}
        at = 0
        async for place, status in receive:
            ready[place] = status
            run: list[_Finished] = []
            while (next_up := ready.pop(at, None)) is not None:
                run.append((at, next_up))
                at += 1
            if run:
                await self._write(window, run)
            if at == len(window.items):
                return True
        if self._store is None and ready:
            # Stopped with gaps. Nothing could give these again, so they are written without what is missing.
            await self._write(window, sorted(ready.items(), key=lambda found: found[0]))
        return False

    async def _write(self, window: Window, run: Sequence[_Finished]) -> None:
        lines = [json_line(target_view(window.items[at], status)) for at, status in run]
        for at, status in run:
            self._remember(window.items[at], status)
        await self._sink.write(b"".join(lines))
        self._outcome.written += len(lines)

    def _remember(self, item: Item, status: TargetStatus) -> None:
        """Keep the first few failures, to be named at the end."""
        if status.status is TargetState.FAILED and len(self._outcome.failures) < FAILURES_SHOWN:
            place = place_of(item)
            self._outcome.failures.append(Failure(place, status.code, status.error))

    async def _follow(
        self, job_id: str, places: Sequence[int], send: trio.MemorySendChannel[_Finished]
    ) -> None:
        """Hand on the results of one job as they come, until it settles or the runner has closed."""
        async with send:
            try:
                async with self._runner.results(job_id) as finished:
                    async for status in finished:
                        await send.send((places[status.idx], status))
            except StoreError as error:
                self._cant_read(error)
            except (trio.ClosedResourceError, LookupError):
                # What is missing will not come from here; its line is not written, and the exit
                # code says so.
                return

    async def _recall(self, window: Window, send: trio.MemorySendChannel[_Finished]) -> None:
        """Hand on the results that an earlier run has stored."""
        async with send:
            for at in sorted(window.carried):
                job_id, idx = window.carried[at]
                try:
                    found = await self._runner.status(job_id, start=idx, stop=idx + 1)
                except StoreError as error:
                    self._cant_read(error)
                    return
                except trio.ClosedResourceError:
                    return
                if found is not None:
                    await send.send((at, found.targets[0]))

    def _cant_read(self, error: StoreError) -> None:
        """Say why lines are missing, unless something else has stopped the batch already."""
        reason = f"a stored result can't be read: {error.args[0]}"
        if self._store is not None:
            reason = f"{self._store}: {reason}; --fresh begins again without what is stored"
        self._outcome.error = self._outcome.error or reason
