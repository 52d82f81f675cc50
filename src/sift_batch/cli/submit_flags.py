"""Which flags has `sift-batch submit`? Next: `submit_command`."""

from typing import Any

import click

from .flags import given_options, input_flags, one_file, option_flags
from .remote_flags import Remote, exit_codes, remote_flags

_HELP = """Submit targets to a service as one job, and print its id.

Targets come from the arguments and from --file, of which each line is a URL or a JSON object
{"url": ..., "options": {...}}; blank lines and lines that start with # are skipped. The service fetches
them, one after the other, whether somebody waits or not. A job that is equal to one of yours is that one:
--max-age says how old it may be. For more targets than one job may have, submit the rest when this job has
ended (--wait), use `sift-batch run`, or have the operator raise engine.targets_per_job.

The service is named by --server or SIFT_BATCH_SERVER, the key by --key-file or SIFT_BATCH_KEY. --json
gives the job as the service does.

\b
Examples:
  sift-batch submit https://example.org/ https://example.com/
  id=$(sift-batch submit -f urls.txt) && sift-batch results --follow "$id" >results.jsonl
  sift-batch submit --wait --max-age 3600 -f urls.txt
""" + exit_codes(
    "the job is submitted; with --wait, all its targets are done",
    missing="with --wait: a target failed or was not fetched",
    wrong="a flag or a target is wrong, or there are too many targets; nothing was submitted",
)


@click.command(help=_HELP)
@input_flags
@click.option(
    "--max-age",
    type=click.FloatRange(0, 10**10),
    metavar="SECONDS",
    help="Take an equal job that ended at most so long ago; any, if not given.",
)
@click.option("--wait", is_flag=True, help="Wait until the job has settled.")
@option_flags
@remote_flags
def command(
    urls: tuple[str, ...],
    files: tuple[str, ...],
    max_age: float | None,
    wait: bool,
    remote: Remote,
    **options: Any,
) -> int:
    """Hand the flags on."""
    from .submit_command import submit_command

    return submit_command(
        urls,
        file=one_file(files, "submit"),
        options=given_options(options),
        max_age=max_age,
        wait=wait,
        remote=remote,
    )
