"""How is a number measured and shown? What every benchmark here shares.

A number is a ratio wherever it can be: this engine over a floor, which is the least code that does the
same work by hand. Both run in fresh interpreters, one after the other, round by round, so that a machine
that slows down slows both; the median over the rounds is the result, and the spread is shown beside it.
What is measured is in the files beside this one, one question each; the floors are in `floors.py`.
"""

import contextlib
import json
import os
import platform
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

TMPFS = Path("/dev/shm")
CHILD_PATIENCE = 300.0
"""How long one run may take, in seconds: a run that hangs is a failure, not a long benchmark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """One result: the median of `values`, and what there is to reach (None: shown for comparison)."""

    name: str
    values: Sequence[float]
    unit: str
    at_least: float | None = None
    at_most: float | None = None

    @property
    def median(self) -> float:
        """The result."""
        return statistics.median(self.values)

    @property
    def goal(self) -> str:
        """What there is to reach, in words."""
        if self.at_least is not None:
            return f"at least {self.at_least:g}"
        return "" if self.at_most is None else f"at most {self.at_most:g}"

    @property
    def reached(self) -> bool:
        """Whether the result is what there is to reach."""
        enough = self.at_least is None or self.median >= self.at_least
        return enough and (self.at_most is None or self.median <= self.at_most)

    @property
    def spread(self) -> str:
        """The ends of the values, in words."""
        if len(self.values) == 1:
            return "one run"
        return f"{min(self.values):.3g} to {max(self.values):.3g} in {len(self.values)} rounds"

    def line(self) -> str:
        """Return the number as one line of text."""
        goal = f" (to reach: {self.goal}{'' if self.reached else '; MISSED'})" if self.goal else ""
        return f"{self.name}: {self.median:.3g} {self.unit}{goal} [{self.spread}]"


def ratios(rounds: Iterable[tuple[float, float]]) -> list[float]:
    """Return the first over the second of each round."""
    return [first / second for first, second in rounds]


def rounds(*, least: int, most: int, seconds: float) -> Iterator[int]:
    """Count rounds until `seconds` are over: a slow disk gets fewer of them, never below `least`."""
    began = time.monotonic()
    for number in range(most):
        if number >= least and time.monotonic() - began > seconds:
            return
        yield number


def machine() -> str:
    """Return what the numbers were measured on and with."""
    lines = [
        f"machine: {os.cpu_count()} cores, {platform.system()} {platform.release()}, {platform.machine()}",
        f"folder: {tempfile.gettempdir()} on {_filesystem(Path(tempfile.gettempdir()))}",
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        + ", ".join(f"{name} {_version(name)}" for name in ("trio", "anyio", "structlog", "sift-batch")),
    ]
    return "\n".join(lines)


def command() -> str:
    """Return the command that is running, as somebody would type it; a folder of theirs is DIR."""
    file = Path(sys.argv[0]).resolve()
    root = Path(__file__).resolve().parent.parent
    shown = file.relative_to(root) if file.is_relative_to(root) else Path(file.name)
    words = ("DIR" if Path(word).is_absolute() else word for word in sys.argv[1:])
    return " ".join(["python", str(shown), *words])


def today() -> str:
    """Return the day of the run."""
    return time.strftime("%Y-%m-%d")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _filesystem(path: Path) -> str:
    """Return the kind of file system that `path` is on, as far as the system says."""
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "an unknown file system"
    found = ("", "an unknown file system")
    for line in mounts.read_text().splitlines():
        _, point, kind, *_ = line.split()
        if path.resolve().is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, kind)
    return found[1]


@contextlib.contextmanager
def folder(*, tmpfs: bool = False) -> Iterator[Path]:
    """Give an empty folder on the disk, or on tmpfs where there is one, and remove it afterwards."""
    where = TMPFS if tmpfs and TMPFS.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="sift-bench-", dir=where) as name:
        yield Path(name)


def in_child(file: str, kind: str, *, before: Sequence[str] = (), **arguments: Any) -> Any:
    """Run one of a file's kinds of run in a fresh interpreter and return what it returns."""
    command = [*before, sys.executable, file, "--once", kind, json.dumps(arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=CHILD_PATIENCE)
    return json.loads(done.stdout)


def run(numbers: Callable[[], Iterator[Number]], kinds: Mapping[str, Callable[..., Any]]) -> None:
    """Be a benchmark's command line: measure and print; or, as a child, do one run."""
    if sys.argv[1:2] == ["--once"]:
        print(json.dumps(kinds[sys.argv[2]](**json.loads(sys.argv[3]))))
    elif sys.argv[1:] == ["--json"]:
        for number in numbers():
            print(json.dumps(asdict(number)), flush=True)
    else:
        print(machine(), f"command: {command()}", "", sep="\n")
        for number in numbers():
            print(number.line(), flush=True)
