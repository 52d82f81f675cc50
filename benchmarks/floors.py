"""What is the least code that does the same work? The floors that the engine is measured against.

Each is written by hand, as somebody would who has just this one job: no cancel, no restart, no caps, no
gate, no idempotency. `drain_synchronously` is a plain loop over `sqlite3`, one commit for each stored
target: no run loop, no thread. `TrioLoop` does the same in Trio, each transaction in a worker thread.
"""

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TARGETS_PER_JOB = 32

_TABLES = """
CREATE TABLE job(
    id INTEGER PRIMARY KEY, total INTEGER NOT NULL, stored INTEGER NOT NULL DEFAULT 0,
    status TEXT NOT NULL DEFAULT 'queued'
);
CREATE TABLE target(
    job INTEGER NOT NULL, idx INTEGER NOT NULL, url TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending', result TEXT, PRIMARY KEY(job, idx)
) WITHOUT ROWID;
"""


def split(targets: int) -> list[list[str]]:
    """Return the URLs of `targets` targets as jobs of 32."""
    urls = [f"http://host.example/{number}" for number in range(targets)]
    return [urls[start : start + TARGETS_PER_JOB] for start in range(0, targets, TARGETS_PER_JOB)]


def open_database(path: Path, durability: str) -> sqlite3.Connection:
    """Make a database with the same durability as the engine's store."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {durability}")
    connection.executescript(_TABLES)
    return connection


def insert_job(connection: sqlite3.Connection, job: int, urls: Sequence[str]) -> None:
    """Store a job and its targets in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO job(id, total) VALUES (?, ?)", (job, len(urls)))
    connection.executemany(
        "INSERT INTO target(job, idx, url) VALUES (?, ?, ?)",
        [(job, idx, url) for idx, url in enumerate(urls)],
    )
    connection.execute("COMMIT")


def pending(connection: sqlite3.Connection, job: int) -> list[tuple[int, str]]:
    """Return what of a job is to be fetched."""
    return connection.execute(
        "SELECT idx, url FROM target WHERE job = ? AND status = 'pending' ORDER BY idx", (job,)
    ).fetchall()


def store_result(connection: sqlite3.Connection, job: int, idx: int, result: str) -> None:
    """Store one result and count it, in one transaction."""
    store_results(connection, [(job, idx, result)])


def store_results(connection: sqlite3.Connection, rows: Sequence[tuple[int, int, str]]) -> None:
    """Store some results of some jobs, all in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    for job, idx, result in rows:
        connection.execute(
            "UPDATE target SET status = 'done', result = ? WHERE job = ? AND idx = ?", (result, job, idx)
        )
        connection.execute(
            "UPDATE job SET stored = stored + 1, "
            "status = CASE WHEN stored + 1 = total THEN 'done' ELSE 'running' END WHERE id = ?",
            (job,),
        )
    connection.execute("COMMIT")


def encode(url: str, content: str) -> str:
    """Return a result as it is stored."""
    return json.dumps({"url": url, "content": content})


def drain_synchronously(
    connection: sqlite3.Connection, jobs: Sequence[Sequence[str]], fetch: Callable[[str], str]
) -> None:
    """Submit all jobs and drain them, one target after the other."""
    for job, urls in enumerate(jobs):
        insert_job(connection, job, urls)
    for job in range(len(jobs)):
        for idx, url in pending(connection, job):
            store_result(connection, job, idx, encode(url, fetch(url)))


class TrioLoop:
    """The same steps for a Trio program, each in a worker thread, one at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        import anyio

        self._connection = connection
        self._limiter = anyio.CapacityLimiter(1)

    async def step(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run one transaction in a thread."""
        import anyio.to_thread

        return await anyio.to_thread.run_sync(function, self._connection, *arguments, limiter=self._limiter)

    async def submit(self, job: int, urls: Sequence[str]) -> None:
        """Store a job and its targets."""
        await self.step(insert_job, job, urls)

    async def store(self, job: int, idx: int, result: str) -> None:
        """Store one result."""
        await self.step(store_result, job, idx, result)
