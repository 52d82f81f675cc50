"""Which flags has `sift-batch status`? Next: `status_command`."""

import click

from .remote_flags import Remote, exit_codes, job_argument, remote_flags

_HELP = """Show how a job stands, now or after a while.

With --wait it returns as soon as the job has settled, at the latest after SECONDS; the exit code is 0 either
way. That of `sift-batch watch` says whether all targets are done. --json gives the job as the service does.

\b
Examples:
  sift-batch status ID
  sift-batch status --wait 30 --json ID | jq .targets
""" + exit_codes("the job is shown, however it stands, also if --wait was over first")


@click.command(help=_HELP)
@job_argument
@click.option(
    "--wait",
    type=click.IntRange(0, 86_400),
    default=0,
    metavar="SECONDS",
    help="Wait at most so long until the job has settled.",
)
@remote_flags
def command(job_id: str, wait: int, remote: Remote) -> int:
    """Hand the flags on."""
    from .status_command import status_command

    return status_command(job_id, wait, remote)
