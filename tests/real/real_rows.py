"""Do the rows of a store's file fit together? Looked at from outside, without being able to change it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sift_batch import JobState


@contextmanager
def looking(path: Path) -> Iterator[sqlite3.Connection]:
    """Look into a store's file without being able to change it."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


def rows(path: Path) -> list[tuple[Any, ...]]:
    """Return every row of every table, as stored."""
    with looking(path) as connection:
        return rows_of(connection)


def rows_of(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    """Return every row of every table that a connection sees."""
    return [
        row
        for table in ("batch_job", "batch_target", "batch_gone")
        for row in connection.execute(f"SELECT '{table}', rowid, * FROM {table} ORDER BY rowid")
    ]


def check_rows(path: Path) -> None:
    """Check that the file is sound and that what is counted is what there is."""
    with looking(path) as connection:
        check_rows_of(connection)


def check_rows_of(connection: sqlite3.Connection) -> None:
    """Check what a connection sees: the file is sound, and what is counted is what there is."""
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    counted = (
        "SELECT count(*), total(status IN ('done', 'failed')), total(status = 'failed'), total(nbytes), "
        "total(status = 'running'), total(status = 'done' AND result IS NULL), "
        "total(status <> 'done' AND result IS NOT NULL) FROM batch_target WHERE job_id = ?"
    )
    for job_id, status, settled, *counts in connection.execute(
        "SELECT id, status, settled, targets_total, targets_done, targets_failed, nbytes FROM batch_job"
    ).fetchall():
        *sums, running, without, beyond = connection.execute(counted, (job_id,)).fetchone()
        assert sums == counts, "a job's counters are not those of its targets"
        assert not running or not settled, "a settled job has a target running"
        assert running <= 1, "a job has two targets running"
        assert (without, beyond) == (0, 0), "a result is missing, or stands where there should be none"
        assert JobState(status).terminal or not settled
    orphans = "SELECT count(*) FROM batch_target WHERE job_id NOT IN (SELECT id FROM batch_job)"
    assert connection.execute(orphans).fetchone() == (0,)
