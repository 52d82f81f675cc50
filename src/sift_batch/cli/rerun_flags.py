"""Which flags has `sift-batch rerun`? Next: `rerun_command`."""

import click

from .remote_flags import Remote, exit_codes, job_argument, remote_flags

_HELP = """Fetch what failed or was not fetched, as a new job, and print its id.

What is done is carried over, so the new job has all targets. Where nothing is left to fetch, it is the job
itself; where such a job is under way already, that one. --json gives the new job as the service does.

\b
Examples:
  sift-batch rerun ID
  sift-batch results --follow "$(sift-batch rerun ID)"
  sift-batch rerun --wait ID
""" + exit_codes(
    "there is such a job; with --wait, all its targets are done",
    missing="with --wait: a target failed or was not fetched",
    wrong="a flag or the id is wrong, or the job is still live",
)


@click.command(help=_HELP)
@job_argument
@click.option("--wait", is_flag=True, help="Wait until the new job has settled.")
@remote_flags
def command(job_id: str, wait: bool, remote: Remote) -> int:
    """Hand the flags on."""
    from .rerun_command import rerun_command

    return rerun_command(job_id, wait=wait, remote=remote)
