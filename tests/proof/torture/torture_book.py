"""What is known of one round: what callers were told, what fetches gave, what the store has done.

One writer for each kind of fact, in the order in which it happened; `tick` numbers the moments. Nothing
is judged here. Next: `torture_check.py`, which does.
"""

import json
from dataclasses import dataclass, field

import trio
from history import History, digest_of

from sift_batch import Hooks, Job
from sift_batch._model.store import Outcome
from sift_batch.testing import WallClock


def digest_of_row(result: bytes | None) -> str | None:
    """Return the digest of the content of a stored result."""
    return None if result is None else digest_of(json.loads(result)["content"])


@dataclass(slots=True)
class Called:
    """One call of the fetch. `end`: "ok", "busy", "failed", "cut" (cancelled or fatal).

    `began`, `entered` (its slot) and `ended` are moments of the book; 0: not yet, or never.
    """

    job_id: str
    idx: int
    number: int
    host: str
    began: int
    entered: int = 0
    ended: int = 0
    end: str = "cut"
    digest: str | None = None
    # What was done to it on purpose.
    way: str = ""


class Told(Hooks):
    """Hooks that keep what was told of jobs and of what is in flight."""

    def __init__(self) -> None:
        self.ends: list[Job] = []
        self.outcomes: list[str] = []
        self.flying = 0
        self.live = 0

    def ended(self, job: Job) -> None:
        """Keep it."""
        self.ends.append(job)

    def job(self, outcome: str) -> None:
        """Keep it."""
        self.outcomes.append(outcome)

    def in_flight(self, n: int) -> None:
        """Keep the last."""
        self.flying = n

    def depth(self, live: int) -> None:
        """Keep the last."""
        self.live = live


@dataclass(slots=True)
class Book:
    """The facts of one round."""

    clock: WallClock
    history: History
    told: Told = field(default_factory=Told)
    findings: list[str] = field(default_factory=list)
    moment: int = 0
    # By callers: acknowledged submits (their series' URLs) and cancels (when), removals asked for.
    submitted: dict[str, list[str]] = field(default_factory=dict)
    cancelled: dict[str, int] = field(default_factory=dict)
    # When the runner's body was left, at the latest; Trio's time when a fetch ended the program.
    closing: int = 0
    fatal_at: float | None = None
    # By the fetch.
    calls: list[Called] = field(default_factory=list)
    # By the real store: jobs made, results stored, jobs removed and why, jobs failed by a restart.
    stored_jobs: dict[str, int] = field(default_factory=dict)
    stored: dict[tuple[str, int], tuple[str, str | None]] = field(default_factory=dict)
    codes: dict[tuple[str, int], str] = field(default_factory=dict)
    removed: dict[str, str] = field(default_factory=dict)
    restarted: set[str] = field(default_factory=set)
    # What the rows said when they were looked at: a terminal job never changes.
    terminal: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def tick(self) -> int:
        """Return the number of this moment."""
        self.moment += 1
        return self.moment

    def find(self, invariant: str, what: str) -> None:
        """Write down that something does not hold."""
        self.findings.append(f"{invariant}: {what}")

    def made(self, job_id: str, total: int) -> None:
        """Note that the store has a new job."""
        self.stored_jobs[job_id] = total

    def recorded(self, job_id: str, idx: int, outcome: Outcome) -> None:
        """Note that the store has a target's outcome."""
        if (job_id, idx) in self.stored:
            self.find("I2", f"target {idx} was stored twice")
        self.stored[job_id, idx] = (outcome.status.value, digest_of_row(outcome.result))
        self.codes[job_id, idx] = outcome.code

    def gone(self, job_id: str, operation: str) -> None:
        """Note that the store has removed a job."""
        self.removed[job_id] = operation
        reason = {"sweep": "ttl", "evict": "budget"}.get(operation, "deleted")
        self.history.note("gone", job=job_id, reason=reason)


def new_book(clock: WallClock) -> Book:
    """Return an empty book; its history goes by the wall clock."""
    return Book(clock, History(clock=clock))


def count_tasks() -> int:
    """Return how many tasks there are in this run."""

    def count(task: trio.lowlevel.Task) -> int:
        return 1 + sum(count(child) for nursery in task.child_nurseries for child in nursery.child_tasks)

    root = trio.lowlevel.current_root_task()
    return 0 if root is None else count(root)
