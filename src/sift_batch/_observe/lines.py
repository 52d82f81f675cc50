"""Is this finished line fit to leave the process?

A line is one JSON object in printable ASCII. What is put in was clean already; the tripwire looks at
the finished line once more, and one that looks like it holds an address is not written. It must never fire:
it exists to turn a mistake elsewhere into an alarm. `seal` writes the lines; nothing here does.
"""

import json
import re
import time
from collections.abc import Mapping
from typing import Final

LINE_LIMIT: Final = 16 * 2**10
_ALARM: Final = re.compile(
    r":\\*/\\*/"  # scheme://, also with escaped slashes
    r"|[0-9]{1,3}(?:\.[0-9]{1,3}){3}"  # an IPv4 address
    r"|xn--"  # an encoded international name
    r"|%[0-9a-f]{2}"  # percent-encoding, single or double
    r"|@"  # a name in front of a host
    r"|\\(?!\")"  # an escape: a control, a non-ASCII character or a backslash of the value's
    r"|[^ -~]",  # what the JSON writer should have escaped
    re.IGNORECASE,
)
_encode: Final = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode


class TripwireError(AssertionError):
    """A finished line looked like it holds an address, and the tripwire was told to raise."""


class Tripwire:
    """Counts the lines that were held back. With `raising`, as in tests, each raises `TripwireError`."""

    def __init__(self) -> None:
        self.count = 0
        self.raising = False

    def fire(self) -> None:
        """Count one line that was held back."""
        self.count += 1
        if self.raising:
            raise TripwireError("a log line looked like it holds an address and was held back")


tripwire: Final = Tripwire()
"""The process's one tripwire, read by whoever exports its count as a metric."""


def finished_line(level: str, fields: Mapping[str, object]) -> str:
    """Return one JSON line without its line end, with the time and level in front.

    What JSON can't hold, is over 16 KiB or trips the wire comes out as a constant `log.tripwire` event.
    """
    head = {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "level": level}
    try:
        line = _encode({**head, **fields})
    except (TypeError, ValueError, RecursionError):
        line = ""
    if line and len(line) <= LINE_LIMIT and not _ALARM.search(line):
        return line
    tripwire.fire()
    return _encode({**head, "level": "critical", "event": "log.tripwire"})
