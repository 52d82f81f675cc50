"""Which flags has `sift-batch delete`? Next: `delete_command`."""

import click

from .remote_flags import EXIT_CODES, Remote, job_argument, remote_flags

_HELP = f"""Delete a job that has settled, with its results.

It can't be undone; a live job must be cancelled first. Safe to repeat.

\b
Examples:
  sift-batch delete ID
{EXIT_CODES.replace("as it says above", "the job is deleted")}"""


@click.command(help=_HELP)
@job_argument
@remote_flags
def command(job_id: str, remote: Remote) -> int:
    """Hand the flags on."""
    from .delete_command import delete_command

    return delete_command(job_id, remote)
