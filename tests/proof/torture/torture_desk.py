"""How do callers call a runner that is being tortured? As careful programs do, and they write it down.

A refused call is made again after a second, a struck one at once, three times in all; what a runner
that closes refuses is let be. Every answer goes into the history and the book. Who waits or reads along
is in `torture_readers.py`; who calls what, in `torture_play.py`.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
from history import digest_of
from torture_book import Book
from torture_strike import Scopes

from sift_batch import (
    Caller,
    CallerClass,
    Gate,
    Job,
    JobStatus,
    Runner,
    StoreError,
    SubmitError,
    Target,
)

TRIES: Final = 3
_NOTHING: Final = object()


class Desk:
    """The callers of one round that wait for nothing. `ids` has the job of each series, once it is known."""

    def __init__(self, runner: Runner, book: Book, scopes: Scopes, gate: Gate, *, lossy: bool) -> None:
        self.runner = runner
        self.gate = gate
        self.ids: dict[str, str] = {}
        self._book = book
        self._scopes = scopes
        self._lossy = lossy

    async def _ask(
        self,
        op: str,
        caller: Caller,
        work: Callable[[], Awaitable[Any]],
        told: Callable[[Any], dict[str, Any]],
        **facts: Any,
    ) -> Any:
        """Call until there is an answer; None if there is none to be had."""
        history = self._book.history
        for _ in range(TRIES):
            answer: Any = _NOTHING
            number = history.invoke(caller.name, op, caller=caller.name, **facts)
            try:
                with self._scopes.open(op):
                    answer = await work()
            except StoreError as exc:
                if self._lossy:
                    history.unknown(number)
                else:
                    history.fail(number, type(exc).__name__)
                await trio.sleep(1)
                continue
            except (SubmitError, LookupError, trio.ClosedResourceError) as exc:
                history.fail(number, type(exc).__name__)
                return None
            except BaseException:
                history.unknown(number)
                raise
            if answer is not _NOTHING:
                history.ok(number, **told(answer))
                return answer
            history.unknown(number)
        return None

    # ---- what changes something

    async def submit(self, caller: Caller, name: str, count: int, host: str) -> None:
        """Submit a series under a name."""
        urls = [f"http://{host}.test/{name}/{index}" for index in range(count)]
        answer = await self._ask(
            "submit",
            caller,
            lambda: self.runner.submit(caller, [Target(url) for url in urls]),
            lambda answer: {"job": answer.id, "reused": answer.reused},
            restricted=caller.caller_class is CallerClass.RESTRICTED,
            targets=urls,
            max_age=None,
        )
        if answer is not None:
            self.ids[name] = answer.id
            self._book.submitted[answer.id] = urls

    async def rerun(self, caller: Caller, name: str, source: str) -> None:
        """Run a job again, under another name."""
        if (job_id := self.ids.get(source)) is None:
            return
        before = self._book.submitted[job_id]

        def told(answer: Any) -> dict[str, Any]:
            carried = [
                idx
                for (job, idx), (state, _) in self._book.stored.items()
                if job == job_id and state == "done"
            ]
            return {"job": answer.id, "total": len(before), "carried": sorted(carried)}

        answer = await self._ask("rerun", caller, lambda: self.runner.rerun(caller, job_id), told, job=job_id)
        if answer is not None:
            self.ids[name] = answer.id
            self._book.submitted[answer.id] = before

    async def cancel(self, caller: Caller, name: str) -> None:
        """Cancel a job."""
        if (job_id := self.ids.get(name)) is None:
            return

        async def cancel() -> bool:
            done = await self.runner.cancel(job_id, caller=caller)
            if done:
                self._book.cancelled[job_id] = self._book.tick()
            return done

        await self._ask("cancel", caller, cancel, lambda done: {"result": done}, job=job_id)

    async def delete(self, caller: Caller, name: str) -> None:
        """Delete a job."""
        if (job_id := self.ids.get(name)) is not None:
            call = self.runner.delete
            await self._ask(
                "delete",
                caller,
                lambda: call(job_id, caller=caller),
                lambda done: {"result": done},
                job=job_id,
            )

    async def touch(self, caller: Caller, name: str) -> None:
        """Touch a job."""
        if (job_id := self.ids.get(name)) is not None:
            call = self.runner.touch
            await self._ask("touch", caller, lambda: call(job_id, caller=caller), lambda _: {}, job=job_id)

    async def check(self, caller: Caller) -> None:
        """Ask whether the store works; no part of the history."""
        with self._scopes.open("check"):
            with contextlib.suppress(StoreError, trio.ClosedResourceError):
                await self.runner.check()

    # ---- what reads

    async def status(self, caller: Caller, name: str) -> JobStatus | None:
        """Read a job with its targets; what another caller sees is nothing."""
        if (job_id := self.ids.get(name)) is None:
            return None
        call = self.runner.status
        answer = await self._ask(
            "status", caller, lambda: or_none(call(job_id, caller=caller)), _told_status, job=job_id
        )
        return None if answer is None else answer[0]

    async def job(self, caller: Caller, name: str) -> None:
        """Read a job without its targets."""
        if (job_id := self.ids.get(name)) is not None:
            call = self.runner.job
            await self._ask("job", caller, lambda: or_none(call(job_id, caller=caller)), told_job, job=job_id)

    async def jobs(self, caller: Caller) -> None:
        """List a caller's jobs."""
        call = self.runner.jobs
        await self._ask("jobs", caller, lambda: call(caller), lambda jobs: {"ids": [job.id for job in jobs]})

    async def gone(self, caller: Caller, name: str) -> None:
        """Ask why a job is gone."""
        if (job_id := self.ids.get(name)) is not None:
            call = self.runner.gone
            await self._ask(
                "gone",
                caller,
                lambda: or_none(call(job_id, caller=caller)),
                lambda answer: {"reason": answer[0]},
                job=job_id,
            )


async def or_none(answer: Awaitable[Any]) -> tuple[Any]:
    """Return the answer in a tuple: None is an answer too."""
    return (await answer,)


def told_job(answer: tuple[Job | None]) -> dict[str, Any]:
    """Return what a history says of a job that was read."""
    (job,) = answer
    if job is None:
        return {"found": False}
    return {
        "found": True,
        "state": job.status.value,
        "settled": job.settled,
        "version": job.version,
        "total": job.targets_total,
        "done": job.targets_done,
        "failed": job.targets_failed,
        "lease": job.lease,
    }


def _told_status(answer: tuple[JobStatus | None]) -> dict[str, Any]:
    (status,) = answer
    if status is None:
        return {"found": False}
    targets = [
        [t.idx, t.status.value, None if t.result is None else digest_of(t.result.content), t.code]
        for t in status.targets
    ]
    return {**told_job((status.job,)), "targets": targets}
