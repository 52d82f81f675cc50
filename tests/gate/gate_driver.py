"""What the gate's tests share: targets, a driver that does what a drain does, and a look inside."""

import math
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from sift_batch._gate.gate import Gate
from sift_batch._model.errors import RetryLater
from sift_batch._model.values import Attempt, Caller, Result, Target, attempt

CALLER = Caller("tester")
T = TypeVar("T")


def url(host: str) -> str:
    """Return a URL of `host`."""
    return f"http://{host}.test/page"


def target(host: str) -> Target:
    """Return a target on `host`."""
    return Target(url(host))


class Site:
    """A fetch that takes a while and remembers who was in it."""

    def __init__(self, latency: float = 1.0) -> None:
        self.latency = latency
        self.order: list[str] = []
        self.started_at: list[float] = []
        self.inside: Counter[str] = Counter()
        self.peak_per_host = 0
        self.peak = 0

    async def __call__(self, caller: Caller, target: Target) -> Result:
        """Stay for `latency` seconds."""
        now = attempt.get(None)
        self.order.append(now.job_id if now else "")
        self.started_at.append(trio.current_time())
        self.inside[target.url] += 1
        self.peak = max(self.peak, self.inside.total())
        self.peak_per_host = max(self.peak_per_host, *self.inside.values())
        try:
            await trio.sleep(self.latency)
        finally:
            self.inside[target.url] -= 1
        return Result("")


async def drive(call: Callable[[], Awaitable[T]], name: str | None = None) -> T:
    """Try until it is done, as a drain does: at once after the gate's `ready`, else 0.1 s apart."""
    if name is not None:
        attempt.set(Attempt(name, 0, 1))
    while True:
        tried_at = trio.current_time()
        try:
            return await call()
        except RetryLater as refusal:
            busy = refusal
        if busy.ready is not None and busy.retry_after is None:
            await busy.ready()
            if busy.reason == "gate":
                continue
        else:
            await trio.sleep(busy.retry_after or 2.0)
        await trio.sleep_until(max(tried_at + 0.1, trio.current_time()))


async def refusal(call: Callable[[], Awaitable[object]]) -> RetryLater:
    """Call, and return the refusal that must come."""
    try:
        await call()
    except RetryLater as busy:
        return busy
    raise AssertionError("it was let in")


async def enter(gate: Gate, host: str, *, patience: float = 0.0, batch: bool = False) -> None:
    """Enter a slot and leave it at once."""
    async with gate.slot(url(host), patience=patience, batch=batch):
        pass


async def occupy(
    gate: Gate, host: str, seconds: float = math.inf, *, task_status: trio.TaskStatus[trio.CancelScope]
) -> None:
    """Sit in a slot until the scope that is handed out is cancelled, or so long."""
    with trio.CancelScope() as scope:
        async with gate.slot(url(host)):
            task_status.started(scope)
            await trio.sleep(seconds)


def assert_nothing_kept(gate: Gate) -> None:
    """Nothing is left of anybody: no host, no claim, no promise, no task, no token."""
    now = gate.statistics()
    assert (now.in_use, now.waiting, now.held) == (0, 0, 0)
    plan = gate._plan
    assert plan.hosts == {}
    assert plan._promises == {}
    assert plan._calendar == []
    assert [list(front) for front in plan._fronts] == [[], []]
    assert gate._sleepers._asleep == {}
    assert gate._sleepers._keeper is None
    assert all(limiter.borrowed_tokens == 0 for limiter in plan._spare)
    assert len(plan._spare) <= now.total
