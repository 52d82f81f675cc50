"""What does a TOML text say, and on which line does it say it?

`tomllib` tells the place of a syntax error and of nothing else. For a value that is well-formed but
wrong, the place is looked for afterwards and proven by parsing. Nothing here shows a value. Next:
`_caller_entries` and `_settings`, which say what the names mean.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

_POSITION: Final = re.compile(r"\(at line (\d+), column (\d+)\)\Z")
_NAME: Final = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_NAMES: Final = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_HEADER: Final = re.compile(rf"[ \t]*(\[\[?[ \t]*{_NAMES}[ \t]*\]\]?)")
_KEY: Final = re.compile(rf"[ \t]*({_NAMES})[ \t]*=")
_TRIES: Final = 4
_DOTS_LIMIT: Final = 1_000  # in one line: 250 networks, or a name that nobody means
_LONGEST_NAME: Final = 64


class Place(NamedTuple):
    """Where something stands in a text, counted from 1; None where it is not known."""

    line: int | None = None
    column: int | None = None


class TomlError(Exception):
    """A text that is no TOML: `code` is `encoding` or `toml`."""

    def __init__(self, code: str, place: Place) -> None:
        super().__init__(code)
        self.code = code
        self.place = place


def read_toml(raw: bytes) -> tuple[str, dict[str, object]]:
    """Return the text and what it says. Raises `TomlError` and nothing else, whatever the bytes."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        place = Place(before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        raise TomlError("encoding", place) from None
    # The time that `tomllib` takes for a name grows with the square of its parts.
    for number, line in enumerate(text.split("\n"), 1):
        if line.count(".") > _DOTS_LIMIT and not line.lstrip().startswith("#"):
            raise TomlError("toml", Place(number))
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _place_of(error, text)
    except (ValueError, OverflowError, RecursionError):
        # A number of five thousand digits, arrays in arrays in arrays: `tomllib` lets these through.
        place = Place()
    # Raised out here, so that no error of tomllib's, which may hold the text, hangs on to ours.
    raise TomlError("toml", place)


def place_of(text: str, path: Sequence[str | int]) -> Place:
    """Return where a text gives the value at `path`, or else the nearest table round it.

    A path has names, and indices for `[[…]]` tables. A value inside an inline table has the place of
    that table's name.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    known, start = Place(), 0
    for depth in range(1, len(path) + 1):
        for index, column, statement in _candidates(lines, path[:depth], start):
            before = "\n".join(lines[:index])
            # Nothing was there, and with this one statement it is: so the statement is what gave it.
            if _holds(f"{before}\n{statement}\n", path[:depth]):
                known, start = Place(index + 1, column + 1), index
                break
    return known


def similar(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that looks most like `name`, None if none looks much like it."""
    found = difflib.get_close_matches(name[:_LONGEST_NAME].lower(), sorted(known), n=1)
    return found[0] if found else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that looks most like `name`, however little that may be."""
    names = sorted(known)
    found = difflib.get_close_matches(name[:_LONGEST_NAME].lower(), names, n=1, cutoff=0.0)
    return found[0] if found else names[0]


def _candidates(
    lines: Sequence[str], path: Sequence[str | int], start: int
) -> Iterator[tuple[int, int, str]]:
    """Give lines that might be the one: its index, the column, and what proves it. A few at most."""
    last = path[-1]
    name = str(path[-2]) if isinstance(last, int) else last
    skip = last if isinstance(last, int) else 0
    tries = 0
    for index in range(start, len(lines)):
        line = lines[index]
        if name not in line:
            continue
        header, key = _HEADER.match(line), _KEY.match(line)
        if header is None and (key is None or isinstance(last, int)):
            continue
        if skip:
            # The table of index 3 can't begin before the fourth header.
            skip -= 1
            continue
        if tries == _TRIES:
            return
        tries += 1
        if header is not None:
            yield index, header.start(1), header[1]
        elif key is not None:
            yield index, key.start(1), f"{key[1]} = 0"


def _holds(text: str, path: Sequence[str | int]) -> bool:
    try:
        value: Any = tomllib.loads(text)
        for step in path:
            value = value[step]
    except (ValueError, OverflowError, RecursionError, LookupError, TypeError):
        return False
    return True


def _place_of(error: tomllib.TOMLDecodeError, text: str) -> Place:
    message = error.args[0] if error.args else ""
    found = _POSITION.search(message) if isinstance(message, str) else None
    if found is not None:
        return Place(int(found[1]), int(found[2]))
    return Place(text.count("\n") + 1)  # "at end of document"
