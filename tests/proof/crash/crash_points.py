"""What must be left after a crash at each named point? The table of all points, and who dies at them.

The points are read from the package's source: their names are a closed set, and a point that is not in the
table below, or a line of the table without a point, is an error. At each, a process plays a scene that
passes it at least twice and dies there; then the file is held to the line of the table, looked at, opened
and judged like any other.
"""

import ast
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from crash_parent import LifeFailed, Lives, Story
from crash_scenes import END, RULES, SECRET
from history import History
from real_rows import looking

import sift_batch


class Left(NamedTuple):
    """What a death has left: the file's rows, the call that was under way, what was fetched last."""

    rows: sqlite3.Connection
    call: dict[str, Any] | None
    fetched: dict[str, Any] | None

    def one(self, query: str, *values: Any) -> Any:
        """Return the one value that a query gives."""
        row = self.rows.execute(query, values).fetchone()
        return None if row is None else row[0]


def _no_restart(left: Left) -> bool:
    """Nothing of a restart is there: no job that it failed, and no running job without a running target."""
    restarted = left.one(
        "SELECT count(*) FROM batch_job WHERE error = 'restart' OR (status = 'running' AND "
        "NOT EXISTS (SELECT 1 FROM batch_target WHERE job_id = id AND batch_target.status = 'running'))"
    )
    return bool(restarted == 0)


def _submitted(left: Left) -> bool:
    """Whether what was being submitted is stored, with all its targets."""
    assert left.call is not None
    if left.call["op"] == "rerun":
        return bool(left.one("SELECT 1 FROM batch_job WHERE rerun_of = ?", left.call["job"]))
    # No two submits of one life are of the same targets at the same moment: the newest job it is, or none.
    newest = left.one("SELECT id FROM batch_job ORDER BY rowid DESC LIMIT 1")
    urls = [
        row[0]
        for row in left.rows.execute("SELECT url FROM batch_target WHERE job_id = ? ORDER BY idx", (newest,))
    ]
    known = left.one("SELECT status FROM batch_job WHERE id = ?", newest)
    return bool(urls == left.call["targets"] and known == "queued")


def _not_submitted(left: Left) -> bool:
    assert left.call is not None
    assert left.call["op"] in ("submit", "rerun")
    return not _submitted(left)


def _not_begun(left: Left) -> bool:
    return bool(left.one("SELECT count(*) FROM batch_job WHERE status = 'running'") == 0)


def _not_recorded(left: Left) -> bool:
    """What was fetched last is not stored: fetched once, it will never be fetched again."""
    assert left.fetched is not None
    found = left.one(
        "SELECT status FROM batch_target WHERE job_id = ? AND idx = ? AND result IS NULL",
        left.fetched["job"],
        left.fetched["idx"],
    )
    settled = left.one("SELECT settled FROM batch_job WHERE id = ?", left.fetched["job"])
    return (found, settled) == ("running", 0)


def _cancelled(left: Left) -> bool:
    assert left.call is not None
    assert left.call["op"] == "cancel"
    return bool(left.one("SELECT status = 'cancelled' FROM batch_job WHERE id = ?", left.call["job"]))


def _not_cancelled(left: Left) -> bool:
    return not _cancelled(left)


def _unsettled(left: Left) -> bool:
    return bool(left.one("SELECT count(*) FROM batch_job WHERE status = 'cancelled' AND settled = 0") == 1)


def _deleted(left: Left) -> bool:
    assert left.call is not None
    assert left.call["op"] == "delete"
    return bool(left.one("SELECT count(*) FROM batch_job WHERE id = ?", left.call["job"]) == 0)


def _not_deleted(left: Left) -> bool:
    # The removal may be an eviction or a sweep as well: then there is no call to look at.
    return left.call is None or left.call["op"] != "delete" or not _deleted(left)


def _nothing_swept(left: Left) -> bool:
    return bool(left.one("SELECT count(*) FROM batch_job WHERE lease < ?", int(END) - 86_400) >= 1)


def _over_budget(left: Left) -> bool:
    return bool(left.one("SELECT sum(nbytes) FROM batch_job") > (RULES.max_bytes or 0))


def _live_jobs(left: Left) -> bool:
    return bool(left.one("SELECT count(*) FROM batch_job WHERE status IN ('queued', 'running')") in (0, 2))


def _anything(left: Left) -> bool:
    return True


class Line(NamedTuple):
    """What is allowed after a death at a point. `left`: None where there must be no file at all."""

    allowed: str
    left: Callable[[Left], bool] | None = _anything


TABLE: Final[dict[str, Line]] = {
    "create: draft made": Line("there is no file of that name, and the next opening makes it", None),
    "create: draft laid out": Line("there is no file of that name, and the next opening makes it", None),
    "create: draft whole": Line("there is no file of that name, and the next opening makes it", None),
    "create: in place": Line("the file is a whole, empty store"),
    "open: not locked yet": Line("nothing has changed, what is live is live still", _no_restart),
    "open: locked": Line("nothing has changed; the lock has died with its owner", _no_restart),
    "restart: targets put back": Line("nothing has changed: no half of a restart", _no_restart),
    "submit: job without targets": Line("the job is absent", _not_submitted),
    "submit: not told yet": Line("the job is there whole, though nobody knows its id", _submitted),
    "rerun: nothing carried yet": Line("the job is absent", _not_submitted),
    "begin: target marked": Line("the job is queued, all its targets pending", _not_begun),
    "record: fetched": Line("the target is running and will be pending, the result is lost", _not_recorded),
    "record: last target stored": Line("neither the target nor the job's end is stored", _not_recorded),
    "commit: not yet": Line("whole or absent: the step was not acknowledged"),
    "commit: done": Line("whole, or whole and acknowledged by nobody"),
    "stop: job ended": Line("the job is live still", _not_cancelled),
    "cancel: not told yet": Line("the job is cancelled, though nobody was told", _cancelled),
    "settle: target put back": Line("the job is cancelled, its target running: not settled", _unsettled),
    "delete: not told yet": Line("the job is gone, though nobody was told", _deleted),
    "remove: targets gone": Line("the job is there whole", _not_deleted),
    "sweep: found": Line("the lapsed job is there whole", _nothing_swept),
    "evict: chosen": Line("the job is there whole, the budget exceeded", _over_budget),
    "erase: log not wiped yet": Line("the job is gone; what it held is wiped by the next owner"),
    "closing: begun": Line("live jobs are there, for the next start to fail", _live_jobs),
    "closing: work over": Line("live jobs are there, for the next start to fail", _live_jobs),
    "close: log not moved yet": Line("all is there, in the log", _live_jobs),
    "close: not unlocked yet": Line("all is there; the lock has died with its owner", _live_jobs),
}


def points_in_source() -> Iterator[tuple[str, str]]:
    """Give each crash point that the package's source passes, and the file that it is in."""
    package = Path(sift_batch.__file__).parent
    for file in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = node.func
            name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
            if name == "crash_point":
                (argument,) = node.args
                assert isinstance(argument, ast.Constant), f"a point without a plain name in {file.name}"
                yield str(argument.value), file.name


def die_at(lives: Lives, folder: Path, point: str, passing: int) -> tuple[bool, list[str]]:
    """Let a process die at a point; return whether it did, and everything that was wrong after."""
    wrong: list[str] = []
    lives.begin("scene", folder=str(folder), point=point, passing=passing)
    try:
        died = lives.end() < 0
    except LifeFailed as exc:
        return False, [f"{point}, passing {passing}: {exc}"]
    paths = [path for path in (folder / "jobs0.sift", folder / "jobs1.sift") if _was_begun(path)]
    for path in paths:
        with Story(path, rules=RULES, clock=lambda: END) as story:
            if died and path == paths[-1]:
                wrong += _held_to(TABLE[point], path)
            story.died(point, killed=died)
            story.reopen(twice=True)
            wrong += story.judge()
            if not wrong:
                wrong += [f"a restricted caller's text is left in {name}" for name in _traces(path)]
    return died, [f"{point}, passing {passing}: {line}" for line in wrong]


def _was_begun(path: Path) -> bool:
    return path.with_name(f"{path.name}.history").exists()


def _held_to(line: Line, path: Path) -> Iterator[str]:
    if line.left is None:
        if path.exists():
            yield f"not as allowed: {line.allowed}"
        return
    with looking(path) as rows:
        if not line.left(Left(rows, *_under_way(path))):
            yield f"not as allowed: {line.allowed}"


def _under_way(path: Path) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the caller's call that was never answered, and the fetch that was answered last."""
    calls: dict[int, dict[str, Any]] = {}
    fetched = None
    for event in History.read(path.with_name(f"{path.name}.history")):
        if event["kind"] == "invoke":
            calls[event["call"]] = event
        elif "call" in event:
            call = calls.pop(event["call"])
            if call["op"] == "fetch" and not event.get("busy"):
                fetched = call
    return next((call for call in calls.values() if call["op"] != "fetch"), None), fetched


def _traces(path: Path) -> Iterator[str]:
    """Give the files in which a restricted caller's text is left, if no job of such a caller is."""
    with looking(path) as rows:
        if rows.execute("SELECT 1 FROM batch_job WHERE caller_class = 'restricted'").fetchone():
            return
    for file in (path, path.with_name(f"{path.name}-wal")):
        if file.exists() and SECRET.encode() in file.read_bytes():
            yield file.name
