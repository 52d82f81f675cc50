"""Does a step get to the thread and back as a whole, and only if nobody called it off?"""

import gc
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from sift_batch import StoreError
from sift_batch._store.bridge import Inline, Threads, Writer

pytestmark = pytest.mark.real

Connection = sqlite3.Connection


def _connect(path: Path) -> Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a database with one empty table."""
    path = tmp_path / "rows.db"
    connection = _connect(path)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE row(name TEXT PRIMARY KEY)")
    connection.close()
    return path


class Traced:
    """A writer whose statements are written down, and that can be kept busy for a while."""

    def __init__(self, connection: Connection) -> None:
        self.statements: list[str] = []
        connection.set_trace_callback(self.statements.append)
        self.writer = Writer(connection)
        self._gate = threading.Event()
        self._held = threading.Event()

    def commits(self) -> int:
        """Return how many transactions were committed."""
        return self.statements.count("COMMIT")

    def hold(self, connection: Connection) -> str:
        """Be a step that does not end before `let_go`."""
        self._held.set()
        assert self._gate.wait(10)
        return "held"

    async def held(self) -> None:
        """Return once the thread is in the step that holds it."""
        await trio.to_thread.run_sync(self._held.wait)

    def let_go(self) -> None:
        """Let the step that holds the thread end."""
        self._gate.set()


@asynccontextmanager
async def _traced(path: Path) -> AsyncIterator[Traced]:
    traced = Traced(_connect(path))
    try:
        yield traced
    finally:
        traced.let_go()
        await traced.writer.aclose()


def _insert(name: str) -> Callable[[Connection], str]:
    def step(connection: Connection) -> str:
        connection.execute("INSERT INTO row VALUES (?)", (name,))
        return name

    return step


def _names(path: Path) -> list[str]:
    connection = _connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT name FROM row ORDER BY rowid")]
    finally:
        connection.close()


async def test_a_step_returns_what_it_returns(path: Path) -> None:
    """A step's value comes back, and a lone step is one transaction."""
    async with _traced(path) as traced:
        for n in range(5):
            assert await traced.writer.run(_insert(f"n{n}")) == f"n{n}"
        assert traced.commits() == 5
    assert _names(path) == [f"n{n}" for n in range(5)]


async def test_steps_that_wait_together_commit_together(path: Path) -> None:
    """Twenty steps that wait for a busy thread share one commit, and happen in order of asking."""
    async with _traced(path) as traced, trio.open_nursery() as nursery:
        nursery.start_soon(traced.writer.run, traced.hold)
        await traced.held()
        for n in range(20):
            nursery.start_soon(traced.writer.run, _insert(f"n{n}"))
            await wait_all_tasks_blocked()
        traced.let_go()
    assert traced.commits() == 2
    assert _names(path) == [f"n{n}" for n in range(20)]


async def test_a_waiting_step_is_withdrawn(path: Path) -> None:
    """A step that is cancelled while it waits raises Cancelled at once and never happens."""
    async with _traced(path) as traced, trio.open_nursery() as nursery:
        nursery.start_soon(traced.writer.run, traced.hold)
        await traced.held()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as inner:
                inner.start_soon(traced.writer.run, _insert("withdrawn"))
                await wait_all_tasks_blocked()
                started = time.monotonic()
                scope.cancel()
        assert scope.cancelled_caught
        assert time.monotonic() - started < 1
        nursery.start_soon(traced.writer.run, _insert("kept"))
        await wait_all_tasks_blocked()
        traced.let_go()
    assert _names(path) == ["kept"]


async def test_a_claimed_step_is_never_withdrawn(path: Path) -> None:
    """A step that is cancelled while it runs returns, and has happened."""
    returned: list[str] = []

    async with _traced(path) as traced:

        def step(connection: Connection) -> str:
            _insert("claimed")(connection)
            return traced.hold(connection)

        async def run(scope: trio.CancelScope) -> None:
            with scope:
                returned.append(await traced.writer.run(step))

        async with trio.open_nursery() as nursery:
            scope = trio.CancelScope()
            nursery.start_soon(run, scope)
            await traced.held()
            scope.cancel()
            await wait_all_tasks_blocked()
            assert returned == []
            traced.let_go()
        assert returned == ["held"]
    assert _names(path) == ["claimed"]


async def test_a_step_in_a_cancelled_scope_never_begins(path: Path) -> None:
    """A call in a scope that is cancelled already raises Cancelled and never happens."""
    async with _traced(path) as traced:
        for n in range(50):
            with trio.CancelScope() as scope:
                scope.cancel()
                await traced.writer.run(_insert(f"n{n}"))
            assert scope.cancelled_caught
    assert _names(path) == []


async def test_a_failing_step_fails_alone(path: Path) -> None:
    """Of steps that share a commit the one that fails gets a StoreError; the others happen once."""
    failures: list[StoreError] = []
    runs: list[str] = []

    def counted(name: str) -> Callable[[Connection], str]:
        def step(connection: Connection) -> str:
            runs.append(name)
            return _insert(name)(connection)

        return step

    async with _traced(path) as traced:

        async def run(name: str) -> None:
            try:
                await traced.writer.run(counted(name))
            except StoreError as exc:
                failures.append(exc)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(traced.writer.run, traced.hold)
            await traced.held()
            for name in ("a", "b", "a", "c"):
                nursery.start_soon(run, name)
                await wait_all_tasks_blocked()
            traced.let_go()
    assert _names(path) == ["a", "b", "c"]
    assert len(failures) == 1
    assert "CONSTRAINT" in str(failures[0])
    assert isinstance(failures[0].__cause__, sqlite3.IntegrityError)


@pytest.mark.parametrize("raised", [ZeroDivisionError, StoreError, KeyboardInterrupt, SystemExit])
async def test_a_step_that_raises_leaves_nothing(path: Path, raised: type[BaseException]) -> None:
    """What a failing step wrote is rolled back, and the writer goes on."""

    def step(connection: Connection) -> None:
        _insert("gone")(connection)
        raise raised("x")

    wanted = StoreError if issubclass(raised, Exception) else raised
    async with _traced(path) as traced:
        with pytest.raises(wanted):
            await traced.writer.run(step)
        assert await traced.writer.run(_insert("next")) == "next"
    assert _names(path) == ["next"]


async def test_closing_finishes_what_waits(path: Path) -> None:
    """Steps that wait when the writer closes still happen; later ones are a StoreError."""
    returned: list[str] = []
    traced = Traced(_connect(path))

    async def run(name: str) -> None:
        returned.append(await traced.writer.run(_insert(name)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(traced.writer.run, traced.hold)
        await traced.held()
        for n in range(3):
            nursery.start_soon(run, f"n{n}")
        await wait_all_tasks_blocked()
        nursery.start_soon(traced.writer.aclose)
        await wait_all_tasks_blocked()
        with pytest.raises(StoreError, match="closed"):
            await traced.writer.run(_insert("late"))
        traced.let_go()
    assert sorted(returned) == sorted(_names(path)) == ["n0", "n1", "n2"]
    await traced.writer.aclose()


async def test_closing_is_not_cut_short(path: Path) -> None:
    """A cancelled close still ends the thread and the connection before it returns."""
    connection = _connect(path)
    writer = Writer(connection)
    await writer.run(_insert("a"))
    with trio.CancelScope() as scope:
        scope.cancel()
        await writer.aclose()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    gc.collect()
    assert "sift_batch store" not in [thread.name for thread in threading.enumerate() if thread.is_alive()]


async def test_a_locked_file_never_blocks_the_loop(path: Path) -> None:
    """While another process holds the file for a second the loop turns, and the step waits for it."""
    gaps: list[float] = []

    async def tick() -> None:
        last = time.monotonic()
        while True:
            await trio.sleep(0.01)
            gaps.append(time.monotonic() - last)
            last = time.monotonic()

    async def release() -> None:
        await trio.sleep(0.7)
        holder.execute("ROLLBACK")
        holder.close()

    holder = _connect(path)
    holder.execute("BEGIN IMMEDIATE")
    async with _traced(path) as traced, trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        with trio.move_on_after(0.3) as patience:
            await traced.writer.run(_insert("withdrawn"))
        assert patience.cancelled_caught
        started = time.monotonic()
        nursery.start_soon(release)
        await traced.writer.run(_insert("kept"))
        assert 0.5 < time.monotonic() - started < 5
        nursery.cancel_scope.cancel()
    assert _names(path) == ["kept"]
    assert len(gaps) > 20


async def test_a_step_behind_a_locked_file_leaves_at_once(path: Path) -> None:
    """A step that waits for another process's lock is cancelled without waiting for it."""
    holder = _connect(path)
    holder.execute("BEGIN IMMEDIATE")
    try:
        async with _traced(path) as traced:
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(traced.writer.run, _insert("withdrawn"))
                    await trio.sleep(0.2)
                    started = time.monotonic()
                    scope.cancel()
            assert time.monotonic() - started < 0.5
            holder.execute("ROLLBACK")
            await traced.writer.run(_insert("kept"))
    finally:
        holder.close()
    assert _names(path) == ["kept"]


async def test_closing_waits_for_no_lock_on_behalf_of_nobody(path: Path) -> None:
    """Once the step that waited for another process's lock is withdrawn, the writer can close."""
    holder = _connect(path)
    holder.execute("BEGIN IMMEDIATE")
    try:
        async with _traced(path) as traced:
            with trio.move_on_after(0.1):
                await traced.writer.run(_insert("withdrawn"))
            started = time.monotonic()
        assert time.monotonic() - started < 5
    finally:
        holder.close()


async def test_impatience_ends_with_a_store_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that stays locked for longer than the writer's patience is a StoreError."""
    monkeypatch.setattr("sift_batch._store.bridge.LOCK_PATIENCE", 0.2)
    holder = _connect(path)
    holder.execute("BEGIN IMMEDIATE")
    try:
        async with _traced(path) as traced:
            with pytest.raises(StoreError, match="BUSY"):
                await traced.writer.run(_insert("never"))
            holder.execute("ROLLBACK")
            await traced.writer.run(_insert("later"))
    finally:
        holder.close()
    assert _names(path) == ["later"]


async def test_a_bare_step_runs_outside_a_transaction(path: Path) -> None:
    """A bare step finds no transaction, and its errors reach the one who asked."""

    def fails(connection: Connection) -> None:
        raise LookupError("mine")

    async with _traced(path) as traced:
        assert not await traced.writer.run(lambda connection: connection.in_transaction, bare=True)
        assert await traced.writer.run(lambda connection: connection.in_transaction)
        with pytest.raises(LookupError, match="mine"):
            await traced.writer.run(fails, bare=True)


async def test_many_tasks_none_lost(path: Path) -> None:
    """Of a thousand steps from fifty tasks, some of them cancelled, what returned is what is stored."""
    returned: list[str] = []

    async def work(task: int) -> None:
        with trio.CancelScope() as scope:
            for n in range(20):
                if task % 3 == 0 and n == task % 20:
                    scope.cancel()
                returned.append(await traced.writer.run(_insert(f"{task}/{n}")))

    async with _traced(path) as traced, trio.open_nursery() as nursery:
        for task in range(50):
            nursery.start_soon(work, task)
    assert sorted(_names(path)) == sorted(returned)
    assert traced.commits() < len(returned) / 5


@pytest.mark.parametrize("kind", [Inline, Threads])
async def test_errors_of_the_other_ways(path: Path, kind: Any) -> None:
    """Inline and Threads turn errors into StoreError too, with the cause kept and no value shown."""
    connection = _connect(path)
    bridge = kind(connection)
    with pytest.raises(StoreError) as caught:
        await bridge.run(lambda connection: connection.execute("INSERT INTO nowhere VALUES ('secret')"))
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert "secret" not in str(caught.value)
    assert await bridge.run(lambda connection: connection.execute("SELECT 7").fetchone()[0]) == 7
    connection.close()


async def test_reads_in_threads_go_one_at_a_time(path: Path) -> None:
    """Two reads never use the one connection at the same time."""
    connection = _connect(path)
    bridge = Threads(connection)
    inside: list[int] = []
    most: list[int] = []

    def step(connection: Connection) -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.005)
        inside.pop()

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(bridge.run, step)
    connection.close()
    assert most == [1] * 8
