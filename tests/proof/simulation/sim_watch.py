"""What has been seen, and is anything wrong? One place that everything in the simulation reports to.

Keeps the story as lines, numbers the jobs in order of birth so that a story can be read, and stops the run
at the first thing that must not be. It knows no rule itself. Next room: `sim_store.py` and `sim_rest.py`,
which do.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import trio


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must not be. `rule` is short and stays the same for the same kind of fault."""

    rule: str
    text: str
    at: float


class Watch:
    """The story so far."""

    def __init__(self, limit: int = 200_000) -> None:
        self.lines: list[tuple[float, str, str]] = []
        self.violations: list[Violation] = []
        self.counts: dict[str, int] = {}
        # Cancelled at the first violation: what comes after it explains nothing.
        self.stop = trio.CancelScope()
        self._limit = limit
        self._labels: dict[str, str] = {}

    def label(self, job_id: Any) -> str:
        """Return what a job is called in the story: J1, J2 … in order of birth."""
        if not isinstance(job_id, str):
            return "-"
        return self._labels.setdefault(job_id, f"J{len(self._labels) + 1}")

    def say(self, who: str, text: str) -> None:
        """Add a line to the story, unless it has gone wrong: the rest is only how it is cut off."""
        if self.violations:
            return
        self.lines.append((trio.current_time(), who, text))
        if len(self.lines) > self._limit:
            self.wrong("endless", f"more than {self._limit:,} things have happened")

    def count(self, what: str, by: int = 1) -> None:
        """Count something for the report."""
        self.counts[what] = self.counts.get(what, 0) + by

    def wrong(self, rule: str, text: str) -> None:
        """Report a violation."""
        if self.violations:
            return
        self.violations.append(Violation(rule, text, trio.current_time()))
        self.lines.append((trio.current_time(), "WRONG", f"{rule}: {text}"))
        self.stop.cancel()

    def digest(self) -> str:
        """Return one word for the whole story: two runs are the same if theirs is."""
        text = "\n".join(f"{at!r} {who} {text}" for at, who, text in self.lines)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def story(self) -> list[str]:
        """Return the story as lines to read."""
        return [f"{_clock(at):>14}  {who:<8} {text}" for at, who, text in self.lines]


def _clock(at: float) -> str:
    hours, rest = divmod(at, 3_600)
    minutes, seconds = divmod(rest, 60)
    return f"{int(hours)}:{int(minutes):02}:{seconds:06.3f}"
