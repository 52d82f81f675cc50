"""Is a store sound? What SQLite says of its pages, and what the rows say of one another.

Plain functions of a connection that reads, all inside one transaction, so that a store that is written
meanwhile is seen at one moment. Nothing is mended here, and no value of a row is kept: a finding has a
closed code, a number, and the ids of a few jobs. Next: `beside.py`, which brings this to a thread.
"""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .._model.lifecycle import JobState, TargetState, last_target_event, move_job
from .._model.values import Job
from .rows import JOB_COLUMNS, TARGET_COLUMNS, job_from, target_status_from, utf8_length
from .schema import SCHEMA_VERSION

KINDS: Final[Mapping[str, str]] = {
    "pages": "SQLite's integrity check found damaged pages or indexes",
    "foreign_keys": "SQLite found rows that point to no row",
    "settings": "a setting of the file is not a store's",
    "job_row": "rows of jobs can't be read",
    "target_row": "rows of targets, or their results, can't be read",
    "missing_targets": "jobs have not the targets that they should",
    "counts": "the counts of jobs differ from their targets",
    "job_bytes": "the bytes of jobs differ from their targets'",
    "target_bytes": "the bytes of targets differ from what they hold",
    "result": "targets are done without a result, or have one and are not done",
    "state": "the states of jobs and of their targets do not go together",
    "orphans": "there are targets of no job",
    "gone": "jobs are there that are remembered as gone",
}
"""Every kind of damage that is looked for."""

_EXAMPLES: Final = 5
_TOLD_EVERY: Final = 64
_COUNTED: Final = """
    SELECT job_id, count(*), min(idx), max(idx), total(status = 'pending'), total(status = 'running'),
        total(status IN ('done', 'failed')), total(status = 'failed'), total(nbytes)
    FROM batch_target GROUP BY job_id
"""
_ALL_JOBS: Final = f"SELECT id, {JOB_COLUMNS} FROM batch_job"
_ALL_TARGETS: Final = f"SELECT job_id, nbytes, {TARGET_COLUMNS}, result FROM batch_target"
_ORPHANS: Final = "SELECT DISTINCT job_id FROM batch_target WHERE job_id NOT IN (SELECT id FROM batch_job)"
_STILL_THERE: Final = "SELECT id FROM batch_gone WHERE id IN (SELECT id FROM batch_job)"


@dataclass(slots=True)
class Finding:
    """One kind of damage: how often, and where. `notes` are SQLite's own lines about pages."""

    kind: str
    count: int = 0
    jobs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """What was found, in words."""
        return KINDS[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What a check has found. The store is sound when there are no `findings`."""

    version: int
    journal_mode: str
    page_size: int
    pages: int
    free_pages: int
    jobs: int
    targets: int
    findings: tuple[Finding, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


OnProgress = Callable[[int, int], object]
"""Called with how much is done and how much there is."""


class _Found:
    """Collects what is wrong, a few examples of each kind."""

    def __init__(self) -> None:
        self.by_kind: dict[str, Finding] = {}

    def add(self, kind: str, job_id: object = None, note: object = None) -> None:
        finding = self.by_kind.setdefault(kind, Finding(kind))
        finding.count += 1
        # An id that is no text is damage itself, and is told as such elsewhere.
        if isinstance(job_id, str) and job_id not in finding.jobs and len(finding.jobs) < _EXAMPLES:
            finding.jobs.append(job_id)
        if isinstance(note, str) and len(finding.notes) < _EXAMPLES:
            finding.notes.append(note)

    def in_order(self) -> tuple[Finding, ...]:
        return tuple(self.by_kind[kind] for kind in KINDS if kind in self.by_kind)


def audit(connection: sqlite3.Connection, on_progress: OnProgress = lambda _done, _all: None) -> Audit:
    """Check everything; `on_progress` hears of targets. It begins a transaction, and leaves it open."""
    connection.execute("BEGIN")
    found = _Found()
    # The first look pins the moment that all the others see.
    version = _number(connection, "PRAGMA user_version")
    _check_pages(connection, found)
    jobs = targets = 0
    try:
        jobs = _number(connection, "SELECT count(*) FROM batch_job")
        targets = _number(connection, "SELECT count(*) FROM batch_target")
        _check_jobs(connection, found)
        _check_targets(connection, found, targets, on_progress)
    except sqlite3.DatabaseError as error:
        _add_damage(error, found)
    return Audit(
        version=version,
        journal_mode=str(connection.execute("PRAGMA journal_mode").fetchone()[0]),
        page_size=_number(connection, "PRAGMA page_size"),
        pages=_number(connection, "PRAGMA page_count"),
        free_pages=_number(connection, "PRAGMA freelist_count"),
        jobs=jobs,
        targets=targets,
        findings=found.in_order(),
    )


def _add_damage(error: sqlite3.DatabaseError, found: _Found) -> None:
    """Take in that pages can't be read. Whatever else SQLite says is not about the store."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
        raise error
    if "pages" not in found.by_kind:
        found.add("pages")


def _number(connection: sqlite3.Connection, statement: str) -> int:
    return int(connection.execute(statement).fetchone()[0])


def _check_pages(connection: sqlite3.Connection, found: _Found) -> None:
    try:
        # One by one: on badly damaged pages it says what it knows, and then fails.
        for (line,) in connection.execute("PRAGMA integrity_check(100)"):
            if line != "ok":
                found.add("pages", note=line)
    except sqlite3.DatabaseError as error:
        _add_damage(error, found)
    for _ in connection.execute("PRAGMA foreign_key_check").fetchall():
        found.add("foreign_keys")
    # Without it freed pages never go back to the disk, and a runner refuses the file.
    if _number(connection, "PRAGMA auto_vacuum") != 2:
        found.add("settings", note="auto_vacuum is not incremental")
    if connection.execute("PRAGMA encoding").fetchone()[0] != "UTF-8":
        found.add("settings", note="the encoding is not UTF-8")
    # A backup is in the mode "delete", which needs no file beside it; the next runner turns it back.
    if connection.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "delete"):
        found.add("settings", note="the journal mode is neither wal nor delete")
    if _number(connection, "PRAGMA user_version") > SCHEMA_VERSION:
        found.add("settings", note="the version is a newer one")


def _check_jobs(connection: sqlite3.Connection, found: _Found) -> None:
    counted: dict[object, tuple[Any, ...]] = {row[0]: row[1:] for row in connection.execute(_COUNTED)}
    for job_id, *row in connection.execute(_ALL_JOBS):
        try:
            job = job_from(tuple(row))
        except (ValueError, KeyError):
            found.add("job_row", job_id)
            continue
        _check_job(job, counted.get(job_id, (0, 0, -1, 0, 0, 0, 0, 0)), found)
    for (job_id,) in connection.execute(_ORPHANS):
        found.add("orphans", job_id)
    for (job_id,) in connection.execute(_STILL_THERE):
        found.add("gone", job_id)


def _check_job(job: Job, counted: tuple[Any, ...], found: _Found) -> None:
    rows, lowest, highest, pending, running, finished, failed, nbytes = counted
    if rows < 1 or (rows, lowest, highest) != (job.targets_total, 0, job.targets_total - 1):
        found.add("missing_targets", job.id)
    if (job.targets_done, job.targets_failed) != (finished, failed):
        found.add("counts", job.id)
    if job.nbytes != nbytes:
        found.add("job_bytes", job.id)
    if not _goes_together(job, pending=pending, running=running):
        found.add("state", job.id)


def _goes_together(job: Job, *, pending: float, running: float) -> bool:
    if job.status.live:
        in_time = job.finished_at is None and (job.started_at is None) == (job.status is JobState.QUEUED)
        return in_time and not job.settled and running <= (job.status is JobState.RUNNING)
    if job.finished_at is None or running != (not job.settled):
        return False
    if job.status is JobState.CANCELLED or job.error:
        return True
    # It came to its end: every target is finished, and their outcomes say how the job ended.
    ending = move_job(JobState.RUNNING, last_target_event(job.targets_total, job.targets_failed))
    return job.settled and not pending and job.status is ending and job.started_at is not None


def _check_targets(
    connection: sqlite3.Connection, found: _Found, total: int, on_progress: OnProgress
) -> None:
    # One row at a time: the results of a whole store need not fit into memory.
    for number, (job_id, nbytes, *row) in enumerate(connection.execute(_ALL_TARGETS)):
        if number % _TOLD_EVERY == 0:
            on_progress(number, total)
        blob = row.pop()
        try:
            target = target_status_from(tuple(row), blob)
            held = 0 if blob is None else memoryview(blob).nbytes  # no BLOB: a TypeError
        except (ValueError, KeyError, TypeError, RecursionError):
            found.add("target_row", job_id)
            continue
        texts = (target.url, row[2], target.error, target.hint)
        if nbytes != sum(map(utf8_length, texts)) + held:
            found.add("target_bytes", job_id)
        chars = 0 if target.result is None else len(target.result.content)
        if (target.result is not None) != (target.status is TargetState.DONE) or target.chars != chars:
            found.add("result", job_id)
    on_progress(total, total)
