"""What may leave a request? A cancel and Ctrl-C. Whatever else is raised ends where the request ends.

It decides; `_exchange` and `_connection` act on it.
"""

from collections.abc import Iterator

import trio

_PASSING = (trio.Cancelled, KeyboardInterrupt, GeneratorExit)


def passing(error: BaseException) -> BaseException | None:
    """The part of `error` that has to be raised again: a cancel, Ctrl-C. None when all of it ends here.

    A group of a cancel and a failure is both: the failure is left out, the cancel goes on to its scope.
    """
    if all(isinstance(leaf, _PASSING) for leaf in leaves(error)):
        return error
    return error.subgroup(_PASSING) if isinstance(error, BaseExceptionGroup) else None


def alone(group: BaseExceptionGroup) -> BaseException | None:
    """The one error that nurseries have put into groups, None if there are several."""
    found = list(leaves(group))
    return found[0] if len(found) == 1 else None


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The errors in a group, in groups of groups, or the one error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
