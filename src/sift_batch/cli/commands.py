"""Which commands and flags are there?

Flags, their help, and nothing that takes time to import. Next: `run_command` and `demo_command`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

_HELP = """Fetch a series of pages, politely and durably.

\b
Examples:
  sift-batch demo
  sift-batch run -f urls.txt --out results.jsonl
"""

_RUN_HELP = """Fetch URLs and write one line of JSON for each, in the order of the input.

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

_DEMO_HELP = """Fetch a small site that is served on this machine, and show how it goes.

Uses no network. The site has ordinary pages, a slow one, a missing one, a redirect and a host that asks
for patience first. Results stay in the folder; after Ctrl-C a second run carries on from there.

\b
Examples:
  sift-batch demo
  sift-batch demo --dir /tmp/sift-demo
"""

_Command = Callable[..., Any]

_OPTIONS = (
    (
        "--mode",
        "MODE",
        "What to give of a page: markdown (main content; the default), text, full, html, raw, links, meta.",
    ),
    ("--pages", "RANGES", "Pages of a PDF: 3, 2-5, 7-, -1 for the last; joined by commas."),
    ("--jq", "PROGRAM", "Run a jq program on a JSON document."),
    ("--grep", "PATTERN", "Give the lines that match a pattern (RE2)."),
    ("--question", "TEXT", "Give the passages that answer a question best."),
)


def _option_flags(command: _Command) -> _Command:
    """Add the flags that become the options of every target whose line does not say them."""
    for flag, metavar, text in reversed(_OPTIONS):
        command = click.option(flag, default=None, metavar=metavar, help=text)(command)
    return command


def _switches(command: _Command) -> _Command:
    """Add the options that are no texts."""
    command = click.option(
        "--recover", is_flag=True, help="Look for the newest copy of a dead page in a public archive."
    )(command)
    return click.option(
        "--context/--no-context",
        default=None,
        help="Give the blocks around what --grep or --question found, or not.",
    )(command)


def _fetch_flags(command: _Command) -> _Command:
    """Add the flags that say what may be fetched."""
    command = click.option(
        "--ca-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Trust the certificate authorities in FILE in place of the public ones.",
    )(command)
    command = click.option(
        "--ports", metavar="any|N,N", help="Ports that may be called; 80 and 443 if not given."
    )(command)
    return click.option(
        "--allow",
        multiple=True,
        metavar="NETWORK|NAME|.SUFFIX",
        help="Allow a private network, or a name of one; may be given again.",
    )(command)


def _output_flags(command: _Command) -> _Command:
    """Add the flags that every command has."""
    command = click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but errors.")(
        command
    )
    return click.option(
        "--json", "as_json", is_flag=True, help="Write summary, notes and errors as JSON objects."
    )(command)


@click.group(help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="sift-batch", prog_name="sift-batch")
def cli() -> None:
    """Take the flags that stand before a command."""


@cli.command(help=_RUN_HELP, short_help="Fetch URLs and write one line of JSON for each.")
@click.argument("urls", nargs=-1, metavar="[URL]...")
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    metavar="FILE",
    help="Read targets from FILE; - is standard input.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
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
@_option_flags
@_switches
@_fetch_flags
@_output_flags
def run(  # one parameter for each flag
    urls: tuple[str, ...],
    files: tuple[str, ...],
    out: Path | None,
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

    if len(files) > 1:
        raise click.UsageError("--file can be given once; join the files, or run once for each.")
    file = files[0] if files else None
    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if options["context"] is False:
        given["context"] = False
    return run_command(
        urls,
        file=file,
        out=out,
        parallel=parallel,
        fresh=fresh,
        options=given,
        allow=allow,
        ports=ports,
        ca_file=ca_file,
        quiet=quiet,
        as_json=as_json,
    )


@cli.command(help=_DEMO_HELP, short_help="Fetch a small built-in site and show how it goes.")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("sift-demo"),
    show_default=True,
    help="Folder for the results; made if there is none.",
)
@_output_flags
def demo(folder: Path, quiet: bool, as_json: bool) -> int:
    """Hand the flags on."""
    from .demo_command import demo_command

    return demo_command(folder, quiet=quiet, as_json=as_json)
