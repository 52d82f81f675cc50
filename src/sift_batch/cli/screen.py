"""What does the person at the terminal see?

Notes, errors and a progress bar, all on standard error. Nothing here is a result, and no target is
named. Next: `lines`, which has the results.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import click

from .escape import visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PROGRAM: Final = "sift-batch"
_CLEAR_LINE: Final = "\r\x1b[2K"
_SHOW_CURSOR: Final = "\x1b[?25h"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return the number with its noun: "1 target", "2 targets"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


class Screen:
    """Standard error, if it is open. `quiet` leaves out all but errors; `as_json` writes JSON objects."""

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self._quiet = quiet
        self._as_json = as_json
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._failed = 0

    @property
    def is_terminal(self) -> bool:
        """Whether a person reads standard error, as far as can be told."""
        try:
            return sys.stderr is not None and sys.stderr.isatty()
        except (OSError, ValueError):
            return False

    @property
    def draws(self) -> bool:
        """Whether there is a bar now."""
        return self._bar is not None

    def note(self, text: str) -> None:
        """Say something that is good to know."""
        if not self._quiet:
            self._say(text, note=text)

    def error(self, text: str, **fields: Any) -> None:
        """Say what went wrong and what to do, in one line."""
        self._say(f"{PROGRAM}: {text}", error=text, **fields)

    def summary(self, fields: dict[str, Any]) -> None:
        """Write one JSON object that says how it went, unless quiet."""
        if not self._quiet:
            self._write_out(json.dumps(fields))

    def _say(self, text: str, **fields: Any) -> None:
        self._write_out(json.dumps(fields) if self._as_json else visible(text))

    def _write_out(self, line: str) -> None:
        self.make_way()
        try:
            click.echo(line, err=True)
        except OSError:
            # Nobody reads standard error any more; that is no reason to stop.
            return

    @contextmanager
    def progress(self, total: int, already: int) -> Iterator[None]:
        """Show a bar for `total` targets inside the block, if there is a terminal to show it on."""
        # None when the process was started with it closed.
        if self._quiet or self._as_json or sys.stderr is None or not sys.stderr.isatty():
            yield
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        if console.is_dumb_terminal:
            # A line that can't be wiped would be drawn again and again.
            yield
            return
        columns = (
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.fields[failed]}{task.description}", markup=False),
            TimeElapsedColumn(),
        )
        # Drawn by `tick` alone: a thread that draws by itself makes the event loop late. Standard output
        # is left alone, since it may have the results.
        bar = Progress(
            *columns,
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._bar = bar
        self._task = bar.add_task("", total=total, completed=already, failed="")
        try:
            # A terminal that was closed takes nothing any more; that is no reason to stop.
            with suppress(OSError):
                bar.start()
            yield
        finally:
            self._bar = self._task = None
            with suppress(OSError):
                bar.stop()

    def advance(self, *, failed: bool) -> None:
        """Count one more target that was fetched."""
        self._failed += failed
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, failed=f"{self._failed} failed  " if self._failed else "")

    def reach(self, done: int, total: int) -> None:
        """Set the bar, where what is done is not counted one by one."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def tick(self, doing: str) -> None:
        """Draw the bar again, with what is going on now."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=doing)
            with suppress(OSError):
                self._bar.refresh()

    def make_way(self) -> None:
        """Wipe the bar's line, so that something else can be written there."""
        if self._bar is not None:
            _write(_CLEAR_LINE)

    def restore(self) -> None:
        """Leave the terminal as it was, before the process ends without further ado."""
        if self._bar is not None:
            _write(_CLEAR_LINE + _SHOW_CURSOR)


def _write(codes: str) -> None:
    with suppress(OSError):
        sys.stderr.write(codes)
        sys.stderr.flush()
