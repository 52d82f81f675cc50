"""Which flags has `sift-batch results`? Next: `results_command`."""

from pathlib import Path

import click

from .remote_flags import Remote, exit_codes, job_argument, remote_flags

_HELP = """Write a job's results, one line of JSON for each target, in the order of its input.

A line has the fields of `sift-batch run`: url, status, result.content, result.meta, error and so on. While
the job goes on, that is what is finished up to now; --follow goes on until the job has settled, and over a
service that starts again meanwhile. Once it has settled, targets that were never fetched have a line too.

\b
Examples:
  sift-batch results ID | jq -r .result.content
  sift-batch results ID --follow --out results.jsonl
  sift-batch results ID --status failed | jq -r '[.url, .code] | @tsv'
""" + exit_codes(
    "lines were written; of a settled job, all targets are done",
    missing="a target of the settled job failed or was not fetched",
    wrong="a flag, the file or the id is wrong",
)


@click.command(help=_HELP)
@job_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write lines to FILE, which must be new or empty.",
)
@click.option(
    "--status",
    type=click.Choice(("pending", "running", "done", "failed")),
    help="Only targets of this status.",
)
@click.option("--follow", is_flag=True, help="Go on until the job has settled.")
@remote_flags
def command(job_id: str, out: Path | None, status: str | None, follow: bool, remote: Remote) -> int:
    """Hand the flags on."""
    from .results_command import results_command

    return results_command(job_id, out=out, status=status, follow=follow, remote=remote)
