"""Would anybody notice? Faults to plant into a copy of the package, and who must see them.

A method that finds nothing has proved something only if it finds what is there. Each fault is one or two
lines of the source with others in their place; a text that is not found exactly once is an error, so that
a fault never stops being one unnoticed.
"""

import os
import shutil
from pathlib import Path
from typing import Final, NamedTuple

import sift_batch

KILL: Final = "kill"
POINTS: Final = "points"
POWER: Final = "power"
FULL: Final = "full"


class Fault(NamedTuple):
    """What is changed, as (file, old text, new text), and which methods must see it."""

    changes: tuple[tuple[str, str, str], ...]
    seen_by: frozenset[str]


def _split(point: str) -> str:
    call = f'crash_point("{point}")'
    return f'{call}; connection.execute("COMMIT"); connection.execute("BEGIN IMMEDIATE"); {call}'


def _two_transactions(file: str, point: str, *seen_by: str) -> Fault:
    return Fault(((file, f'crash_point("{point}")', _split(point)),), frozenset(seen_by))


_COMMIT: Final = 'outcome.capture(self._connection.execute, "COMMIT")'

FAULTS: Final[dict[str, Fault]] = {
    "one commit in six is dropped": Fault(
        (
            (
                "_store/writer.py",
                _COMMIT,
                _COMMIT.replace('"COMMIT"', '"COMMIT" if time.monotonic_ns() // 1_000 % 6 else "ROLLBACK"'),
            ),
        ),
        frozenset({KILL}),
    ),
    "acknowledged one commit too early": Fault(
        (
            ("_store/writer.py", _COMMIT, _COMMIT.replace("COMMIT", "SELECT 1")),
            (
                "_store/writer.py",
                "rollback(self._connection)\n        deadline",
                'self._connection.in_transaction and self._connection.execute("COMMIT")\n        deadline',
            ),
        ),
        frozenset({KILL, POINTS}),
    ),
    "nothing is ever synced": Fault(
        (("_store/schema.py", '{"full": 2, "normal": 1}', '{"full": 0, "normal": 0}'),), frozenset({POWER})
    ),
    "full is as normal": Fault(
        (("_store/schema.py", '{"full": 2, "normal": 1}', '{"full": 1, "normal": 1}'),), frozenset({POWER})
    ),
    "the folder is not synced": Fault(
        (("_store/files.py", "    sync_folder(path.parent)\n", "    pass\n"),), frozenset({POWER})
    ),
    "the new file is not synced": Fault(
        (("_store/files.py", "PRAGMA synchronous = FULL", "PRAGMA synchronous = OFF"),), frozenset({POWER})
    ),
    "the new file is made in place": Fault(
        (("_store/files.py", "draft = path.with_name(path.name + _DRAFT_SUFFIX)", "draft = path"),),
        frozenset({POINTS}),
    ),
    "half a new file goes into place": Fault(
        (
            (
                "_store/files.py",
                'connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()\n        # A log',
                "pass\n        # A log",
            ),
        ),
        frozenset({FULL}),
    ),
    "a log that fills the disk stays": Fault(
        (("_store/writer.py", "& 0xFF == sqlite3.SQLITE_FULL", "& 0xFF == -1"),), frozenset({FULL})
    ),
    "a restart leaves targets running": Fault(
        (
            (
                "_store/steps.py",
                "UPDATE batch_target SET status = ? WHERE status = 'running'\"",
                "UPDATE batch_target SET status = ? WHERE status = 'running' AND 0\"",
            ),
        ),
        frozenset({KILL, POINTS}),
    ),
    "a restart leaves jobs unsettled": Fault(
        (("_store/steps.py", "SET settled = 1 WHERE settled = 0", "SET settled = 1 WHERE settled = 2"),),
        frozenset({KILL, POINTS}),
    ),
    "a submit is two transactions": _two_transactions(
        "_store/arrival.py", "submit: job without targets", KILL, POINTS
    ),
    "a rerun is two transactions": _two_transactions(
        "_store/arrival.py", "rerun: nothing carried yet", POINTS
    ),
    "a removal is two transactions": _two_transactions("_store/removal.py", "remove: targets gone", POINTS),
    "the last store is two transactions": _two_transactions(
        "_store/steps.py", "record: last target stored", POINTS
    ),
    "a cancel is two transactions": _two_transactions("_store/steps.py", "stop: job ended", POINTS),
    "a restart is two transactions": _two_transactions(
        "_store/steps.py", "restart: targets put back", POINTS
    ),
}


def plant(fault: Fault, folder: Path) -> dict[str, str]:
    """Copy the package into `folder` with the fault; return the environment in which that one is imported."""
    package = folder / "sift_batch"
    shutil.copytree(
        Path(sift_batch.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("__pycache__"),
        dirs_exist_ok=True,
    )
    for file, old, new in fault.changes:
        path = package / file
        text = path.read_text()
        assert text.count(old) == 1, f"what is to be changed is not there once: {old}"
        path.write_text(text.replace(old, new))
    return {**os.environ, "PYTHONPATH": str(folder)}
