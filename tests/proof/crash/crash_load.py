"""What does a process do that must not lose anything? The work during which it is killed, or the power goes.

Nine callers, one of them restricted, submit, read, cancel, run again, touch and delete as fast as they can,
by a seeded plan, through a gate; fetches succeed, fail and come back busy. Every call is in a history
before it is made and after it was acknowledged. The wall clock runs twenty times as fast as real time, so
that jobs lapse and are swept while the load goes on. Who kills, and what must hold then, is not decided
here: see `crash_child.py` and `crash_parent.py`.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from math import inf
from random import Random
from typing import Any, Final

import trio
from history import History, HistoryRules, digest_of

from sift_batch import (
    Caller,
    CallerClass,
    Config,
    Gate,
    Result,
    RetryLater,
    Runner,
    StoreError,
    SubmitError,
    Target,
    TargetError,
    TargetState,
    attempt,
    open_runner,
    open_store,
)

TTL: Final = 40.0
_HURRY: Final = 20
_CALLERS: Final = [Caller(f"caller{number}") for number in range(8)] + [
    Caller("quiet", caller_class=CallerClass.RESTRICTED)
]
_SETTINGS: Final[dict[str, Any]] = {
    "ttl": TTL,
    "jobs_per_caller": 3,
    "jobs_total": 24,
    "workers": 4,
    "workers_limit": 4,
    "max_bytes": 250_000,
    "retry_wait": 0.01,
    "shutdown_grace": 0.05,
    "sweep_every": 0.05,
}
RULES: Final = HistoryRules(
    total=8, per_host=2, ttl=TTL, max_bytes=250_000, workers=4, jobs_total=24, jobs_per_caller=3
)

# How often each call is made, in the usual mix and in one that mostly takes jobs away.
_USUAL: Final = {
    "submit": 8,
    "again": 1,
    "cancel": 2,
    "delete": 1,
    "rerun": 1,
    "touch": 1,
    "status": 1,
    "wait": 1,
}
_REMOVING: Final = {"submit": 6, "cancel": 2, "delete": 5, "rerun": 3, "touch": 1, "wait": 2}


def fast_clock() -> float:
    """Return a wall time that runs fast, and is the same in every process. Histories have it too."""
    return 1_700_000_000 + time.monotonic() * _HURRY


class Load:
    """The callers and the hosts of one life of one process."""

    def __init__(self, history: History, seed: int, *, removing: bool = False) -> None:
        self._history = history
        self._random = Random(seed)
        self._mix = _REMOVING if removing else _USUAL
        self._seed = seed
        self._count = 0
        # How many calls are to be made still, and set when they were.
        self._left = inf
        self._enough = trio.Event()
        # The last jobs of each caller, oldest first.
        self._own: dict[str, list[str]] = {caller.name: [] for caller in _CALLERS}

    @asynccontextmanager
    async def opened(self, path: str, life: int, durability: Any = "full") -> AsyncIterator[Runner]:
        """Open the store and a runner on it, and note how far that came."""
        gate = Gate(total=8, per_host=2)
        async with open_store(path, durability=durability) as store:
            async with open_runner(
                store, gate.batch(self.fetch), Config(**_SETTINGS), now=fast_clock
            ) as runner:
                self._history.note("clock", wall=fast_clock(), jump=0)
                self._history.note("opened", life=life)
                yield runner
                self._history.note("closing", life=life)
            self._history.note("closed", life=life)

    async def run(self, runner: Runner, *, seconds: float = inf, calls: float = inf) -> None:
        """Let the callers go on for so many seconds, or so many calls, or until the process dies."""
        self._left = calls
        with trio.move_on_after(seconds):
            async with trio.open_nursery() as nursery:
                for caller in _CALLERS:
                    nursery.start_soon(self._go_on, runner, caller)
                await self._enough.wait()
                nursery.cancel_scope.cancel()

    async def fetch(self, caller: Caller, target: Target) -> Result:
        """Succeed, fail or be busy, now at once and now later; the content names the job and the target."""
        here, chance = attempt.get(), self._random.random()
        host = target.url.split("/")[2]
        call = self._history.invoke(
            "engine", "fetch", job=here.job_id, idx=here.idx, number=here.number, host=host, batch=True
        )
        try:
            if self._random.random() < 0.5:
                await trio.sleep(self._random.random() * 0.02)
        except trio.Cancelled:
            self._history.unknown(call)
            raise
        if chance < 0.15:
            self._history.fail(call, "TargetError")
            raise TargetError("scripted failure", hint="none", code="scripted")
        if chance < 0.25 and here.number < 3:
            self._history.ok(call, busy=True)
            raise RetryLater(retry_after=0.001)
        size = self._random.choice([10, 200, 3_000, 12_000])
        content = f"{here.job_id}/{here.idx}/{here.number}/" + "x" * size
        self._history.ok(call, digest=digest_of(content))
        return Result(content, {"size": size})

    # ---- the callers

    async def _go_on(self, runner: Runner, caller: Caller) -> None:
        names, weights = list(self._mix), list(self._mix.values())
        while True:
            (name,) = self._random.choices(names, weights)
            await getattr(self, f"_{name}")(runner, caller)
            await trio.sleep(self._random.random() * 0.012)

    def _a_job(self, caller: Caller) -> str:
        own = self._own[caller.name]
        return self._random.choice(own) if own else "0" * 32

    def _stored(self, caller: Caller, job_id: str) -> None:
        own = self._own[caller.name]
        own.append(job_id)
        del own[:-6]

    async def _call(
        self,
        caller: Caller,
        op: str,
        ask: Callable[[], Awaitable[Any]],
        answer: Callable[[Any], dict[str, Any]],
        **arguments: Any,
    ) -> Any:
        """Make one call, on record before and after; None if it was refused."""
        call = self._history.invoke(caller.name, op, caller=caller.name, **arguments)
        try:
            value = await ask()
        except (SubmitError, LookupError, StoreError, trio.ClosedResourceError) as exc:
            self._history.fail(call, type(exc).__name__)
            return None
        except trio.Cancelled:
            self._history.unknown(call)
            raise
        self._history.ok(call, **answer(value))
        self._left -= 1
        if self._left <= 0:
            self._enough.set()
        return value

    async def _submit(self, runner: Runner, caller: Caller, count: int | None = None) -> None:
        self._count += 1
        random = self._random
        urls = [
            f"http://h{random.randrange(6)}/{self._seed}/{self._count}/{number}"
            for number in range(count or random.randrange(1, 6))
        ]
        await self._submit_urls(runner, caller, urls, 0)

    async def _again(self, runner: Runner, caller: Caller) -> None:
        # The same all through one life, which is too short for a job to lapse in.
        await self._submit_urls(runner, caller, [f"http://h0/{caller.name}/{self._seed}/again"], None)

    async def _submit_urls(
        self, runner: Runner, caller: Caller, urls: list[str], max_age: float | None
    ) -> None:
        submission = await self._call(
            caller,
            "submit",
            lambda: runner.submit(caller, [Target(url) for url in urls], max_age=max_age),
            lambda value: {"job": value.id, "reused": value.reused},
            restricted=caller.caller_class is CallerClass.RESTRICTED,
            targets=urls,
            max_age=max_age,
        )
        if submission is not None:
            self._stored(caller, submission.id)

    async def _cancel(self, runner: Runner, caller: Caller) -> None:
        job_id = self._a_job(caller)
        await self._call(
            caller,
            "cancel",
            lambda: runner.cancel(job_id, caller=caller),
            lambda value: {"result": value},
            job=job_id,
        )

    async def _delete(self, runner: Runner, caller: Caller) -> None:
        job_id = self._a_job(caller)
        await self._call(
            caller,
            "delete",
            lambda: runner.delete(job_id, caller=caller),
            lambda value: {"result": value},
            job=job_id,
        )

    async def _rerun(self, runner: Runner, caller: Caller) -> None:
        job_id = self._a_job(caller)
        # A settled job's targets change no more: what is done now is what will be carried over.
        status = await runner.status(job_id, results=False, caller=caller)
        if status is None or not status.job.settled:
            return
        carried = [target.idx for target in status.targets if target.status is TargetState.DONE]
        submission = await self._call(
            caller,
            "rerun",
            lambda: runner.rerun(caller, job_id),
            lambda value: {"job": value.id, "total": status.job.targets_total, "carried": carried},
            job=job_id,
        )
        if submission is not None:
            self._stored(caller, submission.id)

    async def _touch(self, runner: Runner, caller: Caller) -> None:
        job_id = self._a_job(caller)
        await self._call(
            caller, "touch", lambda: runner.touch(job_id, caller=caller), lambda _: {}, job=job_id
        )

    async def _status(self, runner: Runner, caller: Caller) -> None:
        job_id = self._a_job(caller)
        await self._call(
            caller, "status", lambda: runner.status(job_id, caller=caller), _status_facts, job=job_id
        )

    async def _wait(self, runner: Runner, caller: Caller) -> None:
        job_id = self._a_job(caller)
        await self._call(caller, "wait", lambda: runner.wait(job_id, caller=caller), _wait_facts, job=job_id)


def _wait_facts(job: Any) -> dict[str, Any]:
    if job is None:
        return {"found": False}
    return {"found": True, "state": job.status.value, "settled": job.settled}


def _status_facts(status: Any) -> dict[str, Any]:
    if status is None:
        return {"found": False}
    job, targets = status
    return {
        "found": True,
        "state": job.status.value,
        "settled": job.settled,
        "version": job.version,
        "total": job.targets_total,
        "done": job.targets_done,
        "failed": job.targets_failed,
        "lease": job.lease,
        "targets": [
            [
                target.idx,
                target.status.value,
                None if target.result is None else digest_of(target.result.content),
                target.code,
            ]
            for target in targets
        ],
    }
