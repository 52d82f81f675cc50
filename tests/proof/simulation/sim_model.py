"""What must the rows be after each step of the store? The rules once more, in plain Python.

`Ledger` holds every job as it must be. Each method is one operation of a store: it changes the jobs and
returns what the store has to answer. It is written from the words of what is promised and shares no
code with the store. Next room: `sim_store.py`, which compares.
"""

from dataclasses import dataclass, field
from typing import Any, Final

LIVE: Final = ("queued", "running")
REUSABLE: Final = ("queued", "running", "done", "partial")
WEEK: Final = 7 * 86_400


@dataclass(slots=True)
class Page:
    """One target as it must be stored."""

    url: str
    options: str
    status: str = "pending"
    nbytes: int = 0
    error: str = ""
    hint: str = ""
    code: str = ""
    http_status: int | None = None
    retryable: int = 0
    chars: int = 0
    result: bytes | None = None


@dataclass(slots=True)
class Row:
    """One job as it must be stored. `order` tells who was submitted first; `series` what an equal job has."""

    id: str
    caller: str
    caller_class: str
    order: int
    series: object
    pages: list[Page]
    created_at: int
    lease: int
    status: str = "queued"
    settled: int = 0
    error: str = ""
    version: int = 1
    targets_done: int = 0
    targets_failed: int = 0
    started_at: int | None = None
    finished_at: int | None = None
    rerun_of: str | None = None

    @property
    def nbytes(self) -> int:
        """What the job counts for in the budget."""
        return sum(page.nbytes for page in self.pages)

    @property
    def live(self) -> bool:
        """Whether the job has not ended."""
        return self.status in LIVE


@dataclass(slots=True)
class Ledger:
    """All jobs as they must be, and what is remembered of those that went."""

    ttl: float
    jobs: dict[str, Row] = field(default_factory=dict)
    # Of each removed job: its caller, the reason, when, and whether it may have been forgotten by now.
    gone: dict[str, list[Any]] = field(default_factory=dict)

    # ---- what can be seen

    def visible(self, row: Row | None, now: int, caller: str | None = None) -> bool:
        """Whether a reader sees the job at this time."""
        if row is None or (caller is not None and row.caller != caller):
            return False
        return not row.settled or now - row.lease <= self.ttl

    def listed(self, now: int, caller: str | None, status: str | None, before: int | None) -> list[str]:
        """Return the ids that a list shows, newest submission first."""
        rows = sorted(self.jobs.values(), key=lambda row: -row.order)
        return [
            row.id
            for row in rows
            if self.visible(row, now, caller)
            and status in (None, row.status)
            and (before is None or row.order < before)
        ]

    def lapsed(self, now: int) -> set[str]:
        """Return what is for the sweep to look at."""
        return {
            row.id
            for row in self.jobs.values()
            if row.settled and (now - row.lease > self.ttl or row.lease > now + self.ttl)
        }

    def why_gone(self, job_id: str, caller: str, now: int) -> set[str | None]:
        """Return what `gone` may answer."""
        known = self.gone.get(job_id)
        if known is not None and known[0] == caller and known[2] >= now - WEEK:
            return {known[1], None} if known[3] else {known[1]}
        row = self.jobs.get(job_id)
        if row is None or not row.settled or row.caller != caller or row.caller_class == "restricted":
            return {None}
        return {"ttl" if now - row.lease > self.ttl else None}

    @property
    def live(self) -> list[Row]:
        """The jobs that have not ended."""
        return [row for row in self.jobs.values() if row.live]

    @property
    def nbytes(self) -> int:
        """What all jobs count for in the budget."""
        return sum(row.nbytes for row in self.jobs.values())

    # ---- steps

    def submit(
        self, caller: str, series: object, now: int, caps: tuple[int, int], max_age: float | None
    ) -> tuple[str, str]:
        """Return what a submit must come to: `reused` with an id, a refusal, or `created`."""
        equal = [
            row
            for row in self.jobs.values()
            if row.caller == caller and row.series == series and self.visible(row, now)
        ]
        for row in sorted(equal, key=lambda row: -row.order):
            if row.status not in REUSABLE:
                continue
            age = 0 if row.finished_at is None else max(now - row.finished_at, 0)
            if max_age is None or row.finished_at is None or age < max_age:
                row.lease = max(row.lease, now)
                return "reused", row.id
        return self._caps(caller, caps)

    def _caps(self, caller: str, caps: tuple[int, int]) -> tuple[str, str]:
        own = [row for row in self.live if row.caller == caller]
        if len(own) >= caps[0]:
            return "caller_busy", max(own, key=lambda row: row.order).id
        return ("jobs_busy", "") if len(self.live) >= caps[1] else ("created", "")

    def rerun(self, source_id: str, caller: str, now: int, caps: tuple[int, int]) -> tuple[str, str]:
        """Return what a rerun must come to."""
        source = self.jobs.get(source_id)
        if source is None or not self.visible(source, now, caller):
            return "unknown", ""
        return self._caps(caller, caps) if source.settled else ("unsettled", "")

    def rerun_of(self, source: Row, new: Row, now: int) -> None:
        """Make `new` what a rerun of `source` must be."""
        new.rerun_of, new.series = source.id, source.series
        for page in source.pages:
            copy = Page(page.url, page.options, nbytes=len(page.url.encode()) + len(page.options.encode()))
            if page.status == "done":
                copy = Page(
                    page.url, page.options, "done", page.nbytes, "", "", page.code, page.http_status,
                    page.retryable, page.chars, page.result,
                )  # fmt: skip
            new.pages.append(copy)
        new.targets_done = sum(page.status == "done" for page in new.pages)
        if new.targets_done == len(new.pages):
            new.status, new.settled, new.started_at, new.finished_at = "done", 1, now, now

    def begin(self, now: int) -> Row | None:
        """Start the job that was submitted first."""
        queued = [row for row in self.jobs.values() if row.status == "queued"]
        if not queued:
            return None
        row = min(queued, key=lambda row: row.order)
        row.status, row.started_at, row.version = "running", now, row.version + 1
        next(page for page in row.pages if page.status == "pending").status = "running"
        return row

    def record(self, row: Row | None, idx: int, outcome: Any, now: int) -> Row | None:
        """Store one target."""
        if row is None or row.settled or row.pages[idx].status != "running":
            return None
        page = row.pages[idx]
        page.status, page.result, page.chars = outcome.status.value, outcome.result, outcome.chars
        page.error, page.hint, page.code = outcome.error, outcome.hint, outcome.code
        page.http_status, page.retryable = outcome.http_status, int(outcome.retryable)
        page.nbytes += len(outcome.result or b"") + len(outcome.error.encode()) + len(outcome.hint.encode())
        row.targets_done += 1
        row.targets_failed += page.status == "failed"
        row.lease, row.version = max(row.lease, now), row.version + 1
        if row.status != "running":
            row.settled = 1
        elif row.targets_done < len(row.pages):
            next(page for page in row.pages if page.status == "pending").status = "running"
        else:
            failed, total = row.targets_failed, len(row.pages)
            row.status = "done" if not failed else "failed" if failed == total else "partial"
            row.settled, row.finished_at = 1, now
        return row

    def stop(
        self, row: Row | None, status: str, caller: str | None, now: int, in_flight: bool, error: str
    ) -> Row | None:
        """End a live job from outside."""
        if row is None or not row.live or caller not in (None, row.caller):
            return None
        if status == "failed" and row.status != "running":
            return None
        row.status, row.error, row.finished_at = status, error, now
        row.lease, row.version = max(row.lease, now), row.version + 1
        if not in_flight:
            self._put_back(row)
            row.settled = 1
        return row

    def settle(self, row: Row | None, now: int) -> Row | None:
        """Settle a job that was ended from outside."""
        if row is None or row.live or row.settled:
            return None
        self._put_back(row)
        row.settled, row.lease, row.version = 1, max(row.lease, now), row.version + 1
        return row

    def touch(self, row: Row | None, caller: str | None, now: int) -> bool:
        """Move a lease to now."""
        if row is None or not self.visible(row, now, caller):
            return False
        row.lease = max(row.lease, now)
        return True

    def delete(self, row: Row | None, caller: str | None, now: int) -> Row | None:
        """Remove a settled job."""
        if row is None or not row.settled or not self.visible(row, now, caller):
            return None
        return self._remove(row, "deleted", now)

    def sweep(self, row: Row | None, now: int) -> Row | None:
        """Remove a job that has lapsed, or put a lease right that lies too far ahead."""
        if row is None or not row.settled:
            return None
        if row.lease > now + self.ttl:
            row.lease = now
            return None
        return self._remove(row, "ttl", now) if now - row.lease > self.ttl else None

    def evict(self, max_bytes: int, now: int) -> Row | None:
        """Remove the settled job with the oldest lease, but never the one with the newest."""
        settled = [row for row in self.jobs.values() if row.settled]
        if self.nbytes <= max_bytes or len(settled) < 2:
            return None

        def place(row: Row) -> tuple[int, int]:
            return (now if row.lease > now + self.ttl else row.lease), row.order

        return self._remove(min(settled, key=place), "budget", now)

    def restart(self, now: int) -> list[str]:
        """Put right what an earlier owner left; return the jobs that failed by it."""
        failed = [row for row in sorted(self.jobs.values(), key=lambda row: row.order) if row.live]
        for row in self.jobs.values():
            running = any(page.status == "running" for page in row.pages)
            if row.live or running or not row.settled:
                row.version += 1
            self._put_back(row)
            row.settled = 1
            if row in failed:
                row.status, row.error, row.finished_at, row.lease = "failed", "restart", now, now
        return [row.id for row in failed]

    def _put_back(self, row: Row) -> None:
        for page in row.pages:
            if page.status == "running":
                page.status = "pending"

    def _remove(self, row: Row, reason: str, now: int) -> Row:
        del self.jobs[row.id]
        for known in self.gone.values():
            known[3] = known[3] or known[2] < now - WEEK
        if row.caller_class != "restricted":
            self.gone[row.id] = [row.caller, reason, now, False]
        return row
