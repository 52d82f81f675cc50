"""Which flags has `sift-batch cancel`? Next: `cancel_command`."""

import click

from .remote_flags import Remote, exit_codes, job_argument, remote_flags

_HELP = """Cancel a job: no further target of it is fetched.

What is done stays, and can be read; a fetch in flight is finished. Safe to repeat.

\b
Examples:
  sift-batch cancel ID
""" + exit_codes("the job has ended, now or before")


@click.command(help=_HELP)
@job_argument
@remote_flags
def command(job_id: str, remote: Remote) -> int:
    """Hand the flags on."""
    from .cancel_command import cancel_command

    return cancel_command(job_id, remote)
