"""Is the SQL constant text? What a caller gives is bound, and never part of a statement."""

import ast
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import trio

import sift_batch
from sift_batch import Caller, JobState, Options, Target, open_reader, open_runner, open_store
from sift_batch.testing import ScriptedFetch

STORE = Path(sift_batch.__file__).parent / "_store"
ODD = """x'; DROP TABLE batch_job; --" % _ * [a] MATCH 0 \\ {}"""


async def statements(path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> set[str]:
    """Use every call by which a text of a caller gets in; return the texts of all statements."""
    seen: set[str] = set()

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            seen.add(sql)
            return super().execute(sql, *parameters)

        def executemany(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            seen.add(sql)
            return super().executemany(sql, *parameters)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **more: connect(*args, **more, factory=Connection))
    caller, options = Caller("c" + text), Options(grep="g" + text)
    targets = [Target(f"https://{n}.example/{text}", options) for n in range(3)]
    fetch = ScriptedFetch(fail=[2])
    async with open_store(path) as store, open_runner(store, fetch, now=lambda: 1e9) as runner:
        job = (await runner.submit(caller, targets)).id
        await runner.wait(job)
        await runner.submit(caller, targets)
        again = (await runner.rerun(caller, job)).id
        await runner.wait(again)
        await runner.status(job, caller=caller)
        await runner.jobs(caller, status=JobState.PARTIAL)
        for odd in (text, job):
            assert await runner.job(odd, caller="nobody" + text) is None
            await runner.touch(odd, caller=caller)
            await runner.cancel(odd, caller=caller)
            await runner.gone(odd, caller=caller.name)
        async with open_reader(path) as reader:
            await reader.jobs(caller)
        await runner.delete(job, caller=caller)
        assert await runner.gone(job, caller=caller.name) == "deleted"
    monkeypatch.undo()
    return seen


async def test_what_a_caller_says_changes_no_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, URLs, options and ids with SQL in them run the same statements as plain ones."""
    with trio.fail_after(20):
        plain = await statements(tmp_path / "plain", monkeypatch, "plain")
        odd = await statements(tmp_path / "odd", monkeypatch, ODD)
    assert len(plain) > 30
    assert plain == odd


def test_no_statement_reads_a_pattern() -> None:
    """No text of the store's own is compared as a pattern, searched, or read as a path into JSON."""
    for path in STORE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words = set(node.value.upper().replace("(", " ").split())
                if words & {"SELECT", "UPDATE", "INSERT", "DELETE"}:
                    assert not words & {"LIKE", "GLOB", "MATCH", "REGEXP", "JSON_EXTRACT", "JSON_EACH"}, path


@pytest.mark.parametrize("name", ["executescript", "set_trace_callback", "load_extension"])
def test_no_call_that_takes_or_tells_more_than_a_statement(name: str) -> None:
    """The store runs no scripts, loads nothing into SQLite, and has nobody told the bound values."""
    for path in STORE.glob("*.py"):
        assert f".{name}(" not in path.read_text("utf-8"), path
