"""How are sizes and durations written, and read again?

`64MiB` is bytes and `24h` seconds; a number alone is bytes or seconds. What is written here reads as
the same number. Next: `_fields`, which says which setting is of which kind.
"""

import math
import re
from typing import Final

_SIZES: Final = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
# The digits are bounded: reading a number takes time that grows with the square of their count.
_WRITTEN: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,24})?)(?: ?([A-Za-z]{1,3}))?", re.ASCII)
_WHOLE: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


def read_whole(text: str) -> int | None:
    """Return a whole number of at least 0; None if the text is none."""
    return int(text) if _WHOLE.fullmatch(text) else None


def read_size(text: str) -> int | None:
    """Return bytes, from `64MiB`, `1.5 GiB`, `10kB` or `512`; None if it is no size in whole bytes."""
    found = _WRITTEN.fullmatch(text)
    if found is None or (found[2] or "B") not in _SIZES:
        return None
    unit = _SIZES[found[2] or "B"]
    # In whole numbers: a float would lose bytes of a large size.
    whole, _, part = found[1].partition(".")
    size, rest = divmod(int(whole + part) * unit, 10 ** len(part))
    return None if rest else size


def read_duration(text: str) -> float | None:
    """Return seconds, from `24h`, `1.5m`, `250ms`, `30` or `inf`; None if it is no duration."""
    if text == "inf":
        return math.inf
    found = _WRITTEN.fullmatch(text)
    if found is None or (found[2] or "s") not in _SECONDS:
        return None
    if found[2] == "ms":
        return float(found[1]) / 1_000  # the nearest float, which a product with 0.001 is not
    return float(found[1]) * _SECONDS[found[2] or "s"]


def size_text(size: int) -> str:
    """Return bytes as `read_size` reads them, in the largest binary unit that fits exactly."""
    for name in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % _SIZES[name] == 0:
            return f"{size // _SIZES[name]}{name}"
    return str(size)


def duration_text(seconds: float) -> str:
    """Return seconds as `read_duration` reads them, in the largest unit up to hours that fits exactly."""
    if math.isinf(seconds):
        return "inf"
    if seconds != int(seconds):
        return f"{seconds:.17f}".rstrip("0") + "s" if seconds < 1e-4 else f"{seconds!r}s"
    whole = int(seconds)
    for name, unit in (("h", 3_600), ("m", 60)):
        if whole and whole % unit == 0:
            return f"{whole // unit}{name}"
    return f"{whole}s"
