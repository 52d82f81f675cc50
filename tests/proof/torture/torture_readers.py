"""Who waits for a job or reads along while the runner is tortured, and what must they see?

What they see wrong goes into the book. A wait that does not return within its time, which is far more
than anything in the play needs, is a finding too. Next: `torture_play.py`.
"""

from typing import Any, Final

import trio
from torture_book import Book
from torture_desk import TRIES, Desk, or_none, told_job

from sift_batch import Caller, JobStatus, StoreError, TargetState

_PATIENCE: Final = 2_000.0


class Readers(Desk):
    """The desk with those who wait."""

    async def wait(self, caller: Caller, name: str) -> None:
        """Wait until a job has settled."""
        if (job_id := self.ids.get(name)) is None:
            return
        with self._patience("wait"):
            call = self.runner.wait
            answer = await self._ask(
                "wait", caller, lambda: or_none(call(job_id, caller=caller)), told_job, job=job_id
            )
            if answer is not None and answer[0] is not None and not answer[0].settled:
                self._book.find("wait", "it returned a job that has not settled")

    async def drain(self) -> bool:
        """Wait until no job is live; what is left then is a finding. False if there was no telling."""
        with self._patience("drain"):
            for _ in range(TRIES):
                with self._scopes.open("drain") as scope:
                    try:
                        await self.runner.drain()
                    except trio.ClosedResourceError:
                        return False
                if not scope.cancelled_caught:
                    break
            left = len(self.runner._roster)
            if left and not scope.cancelled_caught:
                self._book.find("drain", f"it returned with {left} jobs live or unsettled")
            return not scope.cancelled_caught and not self._lossy
        return False

    async def results(self, caller: Caller, name: str) -> None:
        """Read a job's finished targets to the end: each once, in order, none left out."""
        if (job_id := self.ids.get(name)) is None:
            return
        seen: list[int] = []
        with self._patience("results") as patience:
            for _ in range(TRIES):
                start = seen[-1] + 1 if seen else 0
                with self._scopes.open("results") as scope:
                    try:
                        async with self.runner.results(job_id, start=start, caller=caller) as targets:
                            async for target in targets:
                                seen.append(target.idx)  # noqa: PERF401 - kept when the stream breaks
                    except StoreError:
                        continue
                    except (LookupError, trio.ClosedResourceError):
                        return
                if not scope.cancelled_caught:
                    break
            else:
                return
        if patience.cancelled_caught:
            return
        if seen != sorted(set(seen)):
            self._book.find("results", f"targets came as {seen}")
        status = await self.status(caller, name)
        if status is not None:
            finished = [t.idx for t in status.targets if t.status in (TargetState.DONE, TargetState.FAILED)]
            if not status.job.settled or finished != seen:
                self._book.find("results", f"a whole stream gave {seen} of {finished}")

    async def watch(self, caller: Caller, name: str) -> None:
        """Follow a job to its end: versions rise, and the last is the settled one."""
        if (job_id := self.ids.get(name)) is None:
            return
        with self._patience("watch"):
            for _ in range(TRIES):
                last: JobStatus | None = None
                with self._scopes.open("watch") as scope:
                    try:
                        async with self.runner.watch(job_id, caller=caller) as statuses:
                            async for status in statuses:
                                if last is not None and status.job.version <= last.job.version:
                                    self._book.find("watch", "a version came again")
                                last = status
                    except StoreError:
                        continue
                    except (LookupError, trio.ClosedResourceError):
                        return
                if not scope.cancelled_caught:
                    if last is not None and not last.job.settled:
                        self._book.find("watch", "it ended before the job had settled")
                    return

    async def visit(self, url: str, seconds: float) -> None:
        """Hold a slot of the gate, as an interactive request does."""
        with self._scopes.open("visit"):
            async with self.gate.slot(url, patience=100):
                await trio.sleep(seconds)

    def _patience(self, what: str) -> "_Patience":
        return _Patience(self._book, what, forgiving=self._lossy)


class _Patience:
    """A block that must end within its time, which is far more than anything here needs."""

    def __init__(self, book: Book, what: str, *, forgiving: bool) -> None:
        self._book, self._what, self._forgiving = book, what, forgiving
        self._scope = trio.CancelScope()

    def __enter__(self) -> trio.CancelScope:
        self._scope.deadline = trio.current_time() + _PATIENCE
        return self._scope.__enter__()

    def __exit__(self, *error: Any) -> bool | None:
        taken = self._scope.__exit__(*error)
        if self._scope.cancelled_caught:
            invariant = "left waiting" if self._forgiving else "live"
            self._book.find(invariant, f"{self._what} did not return")
        return taken
