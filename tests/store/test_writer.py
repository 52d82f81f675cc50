"""Does a step get to the thread and back as a whole, and only if nobody called it off?"""

import gc
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from traced import Connection, Traced, connect, insert, names, traced_writer
from trio.testing import wait_all_tasks_blocked

from sift_batch import StoreError
from sift_batch._store.writer import Writer

pytestmark = pytest.mark.real


async def test_a_step_returns_what_it_returns(path: Path) -> None:
    """A step's value comes back, and a lone step is one transaction."""
    async with traced_writer(path) as traced:
        for n in range(5):
            assert await traced.writer.run(insert(f"n{n}")) == f"n{n}"
        assert traced.commits() == 5
    assert names(path) == [f"n{n}" for n in range(5)]


async def test_steps_that_wait_together_commit_together(path: Path) -> None:
    """Twenty steps that wait for a busy thread share one commit, and happen in order of asking."""
    async with traced_writer(path) as traced, trio.open_nursery() as nursery:
        nursery.start_soon(traced.writer.run, traced.hold)
        await traced.held()
        for n in range(20):
            nursery.start_soon(traced.writer.run, insert(f"n{n}"))
            await wait_all_tasks_blocked()
        traced.let_go()
    assert traced.commits() == 2
    assert names(path) == [f"n{n}" for n in range(20)]


async def test_a_disk_that_is_full_of_the_log_has_room_again(path: Path) -> None:
    """A step that finds the disk full is tried again once the log has been moved into the file."""
    log = path.with_name(path.name + "-wal")
    sizes: list[int] = []

    def full_until_moved(connection: sqlite3.Connection) -> str:
        sizes.append(log.stat().st_size)
        if len(sizes) == 1:
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        return insert("stored")(connection)

    async with traced_writer(path) as traced:
        await traced.writer.run(insert("before"))
        assert await traced.writer.run(full_until_moved) == "stored"
    assert sizes[0] > 0
    assert sizes[1:] == [0]
    assert names(path) == ["before", "stored"]


async def test_a_waiting_step_is_withdrawn(path: Path) -> None:
    """A step that is cancelled while it waits raises Cancelled at once and never happens."""
    async with traced_writer(path) as traced, trio.open_nursery() as nursery:
        nursery.start_soon(traced.writer.run, traced.hold)
        await traced.held()
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as inner:
                inner.start_soon(traced.writer.run, insert("withdrawn"))
                await wait_all_tasks_blocked()
                started = time.monotonic()
                scope.cancel()
        assert scope.cancelled_caught
        assert time.monotonic() - started < 1
        nursery.start_soon(traced.writer.run, insert("kept"))
        await wait_all_tasks_blocked()
        traced.let_go()
    assert names(path) == ["kept"]


async def test_a_claimed_step_is_never_withdrawn(path: Path) -> None:
    """A step that is cancelled while it runs returns, and has happened."""
    returned: list[str] = []

    async with traced_writer(path) as traced:

        def step(connection: Connection) -> str:
            insert("claimed")(connection)
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
    assert names(path) == ["claimed"]


async def test_a_step_in_a_cancelled_scope_never_begins(path: Path) -> None:
    """A call in a scope that is cancelled already raises Cancelled and never happens."""
    async with traced_writer(path) as traced:
        for n in range(50):
            with trio.CancelScope() as scope:
                scope.cancel()
                await traced.writer.run(insert(f"n{n}"))
            assert scope.cancelled_caught
    assert names(path) == []


async def test_a_failing_step_fails_alone(path: Path) -> None:
    """Of steps that share a commit the one that fails gets a StoreError; the others happen once."""
    failures: list[StoreError] = []
    runs: list[str] = []

    def counted(name: str) -> Callable[[Connection], str]:
        def step(connection: Connection) -> str:
            runs.append(name)
            return insert(name)(connection)

        return step

    async with traced_writer(path) as traced:

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
    assert names(path) == ["a", "b", "c"]
    assert len(failures) == 1
    assert "CONSTRAINT" in str(failures[0])
    assert isinstance(failures[0].__cause__, sqlite3.IntegrityError)


@pytest.mark.parametrize("raised", [ZeroDivisionError, StoreError, KeyboardInterrupt, SystemExit])
async def test_a_step_that_raises_leaves_nothing(path: Path, raised: type[BaseException]) -> None:
    """What a failing step wrote is rolled back, and the writer goes on."""

    def step(connection: Connection) -> None:
        insert("gone")(connection)
        raise raised("x")

    wanted = StoreError if issubclass(raised, Exception) else raised
    async with traced_writer(path) as traced:
        with pytest.raises(wanted):
            await traced.writer.run(step)
        assert await traced.writer.run(insert("next")) == "next"
    assert names(path) == ["next"]


async def test_closing_finishes_what_waits(path: Path) -> None:
    """Steps that wait when the writer closes still happen; later ones are a StoreError."""
    returned: list[str] = []
    traced = Traced(connect(path))

    async def run(name: str) -> None:
        returned.append(await traced.writer.run(insert(name)))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(traced.writer.run, traced.hold)
        await traced.held()
        for n in range(3):
            nursery.start_soon(run, f"n{n}")
        await wait_all_tasks_blocked()
        nursery.start_soon(traced.writer.aclose)
        await wait_all_tasks_blocked()
        with pytest.raises(StoreError, match="closed"):
            await traced.writer.run(insert("late"))
        traced.let_go()
    assert sorted(returned) == sorted(names(path)) == ["n0", "n1", "n2"]
    await traced.writer.aclose()


async def test_closing_is_not_cut_short(path: Path) -> None:
    """A cancelled close still ends the thread and the connection before it returns."""
    connection = connect(path)
    writer = Writer(connection)
    await writer.run(insert("a"))
    with trio.CancelScope() as scope:
        scope.cancel()
        await writer.aclose()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")
    gc.collect()
    assert "sift_batch store" not in [thread.name for thread in threading.enumerate() if thread.is_alive()]


async def test_a_bare_step_runs_outside_a_transaction(path: Path) -> None:
    """A bare step finds no transaction, and its errors reach the one who asked."""

    def fails(connection: Connection) -> None:
        raise LookupError("mine")

    async with traced_writer(path) as traced:
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
                returned.append(await traced.writer.run(insert(f"{task}/{n}")))

    async with traced_writer(path) as traced, trio.open_nursery() as nursery:
        for task in range(50):
            nursery.start_soon(work, task)
    assert sorted(names(path)) == sorted(returned)
    assert traced.commits() < len(returned) / 5


@pytest.mark.parametrize("dies_in", ["_claim", "_recover"])
async def test_nobody_waits_for_a_thread_that_died(
    path: Path, monkeypatch: pytest.MonkeyPatch, dies_in: str
) -> None:
    """When the thread dies of the unexpected, whoever waits gets a StoreError, and so do later steps."""
    causes: list[BaseException | None] = []

    def die(*_: object) -> None:
        raise MemoryError

    def fails(connection: Connection) -> None:
        raise LookupError

    async def run() -> None:
        with pytest.raises(StoreError, match="failed") as caught:
            await traced.writer.run(fails)
        causes.append(caught.value.__cause__)

    connection = connect(path)
    traced = Traced(connection)
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(traced.writer.run, traced.hold)
            await traced.held()
            for _ in range(3):
                nursery.start_soon(run)
            await wait_all_tasks_blocked()
            monkeypatch.setattr(Writer, dies_in, die)
            traced.let_go()
        await run()
        await traced.writer.aclose()
    assert [type(cause) for cause in causes] == [MemoryError] * 4
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


async def test_a_rollback_that_fails_is_made_up_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step whose rollback fails gets a StoreError; the next step finds no transaction of it."""

    def rollback(connection: Connection) -> None:
        monkeypatch.undo()
        raise sqlite3.OperationalError("disk I/O error")

    def fails(connection: Connection) -> None:
        insert("gone")(connection)
        monkeypatch.setattr("sift_batch._store.writer.rollback", rollback)
        raise LookupError

    async with traced_writer(path) as traced:
        with trio.fail_after(5):
            with pytest.raises(StoreError):
                await traced.writer.run(fails)
            assert await traced.writer.run(insert("next")) == "next"
    assert names(path) == ["next"]


def test_a_ctrl_c_does_not_cut_the_closing_short(path: Path) -> None:
    """A close that a Ctrl-C meets returns only when the thread has ended; the Ctrl-C comes after it."""
    closed: list[bool] = []

    async def main() -> None:
        connection = connect(path)
        traced = Traced(connection)

        async def interrupt() -> None:
            await wait_all_tasks_blocked()
            signal.raise_signal(signal.SIGINT)
            await wait_all_tasks_blocked()
            traced.let_go()

        trio.lowlevel.spawn_system_task(traced.writer.run, traced.hold)
        await traced.held()
        trio.lowlevel.spawn_system_task(interrupt)
        await traced.writer.aclose()
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
        closed.append(True)

    with pytest.raises(KeyboardInterrupt):
        trio.run(main)
    assert closed == [True]
