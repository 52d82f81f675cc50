"""Who wants what of the runner, all at once? One life of it under load, and how it ends.

Six callers, one of them restricted, submit, read, follow, cancel, run again and delete, walk out of their
calls, and interactive users take slots of the same gate. Everything is recorded by `history.py`.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import trio
from history import History
from soak_facts import job_facts, result_facts, status_facts, wait_facts
from soak_faults import RATE, RESULT_LIMIT, SECRET

from sift_batch import (
    Caller,
    CallerBusyError,
    CallerClass,
    Config,
    Gate,
    RetryLater,
    Runner,
    StoreError,
    SubmitError,
    Target,
    host_key,
    open_reader,
)

CALLERS: Final = [Caller(f"caller-{number}") for number in range(5)]
RESTRICTED: Final = Caller("restricted", caller_class=CallerClass.RESTRICTED)
HOSTS: Final = [f"http://{SECRET}-{number}.example" for number in range(6)]
TTL: Final = 3
# Fewer slots than there are workers and users, so that somebody always waits.
SLOTS: Final = 5
MAX_BYTES: Final = 80_000
SETTINGS: Final = Config(
    ttl=TTL,
    targets_per_job=8,
    jobs_per_caller=2,
    jobs_total=10,
    workers=6,
    workers_limit=6,
    max_bytes=MAX_BYTES,
    retry_wait=0.05,
    retry_for=0.4,
    target_timeout=0.3,
    job_timeout=1.0,
    result_max_bytes=RESULT_LIMIT,
    shutdown_grace=0.2,
    sweep_every=0.5,
)
REFUSED: Final = (StoreError, SubmitError, LookupError, trio.ClosedResourceError)


class Load:
    """All callers of one life; `known` are the jobs that they have heard of."""

    def __init__(
        self, runner: Runner, gate: Gate, history: History, random: Random, known: list[str]
    ) -> None:
        self._runner = runner
        self._gate = gate
        self._history = history
        self._random = random
        self._known = known
        self._series = 0
        self.calls = 0

    def start(self, nursery: trio.Nursery, path: Path, now: Callable[[], float]) -> None:
        """Let everybody begin; they go on until `nursery` is cancelled."""
        nursery.start_soon(self._read_beside, path, now)
        for caller in [*CALLERS, RESTRICTED]:
            for _ in range(2):
                nursery.start_soon(self._client, caller)
        for _ in range(4):
            nursery.start_soon(self._user)

    async def _client(self, caller: Caller) -> None:
        acts: list[tuple[Callable[[Caller], Awaitable[None]], int]] = [
            (self._submit, 30),
            (self._status, 20),
            (self._job, 10),
            (self._jobs, 5),
            (self._gone, 5),
            (self._wait, 5),
            (self._watch, 8),
            (self._results, 8),
            (self._touch, 6),
            (self._cancel, 8),
            (self._delete, 6),
            (self._rerun, 8),
        ]
        choices, weights = zip(*acts, strict=True)
        while True:
            act = self._random.choices(choices, weights)[0]
            self.calls += 1
            # Some walk out in the middle of what they asked for.
            leaves = self._random.random() < 5 * RATE
            with trio.move_on_after(self._random.random() / 100 if leaves else 5.0):
                with suppress(*REFUSED):
                    await act(caller)
            await trio.sleep(self._random.random() / 15)

    async def _user(self) -> None:
        while True:
            url = self._random.choice(HOSTS)
            if self._random.random() < 5 * RATE:
                self._gate.hold(url, 0.05)
            # Some give up waiting before their patience ends, some in the middle of their fetch.
            leaves = self._random.random() < 0.2
            with trio.move_on_after(self._random.random() / 50 if leaves else 5.0), suppress(RetryLater):
                async with self._gate.slot(url, patience=self._random.random() / 5):
                    call = self._history.invoke("user", "slot", host=host_key(url))
                    try:
                        await trio.sleep(self._random.random() / 25)
                    finally:
                        self._history.ok(call)
            await trio.sleep(self._random.random() / 20)

    async def _call(
        self,
        op: str,
        args: dict[str, Any],
        ask: Callable[[], Awaitable[Any]],
        told: Callable[[Any], dict[str, Any]],
    ) -> Any:
        """Call, and record how it ended."""
        call = self._history.invoke(str(args.get("caller")), op, **args)
        try:
            value = await ask()
        except CallerBusyError as exc:
            self._history.fail(call, "CallerBusyError", job=exc.job_id)
            raise
        except REFUSED as exc:
            self._history.fail(call, type(exc).__name__)
            raise
        except BaseException:
            self._history.unknown(call)
            raise
        self._history.ok(call, **told(value))
        return value

    def _some_job(self) -> str:
        return self._random.choice(self._known[-40:]) if self._known else "none"

    def _asker(self, caller: Caller) -> str | None:
        return None if self._random.random() < 0.1 else caller.name

    async def _submit(self, caller: Caller) -> None:
        again = self._series and self._random.random() < 0.3
        series = self._random.randrange(max(0, self._series - 10), self._series) if again else self._series
        if not again:
            self._series += 1
        plan = Random(series)
        urls = [f"{plan.choice(HOSTS)}/{series}/{number}" for number in range(plan.randrange(1, 9))]
        max_age = self._random.choice([None, None, 0, 1.0])
        args = {
            "caller": caller.name,
            "restricted": caller.caller_class is CallerClass.RESTRICTED,
            "targets": urls,
            "max_age": max_age,
        }
        made = await self._call(
            "submit",
            args,
            lambda: self._runner.submit(caller, [Target(url) for url in urls], max_age=max_age),
            lambda value: {"job": value.id, "reused": value.reused},
        )
        self._known.append(made.id)

    async def _rerun(self, caller: Caller) -> None:
        args = {"caller": caller.name, "restricted": caller.caller_class is CallerClass.RESTRICTED}
        job = self._some_job()
        # Asked for everybody, so that some try to run again what is not theirs.
        found = await self._runner.status(job, results=False)
        if found is None or not found.job.settled:
            return
        carried = [target.idx for target in found.targets if target.status == "done"]
        told = {"total": len(found.targets), "carried": carried}
        made = await self._call(
            "rerun",
            {**args, "job": job},
            lambda: self._runner.rerun(caller, job),
            lambda value: {"job": value.id, **told},
        )
        self._known.append(made.id)

    async def _cancel(self, caller: Caller) -> None:
        job, asker = self._some_job(), self._asker(caller)
        args = {"job": job, "caller": asker}
        await self._call("cancel", args, lambda: self._runner.cancel(job, caller=asker), result_facts)

    async def _delete(self, caller: Caller) -> None:
        job, asker = self._some_job(), self._asker(caller)
        args = {"job": job, "caller": asker}
        await self._call("delete", args, lambda: self._runner.delete(job, caller=asker), result_facts)

    async def _touch(self, caller: Caller) -> None:
        job, asker = self._some_job(), self._asker(caller)
        args = {"job": job, "caller": asker}
        await self._call("touch", args, lambda: self._runner.touch(job, caller=asker), lambda _value: {})

    async def _status(self, caller: Caller) -> None:
        job, asker = self._some_job(), self._asker(caller)
        args = {"job": job, "caller": asker}
        await self._call("status", args, lambda: self._runner.status(job, caller=asker), status_facts)

    async def _job(self, caller: Caller) -> None:
        job, asker = self._some_job(), self._asker(caller)
        args = {"job": job, "caller": asker}
        await self._call("job", args, lambda: self._runner.job(job, caller=asker), job_facts)

    async def _wait(self, caller: Caller) -> None:
        job, asker = self._some_job(), self._asker(caller)
        args = {"job": job, "caller": asker}
        await self._call("wait", args, lambda: self._runner.wait(job, caller=asker), wait_facts)

    async def _jobs(self, caller: Caller) -> None:
        asker = self._asker(caller)
        told = await self._call(
            "jobs",
            {"caller": asker},
            lambda: self._runner.jobs(asker, limit=20),
            lambda value: {"ids": [job.id for job in value]},
        )
        self._known.extend(job.id for job in told[:1])

    async def _gone(self, caller: Caller) -> None:
        job = self._some_job()
        args = {"job": job, "caller": caller.name}
        await self._call(
            "gone", args, lambda: self._runner.gone(job, caller=caller), lambda value: {"reason": value}
        )

    async def _watch(self, caller: Caller) -> None:
        """Follow a job to its end, or walk away from it; each step is a read like any other."""
        job, last = self._some_job(), self._random.randrange(12)
        args = {"job": job, "caller": caller.name, "results": False}
        async with self._runner.watch(job, caller=caller) as statuses:
            for _ in range(last):
                call = self._history.invoke(caller.name, "status", **args)
                try:
                    seen = await anext(statuses)
                except (StopAsyncIteration, *REFUSED) as exc:
                    self._history.fail(call, type(exc).__name__)
                    break
                except trio.Cancelled:
                    self._history.unknown(call)
                    raise
                self._history.ok(call, **status_facts(seen))

    async def _results(self, caller: Caller) -> None:
        """Read results as they come, or walk away from them."""
        job, last = self._some_job(), self._random.randrange(12)
        async with self._runner.results(job, caller=caller) as results:
            before = -1
            async for target in results:
                assert target.idx > before, "results come once, in order"
                assert target.status in ("done", "failed"), "results are of finished targets"
                before = target.idx
                if before >= last:
                    break

    async def _read_beside(self, path: Path, now: Callable[[], float]) -> None:
        """Read the file as another program would, beside the runner."""
        async with open_reader(path, ttl=TTL, now=now) as reader:
            while True:
                job, asker = self._some_job(), self._asker(self._random.choice(CALLERS))
                args = {"job": job, "caller": asker}
                with suppress(StoreError):
                    await self._call("status", args, partial(reader.status, job, caller=asker), status_facts)
                await trio.sleep(self._random.random() / 10)
