"""What does `sift-batch key new NAME` print?

An entry for the callers file, and the key itself, which is kept nowhere. Nothing here writes a file:
the operator puts the entry in. Next: `_caller_entries`, which reads it.
"""

from dataclasses import dataclass
from pathlib import Path

from sift_batch import CallerClass

from ._caller_entries import KEYS_LIMIT, Entry, is_caller_name, parse_callers
from ._callers import read_callers_file
from ._keys import digest_of, digest_text, new_key


@dataclass(frozen=True, slots=True, repr=False)
class NewKey:
    """A key that was made. `key` goes to the caller and is shown once; `entry` is TOML for the file.

    `known`: the file has this caller already, and the entry takes the place of the one there.
    `dropped`: it had two keys, and the older one is not in the entry any more. `revoked`: the entry
    says that the caller is shut out, new key or not.
    """

    key: str
    entry: str
    known: bool = False
    dropped: bool = False
    revoked: bool = False


def make_key(name: str, *, caller_class: CallerClass | None = None, callers: Path | None = None) -> NewKey:
    """Make a key for a caller and the entry that lets it in.

    With a `callers` file that has the name: its entry with the new key behind the older one, all else as
    it is. Else a new entry, of the class fleet if none is named.

    Raises `ValueError` for a name that can name no caller, and for another `caller_class` than the
    file has; `CallersError` for a file that can't be read.
    """
    if not is_caller_name(name):
        raise ValueError("a caller's name must have 1 to 1,024 characters, no NUL, no surrogates")
    known = None if callers is None else _find(callers, name)
    key = new_key()
    digest = digest_of(key.encode())
    if known is None:
        entry = Entry(name=name, caller_class=caller_class or CallerClass.FLEET, keys=(digest,))
        return NewKey(key, entry_text(entry))
    if caller_class not in (None, known.caller_class):
        raise ValueError("the callers file has this caller in the other class; change it there first")
    kept = known.keys[-(KEYS_LIMIT - 1) :]
    entry = Entry(
        name=name,
        caller_class=known.caller_class,
        keys=(*kept, digest),
        workspace=known.workspace,
        expires=known.expires,
        revoked=known.revoked,
    )
    return NewKey(
        key, entry_text(entry), known=True, dropped=len(kept) < len(known.keys), revoked=known.revoked
    )


def entry_text(entry: Entry) -> str:
    """Return an entry as a callers file writes it."""
    keys = ", ".join(f'"{digest_text(digest)}"' for digest in entry.keys)
    lines = [
        "[[caller]]",
        f"name = {_quoted(entry.name)}",
        f'class = "{entry.caller_class.value}"',
        f"keys = [{keys}]",
    ]
    if entry.workspace:
        lines.append(f"workspace = {_quoted(entry.workspace)}")
    if entry.expires is not None:
        lines.append(f"expires = {entry.expires.isoformat()}")
    if entry.revoked:
        lines.append("revoked = true")
    return "\n".join(lines) + "\n"


def _find(callers: Path, name: str) -> Entry | None:
    entries = parse_callers(read_callers_file(callers)[0])
    return next((entry for entry in entries if entry.name == name), None)


def _quoted(text: str) -> str:
    """Return a TOML string of one line. What a terminal would act on is written as its number."""
    return '"' + "".join(_written(char) for char in text) + '"'


def _written(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char.isprintable():
        return char
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x1_0000 else f"\\U{number:08x}"
