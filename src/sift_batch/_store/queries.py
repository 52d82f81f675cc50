"""What can be read? Plain functions of a connection; none of them writes.

Everything a caller may see is asked with the caller and the lease in the same statement: another
caller's job, a lapsed one and one that never was give the same answer by the same path. Rows are
fetched whole inside the function, since an open cursor would keep the log from being moved.
"""

import sqlite3
from typing import Any, Final

from .._model.lifecycle import REUSABLE, JobState
from .._model.store import Lapsed
from .._model.values import CallerClass, Job, JobStatus
from .rows import JOB_COLUMNS, TARGET_COLUMNS, job_from, target_status_from
from .schema import LIVE

GONE_SECONDS: Final = 7 * 86_400
_SWEEP_BATCH: Final = 256
_REUSABLE: Final = ", ".join(f"'{state.value}'" for state in sorted(REUSABLE))
_ALWAYS: Final = float("-inf")
_NO_STOP: Final = 2**62
_VISIBLE: Final = "(settled = 0 OR lease >= :oldest)"
_AT_OR_BELOW: Final = "(SELECT rowid FROM batch_job WHERE id <= :id ORDER BY id DESC LIMIT 1)"


def effective_lease() -> str:
    """Return the SQL for a lease as the rules see it: one too far ahead of `:now` counts as now."""
    return "CASE WHEN lease > :ahead THEN :now ELSE lease END"


def _oldest(now: int | None, ttl: float) -> float:
    """Return the oldest lease that is readable still: `now - lease <= ttl`."""
    return _ALWAYS if now is None else now - ttl


def select_job(
    connection: sqlite3.Connection,
    job_id: str,
    *,
    caller: str | None = None,
    owner: str | None = None,
    now: int | None = None,
    ttl: float = 0.0,
) -> Job | None:
    """Return the job if it is there, of that caller and owner if named, and not lapsed at `now`.

    An id that is not there takes as long as another caller's job: its neighbour's row is looked at.
    """
    row = connection.execute(
        f"SELECT {JOB_COLUMNS} FROM batch_job WHERE rowid = {_AT_OR_BELOW} AND +id = :id "
        f"AND (:caller IS NULL OR caller = :caller) AND (:owner IS NULL OR owner = :owner) AND {_VISIBLE}",
        {"id": job_id, "oldest": _oldest(now, ttl), "caller": caller, "owner": owner},
    ).fetchone()
    return None if row is None else job_from(row)


def stored_job(connection: sqlite3.Connection, job_id: str) -> Job:
    """Return a job that this step has just written."""
    return job_from(
        connection.execute(f"SELECT {JOB_COLUMNS} FROM batch_job WHERE id = ?", (job_id,)).fetchone()
    )


def select_status(
    connection: sqlite3.Connection,
    job_id: str,
    *,
    caller: str | None,
    now: int,
    ttl: float,
    results: bool,
    start: int,
    stop: int | None,
) -> JobStatus | None:
    """Return the job and its targets from one snapshot: see `Reads.status`."""
    # Two statements must see the same moment; a step or the inline bridge has begun one already.
    own = not connection.in_transaction
    if own:
        connection.execute("BEGIN")
    try:
        job = select_job(connection, job_id, caller=caller, now=now, ttl=ttl)
        if job is None:
            return None
        rows = connection.execute(
            f"SELECT {TARGET_COLUMNS}{', result' if results else ''} FROM batch_target "
            "WHERE job_id = ? AND idx >= ? AND idx < ? ORDER BY idx",
            (job_id, min(start, _NO_STOP), _NO_STOP if stop is None else min(stop, _NO_STOP)),
        ).fetchall()
    finally:
        if own:
            connection.execute("COMMIT")
    # A stream waits for rows by their number: with one missing it would ask for ever, or end short.
    end = job.targets_total if stop is None else min(stop, job.targets_total)
    if len(rows) != max(end - start, 0):
        raise ValueError("a stored job does not have the targets that it should")
    return JobStatus(job, tuple(target_status_from(row, row[10] if results else None) for row in rows))


def select_jobs(
    connection: sqlite3.Connection,
    *,
    caller: str | None,
    status: JobState | None,
    before: str | None,
    limit: int,
    now: int,
    ttl: float,
) -> list[Job] | None:
    """Return jobs, newest submission first; None if `before` is unknown: see `Reads.jobs`."""
    parameters: dict[str, Any] = {
        "caller": caller,
        "status": None if status is None else status.value,
        "oldest": _oldest(now, ttl),
        "limit": limit,
        "before": _NO_STOP,
    }
    if before is not None:
        row = connection.execute(
            f"SELECT rowid FROM batch_job WHERE id = :id AND {_VISIBLE} "
            "AND (:caller IS NULL OR caller = :caller)",
            parameters | {"id": before},
        ).fetchone()
        if row is None:
            return None
        parameters["before"] = row[0]
    # Two texts, so that a caller's own list walks that caller's index and nothing else.
    narrowed = "caller = :caller AND" if caller is not None else ""
    rows = connection.execute(
        f"SELECT {JOB_COLUMNS} FROM batch_job WHERE {narrowed} rowid < :before AND {_VISIBLE} "
        "AND (:status IS NULL OR status = :status) ORDER BY rowid DESC LIMIT :limit",
        parameters,
    ).fetchall()
    return [job_from(row) for row in rows]


def find_reusable(
    connection: sqlite3.Connection, *, caller: str, key: str, now: int, ttl: float, max_age: float | None
) -> str | None:
    """Return the id of the job that answers an equal submit, if there is one.

    The newest that may be reused, if it is young enough, or else a live one, which is never too old.
    """
    values = {"caller": caller, "key": key, "oldest": _oldest(now, ttl)}
    if max_age != 0:
        # The plus keeps SQLite from walking all jobs of the caller when there is a key to look up.
        newest = connection.execute(
            "SELECT id, finished_at FROM batch_job WHERE idem_key = :key AND +caller = :caller "
            f"AND status IN ({_REUSABLE}) AND {_VISIBLE} ORDER BY rowid DESC LIMIT 1",
            values,
        ).fetchone()
        if newest is None:
            return None
        if max_age is None or newest[1] is None or now - newest[1] < max_age:
            return str(newest[0])
    live = connection.execute(
        f"SELECT id FROM batch_job WHERE {LIVE} AND caller = :caller AND +idem_key = :key "
        "ORDER BY rowid DESC LIMIT 1",
        values,
    ).fetchone()
    return None if live is None else str(live[0])


def select_gone(
    connection: sqlite3.Connection, job_id: str, *, caller: str, now: int, ttl: float
) -> str | None:
    """Return why a job is gone, as far as it is remembered: see `Reads.gone`."""
    row = connection.execute(
        "SELECT reason FROM batch_gone WHERE id = ? AND caller = ? AND at >= ?",
        (job_id, caller, now - GONE_SECONDS),
    ).fetchone()
    if row is not None:
        return str(row[0])
    job = select_job(connection, job_id, caller=caller)
    if job is None or not job.settled or job.caller_class is CallerClass.RESTRICTED:
        return None
    return "ttl" if job.lease < _oldest(now, ttl) else None


def select_lapsed(connection: sqlite3.Connection, *, now: int, ttl: float) -> Lapsed:
    """Return some of the lapsed jobs and the oldest lease of the others: see `Store.lapsed`."""
    parameters = {"oldest": _oldest(now, ttl), "ahead": now + ttl, "limit": _SWEEP_BATCH}
    rows = connection.execute(
        "SELECT id FROM batch_job WHERE settled = 1 AND (lease < :oldest OR lease > :ahead) LIMIT :limit",
        parameters,
    ).fetchall()
    lease = connection.execute(
        "SELECT min(lease) FROM batch_job WHERE settled = 1 AND lease >= :oldest", parameters
    ).fetchone()[0]
    return Lapsed([row[0] for row in rows], lease)


def stored_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes of all stored jobs."""
    return int(connection.execute("SELECT coalesce(sum(nbytes), 0) FROM batch_job").fetchone()[0])
