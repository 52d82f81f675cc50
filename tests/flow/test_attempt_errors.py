"""What a fetch may raise: each error becomes its target's, and none ends the runner."""

import asyncio
from typing import Any

import pytest
import trio
from flow_desk import ALICE, drained, fetched_once, raising, running, targets
from trio.testing import MockClock

from sift_batch import Caller, Result, Target, TargetError


class Panic(BaseException):
    """What a compiled extension may raise."""


class Unborn(TargetError):
    """A `TargetError` that never called our `__init__`."""

    def __init__(self) -> None:
        Exception.__init__(self, "unborn")


class Silent(Exception):
    """An error whose text can't be had."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class Lying(str):
    """A text that answers nothing as it should."""

    __slots__ = ()

    def encode(self, *args: Any, **keywords: Any) -> bytes:
        """Raise."""
        raise RuntimeError("no bytes")

    def __len__(self) -> int:
        return 10**9


class Lied(Exception):
    """An error whose text is a lying one."""

    def __str__(self) -> str:
        return Lying("lied")


class Undecided:
    """Neither true nor false."""

    def __bool__(self) -> bool:
        raise RuntimeError("neither")


async def test_a_target_error_keeps_its_words(autojump_clock: MockClock) -> None:
    """A `TargetError` is stored with its message, hint, code, status and whether a retry could help."""
    target = await fetched_once(
        raising(TargetError("gone", hint="look elsewhere", status=410, code="page_gone", retryable=True))
    )
    assert (target.status, target.error, target.hint) == ("failed", "gone", "look elsewhere")
    assert (target.code, target.http_status, target.retryable) == ("page_gone", 410, True)
    assert (target.result, target.chars) == (None, 0)


async def test_a_plain_target_error_has_the_defaults(autojump_clock: MockClock) -> None:
    """A `TargetError` of a message alone has no hint and no code, status 502 and is not retryable."""
    target = await fetched_once(raising(TargetError("bad")))
    assert (target.error, target.hint, target.code, target.http_status, target.retryable) == (
        "bad",
        "",
        "",
        502,
        False,
    )


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("wrong"), "wrong"),
        (ValueError(), "ValueError"),
        (KeyError("key"), "'key'"),
        (OSError(5, "Input/output error"), "[Errno 5] Input/output error"),
        (TimeoutError(), "TimeoutError"),
        (trio.TooSlowError(), "TooSlowError"),
        (MemoryError(), "MemoryError"),
        (RecursionError("deep"), "deep"),
        (StopAsyncIteration(), "StopAsyncIteration"),
        (AssertionError("no"), "no"),
        (Silent(), "Silent"),
        (Lied(), "lied"),
        (ValueError(""), "ValueError"),
        (ValueError("a\0b\ud800c"), "a\0b\ufffdc"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_any_other_error_is_stored_by_its_text(
    error: Exception, text: str, autojump_clock: MockClock
) -> None:
    """Any other `Exception` fails the target with its text, or its type's name where that is empty."""
    target = await fetched_once(raising(error))
    assert (target.status, target.error, target.hint, target.code) == ("failed", text, "", "internal")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Panic("parser panicked"), "parser panicked"),
        (Panic(), "Panic"),
        (GeneratorExit(), "GeneratorExit"),
        (asyncio.CancelledError(), "CancelledError"),
        (BaseExceptionGroup("g", [Panic("inside")]), "inside"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_error_outside_exception_fails_the_target(
    error: BaseException, text: str, autojump_clock: MockClock
) -> None:
    """A `BaseException` of any other kind fails the target alone, as a panic of a compiled extension must."""
    target = await fetched_once(raising(error))
    assert (target.status, target.error, target.code) == ("failed", text, "internal")


async def test_a_stop_iteration_fails_the_target(autojump_clock: MockClock) -> None:
    """A `StopIteration` out of a fetch fails the target; it doesn't end the drain's own loop."""
    target = await fetched_once(raising(StopIteration("x")))
    assert target.status == "failed"

    def not_async(caller: Caller, target: Target) -> Any:
        raise StopIteration("x")

    target = await fetched_once(not_async)
    assert target.status == "failed"


async def test_a_fetch_that_is_not_async_fails_its_targets(autojump_clock: MockClock) -> None:
    """A plain function in place of an async one fails each target, saying so; it may raise like any other."""

    def plain(caller: Caller, target: Target) -> Any:
        return Result("too soon")

    target = await fetched_once(plain)
    assert target.status == "failed"
    assert "await" in target.error

    def plain_error(caller: Caller, target: Target) -> Any:
        raise TargetError("told", hint="h")

    target = await fetched_once(plain_error)
    assert (target.error, target.hint) == ("told", "h")


async def test_what_another_loop_must_run_fails_the_target(autojump_clock: MockClock) -> None:
    """A fetch that awaits something of asyncio's fails its target."""

    class Foreign:
        def __await__(self) -> Any:
            yield "not trio's"

    async def fetch(caller: Caller, target: Target) -> Result:
        await Foreign()
        return Result("")

    assert (await fetched_once(fetch)).status == "failed"


@pytest.mark.parametrize(
    ("error", "stored"),
    [
        (Unborn(), ("unborn", "", "", None, False)),
        (TargetError("m", hint=3, code=b"c", status="5"), ("m", "", "", None, False)),
        (TargetError(17, retryable="yes"), ("17", "", "", 502, True)),  # type: ignore[arg-type]
        (TargetError("m", status=10**30), ("m", "", "", None, False)),
        (TargetError("m", status=True), ("m", "", "", None, False)),
        (TargetError(Lying("m"), hint=Lying("h"), code=Lying("c")), ("m", "h", "c", 502, False)),
        (TargetError("\ud800", hint="\udfff\0", code="\ud800"), ("\ufffd", "\ufffd\0", "\ufffd", 502, False)),
    ],
    ids=range(7),
)
async def test_a_target_error_with_odd_parts_is_stored_all_the_same(
    error: TargetError, stored: tuple[Any, ...], autojump_clock: MockClock
) -> None:
    """Parts of a `TargetError` that are missing or of a wrong type count as not given."""
    target = await fetched_once(raising(error))
    assert (target.error, target.hint, target.code, target.http_status, target.retryable) == stored


async def test_an_error_that_cannot_be_read_fails_the_target(autojump_clock: MockClock) -> None:
    """An error whose parts raise when they are looked at fails its target, and no more."""
    target = await fetched_once(raising(TargetError("m", retryable=Undecided())))  # type: ignore[arg-type]
    assert (target.status, target.code) == ("failed", "internal")
    assert target.error


async def test_a_long_error_is_cut_at_the_limit_of_results(autojump_clock: MockClock) -> None:
    """Message and hint are kept whole up to `result_max_bytes` and cut there, at a character."""
    error = TargetError("é" * 10_000, hint="😀" * 10_000)
    target = await fetched_once(raising(error), result_max_bytes=8_001)
    assert (target.error, target.hint) == ("é" * 4_000, "😀" * 2_000)


async def test_a_small_limit_of_results_does_not_cut_an_error(autojump_clock: MockClock) -> None:
    """However small `result_max_bytes` is, an ordinary error is readable."""
    target = await fetched_once(raising(TargetError("m" * 500, hint="h" * 500)), result_max_bytes=1)
    assert (target.error, target.hint) == ("m" * 500, "h" * 500)


async def test_the_same_error_object_may_be_raised_again(autojump_clock: MockClock) -> None:
    """One error object raised for many targets is stored for each of them."""
    async with running(raising(TargetError("same"))) as runner:
        submission = await runner.submit(ALICE, targets(20))
        _, stored = await drained(runner, submission.id)
    assert [t.error for t in stored] == ["same"] * 20
