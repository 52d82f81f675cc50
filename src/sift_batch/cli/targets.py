"""Which targets did the command line and its file name?

Reads URLs and lines, names every bad one, and keeps the good ones in a spool, so that a file of a
million lines takes disk and not memory. It fetches nothing. Next: `spread`, which makes jobs of them.
"""

import json
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import IO, Any, Final

from .._model.values import NO_OPTIONS, Options, Target
from ..fetch import FetchError
from .hints import hint_with_flag

_LINE_LIMIT: Final = 1_048_576
_DEPTH_LIMIT: Final = 100
_SPOOL_IN_MEMORY: Final = 4 * 2**20
_OPTION_NAMES: Final = frozenset(item.name for item in fields(Options))
_BOM: Final = b"\xef\xbb\xbf"
_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*:")
# In the path alone: in a query a list of URLs is nothing unusual.
_TWO_URLS: Final = re.compile("[^?#]*,https?://", re.IGNORECASE)

Check = Callable[[Target], object]
"""Raises `FetchError` for a target that can't be fetched as it is."""
Complain = Callable[[str, int, str], object]
"""Told of each bad input: "argument" or "line", its number from 1, and what is wrong with it."""

# The types of a line's options, by name; those that are not here are texts.
_WANTED: Final = {"context": "true, false or null", "recover": "true or false"}
_LONGEST_NAME: Final = 40


class BadLine(Exception):
    """An input that is no target. `reason` says why and never quotes a URL."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, repr=False)
class Item:
    """One target of the input: its place, and from a file its line and what else that line said."""

    idx: int
    target: Target
    line: int | None = None
    extra: Mapping[str, Any] | None = None


def place_of(item: Item) -> str:
    """Return where a target stands in the input, for messages: they never name the target itself."""
    return f"URL argument {item.idx + 1}" if item.line is None else f"line {item.line}"


class Targets:
    """The targets of one command, in input order; may be iterated again and again.

    Use it as a context manager: the spool goes with it.
    """

    def __init__(self) -> None:
        self._spool: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_SPOOL_IN_MEMORY)  # noqa: SIM115
        self.count = 0
        self.has_programs = False
        self.doubtful: list[str] = []  # places of the first few that may be two in one

    def __enter__(self) -> "Targets":
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def __len__(self) -> int:
        return self.count

    def add(self, target: Target, line: int | None, extra: Mapping[str, Any] | None) -> None:
        """Append one target. Raises `OSError` when the spool can't be written."""
        if _TWO_URLS.match(target.url) and len(self.doubtful) < 10:
            self.doubtful.append(place_of(Item(self.count, target, line)))
        options = target.options
        self.has_programs = self.has_programs or bool(options.jq)
        given = (
            {name: getattr(options, name) for name in _OPTION_NAMES} if options is not NO_OPTIONS else None
        )
        self._spool.write(json.dumps([target.url, given, line, extra]).encode() + b"\n")
        self.count += 1

    def __iter__(self) -> Iterator[Item]:
        place = 0
        for idx in range(self.count):
            # Iterators don't share a position: each one seeks to its own.
            self._spool.seek(place)
            record = self._spool.readline()
            place += len(record)
            url, given, line, extra = json.loads(record)
            options = NO_OPTIONS if given is None else Options(**given)
            yield Item(idx, Target(url, options), line, extra)


def read_targets(
    targets: Targets,
    urls: Iterable[str],
    file: IO[bytes] | None,
    defaults: Mapping[str, Any],
    check: Check,
    complain: Complain,
) -> int:
    """Add the targets of `urls` and then of `file` to `targets`; return how many inputs were bad.

    `defaults` are options for what a line's own leave out; `check` looks at each target. Raises
    `OSError` when the file can't be read or the spool can't be written.
    """
    bad = 0
    options = Options(**defaults) if defaults else NO_OPTIONS
    for number, url in enumerate(urls, 1):
        try:
            targets.add(_target(_no_file(argument_text(url)), options, check), None, None)
        except BadLine as error:
            complain("argument", number, error.reason)
            bad += 1
    for number, raw in _lines(file) if file is not None else ():
        try:
            parsed = parse_line(raw, defaults, check)
        except BadLine as error:
            complain("line", number, error.reason)
            bad += 1
            continue
        if parsed is not None:
            targets.add(parsed[0], number, parsed[1])
    return bad


def _no_file(url: str) -> str:
    """Return an argument. Raises `BadLine` for one that is no URL, and a file that may well hold some."""
    if not _SCHEME.match(url) and os.path.isfile(url):  # noqa: PTH113  # Path refuses a NUL
        raise BadLine(f"this is no URL but a file; did you mean -f {url}?")
    return url


def argument_text(argument: str) -> str:
    """Return an argument as it was typed: where the locale has ASCII only, its bytes come as they are."""
    try:
        return os.fsencode(argument).decode()
    except UnicodeError:
        return argument


def parse_line(
    raw: bytes | None, defaults: Mapping[str, Any], check: Check
) -> tuple[Target, dict[str, Any] | None] | None:
    """Return the target of one line and its other keys; None for a blank line or a comment.

    Raises `BadLine`; `raw` is None for a line that was too long to read.
    """
    if raw is None:
        raise BadLine(f"the line is longer than {_LINE_LIMIT:,} bytes")
    if _is_comment(raw):
        return None
    try:
        text = raw.decode().strip(" \t\r\n")
    except UnicodeDecodeError:
        raise BadLine("the line is no UTF-8; save the file as UTF-8") from None
    if not text:
        return None
    if text[0] in '["':
        raise BadLine("a line is a URL or a JSON object")
    if not text.startswith("{"):
        return _target(text, Options(**defaults) if defaults else NO_OPTIONS, check), None
    entry = _parse_json(text)
    url = entry.pop("url", None)
    if not isinstance(url, str):
        raise BadLine('the JSON object has no "url" that is a string')
    own = entry.pop("options", {})
    if not isinstance(own, dict):
        raise BadLine('"options" is no JSON object')
    _check_own(own)
    if misplaced := sorted(entry.keys() & _OPTION_NAMES):
        names = " and ".join(f'"{name}"' for name in misplaced)
        raise BadLine(f'put {names} into "options"')
    merged = {**defaults, **own}
    options = Options(**merged) if merged else NO_OPTIONS
    return _target(url, options, check), entry or None


def _is_comment(raw: bytes) -> bool:
    # Of the bytes: whatever else a comment holds, it is skipped.
    return raw.lstrip(b" \t\r\n").startswith(b"#")


def _check_own(own: Mapping[str, Any]) -> None:
    """Raise `BadLine` unless each of a line's own options is known and of its type."""
    for name, value in own.items():
        if name not in _OPTION_NAMES:
            # The name itself is not repeated: it may be anything. The nearest known one is ours.
            short = name.lower() if len(name) <= _LONGEST_NAME else ""
            near = get_close_matches(short, sorted(_OPTION_NAMES), n=1)
            meant = f'; did you mean "{near[0]}"?' if near else ""
            known = ", ".join(sorted(_OPTION_NAMES))
            raise BadLine(f'"options" holds an unknown name{meant or ";"} the known ones are {known}')
        try:
            Options(**{name: value})
        except TypeError:
            raise BadLine(f'"{name}" in "options" must be {_WANTED.get(name, "a string")}') from None


def _target(url: str, options: Options, check: Check) -> Target:
    if options.mode == "markdown":
        # The long name of the default: both are the same target, so that one is carried over as the other.
        options = replace(options, mode="")
    target = Target(url, options)
    try:
        check(target)
    except FetchError as error:
        raise BadLine(reason_of(error)) from None
    return target


def reason_of(error: FetchError) -> str:
    """Return what is wrong and what to do, in one line."""
    hint = hint_with_flag(error.hint)
    return f"{error.message}; {hint}" if hint else error.message


def _lines(file: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    number = 0
    while raw := file.readline(_LINE_LIMIT + 1):
        number += 1
        if number == 1:
            raw = raw.removeprefix(_BOM)
        if len(raw) <= _LINE_LIMIT:
            yield number, raw
            continue
        comment = _is_comment(raw)
        while raw and not raw.endswith(b"\n"):
            raw = file.readline(_LINE_LIMIT)
        yield number, b"#" if comment else None


def _parse_json(text: str) -> dict[str, Any]:
    try:
        entry = json.loads(
            text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite_float
        )
        _check_depth(entry)
        # Only text that can be written again may be copied to the output.
        json.dumps(entry, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise BadLine(f"the line is no valid JSON (at character {error.pos + 1})") from None
    except RecursionError:
        raise BadLine("the JSON is nested too deeply") from None
    except UnicodeEncodeError:
        raise BadLine("the JSON holds half of a surrogate pair") from None
    except ValueError:
        # Python makes no number of more than some 4,300 digits.
        raise BadLine("the JSON holds a number with too many digits") from None
    if not isinstance(entry, dict):
        raise BadLine("a line is a URL or a JSON object")
    return entry


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) != len(pairs):
        raise BadLine("the JSON object has the same key twice")
    return entry


def _refuse_constant(_name: str) -> float:
    raise BadLine("the JSON holds NaN or Infinity")


def _finite_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise BadLine("the JSON holds a number that is too large")
    return value


def _check_depth(value: object) -> None:
    level = [value]
    for _ in range(_DEPTH_LIMIT):
        level = [
            child
            for parent in level
            for child in (
                parent.values() if isinstance(parent, dict) else parent if isinstance(parent, list) else ()
            )
        ]
        if not level:
            return
    raise BadLine("the JSON is nested too deeply")
