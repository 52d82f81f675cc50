"""How does a short answer reach standard output, so that it is noticed when it does not?

Past Python's own buffers: a disk that is full says so here, and not when the process ends. Lines of
results are `lines`' business.
"""

import os
import sys

from .plan import Refused


def write_out(text: str) -> None:
    """Write `text` to standard output.

    Raises `BrokenPipeError` when nobody reads it any more, which ends the command without a word, and
    `Refused` when it can't be written.
    """
    if sys.stdout is None:
        raise Refused("standard output is closed; open it, or redirect it to a file", 3)
    try:
        sys.stdout.flush()
        left = memoryview(text.encode("utf-8", "backslashreplace"))
        while left:
            left = left[os.write(sys.stdout.fileno(), left) :]
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
        raise Refused(f"standard output can't be written ({reason})", 3) from None
