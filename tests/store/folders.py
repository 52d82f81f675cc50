"""What is in a folder before and after, and what do the stores in it hold?"""

import hashlib
import sqlite3
from pathlib import Path

from sift_batch import open_store
from sift_batch.testing._ledger import OWNER, T0, Ledger


def bytes_of(folder: Path) -> dict[str, str]:
    """Return a digest of every file in a folder that holds data: no index of a log, no empty log."""
    return {
        item.name: hashlib.sha256(item.read_bytes()).hexdigest()
        for item in folder.iterdir()
        if item.is_file() and not item.name.endswith("-shm")
        if not (item.name.endswith("-wal") and item.stat().st_size == 0)
    }


def listed(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(item.name for item in folder.iterdir())


async def make(path: Path, *urls: str) -> list[str]:
    """Make a store with one done job of these urls if there are any; return the ids of all jobs."""
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        if urls:
            await ledger.ended(*urls)
        return await ledger.jobs() or []


async def jobs(path: Path) -> list[str]:
    """Return the ids of all jobs of a store."""
    async with open_store(path) as store:
        return await Ledger(store).jobs() or []


def sql(path: Path, *statements: str) -> None:
    """Run statements on a database, as any other program would."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for statement in statements:
            connection.execute(statement).fetchall()
    finally:
        connection.close()
