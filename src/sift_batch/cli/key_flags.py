"""Which flags has `key`? Next: `key_command`."""

from pathlib import Path

import click

from .flags import output_flags

_HELP = """Make keys for callers of a service.

\b
Examples:
  (umask 077; sift-batch key new alice >>callers.toml)
"""

_NEW_HELP = """Make a key for the caller NAME.

Standard output gets the caller's entry for a callers file, with the SHA-256 of the key in it. The key
itself is written once, to standard error, and kept nowhere: give it to the caller. No file is changed.

With --callers FILE and a name that is in it, the entry is that caller's with both hashes, the older key's
and the new one's. Put it in the place of the older entry, and take the older hash out once the caller uses
the new key. If FILE has no such name, a note on standard error says so, before the key. A service that runs
reads its callers file again by itself.

\b
Examples:
  (umask 077; sift-batch key new alice >>callers.toml)
  sift-batch key new bob --class restricted
  sift-batch key new alice --callers callers.toml

\b
Exit codes:
  0  the key was made
  2  the name, the class or the callers file is wrong, or both streams are one file
  3  the entry or the key could not be written; there is no key then
"""


@click.group(help=_HELP, short_help="Make keys for callers.")
def command() -> None:
    """Take the flags that stand before `new`."""


@command.command(help=_NEW_HELP, short_help="Make a key for a caller.")
@click.argument("name", metavar="NAME")
@click.option(
    "--class",
    "caller_class",
    type=click.Choice(["fleet", "restricted"]),
    help="What logs and metrics may say of the caller's jobs; fleet if not given, and not in FILE.",
)
@click.option(
    "--callers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Look the name up in this callers file.",
)
@output_flags
def new(name: str, caller_class: str | None, callers: Path | None, quiet: bool, as_json: bool) -> int:
    """Hand the flags on."""
    from .key_command import new_key_command

    return new_key_command(name, caller_class=caller_class, callers=callers, quiet=quiet, as_json=as_json)
