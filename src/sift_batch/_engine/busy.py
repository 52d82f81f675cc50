"""How long does a busy target wait, and when is it enough?

`Patience` keeps the account of one target: how often it was refused and how long it has waited for
other reasons than the gate. It plans a wait; `wait_out` waits. While a target waits it holds nothing:
no slot, no transaction. Waiting for the gate is never held against it. Next room: `drain.py`.
"""

import math
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, cast

import trio

from .._model.config import Config
from .attempt import Busy, contain

Ready = Callable[[], Awaitable[object]]

_LONGEST_BACKOFF: Final = 60.0
_LEAST_SECONDS: Final = 0.1
_NO_TIME: Final = 1e-6


class Wait(NamedTuple):
    """One planned wait: at most `limit` seconds, or `fallback` of them if `ready` breaks."""

    limit: float
    fallback: float
    ready: Ready | None
    reason: str


class Patience:
    """The busy account of one target."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._answers = 0
        self._spent = 0.0

    def plan(self, busy: Busy) -> Wait | None:
        """Return how to wait after one more busy answer, or None when it is enough."""
        self._answers += 1
        left = math.inf
        if busy.reason != "gate":
            left = self._config.retry_for - self._spent
            if left < _NO_TIME:
                return None
        ready = cast("Ready", busy.ready) if callable(busy.ready) else None
        fallback = busy.retry_after if busy.retry_after is not None else self._backoff()
        limit = math.inf if ready is not None and not busy.given else fallback
        return Wait(min(limit, left), min(fallback, left), ready, busy.reason)

    def waited(self, wait: Wait, elapsed: float) -> None:
        """Note that a wait is over."""
        if wait.reason != "gate":
            self._spent += elapsed

    def _backoff(self) -> float:
        first = self._config.retry_wait
        # 2**30 times any wait is past the cap; more would only overflow.
        return min(first * 2.0 ** min(self._answers - 1, 30), max(first, _LONGEST_BACKOFF))


async def wait_out(wait: Wait) -> None:
    """Wait as planned. Tries stay at least 0.1 s apart, but after a `ready()` of the gate's."""
    began = trio.current_time()
    if wait.ready is None:
        await trio.sleep_until(began + max(wait.limit, _LEAST_SECONDS))
        return
    told = broken = False
    with trio.move_on_at(began + wait.limit):
        try:
            await wait.ready()
            told = True
        except BaseException as exc:  # noqa: ASYNC103 - `contain` raises what must pass
            contain(exc)
            broken = True
    if broken:
        await trio.sleep_until(began + max(wait.fallback, _LEAST_SECONDS))
    elif not (told and wait.reason == "gate"):
        await trio.sleep_until(began + _LEAST_SECONDS)
    else:
        await trio.lowlevel.checkpoint()
