"""What came back from one call of the fetch?

The fetch is code of somebody else's: it may return, raise anything at all, wrap what it raises in
groups, or not come back in time. Here that becomes a verdict: `Finished`, with what is to be stored,
or `Busy`. Three things pass through: `KeyboardInterrupt`, `SystemExit` and Trio's `Cancelled`.
Nothing is stored here and nothing waits here. Next room: `drain.py`, which acts on the verdict.
"""

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

import trio

from .._model.errors import RetryLater, TargetError
from .._model.idem import scrub
from .._model.lifecycle import TargetState
from .._model.store import Outcome
from .._model.values import Caller, FetchFunc, Target
from .encode import BadResult, cut, encode_result, http_status

_NOTHING: Final = object()
_REASONS: Final = frozenset({"gate", "host", "retry_after"})


class Finished(NamedTuple):
    """The target is done or failed: what to store, and the error for the hooks."""

    outcome: Outcome
    error: Exception | None


class Busy(NamedTuple):
    """There was no room. `given` says whether there was a `retry_after`, valid or not."""

    retry_after: float | None
    given: bool
    ready: object
    reason: str


async def attempt(
    fetch: FetchFunc, caller: Caller, target: Target, *, began: float, allowed: float, limit: int
) -> Finished | Busy:
    """Call the fetch once and judge what comes back.

    `allowed` seconds from `began` (Trio's clock) bound the call; a fetch that returns a result although
    its time was up has returned it. `limit` bounds what is stored, in bytes.
    """
    result: object = _NOTHING
    scope = trio.CancelScope(deadline=began + allowed)
    try:
        with scope:
            result = await fetch(caller, target)
    except BaseException as exc:
        return judge(contain(exc), limit)
    if result is _NOTHING:
        return failed(
            TargetError(f"no result within {allowed:g} seconds", code="timeout", status=504, retryable=True),
            limit,
        )
    try:
        return Finished(encode_result(result, limit), None)
    except BadResult as bad:
        return failed(TargetError(text_of(bad), code="bad_result", status=500), limit)


def contain(exc: BaseException) -> BaseException:
    """Return the one error that `exc` stands for, or raise what must pass.

    In a group the leaves decide: a `KeyboardInterrupt` or `SystemExit` anywhere passes bare, and so
    does a cancellation from outside; all `RetryLater`: the longest of them; otherwise the first
    `TargetError`, else the first that is no `RetryLater`.
    """
    leaves = list(_leaves(exc))
    for leaf in leaves:
        if isinstance(leaf, KeyboardInterrupt | SystemExit):
            raise leaf
    if isinstance(exc, BaseExceptionGroup):
        cancelled = exc.split(trio.Cancelled)[0]
        if cancelled is not None:
            # Only the cancellation: the scope that it belongs to takes it, and nothing is left over.
            raise cancelled
    elif isinstance(exc, trio.Cancelled):
        raise exc
    else:
        return exc
    others = [leaf for leaf in leaves if not isinstance(leaf, RetryLater)]
    if not others:
        longest = max(seconds(leaf.retry_after) or 0.0 for leaf in leaves if isinstance(leaf, RetryLater))
        reasons = {leaf.reason for leaf in leaves if isinstance(leaf, RetryLater)}
        reason = reasons.pop() if len(reasons) == 1 else "host"
        return RetryLater(retry_after=longest or None, reason=reason)
    return next((leaf for leaf in others if isinstance(leaf, TargetError)), others[0])


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    # A stack and no recursion: groups can be nested deeper than Python can call.
    stack = [exc]
    while stack:
        item = stack.pop()
        if isinstance(item, BaseExceptionGroup):
            stack.extend(reversed(item.exceptions))
        else:
            yield item


def judge(exc: BaseException, limit: int) -> Finished | Busy:
    """Return what one error means for its target."""
    if isinstance(exc, RetryLater):
        return Busy(
            seconds(exc.retry_after),
            exc.retry_after is not None,
            exc.ready,
            exc.reason if isinstance(exc.reason, str) and exc.reason in _REASONS else "host",
        )
    return failed(exc, limit)


def failed(exc: BaseException, limit: int) -> Finished:
    """Return a failed target's verdict: a `TargetError`'s own words, or any other error's text."""
    if isinstance(exc, TargetError):
        outcome = Outcome(
            status=TargetState.FAILED,
            error=cut(scrub(text_of(exc)), limit),
            hint=cut(_word(exc.hint), limit),
            code=cut(_word(exc.code), limit),
            http_status=http_status(exc.status),
            retryable=bool(exc.retryable),
        )
    else:
        outcome = Outcome(
            status=TargetState.FAILED, error=cut(scrub(text_of(exc)), limit), code="internal", retryable=True
        )
    if isinstance(exc, Exception):
        return Finished(outcome, exc)
    return Finished(outcome, TargetError(outcome.error, code="internal", status=500, retryable=True))


def text_of(exc: BaseException) -> str:
    """Return an error's text, or its type's name where that is empty or can't be had."""
    try:
        text = str(exc)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:
        text = ""
    return text or type(exc).__name__


def _word(value: object) -> str:
    return scrub(value) if isinstance(value, str) else ""


def seconds(value: object) -> float | None:
    """Return a `retry_after` if it is finite and above 0, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number > 0 else None
