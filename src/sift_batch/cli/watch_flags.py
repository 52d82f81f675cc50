"""Which flags has `sift-batch watch`? Next: `watch_command`."""

import click

from .remote_flags import Remote, exit_codes, job_argument, remote_flags

_HELP = """Follow a job until it has settled.

On a terminal a bar shows how far it is, what time is left and what it waits for; anywhere else there is a
line for each change. The service may go away for a minute meanwhile, as when it starts again. Ctrl-C ends
the watching and leaves the job alone. --json gives the job at each change, one JSON object a line; the
last one has settled.

\b
Examples:
  sift-batch watch ID
  sift-batch watch --json ID | tail -1 | jq .targets
""" + exit_codes("all targets of the job are done", missing="a target failed or was not fetched")


@click.command(help=_HELP)
@job_argument
@remote_flags
def command(job_id: str, remote: Remote) -> int:
    """Hand the flags on."""
    from .watch_command import watch_command

    return watch_command(job_id, remote)
