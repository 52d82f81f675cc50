"""Does the suite for fetches pass what keeps the rules, and catch what breaks one?"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import count
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sift_batch import Caller, Gate, Result, RetryLater, Target, TargetError, attempt
from sift_batch.testing import FETCH_RULES, FetchCase, ScriptedFetch, check_fetch

FINE, BAD, FULL, SLOW = (Target(f"https://{name}.example/") for name in ("fine", "bad", "full", "slow"))
Fetch = Callable[[Caller, Target], Awaitable[Any]]


def _case(fetch: Fetch, **changes: Any) -> FetchCase:
    return FetchCase(
        **({"fetch": fetch, "targets": [FINE], "failing": [BAD], "busy": [FULL], "slow": SLOW} | changes)
    )


def _good() -> ScriptedFetch:
    return ScriptedFetch(latency={SLOW.url: 60, FINE.url: 0.1}, fail=[BAD.url], busy={FULL.url: float("inf")})


async def test_a_good_fetch_passes(autojump_clock: MockClock) -> None:
    """A fetch that keeps the rules passes: as a case, alone, and from a context manager."""
    await check_fetch(lambda: _case(_good()))
    await check_fetch(ScriptedFetch)

    @asynccontextmanager
    async def opened() -> AsyncIterator[FetchCase]:
        gate = Gate()
        fetch = _good()
        yield _case(gate.batch(fetch), idle=lambda: gate.statistics().in_use == fetch.in_flight == 0)

    await check_fetch(opened)


async def _answer(change: object, caller: Caller, target: Target) -> Any:
    await trio.lowlevel.checkpoint()
    return change


async def _sleeps_when_busy(caller: Caller, target: Target) -> Any:
    if target == FULL:
        await trio.sleep(30)
        raise RetryLater
    return await _good()(caller, target)


async def _returns_when_busy(caller: Caller, target: Target) -> Any:
    return Result("please wait") if target == FULL else await _good()(caller, target)


async def _returns_when_bad(caller: Caller, target: Target) -> Any:
    return Result("404") if target == BAD else await _good()(caller, target)


async def _raises_anything(caller: Caller, target: Target) -> Any:
    if target == BAD:
        raise ExceptionGroup("", [TargetError("x"), OSError("y")])
    return await _good()(caller, target)


async def _no_checkpoint(caller: Caller, target: Target) -> Any:
    return Result("text") if target == FINE else await _good()(caller, target)


async def _shields(caller: Caller, target: Target) -> Any:
    with trio.CancelScope(shield=target == SLOW):
        return await _good()(caller, target)


async def _leaves_a_task(caller: Caller, target: Target) -> Any:
    trio.lowlevel.spawn_system_task(partial(trio.sleep, 10**6), name="left")
    return await _good()(caller, target)


def _counts() -> Fetch:
    numbers = count()

    async def fetch(caller: Caller, target: Target) -> Any:
        await _good()(caller, target)
        return Result(str(next(numbers)))

    return fetch


def _remembers() -> Fetch:
    last: list[Target] = []

    async def fetch(caller: Caller, target: Target) -> Any:
        last[:] = [target]
        await _good()(caller, target)
        return Result(last[0].url)

    return fetch


def _spoilt() -> Fetch:
    failures: list[object] = []

    async def fetch(caller: Caller, target: Target) -> Any:
        if target == BAD:
            failures.append(target)
        await _good()(caller, target)
        return Result("text" if not failures else "an error page")

    return fetch


@pytest.mark.parametrize(
    ("make", "rule"),
    [
        (lambda: partial(_answer, "text"), "returns a Result"),
        (lambda: partial(_answer, None), "returns a Result"),
        (lambda: partial(_answer, Result(b"bytes")), "returns a Result"),  # type: ignore[arg-type]
        (lambda: partial(_answer, Result("", {"nan": float("nan")})), "returns a Result"),
        (lambda: partial(_answer, Result("", {"set": {1}})), "returns a Result"),
        (lambda: _returns_when_bad, "raises TargetError"),
        (lambda: _raises_anything, "raises TargetError"),
        (lambda: _sleeps_when_busy, "raises RetryLater at once"),
        (lambda: _returns_when_busy, "raises RetryLater at once"),
        (lambda: _no_checkpoint, "in a cancelled scope"),
        (lambda: _shields, "ends within a second"),
        (lambda: _leaves_a_task, "No task is left behind"),
        (_counts, "their own target's content"),
        (_spoilt, "does not spoil"),
    ],
)
async def test_a_broken_fetch_is_caught(
    make: Callable[[], Fetch], rule: str, autojump_clock: MockClock
) -> None:
    """A fetch that breaks one rule fails, and the failure names that rule."""
    with pytest.raises(AssertionError) as caught:
        await check_fetch(lambda: _case(make()))
    assert rule in str(caught.value).splitlines()[0]


async def test_mixed_up_content_is_caught(autojump_clock: MockClock) -> None:
    """A fetch whose calls at the same time share what they fetch fails."""
    with pytest.raises(AssertionError, match="their own target's content"):
        await check_fetch(lambda: FetchCase(fetch=_remembers()))


async def test_what_is_still_borrowed_is_caught(autojump_clock: MockClock) -> None:
    """A fetch that keeps a slot after a call that was cancelled fails."""
    held: list[Target] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        held.append(target)
        result = await ScriptedFetch(latency=5)(caller, target)
        held.remove(target)
        return result

    with pytest.raises(AssertionError, match="given back"):
        await check_fetch(lambda: FetchCase(fetch=fetch, idle=lambda: not held))


def test_each_rule_is_a_sentence_of_its_own() -> None:
    """The rules can be shown as a list: sentences, no two the same."""
    texts = [rule.text for rule in FETCH_RULES]
    assert len(set(texts)) == len(texts)
    assert all(text[0].isupper() and text.endswith(".") for text in texts)


async def test_a_fetch_may_look_up_which_call_it_is() -> None:
    """A fetch that reads `sift_batch.attempt`, as the engine lets it, passes."""

    async def fetch(caller: Caller, target: Target) -> Result:
        await trio.lowlevel.checkpoint()
        return Result(f"{target.url} {attempt.get().number}")

    await check_fetch(lambda: fetch)
    assert attempt.get(None) is None
