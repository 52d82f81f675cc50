"""What came back from one call of the fetch?

The fetch is code of somebody else's: it may return, raise anything at all, wrap what it raises in
groups, or not come back in time. Here that becomes a verdict: `Finished`, with what is to be stored,
or `Busy`. Three things pass through: `KeyboardInterrupt`, `SystemExit` and Trio's `Cancelled`.
Nothing is stored here and nothing waits here. Next room: `drain.py`, which acts on the verdict.
"""

import math
from typing import Final, NamedTuple

import trio
from trio.lowlevel import disable_ki_protection

from .._model.errors import RetryLater, TargetError
from .._model.idem import scrub
from .._model.lifecycle import TargetState
from .._model.store import Outcome
from .._model.values import Caller, FetchFunc, Target
from .._passing import leaves_of, what_passes
from .encode import BadResult, cut, encode_result, http_status

_NOTHING: Final = object()
_REASONS: Final = ("gate", "host", "retry_after")
_PASS: Final = (KeyboardInterrupt, SystemExit, trio.Cancelled)
_LEAST_TEXT: Final = 4_096


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
            result = await _call(fetch, caller, target)
    except BaseException as exc:  # noqa: ASYNC103 - `contain` raises what must pass
        return _weigh_error(exc, limit)  # noqa: ASYNC104
    if result is _NOTHING:
        return failed(
            TargetError(f"no result within {allowed:g} seconds", code="timeout", status=504, retryable=True),
            limit,
        )
    return _weigh_result(result, limit)


@disable_ki_protection
async def _call(fetch: FetchFunc, caller: Caller, target: Target) -> object:
    # Not ours, and it may compute for long: here Ctrl-C strikes as it does in any code of Trio's users.
    return await fetch(caller, target)


def _weigh_error(exc: BaseException, limit: int) -> Finished | Busy:
    try:
        return judge(contain(exc), limit)
    except _PASS:
        raise
    except BaseException:  # noqa: ASYNC103 - what must pass is above
        # An error is somebody else's object too: looking at it may raise.
        return failed(TargetError("the fetch raised an error that can't be read", code="internal"), limit)  # noqa: ASYNC104


def _weigh_result(result: object, limit: int) -> Finished:
    try:
        return Finished(encode_result(result, limit), None)
    except BadResult as exc:
        bad = text_of(exc)
    except _PASS:
        raise
    except BaseException:  # noqa: ASYNC103 - what must pass is above
        bad = "the fetch returned a result that can't be read"
    return failed(TargetError(bad, code="bad_result", status=500), limit)


def contain(exc: BaseException) -> BaseException:
    """Return the one error that `exc` stands for, or raise what must pass.

    In a group the leaves decide: a `KeyboardInterrupt` or `SystemExit` anywhere passes bare, and so
    does a cancellation from outside; all `RetryLater`: the longest of them; otherwise the first
    `TargetError`, else the first that is no `RetryLater`.
    """
    passes = what_passes(exc)
    if passes is not None:
        raise passes
    if not isinstance(exc, BaseExceptionGroup):
        return exc
    leaves = list(leaves_of(exc))
    # A cancellation that no scope round here asked for was kept by the fetch from one of its own. Nobody
    # would take it, so it is an error like any other, but the last one to look at.
    leaves = [leaf for leaf in leaves if not isinstance(leaf, trio.Cancelled)] or leaves
    refusals = [leaf for leaf in leaves if isinstance(leaf, RetryLater)]
    if len(refusals) == len(leaves):
        longest = max(seconds(getattr(leaf, "retry_after", None)) or 0.0 for leaf in refusals)
        reasons = {_reason(leaf) for leaf in refusals}
        reason = reasons.pop() if len(reasons) == 1 else "host"
        return RetryLater(retry_after=longest or None, reason=reason)
    others = [leaf for leaf in leaves if not isinstance(leaf, RetryLater)]
    return next((leaf for leaf in others if isinstance(leaf, TargetError)), others[0])


def judge(exc: BaseException, limit: int) -> Finished | Busy:
    """Return what one error means for its target."""
    if isinstance(exc, RetryLater):
        # `getattr`: a subclass may not have called our `__init__`.
        retry_after: object = getattr(exc, "retry_after", None)
        ready: object = getattr(exc, "ready", None)
        return Busy(seconds(retry_after), retry_after is not None, ready, _reason(exc))
    return failed(exc, limit)


def _reason(exc: RetryLater) -> str:
    reason = getattr(exc, "reason", None)
    return next((known for known in _REASONS if known == reason), "host")


def failed(exc: BaseException, limit: int) -> Finished:
    """Return a failed target's verdict: a `TargetError`'s own words, or any other error's text."""
    # A small limit for results must not cut the sentence that says what was wrong.
    limit = max(limit, _LEAST_TEXT)
    if isinstance(exc, TargetError):
        outcome = Outcome(
            status=TargetState.FAILED,
            error=cut(scrub(text_of(exc)), limit),
            hint=cut(_word(getattr(exc, "hint", "")), limit),
            code=cut(_word(getattr(exc, "code", "")), limit),
            http_status=http_status(getattr(exc, "status", None)),
            retryable=bool(getattr(exc, "retryable", False)),
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
        text = _exact(str(exc))
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException:  # noqa: ASYNC103 - no async code
        text = ""
    return text or type(exc).__name__


def _exact(text: str) -> str:
    """Return a plain `str`: a subclass may answer whatever it likes."""
    return text if type(text) is str else str.__str__(text)


def _word(value: object) -> str:
    return scrub(_exact(value)) if isinstance(value, str) else ""


def seconds(value: object) -> float | None:
    """Return a `retry_after` if it is finite and above 0, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) and number > 0 else None
