"""Does each step of the store do what it must, whoever asks, whenever it refuses or the process dies?

`SimStore` stands between a runner and the real store in memory. It delays, refuses and dies as the plan
says, and keeps steps in the order in which they were asked for. What they came to is compared with the model
before anybody can have seen it. Next room: `sim_compare.py`.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any, Protocol

import trio
from sim_compare import READS, Comparison
from sim_model import Ledger, Row
from sim_plan import Facts
from sim_watch import Watch

from sift_batch import StoreError


class StoreDownError(BaseException):
    """What a compiled extension of a store may raise: no `Exception`."""


class Listener(Protocol):
    """Who is told of steps: the world that the store stands in."""

    watch: Watch
    ledger: Ledger

    def wall(self) -> float:
        """Return the wall clock."""

    def refusal_of(self, op: str) -> str | None:
        """Return how the store must refuse this operation now, if it must."""

    def asked(self, store: "SimStore", op: str, values: tuple[Any, ...]) -> None:
        """Hear that an operation is asked for."""

    def answered(
        self, store: "SimStore", op: str, values: tuple[Any, ...], answer: Any, error: BaseException | None
    ) -> None:
        """Hear that an operation is over for whoever asked."""

    def stepping(self, op: str, before: bool) -> None:
        """Hear that a step is about to be done, or was done and is not answered yet. May kill."""

    def stepped(self, op: str, row: Row | None, answer: Any, asked: Facts) -> None:
        """Hear what a step came to."""


class SimStore:
    """A store for one runner; `dead` once its process was killed: nobody looks at what it does then."""

    def __init__(
        self,
        inner: Any,
        locks: tuple[trio.Lock, trio.Lock],
        listener: Listener,
        jitter: Facts,
        seed: str,
        caps: Facts,
    ) -> None:
        self.inner = inner
        self.dead = False
        # How many calls are under way: as long as there are any, memory may lag behind the rows.
        self.pending = 0
        # Whether the rows are ahead of the model, for a turn or two.
        self.busy = False
        self._listener = listener
        self._watch = listener.watch
        self._jitter = jitter
        self._random = Random(seed)
        # One for the steps, one for their answers; all lives on the same rows share them.
        self._order, self._answers = locks
        self.connection = inner._inline._connection
        self.comparison = Comparison(self.connection, listener.ledger, listener.watch, caps)

    def __getattr__(self, op: str) -> Callable[..., Awaitable[Any]]:
        """Return an operation of the store."""
        if op.startswith("_"):
            raise AttributeError(op)
        return partial(self._call, op)

    async def release(self, owner: str) -> None:
        """Give the ownership back: this never fails."""
        await self.inner.release(owner)

    async def _call(self, op: str, *values: Any, **asked: Any) -> Any:
        if self.dead:
            return await getattr(self.inner, op)(*values, **asked)
        if "now" in asked and asked["now"] != int(self._listener.wall()):
            self._watch.wrong("store.now", f"{op} was asked at {self._listener.wall()} for {asked['now']}")
        self.pending += 1
        self._listener.asked(self, op, values)
        error: BaseException | None = None
        answer = None
        try:
            answer = await self._in_order(op, values, asked)
        except BaseException as exc:
            error = exc
            raise
        finally:
            self.pending -= 1
            if not self.dead:
                self._listener.answered(self, op, values, answer, error)
        return answer

    async def _in_order(self, op: str, values: tuple[Any, ...], asked: Facts) -> Any:
        ordered = op not in READS
        async with self._order:
            await self._delay(self._drawn("before"))
            self._refuse(op)
            if not self.dead:
                self._listener.stepping(op, True)
            self.busy = True
            try:
                answer = await getattr(self.inner, op)(*values, **asked)
            finally:
                self.busy = False
            if not self.dead:
                self._watch.count("store steps")
                self._compare(op, values, asked, answer)
            if not self.dead:
                self._listener.stepping(op, False)
            if ordered:
                # What is done is told, in the order in which it was done.
                with trio.CancelScope(shield=True):
                    await self._answers.acquire()
        try:
            delay = self._drawn("after")
            if delay is not None:
                with trio.CancelScope(shield=True):
                    await self._delay(delay)
        finally:
            if ordered:
                self._answers.release()
        return answer

    def _drawn(self, when: str) -> float | None:
        """Draw how long to wait: seconds, or turns of the run loop as a number below 0."""
        if not self._jitter or self.dead or self._random.random() >= self._jitter[when]:
            return None
        seconds: float = self._jitter["seconds"]
        if seconds and self._random.random() < 0.5:
            return seconds * self._random.choice((0.5, 1.0))
        return -self._random.randint(1, 4)

    async def _delay(self, delay: float | None) -> None:
        if delay is not None and delay > 0:
            await trio.sleep(delay)
        elif delay is not None:
            for _ in range(int(-delay)):
                await trio.lowlevel.checkpoint()

    def _refuse(self, op: str) -> None:
        error = None if self.dead else self._listener.refusal_of(op)
        if error is None:
            return
        self._watch.count("refusals")
        self._watch.say("store", f"refuses {op}")
        if error == "base":
            raise StoreDownError
        raise StoreError("no") if error == "store" else RuntimeError("no")

    def _compare(self, op: str, values: tuple[Any, ...], asked: Facts, answer: Any) -> None:
        try:
            row = self.comparison.compare(op, values, asked, answer)
            if op not in READS:
                self._listener.stepped(op, row, answer, asked | {"values": values})
        except Exception as exc:
            # The engine would take it for the store's refusal.
            self._watch.wrong("simulation", f"looking at {op} failed: {exc!r}")
