"""Who owns a store when files and processes come and go?"""

import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest

from sift_batch import StoreError, StoreInUseError, open_store

pytestmark = pytest.mark.real


async def test_a_forked_process_does_not_keep_the_lock(tmp_path: Path) -> None:
    """After `release`, the store can be owned again although a forked child still has the descriptor."""
    async with open_store(tmp_path / "jobs") as store:
        await store.acquire("one", now=1)
        child = os.fork()
        if not child:
            time.sleep(30)  # noqa: ASYNC251 - in the child, which has no loop to block
            os._exit(0)
        try:
            await store.release("one")
            await store.acquire("two", now=1)
            await store.release("two")
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)  # noqa: ASYNC222 - it was killed: there is nothing to wait for


async def test_check_tells_of_a_lock_file_that_was_removed(tmp_path: Path) -> None:
    """When the lock file is removed under a runner, `check` says that another one could take the store."""
    async with open_store(tmp_path / "jobs") as store:
        await store.acquire("one", now=1)
        await store.check("one", now=1)
        (tmp_path / "jobs-owner").unlink()
        with pytest.raises(StoreError, match="lock file"):
            await store.check("one", now=1)
        await store.release("one")


async def test_a_file_that_was_replaced_before_it_is_owned_is_refused(tmp_path: Path) -> None:
    """A file put in the store's place between opening and owning it is not written."""
    for name in ("jobs", "other"):
        async with open_store(tmp_path / name):
            pass
    async with open_store(tmp_path / "jobs") as store:
        (tmp_path / "other").replace(tmp_path / "jobs")
        with pytest.raises(StoreError, match="another file"):
            await store.acquire("one", now=1)


async def test_a_lock_on_a_removed_file_is_not_ownership(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock file that is removed between opening and locking it gives no ownership."""
    from sift_batch._store import files

    async with open_store(tmp_path / "jobs") as store:
        flock = files.fcntl.flock

        def removed_meanwhile(descriptor: int, operation: int) -> None:
            (tmp_path / "jobs-owner").unlink(missing_ok=True)
            flock(descriptor, operation)

        with monkeypatch.context() as patch:
            patch.setattr(files.fcntl, "flock", removed_meanwhile)
            with pytest.raises(StoreInUseError):
                await store.acquire("one", now=1)
        await store.acquire("two", now=1)
        await store.release("two")


async def test_a_schema_that_is_no_text_is_a_damaged_store(tmp_path: Path) -> None:
    """A schema with bytes that are no UTF-8 is a `StoreError`, like every other damage."""
    path = tmp_path / "jobs"
    async with open_store(path):
        pass
    sqlite3.connect(path).close()
    damaged = path.read_bytes().replace(b"batch_job(caller)", b"ba\xd3ch_job(caller)")
    path.write_bytes(damaged)
    with pytest.raises(StoreError):
        async with open_store(path) as store:
            await store.acquire("one", now=1)
