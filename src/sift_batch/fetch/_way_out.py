"""What may come out of a call? One error of ours, whatever was raised inside, and nothing that hangs on it.

What a library, a resolver of the application's, or a nursery somewhere below raises must not reach the
caller as it is: its text could hold the target. Nor may our own error lead back to it, or to the page
that it was raised about. `_fetcher` has this round every call.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from .._model.errors import RetryLater
from .._passing import leaves_of, what_passes
from ._causes import fault
from ._errors import FetchError

T = TypeVar("T")


async def with_one_error(call: Callable[[], Awaitable[T]]) -> T:
    """Return what `call` returns; what it raises comes out bare.

    `FetchError`, `RetryLater`, `KeyboardInterrupt` and `SystemExit` pass, also out of a group, and so
    does a `Cancelled` of a scope round here; everything else becomes `FetchError` `internal`. An error
    of ours comes out alone: without a cause, a context, or a traceback into what was fetched.
    """
    try:
        return await call()
    except GeneratorExit:
        raise  # nobody awaits this coroutine any more
    except BaseException as exc:  # noqa: ASYNC103 - what must pass is raised
        passes = what_passes(exc)
        if passes is exc:
            raise
        found = passes or alone(_what_counts(exc))
    try:
        # Out here it gets no context again: what was caught, and the page in its frames, is let go.
        raise found
    finally:
        del found


def alone(error: BaseException) -> BaseException:
    """Return the error without what hangs on it: its cause, its context and its traceback."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _what_counts(exc: BaseException) -> BaseException:
    leaves = list(leaves_of(exc))
    for kind in (FetchError, RetryLater):
        for leaf in leaves:
            if isinstance(leaf, kind):
                return leaf
    return fault()
