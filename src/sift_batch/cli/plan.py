"""What is a batch to do, and how did it end?

The values that the rooms of the command line share. Next: `batch`, which does it.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from ..fetch import FetchConfig
from .carry import Place
from .targets import Item, Targets

FAILURES_SHOWN: Final = 10
"""At most so many failed targets are named on a terminal."""


class Refused(Exception):
    """The command can't start. `reason` is one line; nothing was fetched."""

    def __init__(self, reason: str, exit_code: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a batch is to do. `store` is its file, None for one in memory; `fresh` empties it first."""

    targets: Targets
    fetch: FetchConfig
    parallel: int = 8
    store: Path | None = None
    fresh: bool = False


@dataclass(slots=True)
class Window:
    """A run of the input: its jobs with the places in it that they fetch, and what is done already."""

    items: list[Item]
    jobs: list[tuple[str, list[int]]] = field(default_factory=list)
    carried: dict[int, Place] = field(default_factory=dict)


class Failure(NamedTuple):
    """A target that failed: its place in the input, and why, in our own words. Never its URL."""

    place: str
    code: str
    error: str


@dataclass(slots=True)
class Outcome:
    """How a batch goes and ends. Written by the tasks of one batch, each its own fields.

    `carried`: targets that an earlier run has done; `fetched` and of them `failed`: those of this run;
    `written`: lines; `failures`: the first few written lines of targets that failed; `error`: what
    stopped it, in one line, and `error_code` its exit code; `signal`: which one asked it to stop;
    `began`: the store is its own and the output is open.
    """

    total: int
    carried: int = 0
    fetched: int = 0
    written: int = 0
    failed: int = 0
    failures: list[Failure] = field(default_factory=list)
    error: str = ""
    error_code: int = 3
    signal: int = 0
    began: bool = False

    @property
    def done(self) -> int:
        """How many targets are done, in this run or an earlier one."""
        return self.carried + self.fetched - self.failed

    @property
    def missing(self) -> int:
        """How many targets were not fetched."""
        return max(0, self.total - self.done - self.failed)

    @property
    def all_done(self) -> bool:
        """Every target is done, and its line is written."""
        return self.written == self.total and not self.failed and not self.error

    @property
    def exit_code(self) -> int:
        """0 all done, 1 a target failed or was not fetched, 2 refused, 3 store or disk, 128 + a signal."""
        if self.error:
            return self.error_code
        if self.signal:
            return 128 + self.signal
        return 0 if self.all_done else 1
