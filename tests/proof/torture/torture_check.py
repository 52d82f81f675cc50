"""Does a round leave everything as it must be? The invariants, asked of rows, book and memory.

What does not hold goes into the book's findings, each with its invariant. The history is judged by
`check_history` besides. `flow_stage.audit` has the rule that counters equal rows.
"""

import sqlite3
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

from flow_stage import audit
from history import HistoryRules, check_history
from torture_book import Book, Called, digest_of_row
from torture_play import TTL
from torture_ways import CODES

from sift_batch import Gate, Runner

_TERMINAL = ("done", "partial", "failed", "cancelled")


def check_rows(book: Book, connection: sqlite3.Connection, *, settled: bool = False) -> None:
    """Check what is stored at this moment against what was acknowledged."""
    try:
        audit(SimpleNamespace(_inline=SimpleNamespace(_connection=connection)), settled=settled)
    except AssertionError as exc:
        line = exc.__traceback__.tb_next if exc.__traceback__ else None
        book.find("I4", f"rows and counters differ (audit, line {line.tb_lineno if line else '?'}) {exc}")
    targets: dict[str, list[tuple[str, str, str | None]]] = defaultdict(list)
    for job_id, url, state, result in connection.execute(
        "SELECT job_id, url, status, result FROM batch_target ORDER BY job_id, idx"
    ):
        targets[job_id].append((url, state, digest_of_row(result)))
    jobs = {
        row[0]: row[1:]
        for row in connection.execute(
            "SELECT id, status, error, finished_at, settled, rerun_of, targets_total FROM batch_job"
        )
    }
    for job_id, urls in book.submitted.items():
        if job_id not in book.removed and (
            job_id not in jobs or [url for url, *_ in targets[job_id]] != urls
        ):
            book.find("I1", "an acknowledged job is not there, whole")
    for job_id in book.removed:
        if job_id in jobs or job_id in targets:
            book.find("I1", "a removed job is there, in part or whole")
    _check_ends(book, jobs)
    _check_results(book, jobs, targets)


def _check_ends(book: Book, jobs: dict[str, tuple[Any, ...]]) -> None:
    for job_id, (state, error, finished_at, *_) in jobs.items():
        if job_id in book.cancelled and state != "cancelled":
            book.find("I2", f"a cancel was acknowledged, and the job is {state}")
        if state in _TERMINAL:
            end = (state, error, finished_at)
            if book.terminal.setdefault(job_id, end) != end:
                book.find("I2", f"a terminal job changed from {book.terminal[job_id][0]} to {state}")
        elif job_id in book.terminal:
            book.find("I2", f"a terminal job is {state} again")


def _check_results(
    book: Book,
    jobs: dict[str, tuple[Any, ...]],
    targets: dict[str, list[tuple[str, str, str | None]]],
) -> None:
    gave = {(call.job_id, call.idx): call for call in book.calls}
    for job_id, rows in targets.items():
        if job_id not in jobs:
            book.find("I1", "targets without a job")
            continue
        for idx, (_, state, digest) in enumerate(rows):
            said = book.stored.get((job_id, idx))
            if said is not None and said != (state, digest):
                book.find("I4", f"target {idx} was stored as {said[0]} and is {state}, or its result differs")
            call = gave.get((job_id, idx))
            if call is None and state != "pending" and not (jobs[job_id][4] or state == "running"):
                book.find("I3", f"target {idx} is {state} and was never fetched")
            if call is not None and said is not None and call.ended:
                _check_one(book, call, state, digest)


def _check_one(book: Book, call: Called, state: str, digest: str | None) -> None:
    # A busy target that was stored has used up its patience.
    expected = {"ok": "done", "failed": "failed", "busy": "failed", "cut": state}[call.end]
    if state != expected or (call.end == "ok" and digest != call.digest):
        book.find("I4", f"a fetch that ended {call.end!r} ({call.way or 'scripted'}) was stored as {state}")
    code = book.codes[call.job_id, call.idx]
    if call.end == "failed" and code != CODES.get(call.way, code):
        book.find("fetch", f"{call.way!r} was stored with the code {code!r}")


def check_calls(book: Book, *, total: int, per_host: int) -> None:
    """Check which fetches there were, and when."""
    last: dict[tuple[str, int], Called] = {}
    newest: dict[str, Called] = {}
    for call in book.calls:
        before = last.get((call.job_id, call.idx))
        if before is not None and before.end != "busy":
            book.find("I3", f"target {call.idx} was fetched again after it had ended {before.end!r}")
        if call.number != (1 if before is None else before.number + 1):
            book.find("I3", f"attempt {call.number} of target {call.idx} comes out of turn")
        earlier = newest.get(call.job_id)
        if earlier is not None and (earlier.idx > call.idx or not 0 < earlier.ended < call.began):
            book.find("order", f"target {call.idx} began before {earlier.idx} had ended")
        if call.began > book.cancelled.get(call.job_id, call.began):
            book.find("I5", f"target {call.idx} began after the cancel was acknowledged")
        if call.began > (book.closing or call.began):
            book.find("closing", f"target {call.idx} began after the runner was left")
        last[call.job_id, call.idx] = newest[call.job_id] = call
        if not call.ended:
            book.find("left", f"a fetch of target {call.idx} never ended")
        at = call.entered
        flying = [c for c in book.calls if 0 < c.entered <= at and (not c.ended or c.ended > at)]
        if len(flying) > total or sum(c.host == call.host for c in flying) > per_host:
            book.find("gate", f"{len(flying)} fetches at once")


def check_told(book: Book, *, lossy: bool) -> None:
    """Check what the hooks were told, over both lives of the store."""
    ended = [job.id for job in book.told.ends]
    if len(set(ended)) != len(ended):
        book.find("I2", "the end of a job was told twice")
    if book.told.flying:
        book.find("left", f"hooks were told last that {book.told.flying} fetches are in flight")
    if not lossy:
        # Whatever was stored has ended by now, here or by the restart. What was removed had, too.
        missing = set(book.stored_jobs) - set(ended)
        if missing:
            book.find("I2", f"the end of {len(missing)} jobs was never told")
        created = book.told.outcomes.count("created")
        if created != len(book.stored_jobs):
            book.find("told", f"{len(book.stored_jobs)} jobs were stored and {created} told of")


def check_memory(book: Book, runner: Runner | None, gate: Gate) -> None:
    """Check that a runner that was left keeps nothing, and that the gate is empty."""
    now = gate.statistics()
    if now.in_use or now.waiting or now.held:
        book.find("gate", f"not empty: {now}")
    if runner is not None:
        if runner._roster._coming:
            book.find("left", "submits that came to nothing are remembered")
        if runner._feeds._feeds:
            book.find("left", "somebody still follows a job")
        if runner._roster.in_flight:
            book.find("left", "the roster has fetches in flight")
        draining = [live for live in runner._roster.jobs() if live.draining or live.stops or live.refusals]
        if draining:
            book.find("left", f"{len(draining)} jobs are still drained")


def check_story(book: Book) -> None:
    """Let the history be judged. What a store that loses answers refuses is unknown there, no refusal."""
    rules = HistoryRules(total=2, per_host=1, ttl=TTL, workers=2)
    # A call that stood in the gate's door when its job was cancelled is one in flight for the engine; a
    # history sees it start in the slot, too late. `check_calls` has asked for the engine's own start.
    in_the_door = {
        call.job_id for call in book.calls if call.began < book.cancelled.get(call.job_id, 0) < call.entered
    }
    for finding in check_history(book.history.events, rules):
        if not (finding.startswith("I5") and any(job_id in finding for job_id in in_the_door)):
            book.findings.append(finding)


def settled_rows(connection: sqlite3.Connection) -> dict[str, list[Any]]:
    """Return everything that is stored of each settled job."""
    ids = [row[0] for row in connection.execute("SELECT id FROM batch_job WHERE settled")]
    return {job_id: _rows(connection, job_id) for job_id in ids}


def _rows(connection: sqlite3.Connection, job_id: str) -> list[Any]:
    job = connection.execute("SELECT * FROM batch_job WHERE id = ?", (job_id,)).fetchall()
    return [*job, *connection.execute("SELECT * FROM batch_target WHERE job_id = ? ORDER BY idx", (job_id,))]
