"""What does `sift-batch key new` do?

Writes the entry to standard output and then the key to standard error: never the other way round, and
never both to one file. A key without its entry opens no door, and an entry without its key is a door that
nobody can open; so when the entry can't be written, the key is thrown away, and that is said.
"""

import errno
import json
import os
import sys
from pathlib import Path

from sift_batch import CallerClass

from ..service._caller_entries import CallersError
from ..service._new_entry import NewKey, make_key
from .output import cant_write
from .plan import Refused
from .process import seal_process
from .screen import Screen
from .standard_output import write_out
from .targets import argument_text


def new_key_command(
    name: str, *, caller_class: str | None, callers: Path | None, quiet: bool, as_json: bool
) -> int:
    """Run the command and return its exit code."""
    seal_process()
    name = argument_text(name)
    screen = Screen(quiet=quiet, as_json=as_json)
    try:
        _refuse_streams()
        made = _make(name, caller_class, callers)
        _give_entry(made, name, as_json=as_json)
        _give_notes(made, callers, screen)
        _give_key(made, as_json=as_json)
    except Refused as refused:
        screen.error(refused.reason)
        return refused.exit_code
    if screen.is_terminal and not as_json:
        where = f"in the place of the one in {callers}" if made.known else "into the callers file"
        screen.note(f"the key is shown this once; put the entry {where}, and give the key to the caller")
    return 0


def _refuse_streams() -> None:
    """Refuse to let the key into the file that gets the entry, or away into nothing."""
    if sys.stderr is None:
        raise Refused("standard error is closed, and the key has nowhere to go", 2)
    try:
        out, err = (os.fstat(stream.fileno()) for stream in (sys.stdout, sys.stderr))
        same = (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino) and not sys.stderr.isatty()
    except (OSError, ValueError, AttributeError):
        return  # a closed standard output is found out when it is written
    if same:
        raise Refused(
            "standard output and standard error are the same file, and the key must not stand beside its "
            "entry; leave 2>&1 away",
            2,
        )


def _make(name: str, caller_class: str | None, callers: Path | None) -> NewKey:
    try:
        chosen = None if caller_class is None else CallerClass(caller_class)
        return make_key(name, caller_class=chosen, callers=callers)
    except CallersError as error:
        raise Refused(f"{callers}: {error.problem.text}", 2) from None
    except ValueError as error:
        raise Refused(str(error.args[0]), 2) from None


def _give_entry(made: NewKey, name: str, *, as_json: bool) -> None:
    text = _printable(made.entry)
    if as_json:
        view = {
            "name": name,
            "entry": made.entry,
            "known": made.known,
            "dropped": made.dropped,
            "revoked": made.revoked,
        }
        text = json.dumps(view) + "\n"
    try:
        read = write_out(text)
        _sync_output()
    except Refused as refused:
        raise Refused(f"there is no key: {refused.reason}", refused.exit_code) from None
    if not read:
        raise Refused("nobody read the entry, so there is no key; run the command again", 3)


def _printable(entry: str) -> str:
    """Return the entry so that standard output can take it, as TOML writes what a charset has not."""
    try:
        entry.encode(sys.stdout.encoding or "utf-8")
    except (UnicodeEncodeError, AttributeError):
        # There is no such character outside of a string.
        return "".join(char if char.isascii() else f"\\U{ord(char):08x}" for char in entry)
    return entry


def _sync_output() -> None:
    """See that a file has taken the entry: some file systems say only now that they are full."""
    try:
        os.fsync(sys.stdout.fileno())
    except OSError as error:
        # A pipe or a terminal has nothing to wait for.
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise Refused(cant_write(error), 3) from None


def _give_notes(made: NewKey, callers: Path | None, screen: Screen) -> None:
    """Say what is odd about the entry; before the key, so that the key is the last line for a script."""
    if callers is not None and not made.known:
        screen.note(f"note: {callers} has no caller of this name; the entry is a new one")
    if made.dropped:
        screen.note("the caller had two keys; the older one is not in the new entry")
    if made.revoked:
        screen.note("the caller is revoked; the key is of no use before that line is taken out")


def _give_key(made: NewKey, *, as_json: bool) -> None:
    text = json.dumps({"key": made.key}) if as_json else made.key
    try:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except OSError:
        # Said on the chance that it is read: there is no other stream left for it.
        raise Refused("the key could not be written, and is lost; take its entry out again", 3) from None
