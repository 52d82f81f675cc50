"""Stores that break one rule each: the package's own store with one piece of its code changed.

A breakage is a text of the source and what stands in its place, and part of the rule that it breaks.
The changed code runs in place of the real one for one test; a text that is not found is a failure, so
that a breakage never stops breaking anything unnoticed.
"""

import inspect
from types import FunctionType, ModuleType
from typing import NamedTuple

import pytest

from sift_batch._store import arrival, bridge, queries, removal, rows, sqlite, steps


class Breakage(NamedTuple):
    """One piece of code to change, and a part of the rule that is broken then."""

    module: ModuleType
    old: str
    new: str
    rule: str


def apply(breakage: Breakage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the changed code run until `monkeypatch` is undone."""
    module = breakage.module
    source = inspect.getsource(module)
    assert breakage.old in source, f"the code to break is not there any more: {breakage.old}"
    broken = ModuleType(module.__name__)
    broken.__package__, broken.__file__ = module.__package__, module.__file__
    exec(compile(source.replace(breakage.old, breakage.new, 1), str(module.__file__), "exec"), vars(broken))
    changed = _replace(vars(module), broken, module.__name__, monkeypatch)
    for name, value in vars(module).items():
        if isinstance(value, (str, int)) and not name.startswith("__") and value != getattr(broken, name):
            monkeypatch.setattr(module, name, getattr(broken, name))
            changed = True
    assert changed, "nothing was changed"


def _replace(real: dict[str, object], broken: object, module: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Give each function its changed code; in place, so that whoever imported it has it too."""
    changed = False
    for name, value in list(real.items()):
        if getattr(value, "__module__", None) != module:
            continue
        theirs = getattr(broken, name, None)
        if isinstance(value, type):
            changed |= _replace(dict(vars(value)), theirs, module, monkeypatch)
        elif isinstance(value, FunctionType) and isinstance(theirs, FunctionType):
            changed |= value.__code__ != theirs.__code__
            monkeypatch.setattr(value, "__code__", theirs.__code__)
    return changed


BREAKAGES = (
    # submit
    Breakage(arrival, "if equal is not None:", "if False:", "Twenty equal submits"),
    Breakage(arrival, "if own >= caps.per_caller:", "if own > caps.per_caller:", "Twenty submits at once"),
    Breakage(arrival, "if live >= caps.total", "if live > caps.total", "caller's cap comes before"),
    Breakage(
        arrival,
        'WHERE id = ? AND lease < ?", (now, equal, now)',
        'WHERE id = ?", (now, equal)',
        "bumped to now",
    ),
    Breakage(arrival, "ORDER BY rowid DESC LIMIT 1", "ORDER BY rowid LIMIT 1", "caller's newest live job"),
    Breakage(arrival, "nbytes=sum(row[3] for row in rows)", "nbytes=0", "A submit stores the job"),
    Breakage(queries, "AND status IN ({_REUSABLE})", "", "failed or a cancelled job never"),
    Breakage(
        queries,
        "now - newest[1] < max_age",
        "now - newest[1] <= max_age",
        "With max_age a finished job",
    ),
    Breakage(
        queries,
        "max_age is None or newest[1] is None or",
        "max_age is None or",
        "With max_age a finished job",
    ),
    Breakage(
        queries,
        "AND {_VISIBLE} ORDER BY rowid DESC LIMIT 1",
        "AND {_VISIBLE} ORDER BY rowid LIMIT 1",
        "submitted last answers",
    ),
    Breakage(rows, "url = scrub(target.url)", "url = target.url", "NUL or lone surrogates"),
    # begin and record
    Breakage(steps, "ORDER BY rowid LIMIT 1", "ORDER BY id LIMIT 1", "in the order in which"),
    Breakage(
        steps, "AND status = 'pending' ORDER BY idx\"", 'ORDER BY idx"', "over the targets that were not"
    ),
    Breakage(steps, "(_STARTED, job_id, work[0][0])", "('pending', job_id, work[0][0])", "Begin makes"),
    Breakage(steps, "(_STARTED, job_id, job_id, idx)", "('pending', job_id, job_id, idx)", "skips those"),
    Breakage(steps, "idx = ? AND status = 'running' ", "idx = ? ", "Record stores nothing"),
    Breakage(steps, "lease = max(lease, ?), ", "lease = ?, ", "Record never moves a lease"),
    Breakage(
        steps, 'nbytes = nbytes + ?, version = version + 1 "\n', 'nbytes = nbytes + ? "\n', "Record bumps"
    ),
    Breakage(rows, "else len(text.encode())", "else len(text)", "bytes are those of url"),
    Breakage(steps, "        outcome.chars,\n", "        0,\n", "Record stores the target"),
    Breakage(
        steps,
        "    if job.status.live:\n        event = last",
        "    if True:\n        event = last",
        "With a fetch in flight",
    ),
    Breakage(
        steps, "targets_done + 1 < targets_total", "targets_done + 1 <= targets_total", "The last target ends"
    ),
    # stop and settle
    Breakage(steps, "    if not in_flight:\n", "    if False:\n", "nothing in flight, stop puts"),
    Breakage(steps, "now, now, not in_flight, job_id", "now, now, True, job_id", "With a fetch in flight"),
    Breakage(
        steps,
        "if job is None or job.status not in job_states_before(event):",
        "if job is None:",
        "never ended again",
    ),
    Breakage(steps, "lease = max(lease, ?), settled = ?", "lease = ?, settled = ?", "Stop and settle never"),
    Breakage(
        steps,
        "select_job(connection, job_id, caller=caller, owner=owner)",
        "select_job(connection, job_id, owner=owner)",
        "Stop for another caller's",
    ),
    Breakage(steps, "job.status.live or job.settled", "job.status.live", "Settle settles"),
    # owner and restart
    Breakage(sqlite, "if self._owner is not None:", "if False:", "another one gets StoreInUseError"),
    Breakage(
        sqlite,
        "self._owner = owner\n        try:\n            found",
        "await trio.lowlevel.checkpoint()\n        self._owner = owner\n        try:\n            found",
        "Of two acquires at the same time",
    ),
    Breakage(sqlite, "self._writes is None or owner != self._owner", "self._writes is None", "not the owner"),
    Breakage(sqlite, "if owner == self._owner:", "if True:", "Only the owner can release"),
    Breakage(steps, "SET settled = 1 WHERE settled = 0", "SET settled = 1 WHERE 0", "A restart"),
    Breakage(steps, 'finished_at = ?, lease = ? "', 'finished_at = ?, lease = 0 * ? + lease "', "A restart"),
    Breakage(
        steps,
        "SET status = ? WHERE status = 'running'\", (_PUT_BACK,)",
        'SET status = ? WHERE 0", (_PUT_BACK,)',
        "A restart fails live jobs",
    ),
    Breakage(
        steps,
        "[(job_id,) for job_id in changed]",
        'connection.execute("SELECT id FROM batch_job").fetchall()',
        "a restart changes no settled job",
    ),
    # leases
    Breakage(
        queries, '_VISIBLE: Final = "(settled = 0 OR lease >= :oldest)"', '_VISIBLE: Final = "1"', "lapsed"
    ),
    Breakage(queries, "(settled = 0 OR lease >= :oldest)", "(settled = 0 OR lease > :oldest)", "lapsed"),
    Breakage(queries, "(settled = 0 OR lease", "(status IN ('queued', 'running') OR lease", "never lapse"),
    Breakage(steps, "if job.lease < now:", "if job.lease != now:", "Touch sets the lease"),
    Breakage(
        steps,
        "caller=caller, now=now, ttl=ttl)\n    if job is None:\n        return False",
        "caller=caller)\n    if job is None:\n        return False",
        "A lapsed job can't be touched",
    ),
    Breakage(queries, "WHERE settled = 1 AND (lease < :oldest", "WHERE (lease < :oldest", "never lapse"),
    Breakage(queries, "SELECT min(lease)", "SELECT max(lease)", "Lapsed names jobs"),
    Breakage(removal, "if now - job.lease > ttl else None", "if True else None", "Sweep asks again"),
    Breakage(removal, "if job.lease > now + ttl:", "if False:", "A lease ahead of now"),
    # reruns
    Breakage(arrival, "if not source.settled:", "if False:", "A rerun of an unknown job"),
    Breakage(arrival, "if carried == source.targets_total:", "if False:", "nothing left to fetch"),
    Breakage(
        arrival,
        "connection, new_id, caller, key=key",
        'connection, new_id, caller, key="" * len(key)',
        "newer",
    ),
    Breakage(
        arrival,
        'chars, nbytes, result "\n        "FROM',
        'chars, nbytes, NULL "\n        "FROM',
        "carries the done",
    ),
    Breakage(
        arrival,
        "refusal = _over_caps(connection, caller.name, caps)",
        "refusal = None",
        "caps of a submit apply to a rerun",
    ),
    # reads
    Breakage(queries, "(:caller IS NULL OR caller = :caller) AND", "", "Another caller's"),
    Breakage(queries, 'else ""\n    rows', 'else ""\n    narrowed = ""\n    rows', "Another caller's"),
    Breakage(
        queries, "idx >= ? AND idx < ? ORDER BY", "idx >= ? AND idx <= ? ORDER BY", "start <= idx < stop"
    ),
    Breakage(
        queries, "ORDER BY rowid DESC LIMIT :limit", "ORDER BY id DESC LIMIT :limit", "newest submission"
    ),
    Breakage(queries, "AND (:status IS NULL OR status = :status)", "", "narrowed to one state"),
    Breakage(
        sqlite, 'isinstance(job_id, str) and job_id.isascii() else ""', "True else ''", "can't be an id"
    ),
    # removal
    Breakage(
        removal,
        'not job.settled:\n        return None\n    return _remove(connection, job, "deleted"',
        'False:\n        return None\n    return _remove(connection, job, "deleted"',
        "Delete removes no job",
    ),
    Breakage(
        removal, "batch_target WHERE job_id = ?", "batch_target WHERE job_id >= ?", "takes nothing of another"
    ),
    Breakage(removal, "<= max_bytes:", "< max_bytes:", "within the budget"),
    Breakage(removal, "or oldest == newest:", "or False:", "newest lease stays"),
    Breakage(
        removal, "ORDER BY {lease}, rowid LIMIT", "ORDER BY {lease}, rowid DESC LIMIT", "Evict removes one"
    ),
    Breakage(removal, "DESC, rowid DESC LIMIT", "DESC, rowid LIMIT", "newest lease"),
    Breakage(removal, "WHERE settled = 1 ORDER BY {lease}, rowid", "ORDER BY {lease}, rowid", "Evict never"),
    Breakage(queries, '"CASE WHEN lease > :ahead THEN :now ELSE lease END"', '"lease"', "For evict too"),
    Breakage(removal, "    if not restricted:\n", "    if True:\n", "restricted caller's jobs"),
    Breakage(queries, "or job.caller_class is CallerClass.RESTRICTED", "", "restricted caller's jobs"),
    Breakage(queries, "AND caller = ? AND at >= ?", "AND (1 OR caller = ?) AND at >= ?", "Gone is None"),
    Breakage(queries, "now - GONE_SECONDS)", "now - 2 * GONE_SECONDS)", "remembered for 7 days"),
    Breakage(removal, "_GONE_LIMIT: Final = 10_000", "_GONE_LIMIT: Final = 9_999", "At most 10,000"),
    Breakage(removal, "_GONE_LIMIT: Final = 10_000", "_GONE_LIMIT: Final = 10_001", "At most 10,000"),
    # calls
    Breakage(bridge, "await trio.lowlevel.cancel_shielded_checkpoint()", "pass", "was a checkpoint"),
    Breakage(bridge, "await trio.lowlevel.checkpoint_if_cancelled()", "pass", "in a cancelled scope"),
    Breakage(
        bridge,
        "await trio.lowlevel.cancel_shielded_checkpoint()",
        "await trio.lowlevel.checkpoint()",
        "cancelled while it runs",
    ),
)
