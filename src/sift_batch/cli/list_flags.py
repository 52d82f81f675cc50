"""Which flags has `sift-batch list`? Next: `list_command`."""

import click

from .remote_flags import Remote, exit_codes, remote_flags

_HELP = """List your jobs, newest first.

A line has the id, the status, how many targets are done of how many, how many failed, and when it was
submitted. --json gives one JSON object, whose `items` are the jobs as the service shows them.

\b
Examples:
  sift-batch list
  sift-batch list --status running
  sift-batch list --json | jq -r '.items[] | select(.targets.failed > 0) | .id'
""" + exit_codes("the jobs are listed, however they stand", wrong="a flag is wrong")

_STATES = ("queued", "running", "done", "partial", "failed", "cancelled")


@click.command(help=_HELP)
@click.option("--status", type=click.Choice(_STATES), help="Only jobs of this status.")
@click.option("--limit", type=click.IntRange(1, 100_000), metavar="N", help="At most so many jobs.")
@remote_flags
def command(status: str | None, limit: int | None, remote: Remote) -> int:
    """Hand the flags on."""
    from .list_command import list_command

    return list_command(status, limit, remote)
