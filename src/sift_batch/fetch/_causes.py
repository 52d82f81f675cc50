"""What is underneath an error: what led to it, and was it this machine's own want?

Plain questions about exceptions, for the modules that turn those of others into ours. Nothing is raised,
and no text of an exception is looked at. Next: `_backend` and `_client`, which ask.
"""

import errno
from collections.abc import Iterator
from typing import Final

from ._errors import FetchError

_SPENT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield `error` and what led to it, hidden causes too: libraries raise `from None`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def is_spent(error: BaseException) -> bool:
    """Say whether this machine had no descriptor or memory left: that is not the site's failure."""
    return isinstance(error, OSError) and error.errno in _SPENT


def spent() -> FetchError:
    """Return the error of a fetch for which this machine had nothing left."""
    return FetchError("internal", "this machine has no connection to spare", hint="try again later")


def fault() -> FetchError:
    """Return the error of a fetch in which something of ours broke."""
    return FetchError("internal", "the fetch failed by a fault of its own", hint="try again later")
