"""How does a job leave the store, and what is remembered of it?

Deleted by its caller, swept when it lapsed, or evicted for the byte budget: always whole, always one
job a transaction, and always with the question asked again inside that transaction, since the answer
may have changed since the engine looked. Freed pages go back to the disk beyond a slack that saves
moving them twice. What a restricted caller's rows leave behind is in `overwrite_what_goes`.
"""

import sqlite3
from typing import Final

from .._model.crash import crash_point
from .._model.store import Removed
from .._model.values import CallerClass, Job
from .queries import GONE_SECONDS, effective_lease, select_job, stored_bytes

_GONE_LIMIT: Final = 10_000
_SLACK_PAGES: Final = 1_024


def delete(
    connection: sqlite3.Connection, *, job_id: str, caller: str | None, now: int, ttl: float
) -> Removed | None:
    """Remove a settled job that can be read: see `Store.delete`."""
    job = select_job(connection, job_id, caller=caller, now=now, ttl=ttl)
    if job is None or not job.settled:
        return None
    return _remove(connection, job, "deleted", now)


def sweep(connection: sqlite3.Connection, *, job_id: str, now: int, ttl: float) -> Removed | None:
    """Remove a job if it is lapsed still: see `Store.sweep`."""
    job = select_job(connection, job_id)
    if job is None or not job.settled:
        return None
    if job.lease > now + ttl:
        connection.execute("UPDATE batch_job SET lease = ? WHERE id = ?", (now, job_id))
        return None
    return _remove(connection, job, "ttl", now) if now - job.lease > ttl else None


def evict(connection: sqlite3.Connection, *, max_bytes: int, now: int, ttl: float) -> Removed | None:
    """Remove the settled job with the oldest lease while over the budget: see `Store.evict`."""
    if stored_bytes(connection) <= max_bytes:
        return None
    lease = effective_lease()
    parameters = {"now": now, "ahead": now + ttl}
    newest = connection.execute(
        f"SELECT id FROM batch_job WHERE settled = 1 ORDER BY {lease} DESC, rowid DESC LIMIT 1", parameters
    ).fetchone()
    oldest = connection.execute(
        f"SELECT id FROM batch_job WHERE settled = 1 ORDER BY {lease}, rowid LIMIT 1", parameters
    ).fetchone()
    if oldest is None or oldest == newest:
        return None
    job = select_job(connection, oldest[0])
    crash_point("evict: chosen")
    return None if job is None else _remove(connection, job, "budget", now)


def _remove(connection: sqlite3.Connection, job: Job, reason: str, now: int) -> Removed:
    restricted = job.caller_class is CallerClass.RESTRICTED
    connection.execute("DELETE FROM batch_target WHERE job_id = ?", (job.id,))
    crash_point("remove: targets gone")
    connection.execute("DELETE FROM batch_job WHERE id = ?", (job.id,))
    if not restricted:
        _remember(connection, job, reason, now)
    free = connection.execute("PRAGMA freelist_count").fetchone()[0]
    for _ in range(free - _SLACK_PAGES):
        # One page a call, whatever number is given: sqlite3 takes one step of a statement without rows.
        connection.execute("PRAGMA incremental_vacuum(1)")
    return Removed(job.id, job.nbytes, restricted)


def overwrite_what_goes(connection: sqlite3.Connection) -> None:
    """Let SQLite overwrite what is freed, from before the first restricted row is written.

    It must be on for as long as there is such a row, not only while it is deleted: a row that grows
    or a page that is split leaves copies behind, and a deletion knows nothing of those.
    """
    connection.execute("PRAGMA secure_delete = ON").fetchall()


def adjust_overwriting(connection: sqlite3.Connection) -> None:
    """Overwrite what is freed if there are restricted rows, else not: it costs several times more."""
    found = connection.execute(
        "SELECT 1 FROM batch_job WHERE caller_class = ? LIMIT 1", (CallerClass.RESTRICTED.value,)
    ).fetchone()
    connection.execute(f"PRAGMA secure_delete = {'OFF' if found is None else 'ON'}").fetchall()


def _remember(connection: sqlite3.Connection, job: Job, reason: str, now: int) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO batch_gone(id, caller, reason, at) VALUES (?, ?, ?, ?)",
        (job.id, job.caller, reason, now),
    )
    connection.execute(
        "DELETE FROM batch_gone WHERE rowid <= (SELECT max(rowid) FROM batch_gone) - ?", (_GONE_LIMIT,)
    )
    # In order of departure, so the old ones stand first; a few a step keep the table short.
    connection.execute(
        "DELETE FROM batch_gone WHERE at < ? AND rowid IN "
        "(SELECT rowid FROM batch_gone ORDER BY rowid LIMIT 16)",
        (now - GONE_SECONDS,),
    )
