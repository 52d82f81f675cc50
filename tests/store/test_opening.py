"""How is a store made, who owns it, and what does opening it change?"""

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

import pytest
from folders import bytes_of, jobs, listed, make

from sift_batch import StoreError, StoreInUseError, open_reader, open_store
from sift_batch._store import files, schema
from sift_batch.testing._ledger import OWNER, T0, Ledger

pytestmark = pytest.mark.real


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
async def test_nobody_else_can_read_it(tmp_path: Path, umask: int) -> None:
    """The file and all its side files are readable by their owner alone, whatever the umask."""
    before = os.umask(umask)
    try:
        async with open_store(tmp_path / "jobs.sift") as store:
            await store.acquire(OWNER, now=T0)
            await Ledger(store).ended("u")
            modes = {name: oct(stat.S_IMODE((tmp_path / name).stat().st_mode)) for name in listed(tmp_path)}
        sides = ("", "-owner", "-shm", "-wal")
        assert modes == {f"jobs.sift{side}": "0o600" for side in sides}
    finally:
        os.umask(before)


async def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """A store that was made readable for others is the owner's alone as soon as a runner owns it."""
    path = tmp_path / "jobs.sift"
    await make(path)
    path.chmod(0o644)
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    """An empty file becomes a store, and the owner's alone."""
    path = tmp_path / "jobs.sift"
    path.touch(0o644)
    ids = await make(path, "u")
    assert await jobs(path) == ids
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("at", range(1, 14))
async def test_a_store_that_was_never_finished_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """If the making of a file fails at any moment, the next one makes it whole."""

    class Failing:
        """A connection whose statement number `at` fails."""

        def __init__(self, connection: sqlite3.Connection) -> None:
            self.connection = connection
            self.left = at

        def execute(self, sql: str) -> sqlite3.Cursor:
            self.left -= 1
            if self.left == 0:
                raise sqlite3.OperationalError("disk I/O error")
            return self.connection.execute(sql)

    create = schema.create
    path = tmp_path / "jobs.sift"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "create", lambda connection: create(Failing(connection)))  # type: ignore[arg-type]
        try:
            async with open_store(path):
                pass
        except StoreError:
            pass
        else:
            assert at > 10, "this statement is not there any more"
    ids = await make(path, "u")
    assert await jobs(path) == ids
    assert not [name for name in listed(tmp_path) if "draft" in name or "journal" in name]


async def test_a_link_to_a_store_is_that_store(tmp_path: Path) -> None:
    """A symbolic link, to the file or to its folder, leads to the same owner and the same jobs."""
    path = tmp_path / "jobs.sift"
    (tmp_path / "link.sift").symlink_to(path)
    (tmp_path / "folder").symlink_to(tmp_path)
    links = [tmp_path / "link.sift", tmp_path / "folder" / "jobs.sift", tmp_path / "folder" / "link.sift"]
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        job = await ledger.ended("u")
        for link in links:
            async with open_store(link) as other:
                assert await Ledger(other).jobs() == [job.id]
                with pytest.raises(StoreInUseError):
                    await other.acquire("owner-2", now=T0 + 9)
            async with open_reader(link) as reader:
                assert [item.id for item in await reader.jobs()] == [job.id]
        assert await ledger.there(job.id) == job
        await ledger.ended("v")


async def test_the_second_owner_changes_nothing_and_may_follow(tmp_path: Path) -> None:
    """A store that is in use can be acquired by nobody else, and at once when it is released."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as one, open_store(path) as two:
        await one.acquire(OWNER, now=T0)
        running = await Ledger(one).running("u", "v")
        before = await Ledger(one).everything()
        for _ in range(3):
            with pytest.raises(StoreInUseError):
                await two.acquire("owner-2", now=T0 + 9)
            assert await Ledger(two).everything() == before
        assert await Ledger(one).record(running.id, 0)
        await one.release(OWNER)
        found = await two.acquire("owner-2", now=T0 + 9)
        assert [job.id for job in found.failed] == [running.id]
        with pytest.raises(StoreError):
            await Ledger(one).record(running.id, 1)


async def test_opening_writes_nothing(tmp_path: Path) -> None:
    """Opening and reading an existing store, and closing it, leave the file as it was."""
    path = tmp_path / "jobs.sift"
    ids = await make(path, "u")
    before = bytes_of(tmp_path)
    stamp = path.stat().st_mtime_ns
    async with open_store(path) as store:
        assert await Ledger(store).jobs() == ids
        with pytest.raises(StoreError):
            await store.check(OWNER, now=T0)
    async with open_reader(path) as reader:
        assert await reader.job(ids[0])
    assert (bytes_of(tmp_path), path.stat().st_mtime_ns) == (before, stamp)


async def test_an_old_log_is_not_read_into_a_new_store(tmp_path: Path) -> None:
    """A log that an earlier file of the same name left behind does not bring its jobs back."""
    path, log = tmp_path / "jobs.sift", tmp_path / "jobs.sift-wal"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        await Ledger(store).ended("u")
        left = log.read_bytes()
    assert left
    path.unlink()
    log.write_bytes(left)
    assert await jobs(path) == []
    await make(path, "v")
    assert len(await jobs(path)) == 1


async def test_a_reader_needs_a_store(tmp_path: Path) -> None:
    """A reader makes no file: where there is none it is a StoreError."""
    for path in (tmp_path / "jobs.sift", tmp_path / "empty.sift"):
        if path.name == "empty.sift":
            path.touch()
        before = listed(tmp_path)
        with pytest.raises(StoreError):
            async with open_reader(path):
                pass
        assert listed(tmp_path) == before


async def test_another_file_in_its_place_is_found_out(tmp_path: Path) -> None:
    """A check says so when another file stands where the store was, or none."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        await store.check(OWNER, now=T0)
        path.rename(tmp_path / "moved.sift")
        with pytest.raises(StoreError, match="gone"):
            await store.check(OWNER, now=T0)
        path.touch()
        with pytest.raises(StoreError, match="another file"):
            await store.check(OWNER, now=T0)


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("normal", 1)])
def test_what_a_durability_means(tmp_path: Path, durability: str, synchronous: int) -> None:
    """With "full" SQLite waits for the disk at each commit, with "normal" only when the log is moved."""
    path = tmp_path / "jobs.sift"
    files.ensure_store(path)
    with contextlib.closing(files.connect_writer(path, durability)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (synchronous,)


@pytest.mark.parametrize("durability", ["FULL", "", None, 2])
async def test_an_unknown_durability(tmp_path: Path, durability: str) -> None:
    """A durability that is neither "full" nor "normal" is a ValueError, and nothing is made."""
    with pytest.raises(ValueError, match="durability"):
        async with open_store(tmp_path / "jobs.sift", durability=durability):  # type: ignore[arg-type]
            pass
    assert listed(tmp_path) == []
