"""What did the outside ask for? The command line (extra `cli`).

`main` is the console script. It parses nothing itself and imports nothing heavy, so that `--help` is
quick. Next: `commands` (the flags), then `batch` (the main job).
"""

import errno
import io
import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType, MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import click


_OF_WRITING: Final = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_EXTRAS: Final = MappingProxyType(
    {"run": "cli,fetch", "fetch": "cli,fetch", "demo": "cli,fetch", "serve": "cli,service", "mcp": "mcp"}
)
"""The extras of the commands that need more than the command line's own."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, 1, 2, 3, 129, 130 or 143 (see `run --help`)."""
    try:
        return _run(sys.argv[1:] if args is None else args)
    except KeyboardInterrupt:
        # Wherever it struck, and be it an import: nothing has begun that could be in the middle.
        return 130


def _run(args: Sequence[str]) -> int:
    try:
        import click
    except ImportError:
        if sys.stderr is not None:
            sys.stderr.write(f"sift-batch: {_without_extra(args)}\n")
        return 2
    from .signals import ending_signals

    if isinstance(sys.stdout, io.TextIOWrapper):
        # Page titles and file names may hold what the terminal's charset has not.
        sys.stdout.reconfigure(errors="backslashreplace")
    before = {number: signal.signal(number, _terminate) for number in ending_signals()}
    try:
        return _answer(args)
    except click.Abort:
        return 130
    except OSError as error:
        if error.errno not in _OF_WRITING:
            raise
        return _cant_say(error, args)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _without_extra(args: Sequence[str]) -> str:
    """Say what to install for the command that was meant, as far as that can be told without Click."""
    extras = next((_EXTRAS[word] for word in args if word in _EXTRAS), "cli")
    return f"the command line needs the extra cli: pip install 'sift-batch[{extras}]'"


def _answer(args: Sequence[str]) -> int:
    """Do what the arguments say."""
    import click

    from .commands import cli

    try:
        code = cli.main(args, prog_name="sift-batch", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        # Of the program alone it is what --help is. A group without its command is a script's mistake.
        alone = error.ctx is None or error.ctx.parent is None
        click.echo(error.format_message(), err=not alone)
        return 0 if alone else error.exit_code
    except click.ClickException as error:
        click.echo(_error_line(_usage(error), args), err=True)
        return error.exit_code
    except SystemExit as left:
        # Click's own way to say that nobody reads its help any more; that is no error here.
        if left.code != 1:
            raise
        return 0
    return code if isinstance(code, int) else 0


def _cant_say(error: OSError, args: Sequence[str]) -> int:
    """Give up on what Click writes by itself, such as the help; commands take care of their own output."""
    from .output import cant_write

    # What is still held for standard output would be tried once more at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if error.errno == errno.EPIPE:
        return 0
    with suppress(OSError):
        sys.stderr.write(f"{_error_line(cant_write(error), args)}\n")
    return 3


def _usage(error: "click.ClickException") -> str:
    """Say what is wrong with the arguments, in one line, and where their help is."""
    # Click writes what there is to choose from on lines of their own.
    said = error.format_message().replace("\n\t", " ")
    said += "" if said.endswith((".", "?", ")")) else "."
    context = getattr(error, "ctx", None)
    return f"{said} See: {context.command_path if context else 'sift-batch'} --help"


def _error_line(said: str, args: Sequence[str]) -> str:
    """Return an error as it is told: there are no parsed flags, so the arguments are searched."""
    from .escape import visible

    flags = args[: args.index("--")] if "--" in args else args
    return json.dumps({"error": said}) if "--json" in flags else f"sift-batch: {visible(said)}"


def _terminate(number: int, _frame: FrameType | None) -> None:
    # Only until the batch takes over: while input is read there is nothing to finish first.
    sys.exit(128 + number)
