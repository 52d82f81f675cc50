"""What may leave a request? What ends the program, and a cancel. All else ends where the request ends.

The engine contains by the same rules. It decides; `_exchange` and `_connection` act on it.
"""

import math
from collections.abc import Iterator
from typing import Final

import trio

_ENDS_ALL: Final[tuple[type[BaseException], ...]] = (KeyboardInterrupt, SystemExit)


def passing(error: BaseException) -> BaseException | None:
    """What of `error` has to be raised again, `error` itself if that is all. None: all of it ends here.

    Of a group of several kinds, what ends the program goes on alone, before a cancel; and a cancel before
    a failure. A `Cancelled` counts only while a scope round here is cancelled: one that was kept from
    another scope is a failure like any other.
    """
    if isinstance(error, GeneratorExit):
        return error  # the task itself is put away, and can't go on
    found = list(leaves(error))
    kinds = [_ENDS_ALL]
    if trio.current_effective_deadline() == -math.inf:
        kinds.append((trio.Cancelled,))
    for kind in kinds:
        passed = [leaf for leaf in found if isinstance(leaf, kind)]
        if passed:
            return error if len(passed) == len(found) else passed[0]
    return None


def alone(group: BaseExceptionGroup) -> BaseException | None:
    """The one error that nurseries have put into groups, None if there are several."""
    found = list(leaves(group))
    return found[0] if len(found) == 1 else None


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, in groups of groups, or the one error itself, in order."""
    # A stack and no recursion: groups can be nested deeper than Python can call.
    stack = [error]
    while stack:
        item = stack.pop()
        if isinstance(item, BaseExceptionGroup):
            stack.extend(reversed(item.exceptions))
        else:
            yield item
