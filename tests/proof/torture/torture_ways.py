"""In which ways may a fetch end? All that a fetch of somebody else's has been seen to do, and more.

Each way says what the book calls such an end: "ok", "busy", "failed", or "cut" for what must end the
program. Next: `torture_fetch.py`, which ends a chosen call so.
"""

from collections.abc import Awaitable, Callable, Mapping
from math import inf, nan
from typing import Any, Final

import trio
from torture_store import Panic, stray_cancelled

from sift_batch import Result, RetryLater, TargetError


class StillFull(RetryLater):
    """A busy answer of somebody who has never called our `__init__`."""

    def __init__(self) -> None:
        Exception.__init__(self)


async def _raise(error: BaseException) -> Result:
    await trio.lowlevel.checkpoint()
    raise error


async def _later() -> None:
    await trio.sleep(3)


async def _broken() -> None:
    await trio.sleep(1)
    raise OSError("a ready that breaks")


async def _mute() -> None:
    raise BaseExceptionGroup("nursery", [Panic("a ready that breaks at once")])


async def _hang() -> Result:
    await trio.sleep_forever()
    raise AssertionError


async def _stubborn() -> Result:
    # Its time is up long before, and it has a result all the same.
    with trio.CancelScope(shield=True):
        await trio.sleep(25)
    return Result("late")


async def _own_nursery(*errors: BaseException) -> Result:
    async def fail(error: BaseException) -> None:
        # No checkpoint: the first to fail cancels the others, and all of them must have failed by then.
        raise error

    async with trio.open_nursery() as nursery:
        for error in errors:
            nursery.start_soon(fail, error)
    raise AssertionError


async def _own_scope() -> Any:
    # A cancellation of the fetch's own ends here and gives nothing.
    with trio.CancelScope() as scope:
        scope.cancel()
        await trio.sleep_forever()


async def _stray() -> Result:
    raise await stray_cancelled()


async def _stray_group() -> Result:
    raise BaseExceptionGroup("nursery", [await stray_cancelled(), ValueError("beside it")])


async def _give(value: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return value


def _cycle() -> dict[str, Any]:
    meta: dict[str, Any] = {}
    meta["again"] = meta
    return meta


def _busy(**how: Any) -> Callable[[], Awaitable[Any]]:
    return lambda: _raise(RetryLater(**how))


Way = tuple[str, Callable[[], Awaitable[Any]]]
# By name: what the book says of such a call ("ok", "busy", "failed", "cut") and what it does.
WAYS: Final[Mapping[str, Way]] = {
    "target error": ("failed", lambda: _raise(TargetError("no", hint="h", status=404, code="gone"))),
    "odd target error": ("failed", lambda: _raise(TargetError("\0\ud800", status=-1, code="\udfff"))),
    "exception": ("failed", lambda: _raise(ValueError("text"))),
    "silent": ("failed", lambda: _raise(LookupError())),
    "stop": ("failed", lambda: _raise(StopAsyncIteration())),
    "panic": ("failed", lambda: _raise(Panic("compiled"))),
    "generator exit": ("failed", lambda: _raise(GeneratorExit())),
    "group": ("failed", lambda: _raise(ExceptionGroup("nursery", [ValueError("one"), TargetError("two")]))),
    "group of refusals": ("busy", lambda: _own_nursery(RetryLater(retry_after=2.0), RetryLater())),
    "mixed group": ("failed", lambda: _own_nursery(RetryLater(), OSError("two"))),
    "panic group": ("failed", lambda: _own_nursery(Panic("one"), Panic("two"))),
    "hang": ("failed", _hang),
    "stubborn": ("ok", _stubborn),
    "busy": ("busy", _busy()),
    "busy for long": ("busy", _busy(retry_after=1e9)),
    "busy after": ("busy", _busy(retry_after=0.5)),
    "busy until ready": ("busy", _busy(ready=_later)),
    "busy ready breaks": ("busy", _busy(ready=_broken, retry_after=4.0)),
    "busy ready mute": ("busy", _busy(ready=_mute)),
    "busy gate": ("busy", _busy(ready=_later, reason="gate")),
    "busy nonsense": ("busy", _busy(retry_after=nan, ready=5, reason=["odd"])),
    "busy infinite": ("busy", _busy(retry_after=inf)),
    "busy bare": ("busy", lambda: _raise(StillFull())),
    "nothing": ("failed", lambda: _give(None)),
    "bytes": ("failed", lambda: _give(Result(b"bytes"))),  # type: ignore[arg-type]
    "nan": ("failed", lambda: _give(Result("text", {"n": nan}))),
    "cycle": ("failed", lambda: _give(Result("text", _cycle()))),
    "no mapping": ("failed", lambda: _give(Result("text", ["odd"]))),  # type: ignore[arg-type]
    "surrogates": ("ok", lambda: _give(Result("\0 a \ud800 b", {"k": "\udfff"}))),
    "own scope": ("failed", _own_scope),
    "stray": ("failed", _stray),
    "stray group": ("failed", _stray_group),
    "interrupt": ("cut", lambda: _raise(KeyboardInterrupt())),
    "interrupt group": ("cut", lambda: _own_nursery(ValueError("one"), KeyboardInterrupt())),
    "exit": ("cut", lambda: _raise(SystemExit(4))),
}  # fmt: skip


CODES: Final[Mapping[str, str]] = {
    "target error": "gone",
    "exception": "internal",
    "silent": "internal",
    "stop": "internal",
    "panic": "internal",
    "generator exit": "internal",
    "group": "",
    "mixed group": "internal",
    "panic group": "internal",
    "hang": "timeout",
    "nothing": "bad_result",
    "bytes": "bad_result",
    "nan": "bad_result",
    "cycle": "bad_result",
    "no mapping": "bad_result",
    "own scope": "bad_result",
    "stray": "internal",
    "stray group": "internal",
}
"""The code that is stored of a target whose call failed so."""
