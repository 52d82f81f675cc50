"""Who may call, as a callers file says it?

`parse_callers` reads the whole of such a file or refuses it, with a closed code and a place, never with
a value: what stands there may be a key that was pasted by mistake. Nothing here opens a file or knows
the time. Next: `_callers`, which lets callers in; `_new_entry`, which writes entries.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

from sift_batch import Caller, CallerClass

from ._keys import read_digest
from ._toml import Place, TomlError, nearest, place_of, read_toml

KEYS_LIMIT: Final = 2
"""The key in use, and the one that takes its place."""

_NAMES: Final = frozenset({"name", "class", "keys", "workspace", "expires", "revoked"})
_WORKSPACE_LIMIT: Final = 1_024
_RFC_3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)

TEXTS: Final[Mapping[str, str]] = {
    "missing": "there is no such file; `sift-batch key new NAME` prints an entry for one",
    "not_a_file": "it must be a regular file, and no link",
    "owner": "it must belong to the user that the service runs as",
    "mode": "other users have rights on it; take them away with chmod 600",
    "too_large": "it is too large",
    "unreadable": "it can't be read",
    "encoding": "it must be UTF-8",
    "toml": "this is not valid TOML",
    "no_callers": "it has no [[caller]]; to shut the last caller out, write revoked = true in its entry",
    "unknown_name": "there is no such name",
    "missing_name": "an entry must have name, class and keys",
    "bad_caller": "callers are written as [[caller]] tables",
    "bad_name": "name must be a text of 1 to 1,024 characters without NUL",
    "bad_class": 'class must be "fleet" or "restricted"',
    "bad_keys": "keys must be a list of one or two digests as `sift-batch key new NAME` prints them",
    "bad_digest": 'a key is written as its digest, "sha256:" and 64 hexadecimal digits, never as it is',
    "too_many_keys": "a caller has at most two keys; take the oldest out",
    "bad_workspace": "workspace must be a text of at most 1,024 characters without NUL",
    "bad_expires": "expires must be a time with its zone, such as 2030-12-31T00:00:00Z",
    "bad_revoked": "revoked must be true or false",
    "duplicate_name": "two entries have this name",
    "duplicate_key": "this key is in the file twice",
    "bad_folder": "the data folder must be this user's, and writable by no other user; try chmod 700",
    "unmakeable": "the data folder, or the key in it, can't be made",
    "bad_key_file": "it holds no key; remove it, and the next start makes a new one",
}
"""Every way in which reading callers fails, and what to do about it."""


@dataclass(frozen=True, slots=True)
class CallersProblem:
    """Why callers could not be read: one of `TEXTS`' codes, and where, counted from 1 if it is known."""

    code: str
    line: int | None = None
    column: int | None = None
    nearest: str | None = None

    @property
    def text(self) -> str:
        """The place and what to do, without a path and without a value."""
        place = "" if self.line is None else f"line {self.line}"
        place += "" if self.column is None else f", column {self.column}"
        hint = "" if self.nearest is None else f"; did you mean {self.nearest}?"
        return f"{place}{': ' if place else ''}{TEXTS[self.code]}{hint}"


class CallersError(ValueError):
    """Callers that can't be read. `problem` says why; its text is this error's."""

    def __init__(self, problem: CallersProblem) -> None:
        super().__init__(problem.text)
        self.problem = problem


@dataclass(frozen=True, slots=True, repr=False)
class Entry:
    """One caller as its file has it. `keys` are the digests, the oldest first."""

    name: str
    caller_class: CallerClass
    keys: tuple[bytes, ...]
    workspace: str = ""
    expires: datetime | None = None
    revoked: bool = False

    @property
    def expires_at(self) -> float:
        """The second from which on this caller is shut out, since 1970; infinite if there is none."""
        return math.inf if self.expires is None else self.expires.timestamp()


def parse_callers(raw: bytes) -> tuple[Entry, ...]:
    """Return all callers of a file. Raises `CallersError` and nothing else, whatever the bytes."""
    try:
        text, tables = read_toml(raw)
    except TomlError as error:
        raise CallersError(CallersProblem(error.code, *error.place)) from None
    try:
        return _entries(tables)
    except _Wrong as wrong:
        code, path, near = wrong.code, wrong.path, wrong.near
    place = place_of(text, path) if path else Place()
    raise CallersError(CallersProblem(code, *place, nearest=near))


def is_caller_name(name: str) -> bool:
    """Return whether a text can name a caller."""
    try:
        Caller(name)
    except ValueError:
        return False
    return True


class _Wrong(Exception):
    """What is wrong, and the way to it through the tables."""

    def __init__(self, code: str, path: Sequence[str | int] = (), near: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.path = tuple(path)
        self.near = near


def _entries(tables: Mapping[str, object]) -> tuple[Entry, ...]:
    for name in tables:
        if name != "caller":
            raise _Wrong("unknown_name", [name], "[[caller]]")
    # A file that was emptied, or is being written, shuts nobody out. `caller = []` says it plainly.
    if "caller" not in tables:
        raise _Wrong("no_callers")
    rows = tables["caller"]
    if not isinstance(rows, list):
        raise _Wrong("bad_caller", ["caller"])
    entries: list[Entry] = []
    names: set[str] = set()
    digests: set[bytes] = set()
    for index, row in enumerate(rows):
        path = ("caller", index)
        if not isinstance(row, dict):
            raise _Wrong("bad_caller", path)
        entry = _entry(row, path)
        if entry.name in names:
            raise _Wrong("duplicate_name", [*path, "name"])
        for digest in entry.keys:
            if digest in digests:
                raise _Wrong("duplicate_key", [*path, "keys"])
            digests.add(digest)
        names.add(entry.name)
        entries.append(entry)
    return tuple(entries)


def _entry(row: Mapping[str, object], path: tuple[str | int, ...]) -> Entry:
    for name in row:
        if name not in _NAMES:
            raise _Wrong("unknown_name", [*path, name], nearest(name, _NAMES))
    if not {"name", "class", "keys"} <= row.keys():
        raise _Wrong("missing_name", path)
    revoked = row.get("revoked", False)
    if not isinstance(revoked, bool):
        raise _Wrong("bad_revoked", [*path, "revoked"])
    named = row["name"]
    if not isinstance(named, str) or not is_caller_name(named):
        raise _Wrong("bad_name", [*path, "name"])
    workspace = row.get("workspace", "")
    if not isinstance(workspace, str) or len(workspace) > _WORKSPACE_LIMIT or "\0" in workspace:
        raise _Wrong("bad_workspace", [*path, "workspace"])
    return Entry(
        name=named,
        caller_class=_class(row["class"], path),
        keys=_keys(row["keys"], path, none=revoked),
        workspace=workspace,
        expires=_time(row["expires"], path) if "expires" in row else None,
        revoked=revoked,
    )


def _class(value: object, path: tuple[str | int, ...]) -> CallerClass:
    # Compared as it is written: an enumeration would be asked with whatever stands there.
    for kind in CallerClass:
        if value == kind.value:
            return kind
    raise _Wrong("bad_class", [*path, "class"])


def _keys(value: object, path: tuple[str | int, ...], *, none: bool) -> tuple[bytes, ...]:
    place = [*path, "keys"]
    if not isinstance(value, list) or not (value or none):
        raise _Wrong("bad_keys", place)
    if len(value) > KEYS_LIMIT:
        raise _Wrong("too_many_keys", place)
    digests: list[bytes] = []
    for text in value:
        digest = read_digest(text) if isinstance(text, str) else None
        if digest is None:
            raise _Wrong("bad_digest", place)
        digests.append(digest)
    return tuple(digests)


def _time(value: object, path: tuple[str | int, ...]) -> datetime:
    """Return a time that has a zone. A day alone begins in UTC."""
    if isinstance(value, str) and _RFC_3339.fullmatch(value):
        try:
            value = datetime.fromisoformat(value.upper())
        except ValueError:
            value = None
    if isinstance(value, datetime):
        if value.tzinfo is not None:
            return value
    elif isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    raise _Wrong("bad_expires", [*path, "expires"])
