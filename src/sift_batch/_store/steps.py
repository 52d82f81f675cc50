"""What does each step change? One plain function for each, and each is one transaction.

A step reads what is there, asks the rulebook (`_model/lifecycle.py`) what may follow, and writes it.
It runs between BEGIN IMMEDIATE and COMMIT, which are not its business, and may be run a second time
when a commit that it shared with others failed; so it touches nothing but its connection.
What the engine does with the answers is not decided here. Reads are in `queries.py`.
"""

import sqlite3
from typing import Final

from .._model.crash import crash_point
from .._model.errors import StoreError
from .._model.lifecycle import (
    JobEvent,
    JobState,
    TargetEvent,
    TargetState,
    job_states_before,
    last_target_event,
    move_job,
    move_target,
)
from .._model.store import (
    Outcome,
    Recorded,
    Restarted,
    Work,
)
from .._model.values import Job, Target
from . import removal
from .queries import select_job, stored_bytes, stored_job
from .rows import options_from, utf8_length
from .schema import LIVE

_PUT_BACK: Final = move_target(TargetState.RUNNING, TargetEvent.PUT_BACK).value
_STARTED: Final = move_target(TargetState.PENDING, TargetEvent.START).value


def restart(connection: sqlite3.Connection, *, now: int) -> Restarted:
    """Put right what an earlier process left: see `Store.acquire`."""
    removal.adjust_overwriting(connection)
    live = [row[0] for row in connection.execute(f"SELECT id FROM batch_job WHERE {LIVE} ORDER BY rowid")]
    unsettled = {row[0] for row in connection.execute("SELECT id FROM batch_job WHERE settled = 0")}
    # Looked for first, since a whole table is read for each of these: mostly there are none.
    marked = {
        row[0] for row in connection.execute("SELECT job_id FROM batch_target WHERE status = 'running'")
    }
    if marked:
        connection.execute("UPDATE batch_target SET status = ? WHERE status = 'running'", (_PUT_BACK,))
    crash_point("restart: targets put back")
    for state in job_states_before(JobEvent.RESTART):
        connection.execute(
            "UPDATE batch_job SET status = ?, error = 'restart', finished_at = ?, lease = ? "
            f"WHERE {LIVE} AND status = ?",
            (move_job(state, JobEvent.RESTART).value, now, now, state.value),
        )
    if unsettled:
        connection.execute("UPDATE batch_job SET settled = 1 WHERE settled = 0")
    changed = {*live, *unsettled, *marked}
    connection.executemany(
        "UPDATE batch_job SET version = version + 1 WHERE id = ?", [(job_id,) for job_id in changed]
    )
    failed = [job for job_id in live if (job := select_job(connection, job_id)) is not None]
    return Restarted(failed, stored_bytes(connection))


def begin(connection: sqlite3.Connection, *, owner: str, now: int) -> Work | None:
    """Start the queued job that was submitted first: see `Store.begin`."""
    row = connection.execute(
        f"SELECT id FROM batch_job WHERE {LIVE} AND status = 'queued' AND owner = ? ORDER BY rowid LIMIT 1",
        (owner,),
    ).fetchone()
    if row is None:
        return None
    job_id: str = row[0]
    work = [
        (idx, Target(url, options_from(options)))
        for idx, url, options in connection.execute(
            "SELECT idx, url, options FROM batch_target WHERE job_id = ? AND status = 'pending' ORDER BY idx",
            (job_id,),
        )
    ]
    connection.execute(
        "UPDATE batch_target SET status = ? WHERE job_id = ? AND idx = ?", (_STARTED, job_id, work[0][0])
    )
    crash_point("begin: target marked")
    connection.execute(
        "UPDATE batch_job SET status = ?, started_at = ?, version = version + 1 WHERE id = ?",
        (move_job(JobState.QUEUED, JobEvent.START).value, now, job_id),
    )
    return Work(stored_job(connection, job_id), work)


def record(
    connection: sqlite3.Connection, *, owner: str, job_id: str, idx: int, outcome: Outcome, now: int
) -> Recorded | None:
    """Store one target and what follows from it for its job: see `Store.record`."""
    size = len(outcome.result or b"") + utf8_length(outcome.error) + utf8_length(outcome.hint)
    if not _store_target(connection, owner, job_id, idx, outcome, size):
        return None
    failed = outcome.status is TargetState.FAILED
    # The usual case first, in one statement that is its own guard: this is the engine's hottest path.
    goes_on = connection.execute(
        "UPDATE batch_job SET targets_done = targets_done + 1, targets_failed = targets_failed + ?, "
        "lease = max(lease, ?), nbytes = nbytes + ?, version = version + 1 "
        "WHERE id = ? AND status = 'running' AND targets_done + 1 < targets_total",
        (failed, now, size, job_id),
    ).rowcount
    if goes_on:
        _start_next(connection, job_id, idx)
        return Recorded(size, None, ended=False)
    return _record_last(connection, job_id, failed, size, now)


def _start_next(connection: sqlite3.Connection, job_id: str, idx: int) -> None:
    started = connection.execute(
        "UPDATE batch_target SET status = ? WHERE job_id = ? AND idx = ? AND status = 'pending'",
        (_STARTED, job_id, idx + 1),
    ).rowcount
    if not started:
        # A rerun: targets that were carried over lie between.
        connection.execute(
            "UPDATE batch_target SET status = ? WHERE job_id = ? AND idx = "
            "(SELECT min(idx) FROM batch_target WHERE job_id = ? AND idx > ? AND status = 'pending')",
            (_STARTED, job_id, job_id, idx),
        )


def _record_last(connection: sqlite3.Connection, job_id: str, failed: bool, size: int, now: int) -> Recorded:
    """Settle a job: its last target was stored, or it was ended from outside before."""
    job = stored_job(connection, job_id)
    state, ended = job.status, False
    if job.status.live:
        event = last_target_event(job.targets_total, job.targets_failed + failed)
        state, ended = move_job(job.status, event), True
    crash_point("record: last target stored")
    connection.execute(
        "UPDATE batch_job SET targets_done = targets_done + 1, targets_failed = targets_failed + ?, "
        "lease = max(lease, ?), nbytes = nbytes + ?, version = version + 1, status = ?, settled = 1, "
        "finished_at = coalesce(finished_at, ?) WHERE id = ?",
        (failed, now, size, state.value, now, job_id),
    )
    return Recorded(size, stored_job(connection, job_id), ended=ended)


def _store_target(
    connection: sqlite3.Connection, owner: str, job_id: str, idx: int, outcome: Outcome, size: int
) -> bool:
    event = TargetEvent.SUCCEED if outcome.status is TargetState.DONE else TargetEvent.FAIL
    stored = connection.execute(
        "UPDATE batch_target SET status = ?, error = ?, hint = ?, code = ?, http_status = ?, retryable = ?, "
        "chars = ?, nbytes = nbytes + ?, result = ? WHERE job_id = ? AND idx = ? AND status = 'running' "
        "AND EXISTS (SELECT 1 FROM batch_job WHERE id = ? AND owner = ? AND settled = 0)",
        (
            move_target(TargetState.RUNNING, event).value,
            outcome.error,
            outcome.hint,
            outcome.code,
            outcome.http_status,
            outcome.retryable,
            outcome.chars,
            size,
            outcome.result,
            job_id,
            idx,
            job_id,
            owner,
        ),
    )
    return stored.rowcount == 1


def stop(
    connection: sqlite3.Connection,
    *,
    owner: str,
    job_id: str,
    event: JobEvent,
    caller: str | None,
    now: int,
    in_flight: bool,
    error: str,
) -> Job | None:
    """End a live job from outside: see `Store.stop`."""
    job = select_job(connection, job_id, caller=caller, owner=owner)
    if job is None or job.status not in job_states_before(event):
        return None
    # The lease moves: whoever reads the job has a whole TTL from its end.
    connection.execute(
        "UPDATE batch_job SET status = ?, error = ?, finished_at = ?, lease = max(lease, ?), settled = ?, "
        "version = version + 1 WHERE id = ?",
        (move_job(job.status, event).value, error, now, now, not in_flight, job_id),
    )
    crash_point("stop: job ended")
    if not in_flight:
        _put_back(connection, job_id)
    return stored_job(connection, job_id)


def settle(connection: sqlite3.Connection, *, owner: str, job_id: str, now: int) -> Job | None:
    """Settle a job that was ended from outside: see `Store.settle`."""
    job = select_job(connection, job_id, owner=owner)
    if job is None or job.status.live or job.settled:
        return None
    _put_back(connection, job_id)
    crash_point("settle: target put back")
    connection.execute(
        "UPDATE batch_job SET settled = 1, lease = max(lease, ?), version = version + 1 WHERE id = ?",
        (now, job_id),
    )
    return stored_job(connection, job_id)


def touch(connection: sqlite3.Connection, *, job_id: str, caller: str | None, now: int, ttl: float) -> bool:
    """Move the lease to now: see `Store.touch`. Within one second, nothing is written."""
    job = select_job(connection, job_id, caller=caller, now=now, ttl=ttl)
    if job is None:
        return False
    if job.lease < now:
        connection.execute("UPDATE batch_job SET lease = ? WHERE id = ?", (now, job_id))
    return True


def check(connection: sqlite3.Connection, *, now: int) -> None:
    """Write a row and read it back: see `Store.check`."""
    connection.execute("INSERT OR REPLACE INTO batch_check(id, at) VALUES (1, ?)", (now,))
    row = connection.execute("SELECT at FROM batch_check WHERE id = 1").fetchone()
    if row is None or row[0] != now:
        raise StoreError("the store does not give back what was written; restore it from a backup")


def _put_back(connection: sqlite3.Connection, job_id: str) -> None:
    connection.execute(
        "UPDATE batch_target SET status = ? WHERE job_id = ? AND status = 'running'", (_PUT_BACK, job_id)
    )
