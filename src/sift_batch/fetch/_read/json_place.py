"""Where in a JSON document does something lie? Line and column, for messages about it.

Asked only once something is wrong; it reads the document again, with Python's own parser. `jq_program`
says what is wrong.
"""

import json
import re
from typing import Final, NamedTuple

_BLANK: Final = re.compile(r"[ \t\r\n]*")
# Numbers stay as they are written: no limit of digits, no infinities.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str)


class Place(NamedTuple):
    """A line and a column, both from 1; columns count characters."""

    line: int
    column: int


def place_of_fault(source: str) -> Place | None:
    """Return where `source` stops being JSON values; None if it does not, or is too deep to tell."""
    start = _skip(source, 1 if source.startswith("\ufeff") else 0)
    while start < len(source):
        try:
            _, start = _DECODER.raw_decode(source, start)
        except json.JSONDecodeError as error:
            return _place(source, error.pos)
        except RecursionError:
            return None
        start = _skip(source, start)
    return None


def place_of_value(source: str, number: int) -> Place | None:
    """Return where value `number` (from 0) of `source` begins; None if it can't be told."""
    start = _skip(source, 1 if source.startswith("\ufeff") else 0)
    try:
        for _ in range(number):
            _, start = _DECODER.raw_decode(source, start)
            start = _skip(source, start)
    except (json.JSONDecodeError, RecursionError):
        return None
    return _place(source, start)


def _skip(source: str, start: int) -> int:
    blank = _BLANK.match(source, start)
    return blank.end() if blank else start


def _place(source: str, position: int) -> Place:
    position = min(position, len(source))
    return Place(source.count("\n", 0, position) + 1, position - source.rfind("\n", 0, position))
