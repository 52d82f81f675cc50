"""How do the targets of a command get in? From its arguments and its file, every bad one named.

What a line may hold is `targets`' business; here is where it comes from, and what is said of it.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from .plan import Refused
from .screen import Screen, counted
from .targets import Check, Complain, Targets, read_targets

_COMPLAINTS_SHOWN: Final = 20
_RUNS_NAMED: Final = 50


class _Further:
    """The bad inputs that are counted and named by their numbers alone, in runs such as 21-40."""

    def __init__(self) -> None:
        self.count = 0
        self._runs: list[tuple[str, int, int]] = []

    def add(self, kind: str, number: int) -> None:
        """Take one more in; numbers of a kind come in rising order."""
        self.count += 1
        if self._runs and self._runs[-1][0] == kind and self._runs[-1][2] == number - 1:
            self._runs[-1] = (kind, self._runs[-1][1], number)
        elif len(self._runs) <= _RUNS_NAMED:
            self._runs.append((kind, number, number))

    def __str__(self) -> str:
        named = [f"{kind} {a}" if a == b else f"{kind}s {a}-{b}" for kind, a, b in self._runs[:_RUNS_NAMED]]
        more = ["\u2026"] if len(self._runs) > _RUNS_NAMED else []
        return f"\u2026 and {self.count} more: {', '.join(named + more)}"


class Complaints:
    """What is wrong with the input, as it is told: some in full, the rest by number; in JSON all of them."""

    def __init__(self, screen: Screen, file: str | None, *, as_json: bool) -> None:
        self._screen = screen
        self._name = "standard input" if file == "-" else file
        self._as_json = as_json
        self._told = 0
        self._further = _Further()

    def add(self, kind: str, number: int, reason: str) -> None:
        """Tell of one bad input: "argument" or "line", its number from 1, and what is wrong with it."""
        self._told += 1
        if self._told > _COMPLAINTS_SHOWN and not self._as_json:
            self._further.add(kind, number)
        elif kind == "line":
            self._screen.error(f"{self._name}, line {number}: {reason}", line=number)
        else:
            self._screen.error(f"URL argument {number}: {reason}", argument=number)

    def finish(self) -> None:
        """Tell how many more there are."""
        if self._further.count:
            self._screen.error(str(self._further))


def read_input(
    targets: Targets,
    urls: Sequence[str],
    file: str | None,
    options: Mapping[str, Any],
    complaints: Complaints,
    *,
    check: Check,
    check_all: Callable[[Targets, Complain], int],
    nothing: str = "nothing was fetched",
) -> None:
    """Fill `targets`. Raises `Refused` for bad or missing input, saying that `nothing` was done with it.

    `check` looks at each target, and `check_all` at all of them when each is good; it returns how many
    are bad.
    """
    try:
        with _open_input(file) as stream:
            bad = read_targets(targets, urls, stream, options, check, complaints.add)
        bad = bad or check_all(targets, complaints.add)
        complaints.finish()
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
        raise Refused(f"the input can't be read ({reason}); check the path of --file", 2) from None
    if bad:
        raise Refused(f"{counted(bad, 'bad input')}; {nothing}", 2)
    if not targets:
        raise Refused("there is nothing to fetch; give URLs, or --file with at least one", 2)


@contextlib.contextmanager
def _open_input(file: str | None) -> Iterator[IO[bytes] | None]:
    if file is None:
        yield None
    elif file == "-":
        if sys.stdin is None:
            raise Refused("standard input is closed; give --file a path", 2)
        yield sys.stdin.buffer
    else:
        try:
            stream = Path(file).open("rb")  # noqa: SIM115  # closed two lines down
        except ValueError:
            raise Refused("--file is no path", 2) from None
        with stream:
            yield stream
