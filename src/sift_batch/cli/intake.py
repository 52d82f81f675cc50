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
        else:
            self._runs.append((kind, number, number))

    @property
    def is_full(self) -> bool:
        """Whether there are as many as fit into one message."""
        return len(self._runs) > _RUNS_NAMED

    def __str__(self) -> str:
        named = [f"{kind} {a}" if a == b else f"{kind}s {a}-{b}" for kind, a, b in self._runs]
        return f"\u2026 and {self.count} more: {', '.join(named)}"


class Complaints:
    """What is wrong with the input, as it is told: some in full, the rest by number; in JSON all of them."""

    def __init__(self, screen: Screen, file: str | None, *, as_json: bool) -> None:
        self._screen = screen
        self._name = "standard input" if file == "-" else file
        self._as_json = as_json
        self._told = 0
        # Kind, first and last number, and reason of what is not told yet: more of the same may follow.
        self._run: tuple[str, int, int, str] | None = None
        self._further = _Further()

    def add(self, kind: str, number: int, reason: str) -> None:
        """Tell of one bad input: "argument" or "line", its number from 1, and what is wrong with it."""
        if self._as_json:
            self._screen.error(f"{self._place(kind, number, number)}: {reason}", **{kind: number})
            return
        if self._run is not None:
            last_kind, first, last, said = self._run
            if (last_kind, last, said) == (kind, number - 1, reason):
                self._run = (kind, first, number, reason)
                return
            self._tell_run()
        if self._told < _COMPLAINTS_SHOWN:
            self._run = (kind, number, number, reason)
            return
        self._further.add(kind, number)
        if self._further.is_full:
            # Told at once: a file of a million bad lines takes no memory, and each is named.
            self._tell_further()

    def finish(self) -> None:
        """Tell of those that are not told yet."""
        self._tell_run()
        if self._further.count:
            self._tell_further()

    def note(self, text: str) -> None:
        """Say something of the input that is good to know."""
        self._screen.note(f"note: {text}")

    def _place(self, kind: str, first: int, last: int) -> str:
        numbers = f" {first}" if first == last else f"s {first}-{last}"
        return f"{self._name}, line{numbers}" if kind == "line" else f"URL argument{numbers}"

    def _tell_run(self) -> None:
        """Tell of the last run of inputs with one thing wrong, all of them in one line."""
        if self._run is not None:
            kind, first, last, reason = self._run
            self._run = None
            self._told += 1
            self._screen.error(f"{self._place(kind, first, last)}: {reason}")

    def _tell_further(self) -> None:
        self._screen.error(str(self._further))
        self._further = _Further()


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
        for place in targets.doubtful:
            complaints.note(f"{place}: this looks like two URLs in one; give one URL on each line")
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "unknown reason"
        name = "standard input" if file in (None, "-") else file
        raise Refused(f"{name} can't be read ({reason}); check the path of --file", 2) from None
    if bad:
        raise Refused(f"{counted(bad, 'bad input')}; {nothing}", 2)
    if not targets:
        raise Refused("there is nothing to fetch; give URLs, or --file with at least one", 2)


@contextlib.contextmanager
def _open_input(file: str | None) -> Iterator[IO[bytes] | None]:
    if file is None:
        yield None
    elif not file:
        raise Refused("--file is empty; name a file, or leave it out", 2)
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
