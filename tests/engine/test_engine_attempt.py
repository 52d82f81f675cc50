"""The verdicts of `attempt.py`: what one call's outcome means, for any outcome at all."""

import math

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import Caller, Result, RetryLater, Target, TargetError
from sift_batch._engine.attempt import Busy, Finished, attempt, contain, failed, judge, seconds, text_of


class Panic(BaseException):
    """What a compiled extension may raise."""


_leaves = st.sampled_from([RetryLater, TargetError, ValueError, KeyError, Panic]).map(
    lambda kind: kind("x")  # type: ignore[call-overload]
)
_trees = st.recursive(
    _leaves,
    lambda inner: st.lists(inner, min_size=1, max_size=4).map(lambda items: BaseExceptionGroup("g", items)),
)


def _flat(exc: BaseException) -> list[BaseException]:
    if isinstance(exc, BaseExceptionGroup):
        return [leaf for item in exc.exceptions for leaf in _flat(item)]
    return [exc]


@given(_trees)
def test_one_error_stands_for_any_tree_of_them(tree: BaseException) -> None:
    """All leaves refusals: busy; else the first `TargetError` counts, else the first that is none."""

    async def main() -> BaseException:
        return contain(tree)

    found = trio.run(main)
    leaves = _flat(tree)
    others = [leaf for leaf in leaves if not isinstance(leaf, RetryLater)]
    told = [leaf for leaf in others if isinstance(leaf, TargetError)]
    if not others:
        assert isinstance(found, RetryLater)
        assert isinstance(judge(found, 99), Busy)
    else:
        assert found is (told or others)[0]
        assert isinstance(judge(found, 99), Finished)


@given(_trees, st.sampled_from([KeyboardInterrupt, SystemExit]), st.booleans())
def test_what_must_end_the_program_comes_out_of_any_tree(
    tree: BaseException, kind: type[BaseException], first: bool
) -> None:
    """A `KeyboardInterrupt` or `SystemExit` anywhere in a tree is raised bare."""
    end = kind()
    items = [end, tree] if first else [tree, BaseExceptionGroup("g", [end])]

    async def main() -> None:
        contain(BaseExceptionGroup("outer", items))

    with pytest.raises(kind) as caught:
        trio.run(main)
    assert caught.value is end


async def test_a_cancellation_from_outside_passes_bare() -> None:
    """A `Cancelled` in a group, with errors beside it, passes alone while a scope round it is cancelled."""

    async def fetch(caller: Caller, target: Target) -> Result:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_breaking_on_the_way_out)
            nursery.start_soon(trio.sleep_forever)
        return Result("never")

    with trio.CancelScope() as scope:
        scope.cancel()
        await attempt(fetch, Caller("c"), Target("u"), began=trio.current_time(), allowed=9, limit=99)
    assert scope.cancelled_caught


async def _breaking_on_the_way_out() -> None:
    try:
        await trio.sleep_forever()
    finally:
        raise ValueError("broke")


@pytest.mark.parametrize("reason", ["gate", "host", "retry_after"])
def test_a_known_reason_is_kept(reason: str) -> None:
    """A busy answer keeps each of the three reasons."""
    verdict = judge(RetryLater(reason=reason), 99)
    assert isinstance(verdict, Busy)
    assert verdict.reason == reason


@given(st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.lists(st.integers()), st.booleans()))
def test_any_other_reason_is_the_host(reason: object) -> None:
    """A busy answer of any other reason, of whatever type, counts as `host`."""
    verdict = judge(RetryLater(reason=reason), 99)  # type: ignore[arg-type]
    assert isinstance(verdict, Busy)
    assert (
        verdict.reason == (reason if reason in {"gate", "host", "retry_after"} else "host")
        if isinstance(reason, str)
        else verdict.reason == "host"
    )


@given(st.one_of(st.floats(), st.integers(), st.integers().map(lambda n: n * 10**400)))
def test_seconds_are_finite_and_above_zero_or_none(value: float) -> None:
    """A number is a time if it is finite and above 0, and nothing otherwise; it never raises."""
    found = seconds(value)
    if found is None:
        assert not 0 < value < 10**308
    else:
        assert found == float(value)
        assert 0 < found < math.inf


@given(st.text(st.characters(exclude_categories=())))
def test_an_error_has_a_text_always(text: str) -> None:
    """The stored error of any failure is not empty, fits UTF-8, and keeps the text."""
    for error in (ValueError(text), TargetError(text, hint=text, code=text), Panic(text)):
        verdict = failed(error, 10**6)
        assert verdict.outcome.error
        verdict.outcome.error.encode()
        verdict.outcome.hint.encode()
        verdict.outcome.code.encode()
        assert isinstance(verdict.error, Exception)


def test_the_hooks_get_the_error_itself() -> None:
    """The hooks are given the error that was raised; a panic, which is no `Exception`, as a `TargetError`."""
    error = ValueError("x")
    assert failed(error, 99).error is error
    panic = failed(Panic("y"), 99).error
    assert isinstance(panic, TargetError)
    assert (panic.message, panic.code) == ("y", "internal")


def test_a_text_that_ends_the_program_passes() -> None:
    """A Ctrl-C that hits while an error's text is made is not swallowed."""

    class Interrupted(Exception):
        def __str__(self) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        text_of(Interrupted())
