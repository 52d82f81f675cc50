"""A store on a full disk, and one whose file is removed under it: what is said, and when."""

import sqlite3
from pathlib import Path

import pytest
import trio

from sift_batch import StoreError, open_store
from sift_batch._store import steps
from sift_batch.testing._ledger import OWNER, T0, Ledger

pytestmark = pytest.mark.real


@pytest.mark.parametrize(
    ("code", "name", "advice"),
    [
        (sqlite3.SQLITE_FULL, "SQLITE_FULL", "the disk is full; make room and start again (SQLITE_FULL)"),
        (
            sqlite3.SQLITE_CORRUPT,
            "SQLITE_CORRUPT",
            "this store is damaged; restore it from a backup (SQLITE_CORRUPT)",
        ),
    ],
)
async def test_a_store_that_can_t_be_taken_over_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, name: str, advice: str
) -> None:
    """The first write of a runner that finds no room says so, and the store can be taken later."""

    def fails(connection: sqlite3.Connection, *, now: int) -> None:
        error = sqlite3.OperationalError("the text of the library")
        error.sqlite_errorcode, error.sqlite_errorname = code, name
        raise error

    with trio.fail_after(10):
        async with open_store(tmp_path / "jobs.sift") as store:
            with monkeypatch.context() as patched:
                patched.setattr(steps, "restart", fails)
                with pytest.raises(StoreError) as caught:
                    await store.acquire("one", now=1)
            assert str(caught.value) == advice
            await store.acquire("two", now=1)


async def test_a_removed_store_takes_no_more_jobs(tmp_path: Path) -> None:
    """A job is not acknowledged by a file that nobody will find again."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        await ledger.queued("https://host/1")
        path.rename(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="the store file is gone"):
            await ledger.queued("https://host/2")
        (tmp_path / "elsewhere").rename(path)
        await ledger.queued("https://host/3")
