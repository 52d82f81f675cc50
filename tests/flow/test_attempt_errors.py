"""What a fetch may raise: each error becomes its target's, and none ends the runner."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from flow_desk import ALICE, Heard, drained, fetched_once, raising, running, targets
from trio.testing import MockClock

from sift_batch import Caller, Result, RetryLater, Target, TargetError

Fetch = Callable[[Caller, Target], Awaitable[Result]]


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


def deep(error: Exception, depth: int) -> Exception:
    """Return `error` inside so many groups."""
    for _ in range(depth):
        error = ExceptionGroup("g", [error])
    return error


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


# ---- groups


@pytest.mark.parametrize(
    ("error", "stored"),
    [
        (ExceptionGroup("g", [TargetError("one", hint="h", code="c")]), ("one", "h", "c")),
        (ExceptionGroup("g", [ValueError("v"), TargetError("t", hint="h")]), ("t", "h", "")),
        (ExceptionGroup("g", [TargetError("first"), TargetError("second")]), ("first", "", "")),
        (ExceptionGroup("g", [ValueError("first"), KeyError("second")]), ("first", "", "internal")),
        (ExceptionGroup("g", [RetryLater(), ValueError("v")]), ("v", "", "internal")),
        (ExceptionGroup("g", [RetryLater(), ValueError("v"), TargetError("t")]), ("t", "", "")),
        (
            ExceptionGroup("g", [ExceptionGroup("h", [RetryLater(), ValueError("in")]), KeyError("out")]),
            ("in", "", "internal"),
        ),
        (
            ExceptionGroup(
                "g", [ValueError("v"), ExceptionGroup("h", [ExceptionGroup("i", [TargetError("t")])])]
            ),
            ("t", "", ""),
        ),
        (BaseExceptionGroup("g", [Panic("p"), ValueError("v")]), ("p", "", "internal")),
        (BaseExceptionGroup("g", [RetryLater(), Panic("p")]), ("p", "", "internal")),
        (deep(TargetError("deep"), 50), ("deep", "", "")),
        (deep(ValueError("deeper"), 20_000), ("deeper", "", "internal")),
    ],
    ids=range(12),
)
async def test_in_a_group_the_leaves_decide(
    error: BaseException, stored: tuple[str, str, str], autojump_clock: MockClock
) -> None:
    """Of a group, however deep, the first `TargetError` counts, else the first that is no `RetryLater`."""
    target = await fetched_once(raising(error))
    assert (target.status, target.error, target.hint, target.code) == ("failed", *stored)


@pytest.mark.parametrize(
    "error",
    [
        RetryLater(),
        ExceptionGroup("g", [RetryLater()]),
        ExceptionGroup("g", [RetryLater(), ExceptionGroup("h", [RetryLater(), RetryLater()])]),
        deep(RetryLater(), 20_000),
        BaseExceptionGroup("g", [RetryLater()]),
    ],
    ids=range(5),
)
async def test_a_group_of_refusals_alone_is_busy(error: Exception, autojump_clock: MockClock) -> None:
    """A group whose leaves are all `RetryLater` is busy: the target is tried again."""
    tries: list[float] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        tries.append(trio.current_time())
        if len(tries) == 1:
            raise error
        return Result("room")

    target = await fetched_once(fetch)
    assert target.result == Result("room")
    assert tries == [0, 2]


async def test_a_group_of_refusals_waits_for_the_longest(autojump_clock: MockClock) -> None:
    """A busy group waits for its longest valid `retry_after`, and for no `ready`."""
    waited: list[float] = []

    async def ready() -> None:
        waited.append(trio.current_time())

    async def fetch(caller: Caller, target: Target) -> Result:
        if trio.current_time() == 0:
            refusals = [
                RetryLater(retry_after=3, ready=ready),
                RetryLater(retry_after=-9),
                RetryLater(retry_after=float("nan")),
                RetryLater(retry_after=7, ready=ready),
                RetryLater(retry_after=float("inf")),
                RetryLater(ready=ready),
            ]
            raise ExceptionGroup("g", refusals)
        return Result(f"{trio.current_time():g}")

    assert (await fetched_once(fetch)).result == Result("7")
    assert waited == []


async def test_a_nursery_in_a_fetch_gives_its_childrens_errors(autojump_clock: MockClock) -> None:
    """A fetch whose nursery fails in two children at once fails with the first `TargetError`."""

    async def child(error: Exception) -> None:
        try:
            await trio.sleep(1)
        finally:
            raise error

    async def fetch(caller: Caller, target: Target) -> Result:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child, ConnectionError("reset"))
            nursery.start_soon(child, TargetError("told", hint="h"))
        return Result("never")

    target = await fetched_once(fetch)
    assert (target.error, target.hint) == ("told", "h")


async def test_a_group_with_a_cancellation_in_it_is_told_by_its_errors(autojump_clock: MockClock) -> None:
    """When `target_timeout` cancels a fetch and another child fails in that moment, the error is stored."""

    async def clumsy() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("broke on the way out")

    async def fetch(caller: Caller, target: Target) -> Result:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(clumsy)
            nursery.start_soon(trio.sleep_forever)
        return Result("never")

    target = await fetched_once(fetch, target_timeout=5)
    assert (target.error, target.code) == ("broke on the way out", "internal")


@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_stray_cancellation_fails_the_target(wrapped: bool, autojump_clock: MockClock) -> None:
    """A `Cancelled` that a fetch kept from a scope of its own, and raises later, fails its target."""

    async def fetch(caller: Caller, target: Target) -> Result:
        kept: BaseException | None = None
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as exc:
                kept = exc
        assert kept is not None
        raise BaseExceptionGroup("g", [kept, ValueError("why")]) if wrapped else kept

    with trio.fail_after(60):
        target = await fetched_once(fetch)
    assert (target.status, target.code) == ("failed", "internal")
    assert not wrapped or target.error == "why"


async def test_scopes_that_a_fetch_leaves_open_fail_its_target(autojump_clock: MockClock) -> None:
    """A fetch that leaves a cancel scope open fails its target; jobs go on."""

    async def fetch(caller: Caller, target: Target) -> Result:
        trio.CancelScope().__enter__()
        return Result("left open")

    assert (await fetched_once(fetch)).status == "failed"


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), SystemExit(3)],
    ids=["ctrl-c", "exit"],
)
@pytest.mark.parametrize("wrap", [0, 1, 3])
async def test_what_must_end_the_program_passes(
    error: BaseException, wrap: int, autojump_clock: MockClock
) -> None:
    """A `KeyboardInterrupt` or `SystemExit` of a fetch, in a group or not, comes out bare."""
    raised: BaseException = error
    for _ in range(wrap):
        raised = BaseExceptionGroup("g", [TargetError("t"), raised, RetryLater()])
    heard = Heard()

    async def run() -> None:
        async with running(raising(raised), hooks=heard) as runner:
            await runner.submit(ALICE, targets(2))
            await trio.sleep_forever()

    with pytest.raises(type(error)) as caught:
        await run()
    assert caught.value is error
    assert heard.of("target") == []


# ---- time


async def test_a_fetch_that_takes_too_long_fails(autojump_clock: MockClock) -> None:
    """A fetch that takes `target_timeout` seconds is cancelled then and `failed` (`timeout`), saying so."""
    ended: list[float] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(trio.current_time())
        return Result("never")

    target = await fetched_once(fetch, target_timeout=7.5)
    assert ended == [7.5]
    assert (target.status, target.code, target.retryable, target.http_status) == (
        "failed",
        "timeout",
        True,
        504,
    )
    assert "7.5" in target.error


async def test_each_try_has_its_own_time(autojump_clock: MockClock) -> None:
    """`target_timeout` counts for one call: busy waits between the calls take nothing from it."""
    tries: list[float] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        tries.append(trio.current_time())
        await trio.sleep(4)
        if len(tries) < 3:
            raise RetryLater(retry_after=100)
        return Result("in time")

    assert (await fetched_once(fetch, target_timeout=5)).result == Result("in time")
    assert tries == [0, 104, 208]


async def test_a_result_counts_though_time_was_up(autojump_clock: MockClock) -> None:
    """A fetch that returns a result although its time was up has returned it."""

    async def fetch(caller: Caller, target: Target) -> Result:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return Result("late")

    assert (await fetched_once(fetch, target_timeout=5)).result == Result("late")

    async def catching(caller: Caller, target: Target) -> Result:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return Result("what there was")
        return Result("never")

    assert (await fetched_once(catching, target_timeout=5)).result == Result("what there was")


async def test_an_error_counts_though_time_was_up(autojump_clock: MockClock) -> None:
    """A fetch that raises an error of its own although its time was up has raised it."""

    async def fetch(caller: Caller, target: Target) -> Result:
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            raise TargetError("cut off", hint="h") from None
        return Result("never")

    target = await fetched_once(fetch, target_timeout=5)
    assert (target.error, target.hint) == ("cut off", "h")


async def test_a_timeout_of_the_fetchs_own_is_no_timeout_of_the_engines(autojump_clock: MockClock) -> None:
    """A fetch may use scopes and deadlines of its own, earlier or later than the engine's."""

    async def fetch(caller: Caller, target: Target) -> Result:
        with trio.move_on_after(2):
            with trio.fail_after(1_000):
                await trio.sleep_forever()
        return Result(f"{trio.current_time():g}")

    assert (await fetched_once(fetch, target_timeout=50)).result == Result("2")


async def test_the_same_error_object_may_be_raised_again(autojump_clock: MockClock) -> None:
    """One error object raised for many targets is stored for each of them."""
    async with running(raising(TargetError("same"))) as runner:
        submission = await runner.submit(ALICE, targets(20))
        _, stored = await drained(runner, submission.id)
    assert [t.error for t in stored] == ["same"] * 20
