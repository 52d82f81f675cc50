"""What may come out of a call? One error of ours, whatever was raised inside.

What a library, a resolver of the application's, or a nursery somewhere below raises must not reach the
caller as it is: its text could hold the target. `_fetcher` has this round every call.
"""

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import trio

from .._model.errors import RetryLater
from ._errors import FetchError

T = TypeVar("T")


async def with_one_error(call: Callable[[], Awaitable[T]]) -> T:
    """Return what `call` returns; what it raises comes out bare.

    `FetchError`, `RetryLater`, `Cancelled`, `KeyboardInterrupt` and `SystemExit` pass, also out of a
    group; everything else becomes `FetchError` `internal`.
    """
    try:
        return await call()
    except (FetchError, RetryLater):
        raise
    except (Exception, BaseExceptionGroup) as exc:
        found = _what_counts(list(_leaves(exc)))
    try:
        # Out here it has no context: what was caught, and the page in its frames, is let go.
        raise found from None
    finally:
        del found


def _what_counts(leaves: list[BaseException]) -> BaseException:
    for kinds in ((KeyboardInterrupt, SystemExit), trio.Cancelled, FetchError, RetryLater):
        for leaf in leaves:
            if isinstance(leaf, kinds):
                return leaf
    return FetchError("internal", "the fetch failed by a fault of its own", hint="try again later")


def _leaves(exc: BaseException) -> Iterator[BaseException]:
    # A stack and no recursion: groups can be nested deeper than Python can call.
    stack = [exc]
    while stack:
        item = stack.pop()
        if isinstance(item, BaseExceptionGroup):
            stack.extend(reversed(item.exceptions))
        else:
            yield item
