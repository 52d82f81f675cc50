"""What did the outside ask for? The command line (extra `cli`).

`main` is the console script. It parses nothing itself and imports nothing heavy, so that `--help` is
quick. Next: `commands` (the flags), then `batch` (the main job).
"""

import io
import signal
import sys
from collections.abc import Sequence
from types import FrameType


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code: 0, 1, 2, 3, 129, 130 or 143 (see `run --help`)."""
    try:
        import click
    except ImportError:
        if sys.stderr is not None:
            sys.stderr.write(
                "sift-batch: the command line needs the extra cli: pip install 'sift-batch[cli]'\n"
            )
        return 2
    from .commands import cli
    from .escape import visible
    from .signals import ending_signals

    if isinstance(sys.stdout, io.TextIOWrapper):
        # Page titles and file names may hold what the terminal's charset has not.
        sys.stdout.reconfigure(errors="backslashreplace")
    before = {number: signal.signal(number, _terminate) for number in ending_signals()}
    try:
        code = cli.main(args, prog_name="sift-batch", standalone_mode=False)
    except (KeyboardInterrupt, click.Abort):
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        # Of the program alone it is what --help is. A group without its command is a script's mistake.
        alone = error.ctx is None or error.ctx.parent is None
        click.echo(error.format_message(), err=not alone)
        return 0 if alone else error.exit_code
    except click.ClickException as error:
        command = (
            error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "sift-batch"
        )
        # Click writes what there is to choose from on lines of their own.
        said = error.format_message().replace("\n\t", " ")
        said += "" if said.endswith((".", "?", ")")) else "."
        click.echo(f"sift-batch: {visible(said)} See: {command} --help", err=True)
        return error.exit_code
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if isinstance(code, int) else 0


def _terminate(number: int, _frame: FrameType | None) -> None:
    # Only until the batch takes over: while input is read there is nothing to finish first.
    sys.exit(128 + number)
