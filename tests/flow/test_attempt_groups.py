"""What a fetch may raise in a group, or with a cancellation: the leaves decide, and what must pass passes."""

import pytest
import trio
from flow_desk import ALICE, Heard, fetched_once, raising, running, targets
from trio.testing import MockClock

from sift_batch import Caller, Result, RetryLater, Target, TargetError


class Panic(BaseException):
    """What a compiled extension may raise."""


def deep(error: Exception, depth: int) -> Exception:
    """Return `error` inside so many groups."""
    for _ in range(depth):
        error = ExceptionGroup("g", [error])
    return error


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
