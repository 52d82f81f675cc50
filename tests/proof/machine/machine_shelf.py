"""What is stored, for how long, and who may see it? The part of the model that stands still.

Jobs stand in the order in which they were submitted. A job is lapsed when it is settled and older than
the TTL, where a lease that lies ahead by more than the TTL counts as now. Bytes are counted as the
contract says: url, options, result, error and hint. Next: `machine_model`, which lets things happen.
"""

import json
import math
from dataclasses import dataclass, field
from typing import Any

_GO_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@dataclass(frozen=True)
class Facts:
    """What one target came to: a result (`content` and `meta`), or an error."""

    content: str | None = None
    meta: tuple[tuple[str, Any], ...] = ()
    error: str = ""
    hint: str = ""
    code: str = ""
    http_status: int | None = None
    retryable: bool = False

    @property
    def nbytes(self) -> int:
        """The bytes of it that are stored."""
        if self.content is None:
            return len(self.error.encode()) + len(self.hint.encode())
        stored = {"content": self.content, "meta": dict(self.meta)}
        return len(json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode())


@dataclass(frozen=True)
class Rules:
    """The settings, and what the engine says of its own where the contract leaves it the words."""

    workers: int
    targets_per_job: int
    jobs_per_caller: int
    jobs_total: int
    ttl: float
    max_bytes: int
    retry_wait: float
    retry_for: float
    target_timeout: float
    job_timeout: float
    timeout: Facts
    too_busy: Facts


@dataclass
class ModelTarget:
    """One target: `options` are the pairs that are not empty, in the order of the canonical form."""

    url: str
    options: tuple[tuple[str, Any], ...]
    status: str = "pending"
    facts: Facts = Facts()

    def take(self, facts: Facts) -> None:
        """Finish with these facts."""
        self.facts = facts
        self.status = "failed" if facts.content is None else "done"

    def carried(self) -> "ModelTarget":
        """Return this target as a rerun has it."""
        if self.status == "done":
            return ModelTarget(self.url, self.options, "done", self.facts)
        return ModelTarget(self.url, self.options)

    @property
    def finished(self) -> bool:
        """Whether it is done or failed."""
        return self.status in ("done", "failed")

    @property
    def nbytes(self) -> int:
        """The bytes of it that are stored."""
        options = json.dumps(dict(self.options), ensure_ascii=False, separators=(",", ":"))
        for char, escape in _GO_ESCAPES.items():
            options = options.replace(char, escape)
        return len(self.url.encode()) + len(options.encode()) + (self.facts.nbytes if self.finished else 0)


@dataclass
class ModelJob:
    """One job. `phase` is "flight" or "busy" while it has a worker, "" else; `due` is when that ends."""

    id: str
    caller: str
    restricted: bool
    key: tuple[Any, ...]
    targets: list[ModelTarget]
    created_at: int
    rerun_of: str | None = None
    status: str = "queued"
    settled: bool = False
    error: str = ""
    started_at: int | None = None
    finished_at: int | None = None
    lease: int = 0
    # How many changes there were since it was created, at least and at most.
    changes: list[int] = field(default_factory=lambda: [0, 0])
    phase: str = ""
    cursor: int = 0
    number: int = 0
    due: float = math.inf
    deadline: float = math.inf
    answers: int = 0
    spent: float = 0.0
    wait_began: float = 0.0
    reason: str = ""
    ready: bool = False
    # Whether its runner was closed before it settled.
    cut_short: bool = False

    def __post_init__(self) -> None:
        self.lease = self.created_at

    @property
    def live(self) -> bool:
        """Whether it is queued or running."""
        return self.status in ("queued", "running")

    @property
    def nbytes(self) -> int:
        """The bytes of it that are stored."""
        return sum(target.nbytes for target in self.targets)

    @property
    def next_pending(self) -> int | None:
        """The first target that was not started yet."""
        return next((idx for idx, target in enumerate(self.targets) if target.status == "pending"), None)

    def changed(self, *, maybe: bool = False) -> None:
        """Count one stored change that a reader can see."""
        self.changes[0] += not maybe
        self.changes[1] += 1


class Shelf:
    """The stored jobs, and what is remembered of those that went."""

    def __init__(self, rules: Rules, wall: float, t: float) -> None:
        self.rules = rules
        self.wall = wall
        self.t = t
        self.jobs: dict[str, ModelJob] = {}
        # What went: the job as it was last, why it went, and whether that is told.
        self.removed: dict[str, tuple[ModelJob, str, bool]] = {}
        # Whether something may or may not have been removed: a sweep makes it certain.
        self.unsure = False

    @property
    def now(self) -> int:
        """The wall clock in whole seconds, as ages are compared."""
        return int(self.wall)

    @property
    def nbytes(self) -> int:
        """The bytes of all stored jobs."""
        return sum(job.nbytes for job in self.jobs.values())

    def _lease(self, job: ModelJob) -> int:
        return self.now if job.lease > self.now + self.rules.ttl else job.lease

    def stale(self, job: ModelJob) -> bool:
        """Whether a sweep would do something about a job."""
        return job.settled and (job.lease != self._lease(job) or not self.visible(job))

    def visible(self, job: ModelJob) -> bool:
        """Whether the job is there for its readers."""
        return not job.settled or self.now - self._lease(job) <= self.rules.ttl

    def find(self, job_id: str, caller: str | None) -> ModelJob | None:
        """Return a job as that caller (None: anybody) can read it."""
        job = self.jobs.get(job_id)
        if job is None or caller not in (None, job.caller) or not self.visible(job):
            return None
        return job

    def listed(self, caller: str | None, status: str | None = None) -> list[ModelJob]:
        """Return the jobs that a caller can read, newest submission first."""
        return [
            job
            for job in reversed(self.jobs.values())
            if self.find(job.id, caller) is not None and status in (None, job.status)
        ]

    def gone(self, job_id: str, caller: str) -> str | None:
        """Return why a job of that caller is gone."""
        if job_id in self.removed:
            job, reason, told = self.removed[job_id]
            return reason if told and job.caller == caller else None
        stored = self.jobs.get(job_id)
        if stored is None or stored.caller != caller or stored.restricted or self.visible(stored):
            return None
        return "ttl"

    @property
    def untidy(self) -> bool:
        """Whether a sweep would find something to do."""
        settled = [job for job in self.jobs.values() if job.settled]
        return any(self.stale(job) for job in settled) or (
            self.nbytes > self.rules.max_bytes and len(settled) > 1
        )

    def remove(self, job: ModelJob, reason: str) -> None:
        """Take a job out of the store."""
        del self.jobs[job.id]
        self.removed[job.id] = job, reason, not job.restricted

    def sweep_lapsed(self) -> None:
        """Remove what has lapsed."""
        for job in [job for job in self.jobs.values() if not self.visible(job)]:
            self.remove(job, "ttl")

    def sweep(self) -> None:
        """Remove what has lapsed, put leases right that lie too far ahead, keep the byte budget."""
        self.sweep_lapsed()
        for job in self.jobs.values():
            if job.settled:
                job.lease = self._lease(job)
        while self.nbytes > self.rules.max_bytes:
            settled = [job for job in self.jobs.values() if job.settled]
            if len(settled) < 2:
                return
            # `min` gives the first of equals, and jobs stand in the order of their submission.
            self.remove(min(settled, key=lambda job: job.lease), "budget")
