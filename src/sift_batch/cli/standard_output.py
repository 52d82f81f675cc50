"""How does a short answer reach standard output, for a command that runs no loop?

Past Python's own buffers, as `output` does it for those that do.
"""

import os
import sys

from .output import ReaderLeft, cant_write, trouble_with
from .plan import Refused


def write_out(text: str) -> bool:
    """Write `text` to standard output as it is; False if nobody reads it any more, which is no error.

    Raises `Refused` when it can't be written.
    """
    if sys.stdout is None:
        raise Refused("standard output is closed; open it, or send it to a file", 3)
    try:
        sys.stdout.flush()
        descriptor = sys.stdout.fileno()
    except OSError as error:
        raise Refused(cant_write(error), 3) from None
    left = memoryview(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
    try:
        while left:
            left = left[os.write(descriptor, left) :]
    except OSError as error:
        trouble = trouble_with(error, is_terminal=os.isatty(descriptor))
        if isinstance(trouble, ReaderLeft):
            return False
        raise trouble from None
    return True
