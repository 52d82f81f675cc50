"""How does a job come into the store?

By a submit, which first looks for an equal job and then at the caps, or by a rerun, which carries over
what an older job of the same caller has done. Each is one transaction, so that any number of them at
once can't create more than the caps allow. What happens to the job from there on is in `steps.py`.
"""

import functools
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from .._model.crash import crash_point
from .._model.lifecycle import JobState, last_target_event, move_job
from .._model.store import (
    CallerBusy,
    Caps,
    Created,
    JobsBusy,
    NewJob,
    RerunOutcome,
    Reused,
    SubmitOutcome,
    UnknownJob,
    UnsettledJob,
)
from .._model.values import Caller, CallerClass
from . import removal
from .queries import find_reusable, select_job, stored_job
from .rows import TargetRow, target_row
from .schema import LIVE

_ROWS_AT_ONCE: Final = 32


def submit(
    connection: sqlite3.Connection,
    *,
    owner: str,
    new: NewJob,
    key: str,
    now: int,
    ttl: float,
    caps: Caps,
    max_age: float | None,
) -> SubmitOutcome:
    """Look for an equal job, check the caps, insert: see `Store.submit`."""
    equal = find_reusable(connection, caller=new.caller.name, key=key, now=now, ttl=ttl, max_age=max_age)
    if equal is not None:
        connection.execute("UPDATE batch_job SET lease = ? WHERE id = ? AND lease < ?", (now, equal, now))
        return Reused(equal)
    refusal = _over_caps(connection, new.caller.name, caps)
    if refusal is not None:
        return refusal
    rows = [target_row(idx, target) for idx, target in enumerate(new.targets)]
    _insert_job(
        connection,
        new.id,
        new.caller,
        key=key,
        owner=owner,
        total=len(rows),
        nbytes=sum(row[3] for row in rows),
        now=now,
    )
    crash_point("submit: job without targets")
    _insert_targets(connection, new.id, rows)
    return Created(stored_job(connection, new.id))


def rerun(
    connection: sqlite3.Connection,
    *,
    owner: str,
    new_id: str,
    source_id: str,
    caller: Caller,
    now: int,
    ttl: float,
    caps: Caps,
) -> RerunOutcome:
    """Insert a job of a settled one's targets, the finished ones carried over: see `Store.rerun`."""
    source = select_job(connection, source_id, caller=caller.name, now=now, ttl=ttl)
    if source is None:
        return UnknownJob()
    if not source.settled:
        return UnsettledJob()
    refusal = _over_caps(connection, caller.name, caps)
    if refusal is not None:
        return refusal
    key = connection.execute("SELECT idem_key FROM batch_job WHERE id = ?", (source_id,)).fetchone()[0]
    _insert_job(
        connection, new_id, caller, key=key, owner=owner, total=source.targets_total, nbytes=0, now=now
    )
    connection.execute(
        "INSERT INTO batch_target(job_id, idx, url, options, nbytes) "
        "SELECT ?, idx, url, options, length(CAST(url AS BLOB)) + length(CAST(options AS BLOB)) "
        "FROM batch_target WHERE job_id = ? AND status <> 'done'",
        (new_id, source_id),
    )
    crash_point("rerun: nothing carried yet")
    carried = connection.execute(
        "INSERT INTO batch_target"
        "(job_id, idx, url, options, status, code, http_status, retryable, chars, nbytes, result) "
        "SELECT ?, idx, url, options, status, code, http_status, retryable, chars, nbytes, result "
        "FROM batch_target WHERE job_id = ? AND status = 'done'",
        (new_id, source_id),
    ).rowcount
    connection.execute(
        "UPDATE batch_job SET targets_done = ?, rerun_of = ?, "
        "nbytes = (SELECT total(nbytes) FROM batch_target WHERE job_id = ?) WHERE id = ?",
        (carried, source_id, new_id, new_id),
    )
    if carried == source.targets_total:
        state = move_job(JobState.QUEUED, last_target_event(carried, 0))
        connection.execute(
            "UPDATE batch_job SET status = ?, settled = 1, started_at = ?, finished_at = ? WHERE id = ?",
            (state.value, now, now, new_id),
        )
    return Created(stored_job(connection, new_id))


def _insert_targets(connection: sqlite3.Connection, job_id: str, rows: Sequence[TargetRow]) -> None:
    # Many rows a statement take half the time of one statement for each row.
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE]
        connection.execute(_insert_statement(len(part)), [value for row in part for value in (job_id, *row)])


@functools.cache
def _insert_statement(rows: int) -> str:
    values = ",".join("(?,?,?,?,?)" for _ in range(rows))
    return f"INSERT INTO batch_target(job_id, idx, url, options, nbytes) VALUES {values}"


def _over_caps(connection: sqlite3.Connection, caller: str, caps: Caps) -> CallerBusy | JobsBusy | None:
    own = connection.execute(
        f"SELECT count(*) FROM batch_job WHERE {LIVE} AND caller = ?", (caller,)
    ).fetchone()[0]
    if own >= caps.per_caller:
        newest = connection.execute(
            f"SELECT id FROM batch_job WHERE {LIVE} AND caller = ? ORDER BY rowid DESC LIMIT 1", (caller,)
        ).fetchone()[0]
        return CallerBusy(newest)
    live = connection.execute(f"SELECT count(*) FROM batch_job WHERE {LIVE}").fetchone()[0]
    return JobsBusy() if live >= caps.total else None


def _insert_job(
    connection: sqlite3.Connection,
    job_id: str,
    caller: Caller,
    *,
    key: str,
    owner: str,
    total: int,
    nbytes: int,
    now: int,
) -> None:
    if caller.caller_class is CallerClass.RESTRICTED:
        removal.overwrite_what_goes(connection)
    values: tuple[Any, ...] = (
        job_id,
        caller.name,
        CallerClass(caller.caller_class).value,
        key,
        JobState.QUEUED.value,
        owner,
        total,
        now,
        now,
        nbytes,
    )
    connection.execute(
        "INSERT INTO batch_job(id, caller, caller_class, idem_key, status, owner, targets_total, created_at, "
        "lease, nbytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
