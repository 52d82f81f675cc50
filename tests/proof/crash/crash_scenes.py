"""Which play leads a process past every crash point, twice?

One caller's calls at a time, so that at any moment at most one of them is under way and it is known which:
what must be left of it after a crash is then certain (`crash_points.py` says what). Fetches do what the
target's URL says. Time stands still but for the jumps that let jobs lapse.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import trio
from history import History, HistoryRules, digest_of

from sift_batch import (
    Caller,
    CallerClass,
    Config,
    Result,
    RetryLater,
    Runner,
    StoreError,
    Target,
    TargetError,
    TargetState,
    attempt,
    open_runner,
    open_store,
)

T = TypeVar("T")
ANN: Final = Caller("ann")
QUIET: Final = Caller("quiet", caller_class=CallerClass.RESTRICTED)
SECRET: Final = "what-only-quiet-may-know"
_START: Final = 1_700_000_000
_DAY: Final = 86_400
END: Final = float(_START + 2 * _DAY)
_BUDGET: Final = 60_000
_SETTINGS: Final[dict[str, Any]] = {
    "jobs_per_caller": 9,
    "max_bytes": _BUDGET,
    "shutdown_grace": 0.0,
    "sweep_every": 5.0,
    "retry_wait": 3_600.0,
    "ttl": float(_DAY),
}
RULES: Final = HistoryRules(total=1, per_host=1, max_bytes=_BUDGET, workers=1, jobs_per_caller=9)


class Scene:
    """One runner on one file, with what its targets ask for."""

    def __init__(self, record: History, *, patient: bool = False) -> None:
        self._record = record
        # Whether what the store refuses is asked for again, a second later, until it is done.
        self._patient = patient
        self._life = 0
        self.now = float(_START)
        self.started = trio.Event()
        self.let_go = trio.Event()
        self.never = trio.Event()

    async def fetch(self, caller: Caller, target: Target) -> Result:
        """Do what the last part of the URL says."""
        here, what = attempt.get(), target.url.rsplit("/", 1)[1].rstrip("0123456789")
        call = self._record.invoke(
            "engine", "fetch", job=here.job_id, idx=here.idx, number=here.number, host="h", batch=True
        )
        try:
            if what in ("held", "hangs", "busy"):
                self.started.set()
                # Nobody lets go of what hangs.
                await (self.never if what == "hangs" else self.let_go).wait()
        except trio.Cancelled:
            self._record.unknown(call)
            raise
        if what == "fails":
            self._record.fail(call, "TargetError")
            raise TargetError("scripted failure")
        if what == "busy":
            self._record.ok(call, busy=True)
            raise RetryLater
        content = f"{here.job_id}/{here.idx}/" + "x" * (20_000 if what == "big" else 10)
        self._record.ok(call, digest=digest_of(content))
        return Result(content)

    # ---- calls, on record

    async def _read(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Read what the store may refuse to give."""
        while True:
            try:
                return await ask()
            except StoreError:
                if not self._patient:
                    raise
                await trio.sleep(1)

    async def _call(
        self, op: str, ask: Callable[[], Awaitable[Any]], answer: Callable[[Any], Any], **arguments: Any
    ) -> Any:
        while True:
            call = self._record.invoke(ANN.name, op, **{"caller": ANN.name, **arguments})
            try:
                value = await ask()
            except StoreError as exc:
                self._record.fail(call, str(exc))
                if not self._patient:
                    raise
                await trio.sleep(1)
            else:
                self._record.ok(call, **answer(value))
                return value

    @asynccontextmanager
    async def _opened(self, path: Path) -> AsyncIterator[Runner]:
        """Open the store and a runner on it; leave them at the end of the block."""
        self._life += 1
        async with AsyncExitStack() as stack:
            runner = None
            while runner is None:
                try:
                    store = await stack.enter_async_context(open_store(path))
                    runner = await stack.enter_async_context(
                        open_runner(store, self.fetch, Config(**_SETTINGS), now=lambda: self.now)
                    )
                except StoreError:
                    if not self._patient:
                        raise
                    await stack.aclose()
                    await trio.sleep(1)
            self._record.note("opened", life=self._life)
            yield runner
            self._record.note("closing", life=self._life)
        self._record.note("closed", life=self._life)

    async def submit(self, runner: Runner, *names: str, caller: Caller = ANN) -> str:
        """Submit targets that do what their names say; return the job's id."""
        urls = [f"http://h/{SECRET if caller is QUIET else 'open'}/{name}" for name in names]
        submission = await self._call(
            "submit",
            lambda: runner.submit(caller, [Target(url) for url in urls], max_age=0),
            lambda value: {"job": value.id, "reused": value.reused},
            caller=caller.name,
            restricted=caller is QUIET,
            targets=urls,
            max_age=0,
        )
        return str(submission.id)

    async def settled(self, runner: Runner, *names: str, caller: Caller = ANN) -> str:
        """Submit, and return the job's id once the job has settled."""
        job_id = await self.submit(runner, *names, caller=caller)
        await self._read(lambda: runner.wait(job_id))
        return job_id

    async def cancel(self, runner: Runner, job_id: str) -> None:
        """Cancel a live job."""
        await self._call("cancel", lambda: runner.cancel(job_id), lambda value: {"result": value}, job=job_id)

    async def delete(self, runner: Runner, job_id: str, caller: Caller = ANN) -> None:
        """Delete a settled job."""
        await self._call(
            "delete",
            lambda: runner.delete(job_id),
            lambda value: {"result": value},
            job=job_id,
            caller=caller.name,
        )

    async def rerun(self, runner: Runner, job_id: str) -> str:
        """Run a settled job again; return the new job's id."""
        status = await self._read(lambda: runner.status(job_id, results=False))
        assert status is not None
        carried = [target.idx for target in status.targets if target.status is TargetState.DONE]
        submission = await self._call(
            "rerun",
            lambda: runner.rerun(ANN, job_id),
            lambda value: {"job": value.id, "total": len(status.targets), "carried": carried},
            job=job_id,
        )
        return str(submission.id)

    # ---- the play

    async def first_act(self, path: Path) -> None:
        """Make the file; do everything that there is to do; leave live jobs behind."""
        async with self._opened(path) as runner:
            mixed = await self.settled(runner, "fine", "fails", "fine2")
            rerun = await self.rerun(runner, mixed)
            await self._read(lambda: runner.wait(rerun))
            await self._cancel_in_flight(runner)
            await self._cancel_what_comes_back_busy(runner)
            await self.delete(runner, mixed)
            await self.delete(runner, await self.settled(runner, "fine", caller=QUIET), QUIET)
            await self._settle_upkeep(lambda: not runner.statistics().erasure_pending)
            for _ in range(4):
                await self.settled(runner, "big")
            await self._settle_upkeep(lambda: runner.statistics().stored_bytes <= _BUDGET)
            self.now = END
            self._record.note("clock", wall=self.now, jump=2 * _DAY)
            await self.settled(runner, "fine")
            await self._settle_upkeep(lambda: runner.statistics().stored_bytes < 5_000)
            self.started = trio.Event()
            await self.submit(runner, "fine", "hangs", "fine")
            await self.started.wait()
            await self.submit(runner, "fine")

    async def second_act(self, path: Path) -> None:
        """Open the file again, which fails what was left; do a little more."""
        async with self._opened(path) as runner:
            await self.settled(runner, "fine")

    async def _cancel_in_flight(self, runner: Runner) -> None:
        self.started, self.let_go = trio.Event(), trio.Event()
        job_id = await self.submit(runner, "held", "fine")
        await self.started.wait()
        await self.cancel(runner, job_id)
        self.let_go.set()
        await self._read(lambda: runner.wait(job_id))

    async def _cancel_what_comes_back_busy(self, runner: Runner) -> None:
        self.started, self.let_go = trio.Event(), trio.Event()
        job_id = await self.submit(runner, "busy", "fine")
        await self.started.wait()
        await self.cancel(runner, job_id)
        self.let_go.set()
        await self._read(lambda: runner.wait(job_id))

    async def _settle_upkeep(self, done: Callable[[], bool]) -> None:
        while not done():  # noqa: ASYNC110 - there is no event for it
            # What the store has refused is tried again at the sweeper's next turn.
            await trio.sleep(0.5 if self._patient else 0.001)


async def everything(folder: Path) -> None:
    """Play both acts on one file, and again on another one; each file has a history of its own."""
    for number in range(2):
        path = folder / f"jobs{number}.sift"
        with History(folder / f"{path.name}.history") as record:
            scene = Scene(record)
            record.note("clock", wall=scene.now, jump=0)
            await scene.first_act(path)
            await scene.second_act(path)


async def patiently(folder: Path) -> None:
    """Play both acts on one file; whatever the store refuses is asked for again until it is done."""
    path = folder / "jobs0.sift"
    with History(folder / f"{path.name}.history") as record:
        scene = Scene(record, patient=True)
        record.note("clock", wall=scene.now, jump=0)
        await scene.first_act(path)
        await scene.second_act(path)
