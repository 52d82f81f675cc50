"""Which flags has `sift-batch run`? Next: `run_command`."""

from pathlib import Path
from typing import Any

import click

from .flags import (
    complete_file,
    fetch_flags,
    given_options,
    input_flags,
    one_file,
    option_flags,
    output_flags,
)

_HELP = """Fetch URLs and write one line of JSON for each, in the order of the input.

Targets come from the arguments and from --file, of which each line is a URL or a JSON object
{"url": ..., "options": {...}, ...}; blank lines and lines that start with # are skipped, and other
keys of an object are copied to its output line as "input". At most 8 fetches go at once, at most 2 of
them to one host, and a host that asks for patience gets it.

With --out FILE, what is done is also kept in FILE.sift until all is done: after a failure or Ctrl-C the
same command carries on from there, and failed targets are tried again. URLs may be added, left out or
moved meanwhile, and --parallel, --allow and --ports may change: a target is carried over when its URL and
its options are the same. A run to which none of the done targets belongs is refused, and so is one whose
FILE has lines and no FILE.sift, which is gone once all is done; --fresh writes over both.

A page comes as the Markdown of its main content, a PDF as the text of its pages, a feed and a CSV as
Markdown, text and JSON as they are; the options below, or those of a line, say what else to give. Only
public addresses are called: --allow and --ports admit others.

\b
Examples:
  sift-batch run https://example.org/ https://example.com/
  sift-batch run -f urls.txt --out results.jsonl
  generate-urls | sift-batch run -f - | jq -r .result.content
  sift-batch run --question "what does it cost" https://example.org/prices
  sift-batch run --allow 10.0.0.0/8 --allow .corp --ports any http://wiki.corp:8080/

\b
Exit codes:
  0    all targets are done
  1    a target failed or was not fetched
  2    a flag or a line of the input is wrong; nothing was fetched
  3    the store or the output can't be written
  130  stopped by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP
"""


@click.command(help=_HELP)
@input_flags
@click.option(
    "--out",
    metavar="FILE",
    shell_complete=complete_file,
    help="Write lines to FILE, keep progress beside it.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1, 32),
    default=8,
    show_default=True,
    help="How many jobs of up to 32 targets go at once.",
)
@click.option(
    "--fresh", is_flag=True, help="Ignore, and write over, what an earlier run with this --out has done."
)
@option_flags
@fetch_flags
@output_flags
def command(  # one parameter for each flag
    urls: tuple[str, ...],
    files: tuple[str, ...],
    out: str | None,
    parallel: int,
    fresh: bool,
    allow: tuple[str, ...],
    ports: str | None,
    ca_file: Path | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Hand the flags on."""
    from .run_command import run_command

    if out == "":
        # As a path it would be this folder.
        raise click.UsageError("--out is empty; name a file, or leave it out.")
    return run_command(
        urls,
        file=one_file(files, "run"),
        out=None if out is None else Path(out),
        parallel=parallel,
        fresh=fresh,
        options=given_options(options),
        allow=allow,
        ports=ports,
        ca_file=ca_file,
        quiet=quiet,
        as_json=as_json,
    )
