"""What does a writer's thread do, and when? A writer whose statements are written down."""

import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from sift_batch._store.writer import Writer

Connection = sqlite3.Connection


def connect(path: Path) -> Connection:
    """Open a database as the store does."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.1)


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
async def traced_writer(path: Path) -> AsyncIterator[Traced]:
    """Give a writer that is traced, and close it."""
    traced = Traced(connect(path))
    try:
        yield traced
    finally:
        traced.let_go()
        await traced.writer.aclose()


def insert(name: str) -> Callable[[Connection], str]:
    """Return a step that inserts a row and returns its name."""

    def step(connection: Connection) -> str:
        connection.execute("INSERT INTO row VALUES (?)", (name,))
        return name

    return step


def names(path: Path) -> list[str]:
    """Return the rows that are there, in order of insertion."""
    connection = connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT name FROM row ORDER BY rowid")]
    finally:
        connection.close()
