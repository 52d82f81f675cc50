"""Where does the answer to a command go? To standard output, whole or not at all, whatever reads it.

Next: `escape`, for text that is somebody else's.
"""

import errno
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .escape import visible
from .lines import Sink
from .plan import Refused


class ReaderLeft(Exception):
    """Nobody reads standard output any more: there is nothing to say, and nothing went wrong."""


class Output:
    """Standard output. `make_way` is called before anything goes to a terminal.

    Raises `Refused` when it is made, if standard output is closed. Each call writes all it is given past
    Python's own buffers, and raises `ReaderLeft` when nobody reads, `Refused` when it can't be written.
    """

    def __init__(self, make_way: Callable[[], None]) -> None:
        if sys.stdout is None:
            raise Refused("standard output is closed; open it, or send it to a file", 3)
        self._encoding = sys.stdout.encoding or "utf-8"
        try:
            sys.stdout.flush()
            self._sink = Sink(sys.stdout.fileno(), make_way=make_way)
        except OSError as error:
            raise Refused(cant_write(error), 3) from None

    async def lines(self, lines: Sequence[str]) -> None:
        """Write lines of text, in which nothing is left that a terminal could obey."""
        await self.text("".join(f"{visible(line)}\n" for line in lines))

    async def text(self, text: str) -> None:
        """Write text as it is; what the charset has not is written out."""
        await self.data(text.encode(self._encoding, "backslashreplace"))

    async def value(self, value: Any) -> None:
        """Write one JSON value on a line, in ASCII."""
        await self.text(f"{json.dumps(value)}\n")

    async def data(self, data: bytes) -> None:
        """Write bytes as they are."""
        try:
            await self._sink.write(data)
        except OSError as error:
            raise trouble_with(error, is_terminal=self._sink.is_terminal) from None


def trouble_with(error: OSError, *, is_terminal: bool) -> ReaderLeft | Refused:
    """Return what an error of writing means."""
    if error.errno == errno.EPIPE or (error.errno == errno.EIO and is_terminal):
        return ReaderLeft()
    return Refused(cant_write(error), 3)


def cant_write(error: OSError) -> str:
    """Say why the output can't be written, and what to do."""
    reason = os.strerror(error.errno) if error.errno else "unknown reason"
    return f"the output can't be written ({reason}); make room or choose another place, and run it again"
