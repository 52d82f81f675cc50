"""Which flags has `db`? Next: `db_command`."""

from pathlib import Path

import click

from .flags import Command, complete_folder, output_flags

_HELP = """Check, count or back up a store, beside a running service if there is one.

The store is that of the service with the folder --data, or the file --store; without either, that of the
settings' service.data. None of these commands writes to the store or holds up what writes to it.

\b
Examples:
  sift-batch db check --data ./data
  sift-batch db stats --data ./data
  sift-batch db backup --data ./data /backup/jobs.sift
"""

_CHECK_HELP = """Check that a store is sound.

Looks at every page and index, reads every row and result, and compares the counts, bytes and states of
jobs with those of their targets. All of it is one moment of a store that may be in use.

\b
Examples:
  sift-batch db check --data ./data
  sift-batch db check --store results.jsonl.sift --json

\b
Exit codes:
  0  the store is sound
  2  a flag or a setting is wrong
  3  the store is damaged, of a newer version, or can't be read
"""

_STATS_HELP = """Show what a store holds, for each caller.

Live and stored jobs, bytes, the oldest lease of an ended job, and which ended jobs the byte budget
(engine.max_bytes) would remove next. --config and the environment say the budget and the TTL, as they do
for the service.

\b
Examples:
  sift-batch db stats --data ./data
  sift-batch db stats --config sift-batch.toml --json

\b
Exit codes:
  0  the store is counted
  2  a flag or a setting is wrong
  3  the store is of a newer version, or can't be read
"""

_BACKUP_HELP = """Copy a store into the new file DEST, while the service runs.

Everything that was acknowledged before the copy began is in it. It is made under another name, checked,
and on the disk when it gets its own, with the mode 0600. It holds all that the store holds: results of
restricted callers too, until you delete it.

To restore: stop the service, move jobs.sift and what stands beside it (jobs.sift-wal, jobs.sift-shm) out
of the way, copy the backup to jobs.sift as the service's user, start the service. Jobs that were live
when the backup was made have then failed with the error restart, and a rerun goes on with them.

\b
Examples:
  sift-batch db backup --data ./data /backup/jobs-monday.sift
  sift-batch db backup --data ./data --force /backup/jobs.sift

\b
Exit codes:
  0  the backup is there and sound
  2  a flag or a setting is wrong, or DEST is there already
  3  the disk is full, or the store can't be read; nothing was left behind
"""


def _store_flags(command: Command) -> Command:
    """Add the flags that say which store is meant."""
    command = click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Take settings from this TOML file.",
    )(command)
    command = click.option(
        "--store", type=click.Path(path_type=Path), metavar="FILE", help="The store, as a file."
    )(command)
    return click.option(
        "--data",
        type=click.Path(path_type=Path),
        metavar="DIR",
        shell_complete=complete_folder,
        help="The folder of the service; its store is jobs.sift in it.",
    )(command)


@click.group(help=_HELP, short_help="Check, count or back up a store.")
def command() -> None:
    """Take the flags that stand before a command."""


@command.command(help=_CHECK_HELP, short_help="Check that a store is sound.")
@_store_flags
@output_flags
def check(data: Path | None, store: Path | None, config: Path | None, quiet: bool, as_json: bool) -> int:
    """Hand the flags on."""
    from .db_command import check_command

    return check_command(data, store, config, quiet=quiet, as_json=as_json)


@command.command(help=_STATS_HELP, short_help="Show what a store holds, for each caller.")
@click.option(
    "--victims",
    type=click.IntRange(0, 10_000),
    default=10,
    show_default=True,
    metavar="N",
    help="How many jobs to name that would be removed next.",
)
@_store_flags
@output_flags
def stats(
    victims: int, data: Path | None, store: Path | None, config: Path | None, quiet: bool, as_json: bool
) -> int:
    """Hand the flags on."""
    from .db_command import stats_command

    return stats_command(data, store, config, victims=victims, quiet=quiet, as_json=as_json)


@command.command(help=_BACKUP_HELP, short_help="Copy a store while the service runs.")
@click.argument("destination", metavar="DEST", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Write over DEST if there is such a file.")
@_store_flags
@output_flags
def backup(
    destination: Path,
    force: bool,
    data: Path | None,
    store: Path | None,
    config: Path | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Hand the flags on."""
    from .db_command import backup_command

    return backup_command(data, store, config, destination, force=force, quiet=quiet, as_json=as_json)
