"""Which flags has `sift-batch delete`? Next: `delete_command`."""

import click

from .remote_flags import Remote, exit_codes, job_argument, remote_flags

_HELP = """Delete a job that has settled, with its results.

It can't be undone; a live job must be cancelled first. Safe to repeat.

\b
Examples:
  sift-batch delete ID
""" + exit_codes("the job is deleted", wrong="a flag or the id is wrong, or the job is still live")


@click.command(help=_HELP)
@job_argument
@remote_flags
def command(job_id: str, remote: Remote) -> int:
    """Hand the flags on."""
    from .delete_command import delete_command

    return delete_command(job_id, remote)
