"""May this host be called now? The gate: the limit on fetches at the same time.

Here is what callers use: they enter a slot, wait for one, or are refused. It fetches nothing and
decides nothing by itself: `plan` says who gets a slot next, `sleepers` wakes those who waited for it.
There are no tasks and no threads behind it.

The next room is the drain, which calls a fetch through the gate and waits when it is refused.
"""

import math
import weakref
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Final

import trio
from trio.lowlevel import enable_ki_protection

from .._model.config import check_number
from .._model.errors import RetryLater
from .._model.values import Caller, FetchFunc, Result, Target, attempt
from .claims import Claim, Order, Stage
from .hosts import host_key
from .plan import Plan
from .sleepers import Sleepers

_FAR: Final = 1e15
"""A patience beyond this is as good as infinite, and a float can't hold its end exactly any more."""
_PER_HOST: Final = 2
"""The limit for one host of those who did not name one."""


@dataclass(frozen=True, slots=True)
class GateStatistics:
    """A gate at one moment: counts only, never hosts.

    `total` and `per_host` are the limits; `in_use` slots; hosts `held` now; who waits, in all and by
    class (a batch target that waits to be told counts as waiting).
    """

    total: int
    in_use: int
    per_host: int
    held: int
    waiting: int
    waiting_interactive: int
    waiting_batch: int


class Gate:
    """The limit on fetches at the same time: `total` in all, `per_host` for one host.

    Interactive fetches go before batch fetches. A batch fetch that has waited `batch_wait` seconds
    since it was first refused stands in line with the interactive ones, as if it had come then
    (infinite: never). Batch fetches go oldest first. Who waits for a busy host keeps no slot from
    those who want a free one.

    A gate may be made before `trio.run`, and shared by everything in one run. It has no tasks and
    no threads, and keeps no entry for a host that is not in use, waited for or held.

    Raises `ValueError` (`TypeError` for what is no number), naming the argument. A `per_host` above
    `total` is refused, but for its default of 2: with a `total` of 1 that is 1.
    """

    def __init__(self, *, total: int = 8, per_host: int = _PER_HOST, batch_wait: float = 60.0) -> None:
        check_number("total", total, whole=True)
        check_number("per_host", per_host, whole=True)
        check_number("batch_wait", batch_wait, whole=False, zero=True, infinite=True)
        if per_host == _PER_HOST:
            # Who asks for one slot in all has not asked for two of a host.
            per_host = min(per_host, total)
        if per_host > total:
            raise ValueError(f"per_host must be at most total ({total}), not {per_host}")
        self._total = total
        self._per_host = per_host
        self._plan = Plan(total=total, per_host=per_host, batch_wait=batch_wait)
        self._sleepers = Sleepers(self._plan)
        self._clock: trio.abc.Clock | None = None

    def __repr__(self) -> str:
        now = self.statistics()
        return (
            f"<Gate: {now.in_use} of {now.total} slots in use, {now.waiting} waiting, held hosts: {now.held}>"
        )

    def slot(
        self, url: str, *, patience: float = 0.0, batch: bool = False
    ) -> AbstractAsyncContextManager[None]:
        """Hold one of the gate's slots for the host of `url`, as long as the block lasts.

        Waits at most `patience` seconds (0: not at all, infinity: for ever), through holds as well,
        ahead of every batch fetch unless `batch` is set. The slot is given back however the block
        ends. Entering is a checkpoint; if cancelled, no slot is held.

        Raises `RetryLater` when no slot came free in time: reason "host", with what is left of a
        hold as `retry_after`, or else reason "gate", with a `ready` that returns when it is this
        fetch's turn (`batch` says what holds then). Raises `ValueError` at once if `patience` is below
        0 or no number, and `RuntimeError` on entering if it was entered already.
        """
        if not patience >= 0:
            raise ValueError(f"patience must be at least 0, not {patience!r}")
        return _Slot(self, host_key(url), patience, batch)

    def batch(self, fetch: FetchFunc) -> FetchFunc:
        """Return the same fetch with each call in a batch slot of `target.url`.

        A call that gets no slot at once raises `RetryLater`, as `slot` does. Its `ready` waits in
        the batch line, which counts from this target's first refusal, and holds nothing meanwhile.
        When it returns, a slot is free: for 1 s no other batch fetch takes it. If an interactive
        one does, the next call is refused again, and its target keeps its age. A target is known
        again by `sift_batch.attempt`, or by its task where that is not set.

        Who does not come back after `ready` returned may say so by `ready.forgo()`, a plain function
        for use inside the run: the slot is free for the next at once, not only after that 1 s. It
        does nothing before `ready` returned, a second time, or when the promise was used or is over.

        Raises `TypeError` for a fetch that stands behind a gate already.
        """
        if not callable(fetch):
            raise TypeError(f"a fetch must be an async function, not {type(fetch).__name__}")
        if getattr(fetch, "gated", False) is True:
            raise TypeError("this fetch stands behind a gate already; use it as it is")

        async def fetch_in_slot(caller: Caller, target: Target) -> Result:
            async with self.slot(target.url, batch=True):
                return await fetch(caller, target)

        # One slot a fetch: two would let fetches wait for each other for ever.
        fetch_in_slot.gated = True  # type: ignore[attr-defined]
        return fetch_in_slot

    @enable_ki_protection
    def hold(self, url: str, seconds: float) -> None:
        """Give no slot of this host for so many seconds, to neither class; the later end wins.

        Fetches in a slot are not touched. Must be called inside the run. Raises `ValueError` unless
        `seconds` is finite and above 0 (`TypeError` for what is no number).
        """
        check_number("seconds", seconds, whole=False)
        now = trio.current_time()
        self._clock = trio.lowlevel.current_clock()
        self._plan.hold(host_key(url), now + seconds, now)
        self._sleepers.settle()

    @enable_ki_protection
    def statistics(self) -> GateStatistics:
        """Return how full the gate is. May be called at any time, inside or outside the run."""
        plan = self._plan
        if trio.lowlevel.in_trio_run():
            self._sleepers.settle()
        interactive, batch = plan.waiting
        return GateStatistics(
            total=self._total,
            in_use=plan.limiter.borrowed_tokens,
            per_host=self._per_host,
            held=plan.held(self._clock.current_time()) if self._clock is not None else 0,
            waiting=interactive + batch,
            waiting_interactive=interactive,
            waiting_batch=batch,
        )

    @enable_ki_protection
    async def _enter(self, key: str, patience: float, *, batch: bool) -> Claim:
        """Return a claim that is in its slot, or raise `RetryLater`."""
        await trio.lowlevel.checkpoint()
        now = trio.current_time()
        claim = self._plan.take_at_once(key, now, batch=batch)
        if claim is not None:
            return claim
        claim = self._plan.arrive(key, _name(), now, batch=batch)
        self._sleepers.settle()
        if claim.stage is Stage.WAITING and patience > 0:
            await self._wait(claim, now + patience if patience < _FAR else math.inf)
        if claim.stage is Stage.IN_SLOT:
            return claim
        raise self._refuse(claim)

    @enable_ki_protection
    def _leave(self, claim: Claim) -> None:
        self._plan.leave(claim)
        if self._plan.awaited:
            self._sleepers.settle()

    def _refuse(self, claim: Claim) -> RetryLater:
        host = claim.host
        if host.held:
            self._plan.remember(claim)
            # Rounding down would have the caller come back a moment too early.
            left = max(host.held_until - trio.current_time(), 0.0) + math.ulp(host.held_until)
            refusal = RetryLater("the host is held", retry_after=left, reason="host")
        else:
            ready = self._ready(host.key, claim.order, batch=claim.batch)
            refusal = RetryLater("no slot is free", ready=ready, reason="gate")
        self._leave(claim)
        return refusal

    def _ready(self, key: str, order: Order, *, batch: bool) -> Callable[[], Awaitable[None]]:
        """Return an async function that returns when it is the turn of who stands at `order`.

        Its attribute `forgo` gives back what it was told: an engine that knows no gate finds it there.
        """
        name = _attempt_name()
        told: list[Claim] = []

        async def ready() -> None:
            await self._wait_to_be_told(key, name or _name(), order, batch=batch, told=told)

        def forgo() -> None:
            self._forgo(told)

        ready.forgo = forgo  # type: ignore[attr-defined]
        return ready

    @enable_ki_protection
    async def _wait_to_be_told(
        self, key: str, name: Hashable, order: Order, *, batch: bool, told: list[Claim]
    ) -> None:
        await trio.lowlevel.checkpoint()
        claim = self._plan.arrive_to_be_told(key, name, order, batch=batch)
        self._sleepers.settle()
        if claim.stage is Stage.WAITING:
            await self._wait(claim, math.inf)
        # Claims and not names: a later promise to the same target is not for an old `forgo` to end.
        # Several may wait with one `ready`, or one of them time after time.
        told[:] = [earlier for earlier in told if earlier.stage is Stage.PROMISED]
        told.append(claim)

    @enable_ki_protection
    def _forgo(self, told: list[Claim]) -> None:
        while told:
            self._leave(told.pop())

    async def _wait(self, claim: Claim, deadline: float) -> None:
        """Wait until `claim` is granted or the time is up. If cancelled, nothing of it is left."""
        try:
            while claim.stage is Stage.WAITING:
                await self._sleepers.sleep(claim, deadline)
                self._plan.recall_if_held(claim)
                self._sleepers.settle()
                if trio.current_time() >= deadline:
                    break
            # Granted and cancelled in the same tick: the cancel wins, since nothing was done yet.
            await trio.lowlevel.checkpoint_if_cancelled()
        except BaseException:
            self._leave(claim)
            raise


class _Slot:
    """What `Gate.slot` returns. It knows the host, not the URL."""

    __slots__ = ("_batch", "_claim", "_entered", "_gate", "_key", "_patience")

    def __init__(self, gate: Gate, key: str, patience: float, batch: bool) -> None:
        self._gate = gate
        self._key = key
        self._patience = patience
        self._batch = bool(batch)
        # Set before the claim is there: a second task that enters meanwhile would replace the claim
        # of the first, whose slot nobody could give back then.
        self._entered = False
        self._claim: Claim | None = None

    @enable_ki_protection
    async def __aenter__(self) -> None:
        if self._entered:
            raise RuntimeError("a slot can be entered once; ask the gate for another")
        self._entered = True
        enter = self._gate._enter  # noqa: SLF001  # the other half of the gate
        try:
            self._claim = await enter(self._key, self._patience, batch=self._batch)
        except BaseException:
            self._entered = False  # refused or cancelled: it may be tried again
            raise

    @enable_ki_protection
    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._claim is not None:
            self._gate._leave(self._claim)  # noqa: SLF001


def _attempt_name() -> Hashable:
    now = attempt.get(None)
    return None if now is None else (now.job_id, now.idx)


def _name() -> Hashable:
    """Return what a target is known by from call to call; never what would keep its task alive."""
    return _attempt_name() or weakref.ref(trio.lowlevel.current_task())
