"""Was everything right so far? Asked in another process: asking leaves nothing in the soaked one.

    python soak_checker.py HISTORY STORE LIFE RULES

Audits the store's rows, checks the history that ends with them, and cuts the history down to what is about
jobs that are stored still. RULES is JSON of the fields of `HistoryRules`.
Prints one line of JSON: the ids of those, and what was found.
"""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

sys.path[:0] = [str(Path(__file__).parents[1])]

from history import History, HistoryRules, check_history, explain, only_about  # noqa: E402

_MANY: Final = 20


def check(file: Path, store: Path, life: int, rules: HistoryRules) -> dict[str, Any]:
    """Audit, check, and forget what is over."""
    found: list[str] = []
    # The rows are as they were when the last thing was recorded, by whatever clock that was.
    last = History.read(file)[-1]["at"]
    with (
        History(file, lambda: last) as history,
        closing(sqlite3.connect(f"{store.as_uri()}?mode=ro", uri=True)) as connection,
    ):
        history.audit(connection, life)
        stored = [row[0] for row in connection.execute("SELECT id FROM batch_job")]
        if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            found.append("the file is damaged")
    events = History.read(file)
    found += check_history(events, rules)[:_MANY]
    if found:
        found.append(explain(events, found[0].partition(", job ")[2].partition(":")[0]))
    # In place: the process that records has the file open, and goes on at its end.
    with file.open("r+b") as kept:
        kept.truncate(0)
        kept.write(b"".join(json.dumps(event).encode() + b"\n" for event in only_about(events, set(stored))))
    return {"events": len(events), "stored": stored, "found": found}


def main() -> None:
    """Check as the command line says."""
    file, store, life, rules = sys.argv[1:]
    print(json.dumps(check(Path(file), Path(store), int(life), HistoryRules(**json.loads(rules)))))


if __name__ == "__main__":
    main()
