"""In which ways may a fetch end? One function for each; the soak rolls a die for them."""

import math
from collections.abc import Awaitable, Callable
from typing import Final

import trio

from sift_batch import Result, RetryLater, TargetError


class Panic(BaseException):
    """What compiled extensions raise when they break."""


class _UnreadableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("this error can't be read")


async def _target_error() -> Result:
    raise TargetError("no such page", hint="try another", status=404, code="not_found")


async def _error() -> Result:
    raise ValueError("something broke")


async def _unreadable_error() -> Result:
    raise _UnreadableError


async def _panic() -> Result:
    raise Panic("compiled code broke")


async def _group() -> Result:
    raise ExceptionGroup("two tasks", [ValueError("one"), TargetError("other")])


async def _nursery() -> Result:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_error)
        await trio.sleep_forever()
    raise AssertionError


async def _hang() -> Result:
    await trio.sleep_forever()
    raise AssertionError


async def _late_result() -> Result:
    with trio.CancelScope(shield=True):
        await trio.sleep(0.4)
    return Result("late but there")


async def _no_result() -> Result:
    return "a text"  # type: ignore[return-value]


async def _not_json() -> Result:
    return Result("text", {"number": math.nan})


async def _large_meta() -> Result:
    return Result("text", {"large": "x" * 10_000})


async def _busy() -> Result:
    raise RetryLater


async def _busy_for_a_time() -> Result:
    raise RetryLater(retry_after=0.05, reason="retry_after")


async def _busy_beyond_patience() -> Result:
    raise RetryLater(retry_after=1_000.0)


async def _busy_for_nonsense() -> Result:
    raise RetryLater(retry_after=math.nan)


async def _busy_until_ready() -> Result:
    async def ready() -> None:
        await trio.sleep(0.02)

    raise RetryLater(ready=ready)


async def _busy_gate_until_ready() -> Result:
    raise RetryLater(ready=lambda: trio.sleep(0.01), reason="gate")  # noqa: ASYNC105 - the engine awaits it


async def _busy_and_ready_breaks() -> Result:
    async def ready() -> None:
        raise Panic("ready broke")

    raise RetryLater(ready=ready, reason="gate")


async def _busy_group() -> Result:
    raise ExceptionGroup("two tasks", [RetryLater(retry_after=0.01), RetryLater()])


TROUBLES: Final[list[Callable[[], Awaitable[Result]]]] = [
    _target_error,
    _error,
    _unreadable_error,
    _panic,
    _group,
    _nursery,
    _hang,
    _late_result,
    _no_result,
    _not_json,
    _large_meta,
    _busy,
    _busy_for_a_time,
    _busy_beyond_patience,
    _busy_for_nonsense,
    _busy_until_ready,
    _busy_gate_until_ready,
    _busy_and_ready_breaks,
    _busy_group,
]
