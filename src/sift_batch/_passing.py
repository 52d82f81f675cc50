"""What must never be contained, wherever it comes from?

A `KeyboardInterrupt` and a `SystemExit` end the program; a `Cancelled` belongs to a scope round here.
Code of somebody else's (a fetch, a `ready`, a store, a look-up) may raise them bare or deep inside a
group, since a nursery of its own wraps them. Next: `_engine/attempt.py` and `fetch/_way_out.py`, which
contain the rest.
"""

import math
from collections.abc import Iterator

import trio


def leaves_of(exc: BaseException) -> Iterator[BaseException]:
    """Yield what `exc` is made of, in order, if it is a group, else `exc` itself."""
    # A stack and no recursion: groups can be nested deeper than Python can call.
    stack = [exc]
    while stack:
        item = stack.pop()
        if isinstance(item, BaseExceptionGroup):
            stack.extend(reversed(item.exceptions))
        else:
            yield item


def what_passes(exc: BaseException) -> BaseException | None:
    """Return the leaf of `exc` that must be raised bare, or None if all of it can be contained.

    A `Cancelled` counts only while a scope round here is cancelled: that scope takes it, and nothing is
    left over. One that was kept from another scope is an error like any other.
    """
    leaves = list(leaves_of(exc))
    for leaf in leaves:
        if isinstance(leaf, KeyboardInterrupt | SystemExit):
            return leaf
    cancelled = next((leaf for leaf in leaves if isinstance(leaf, trio.Cancelled)), None)
    if cancelled is not None and trio.current_effective_deadline() == -math.inf:
        return cancelled
    return None
