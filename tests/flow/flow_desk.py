"""What the flow tests of submit, drain, attempts, busy waits, hooks and log share."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio

from sift_batch import (
    Caller,
    CallerClass,
    Config,
    FetchFunc,
    Hooks,
    Job,
    Result,
    RetryLater,
    Runner,
    Target,
    TargetStatus,
    open_runner,
    open_store,
)
from sift_batch.testing import WallClock

ALICE = Caller("alice")
BOB = Caller("bob")
CAROL = Caller("carol", caller_class=CallerClass.RESTRICTED)
START = 1_000_000

Refusal = Callable[[], RetryLater]


def targets(count: int, host: str = "a.test") -> list[Target]:
    """Return targets on one host, each with its own path."""
    return [Target(f"http://{host}/{n}") for n in range(count)]


@asynccontextmanager
async def running(
    fetch: FetchFunc,
    *,
    hooks: Hooks | None = None,
    log: Any = None,
    now: Callable[[], float] | None = None,
    **config: Any,
) -> AsyncIterator[Runner]:
    """Run an engine on a private store in memory, with a wall clock that follows Trio's."""
    async with open_store(":memory:") as store:
        now = WallClock(START) if now is None else now
        async with open_runner(store, fetch, Config(**config), hooks=hooks, now=now, log=log) as runner:
            yield runner


async def drained(runner: Runner, job_id: str) -> tuple[Job, tuple[TargetStatus, ...]]:
    """Wait until a job has settled; return it with its targets."""
    job = await runner.wait(job_id)
    assert job is not None
    status = await runner.status(job_id)
    assert status is not None
    assert status.job == job
    return status


async def fetched_once(fetch: FetchFunc, **config: Any) -> TargetStatus:
    """Return what is stored of one target that is given to this fetch, with a healthy one behind it.

    The healthy one must be done: whatever a fetch does, the runner and its job go on.
    """

    async def first_only(caller: Caller, target: Target) -> Result:
        if target.url == "http://a.test/0":
            return await fetch(caller, target)
        return Result("healthy")

    async with running(first_only, **config) as runner:
        submission = await runner.submit(ALICE, targets(2))
        job, stored = await drained(runner, submission.id)
        again = await runner.submit(BOB, targets(1, "b.test"))
        assert (await drained(runner, again.id))[0].status == "done"
    assert job.targets_done == 2
    assert stored[1].status == "done"
    return stored[0]


def raising(error: BaseException) -> FetchFunc:
    """Return a fetch that raises `error`."""

    async def fetch(caller: Caller, target: Target) -> Result:
        await trio.lowlevel.checkpoint()
        raise error

    return fetch


def returning(value: Any) -> FetchFunc:
    """Return a fetch that returns `value`, which need not be a `Result`."""

    async def fetch(caller: Caller, target: Target) -> Result:
        await trio.lowlevel.checkpoint()
        return value  # type: ignore[no-any-return]

    return fetch


class Heard(Hooks):
    """Hooks that write down every call: its name, its values, and when (Trio's clock)."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.times: list[float] = []

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_") or name not in _HOOKS:
            return object.__getattribute__(self, name)

        def hook(*values: Any) -> None:
            self.calls.append((name, values))
            self.times.append(trio.current_time())

        return hook

    def of(self, name: str) -> list[tuple[Any, ...]]:
        """Return the values of each call of one hook."""
        return [values for called, values in self.calls if called == name]


_HOOKS = frozenset(name for name in vars(Hooks) if not name.startswith("_"))


class StepCancel(trio.abc.Instrument):
    """Cancels `scope` at the `at`-th step of a run from here on, of one task or of any."""

    def __init__(self, scope: trio.CancelScope, at: int, task: trio.lowlevel.Task | None = None) -> None:
        self._scope = scope
        self._left = at
        self._task = task

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count the step, and cancel at the one that was named."""
        if self._task is None or task is self._task:
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()


class Lines:
    """A structlog-like logger that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Mapping[str, Any]]] = []

    def debug(self, event: str, **fields: Any) -> None:
        """Keep a debug event."""
        self.events.append(("debug", event, fields))

    def info(self, event: str, **fields: Any) -> None:
        """Keep an info event."""
        self.events.append(("info", event, fields))

    def warning(self, event: str, **fields: Any) -> None:
        """Keep a warning."""
        self.events.append(("warning", event, fields))

    def of(self, name: str) -> list[Mapping[str, Any]]:
        """Return the fields of each event of one name."""
        return [fields for _, event, fields in self.events if event == name]


class Refusing:
    """A fetch that refuses each target as often as there are refusals, and writes down when it was asked."""

    def __init__(self, *refusals: Refusal, latency: float = 0.0, for_ever: bool = False) -> None:
        self.refusals = refusals
        self.latency = latency
        self.for_ever = for_ever
        self.tries: list[float] = []

    async def __call__(self, caller: Caller, target: Target) -> Result:
        """Refuse, or give the number of the try."""
        self.tries.append(trio.current_time())
        await trio.sleep(self.latency)
        number = len(self.tries) - 1
        if self.for_ever:
            raise self.refusals[number % len(self.refusals)]()
        if number < len(self.refusals):
            raise self.refusals[number]()
        return Result(str(number))


async def tried(fetch: Refusing, **config: Any) -> TargetStatus:
    """Drain one target with this fetch; return it. The times are in `fetch.tries`."""
    async with running(fetch, **config) as runner:
        submission = await runner.submit(ALICE, targets(1))
        _, (target,) = await drained(runner, submission.id)
    return target


def after(seconds: float) -> Callable[[], Awaitable[None]]:
    """Return a `ready` that returns after so many seconds."""

    async def ready() -> None:
        await trio.sleep(seconds)

    return ready


def breaking(error: BaseException, seconds: float = 0.0) -> Callable[[], Awaitable[None]]:
    """Return a `ready` that raises after so many seconds."""

    async def ready() -> None:
        await trio.sleep(seconds)
        raise error

    return ready
