"""How are a thousand followers of one job told what one is told, for the price of one?

Whoever needs a text first makes it; who needs the same at that time waits and gets it. The last text of a
job is kept while somebody follows it. What it says is the routes' business.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager

import trio

from sift_batch import Caller


class Bulletin:
    """The last text about one job."""

    __slots__ = ("_key", "_text", "_turn", "readers")

    def __init__(self) -> None:
        self.readers = 0
        self._turn = trio.Lock()
        self._key: Hashable = None
        self._text = b""

    async def text(self, key: Hashable, make: Callable[[], Awaitable[bytes]]) -> bytes:
        """Return what `make` gives, or gave for the same key last.

        Raises what `make` raises. Then, and after a cancel, the next one tries.
        """
        async with self._turn:
            if self._key != key:
                self._key = None
                self._text = await make()
                self._key = key
            return self._text


class Bulletins:
    """The bulletins of the jobs that somebody follows."""

    def __init__(self) -> None:
        self._bulletins: dict[tuple[str, str], Bulletin] = {}

    def __len__(self) -> int:
        return len(self._bulletins)

    @contextmanager
    def read(self, caller: Caller, job_id: str) -> Iterator[Bulletin]:
        """Share the bulletin of a caller's job with all who read it now."""
        bulletin = self._bulletins.setdefault((caller.name, job_id), Bulletin())
        bulletin.readers += 1
        try:
            yield bulletin
        finally:
            bulletin.readers -= 1
            if not bulletin.readers:
                del self._bulletins[caller.name, job_id]
