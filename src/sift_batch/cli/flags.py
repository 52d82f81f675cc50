"""Which flags do several commands have?

Decorators that add them, so that a flag has one name and one help everywhere. Click alone is imported.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

Command = Callable[..., Any]

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
_OPTION_NAMES = ("mode", "pages", "jq", "grep", "question", "context", "recover")


def complete_file(_context: click.Context, _flag: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a file, where the value itself is looked at by the command."""
    return [CompletionItem(incomplete, type="file")]


def complete_folder(_context: click.Context, _flag: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let the shell complete a folder, where the value itself is looked at by the command."""
    return [CompletionItem(incomplete, type="dir")]


def _complete_mode(_context: click.Context, _flag: click.Parameter, incomplete: str) -> list[CompletionItem]:
    # Here, since only the Tab key needs it. What is typed is the fetch's to judge, with every other option.
    from ..fetch._options import MODES

    return [CompletionItem(mode) for mode in MODES if mode and mode.startswith(incomplete)]


def option_flags(command: Command) -> Command:
    """Add the flags that become the options of every target that does not say them itself."""
    command = click.option(
        "--recover", is_flag=True, help="Look for the newest copy of a dead page in a public archive."
    )(command)
    command = click.option(
        "--context/--no-context",
        default=None,
        help="Give the blocks around what --grep or --question found, or not.",
    )(command)
    for flag, metavar, text in reversed(_OPTIONS):
        completing = _complete_mode if flag == "--mode" else None
        command = click.option(flag, default=None, metavar=metavar, help=text, shell_complete=completing)(
            command
        )
    return command


def given_options(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of targets that were given among `flags`."""
    given = {name: flags[name] for name in _OPTION_NAMES}
    # A switch that is off was not given; only --no-context says no.
    return {
        name: value
        for name, value in given.items()
        if value is not None and (value is not False or name == "context")
    }


def input_flags(command: Command) -> Command:
    """Add what says which targets are meant: URLs, and a file of lines. `one_file` reads the second."""
    command = click.option(
        "-f",
        "--file",
        "files",
        multiple=True,
        metavar="FILE",
        shell_complete=complete_file,
        help="Read targets from FILE; - is standard input.",
    )(command)
    return click.argument("urls", nargs=-1, metavar="[URL]...")(command)


def one_file(files: Sequence[str], verb: str) -> str | None:
    """Return the one file that was given, if any; a second one is a mistake that would go unnoticed."""
    if len(files) > 1:
        raise click.UsageError(f"--file can be given once; join the files, or {verb} once for each.")
    return files[0] if files else None


def ca_file_flag(command: Command) -> Command:
    """Add the flag that says whose certificates are believed."""
    return click.option(
        "--ca-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Trust the certificate authorities in FILE in place of the public ones.",
    )(command)


def fetch_flags(command: Command) -> Command:
    """Add the flags that say what may be fetched."""
    command = ca_file_flag(command)
    command = click.option(
        "--ports", metavar="any|N,N", help="Ports that may be called; 80 and 443 if not given."
    )(command)
    return click.option(
        "--allow",
        multiple=True,
        metavar="NETWORK|NAME|.SUFFIX",
        help="Allow a private network, or a name of one; may be given again.",
    )(command)


def server_flags(command: Command) -> Command:
    """Add the flags that say which service is meant, and where the key is: never the key itself."""
    command = click.option(
        "--key-file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Read the key from FILE; else it is taken from SIFT_BATCH_KEY.",
    )(command)
    return click.option(
        "--server",
        envvar="SIFT_BATCH_SERVER",
        metavar="URL",
        help="The service, as in http://127.0.0.1:8080; else SIFT_BATCH_SERVER.",
    )(command)


def output_flags(command: Command) -> Command:
    """Add the flags that every command has."""
    command = click.option("-q", "--quiet", is_flag=True, help="Say nothing on standard error but errors.")(
        command
    )
    return click.option(
        "--json", "as_json", is_flag=True, help="Write summary, notes and errors as JSON objects."
    )(command)
