"""Is a backup whole, alone, and there or not there?"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
import trio
from folders import bytes_of, listed, make, sql

from sift_batch import StoreError, StoreInUseError, StoreVersionError, open_reader, open_store
from sift_batch._store import backup, files
from sift_batch._store.backup import BackupExistsError
from sift_batch._store.beside import back_up_store, check_store
from sift_batch.testing._ledger import FAILED, OWNER, SECRET, T0, Ledger, done

pytestmark = pytest.mark.real


async def everything(path: Path):
    """Read all jobs of a store, with targets and results."""
    async with open_store(path) as store:
        return await Ledger(store).everything()


def plain(folder: Path) -> list[str]:
    """Return the names in a folder but those of logs, which a reader may make."""
    return [name for name in listed(folder) if not name.endswith((".sift-wal", ".sift-shm"))]


async def test_a_backup_is_the_store(tmp_path: Path) -> None:
    """A backup has every job, target and result of the store, is one file of its user alone, and sound."""
    path, copy = tmp_path / "jobs.sift", tmp_path / "copy.sift"
    told: list[tuple[int, int]] = []
    mask = os.umask(0o777)
    try:
        async with open_store(path) as store:
            await store.acquire(OWNER, now=T0)
            ledger = Ledger(store)
            await ledger.ended("u", "v", outcomes=[done("text " * 900, title="ü"), FAILED])
            await ledger.ended("w", caller=SECRET)
            await ledger.running("x", "y")
            before = await ledger.everything()
            made = await back_up_store(path, copy, on_progress=lambda *parts: told.append(parts))
            names = listed(tmp_path)
    finally:
        os.umask(mask)
    assert (made.path, made.nbytes, made.jobs) == (copy, copy.stat().st_size, 3)
    assert names == ["copy.sift", "jobs.sift", "jobs.sift-owner", "jobs.sift-shm", "jobs.sift-wal"]
    assert copy.stat().st_mode & 0o777 == 0o600
    assert told[-1] == (made.nbytes, made.nbytes)
    found = await check_store(copy)
    assert found.sound
    assert found.journal_mode == "delete"
    assert listed(tmp_path) == names
    assert await everything(copy) == before


async def test_a_restored_backup_is_a_store(tmp_path: Path) -> None:
    """A backup that was copied into place is opened, owned, and goes on as a store with a log."""
    path, copy, restored = (tmp_path / name for name in ("jobs.sift", "copy.sift", "restored.sift"))
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        job = await Ledger(store).ended("u")
        await back_up_store(path, copy)
    shutil.copy(copy, restored)
    async with open_store(restored) as store, open_reader(restored) as reader:
        assert (await reader.job(job.id)) == job
        await store.acquire(OWNER, now=T0 + 1)
        later = Ledger(store)
        later._ids = 10
        second = await later.ended("v")
        assert await reader.job(second.id) == second
        assert {item.id for item in await reader.jobs()} == {job.id, second.id}
        await store.check(OWNER, now=T0 + 1)
    found = await check_store(restored)
    assert found.sound
    assert found.journal_mode == "wal"


async def test_a_backup_is_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored while a backup is made is stored, is not in it, and has the copy not begin anew."""
    monkeypatch.setattr(backup, "_PAGES_A_STEP", 4)
    path, copy = tmp_path / "jobs.sift", tmp_path / "copy.sift"
    told: list[int] = []
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        for number in range(10):
            await ledger.ended(str(number), outcomes=[done("x" * 9_000)])
        live = await ledger.running("a", "b", "c")
        before = await ledger.everything()

        async def more() -> None:
            if len(told) == 2:
                await ledger.record(live.id, 0, done("later"))
            await ledger.queued(f"later {len(told)}")

        def on_progress(done_so_far: int, _: int) -> None:
            told.append(done_so_far)
            trio.from_thread.run(more)

        await back_up_store(path, copy, on_progress=on_progress)
        assert len(told) > 5
        assert told == sorted(told)
        assert len(await ledger.everything()) == len(before) + len(told)
    assert await everything(copy) == before
    assert (await check_store(path)).sound


async def test_nothing_is_written_over(tmp_path: Path) -> None:
    """What is at the destination stays as it is, a log without its file and a broken link too."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    (tmp_path / "there").write_text("mine")
    (tmp_path / "logged-wal").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken").symlink_to(tmp_path / "nothing")
    (tmp_path / "link").symlink_to(path)
    before, names = bytes_of(tmp_path), plain(tmp_path)
    for name in ("there", "logged"):
        with pytest.raises(BackupExistsError):
            await back_up_store(path, tmp_path / name)
    for name in ("folder", "broken", "link"):
        for replace in (False, True):
            with pytest.raises(StoreError):
                await back_up_store(path, tmp_path / name, replace=replace)
    for name in ("jobs.sift", "jobs.sift-wal", "jobs.sift-owner"):
        with pytest.raises(StoreError, match="store itself"):
            await back_up_store(path, tmp_path / name, replace=True)
    for name in ("none/copy", "there/copy"):
        with pytest.raises(StoreError, match="folder"):
            await back_up_store(path, tmp_path / name)
    assert plain(tmp_path) == names
    assert {name: bytes_of(tmp_path)[name] for name in before} == before


async def test_a_file_that_is_replaced(tmp_path: Path) -> None:
    """With `replace` the file is written over, and a log beside it is not read into the new one."""
    path, copy = tmp_path / "jobs.sift", tmp_path / "copy.sift"
    await make(path, "u")
    async with open_store(copy) as store:
        await store.acquire(OWNER, now=T0)
        await Ledger(store).ended("another")
        log = (tmp_path / "copy.sift-wal").read_bytes()
        with pytest.raises(StoreInUseError):
            await back_up_store(path, copy, replace=True)
        assert len(await Ledger(store).everything()) == 1
    (tmp_path / "copy.sift-wal").write_bytes(log)
    copy.chmod(0o644)
    made = await back_up_store(path, copy, replace=True)
    assert copy.stat().st_mode & 0o777 == 0o600
    assert made.jobs == 1
    assert await everything(copy) == await everything(path)
    # It can be replaced again, and owned by whoever wants to.
    await back_up_store(path, copy, replace=True)
    async with open_store(copy) as store:
        await store.acquire(OWNER, now=T0)


async def test_what_can_not_be_replaced_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that can't be given leaves the file of before, with what a killed runner left in its log."""
    path, copy = tmp_path / "jobs.sift", tmp_path / "copy.sift"
    await make(path, "u")
    async with open_store(tmp_path / "killed.sift") as store:
        await store.acquire(OWNER, now=T0)
        await Ledger(store).ended("another")
        for suffix in ("", "-wal"):
            shutil.copy(tmp_path / f"killed.sift{suffix}", f"{copy}{suffix}")

    def fails(*_: object) -> NoReturn:
        raise OSError(28, "no room for the name")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fails)
        with pytest.raises(StoreError, match="full"):
            await back_up_store(path, copy, replace=True)
        patch.setattr(os, "link", fails)
        with pytest.raises(StoreError, match="full"):
            await back_up_store(path, tmp_path / "new.sift")
    assert not (tmp_path / "new.sift").exists()
    assert len(await everything(copy)) == 1


async def test_whoever_is_first_has_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that comes to the destination meanwhile is not written over, with or without hard links."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")

    def no_links(*_: object) -> NoReturn:
        raise PermissionError(1, "no links here")

    for number in range(2):
        raced, made = tmp_path / f"raced-{number}", tmp_path / f"made-{number}"
        with pytest.raises(BackupExistsError):
            await back_up_store(path, raced, on_progress=lambda *_, raced=raced: raced.write_text("mine"))
        assert raced.read_text() == "mine"
        await back_up_store(path, made)
        assert (await check_store(made)).sound
        monkeypatch.setattr(os, "link", no_links)
    assert [name for name in listed(tmp_path) if name.startswith(".")] == []


async def test_a_backup_that_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancellation ends a backup between two steps, and leaves nothing behind."""
    monkeypatch.setattr(backup, "_PAGES_A_STEP", 1)
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    names = plain(tmp_path)
    told: list[int] = []
    with trio.CancelScope() as scope:

        def on_progress(done_so_far: int, _: int) -> None:
            told.append(done_so_far)
            trio.from_thread.run_sync(scope.cancel)

        await back_up_store(path, tmp_path / "copy.sift", on_progress=on_progress)
    assert scope.cancelled_caught
    assert len(told) == 1
    assert plain(tmp_path) == names


async def test_a_damaged_store_gives_no_backup(tmp_path: Path) -> None:
    """A store with damaged pages, a newer one and what is no store are StoreErrors, and leave no file."""
    path, newer = tmp_path / "jobs.sift", tmp_path / "newer.sift"
    await make(path, "u", *["x" * 3_000] * 20)
    content = bytearray(path.read_bytes())
    content[-4096:-4032] = b"\xff" * 64
    path.write_bytes(content)
    await make(newer)
    sql(newer, "PRAGMA user_version = 2")
    names = plain(tmp_path)
    with pytest.raises(StoreError, match="damaged"):
        await back_up_store(path, tmp_path / "copy.sift")
    with pytest.raises(StoreVersionError):
        await back_up_store(newer, tmp_path / "copy.sift")
    with pytest.raises(StoreError, match="no store here"):
        await back_up_store(tmp_path / "missing", tmp_path / "copy.sift")
    assert plain(tmp_path) == names


async def test_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without room for the whole of it a backup is not begun: the disk may be the one of the store."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    told: list[int] = []
    size = path.stat().st_size
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("Usage", (), {"free": size - 1}))
    with pytest.raises(StoreError, match="no room"):
        await back_up_store(path, tmp_path / "copy.sift", on_progress=lambda *_: told.append(1))
    assert told == []
    assert "copy.sift" not in listed(tmp_path)


@pytest.fixture
def little_disk(tmp_path: Path):
    """Return a folder on a disk of one megabyte."""
    folder = tmp_path / "little"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=False, capture_output=True
    )
    if mount.returncode:
        pytest.skip("a small disk can't be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_a_full_disk(tmp_path: Path, little_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up while a backup is made: a StoreError that says so, and nothing left on it."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        for number in range(20):
            await ledger.ended(str(number), outcomes=[done("x" * 100_000)])
    monkeypatch.setattr(backup, "_check_room", lambda *_: None)
    with pytest.raises(StoreError, match="disk of the backup is full"):
        await back_up_store(path, little_disk / "copy.sift")
    assert listed(little_disk) == []


_LIMITED = """
import resource, sys, trio
from sift_batch import StoreError
from sift_batch._store.beside import back_up_store

async def main():
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
    try:
        await back_up_store(sys.argv[1], sys.argv[2])
    except StoreError as exc:
        print(exc)

trio.run(main)
"""


@pytest.mark.parametrize("limit", [0, 1, 5_000, 40_000])
async def test_a_file_that_may_not_grow(tmp_path: Path, limit: int) -> None:
    """A file system that refuses to let the copy grow: a StoreError, and nothing left behind."""
    path, folder = tmp_path / "jobs.sift", tmp_path / "backups"
    folder.mkdir()
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        await Ledger(store).ended("u", outcomes=[done("x" * 100_000)])
        # The owner's index of the log is there already: the limit is for the copy.
        told = await trio.run_process(
            [sys.executable, "-c", _LIMITED, path, folder / "copy.sift", str(limit)], capture_stdout=True
        )
    assert b"disk" in told.stdout
    assert listed(folder) == []


_KILLED = """
import os, signal, sys, trio
from sift_batch._store import backup
from sift_batch._store.beside import back_up_store

backup._PAGES_A_STEP = 1

def on_progress(done, total):
    if done * 2 > total:
        os.kill(os.getpid(), signal.SIGKILL)

trio.run(lambda: back_up_store(sys.argv[1], sys.argv[2], on_progress=on_progress))
"""


async def test_a_killed_process_leaves_no_backup(tmp_path: Path) -> None:
    """A process that is killed half-way leaves nothing of the backup's name, and the next one is whole."""
    path, folder = tmp_path / "jobs.sift", tmp_path / "backups"
    folder.mkdir()
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        job = await Ledger(store).ended("u", outcomes=[done("x" * 100_000)])
        ended = await trio.run_process(
            [sys.executable, "-c", _KILLED, path, folder / "copy.sift"], check=False
        )
        assert ended.returncode == -signal.SIGKILL
        (left,) = listed(folder)
        assert left.startswith(".sift-backup-")
        assert (folder / left).stat().st_mode & 0o777 == 0o700
        await back_up_store(path, folder / "copy.sift")
        # The owner's lock and log are as they were.
        assert await Ledger(store).there(job.id) == job
    assert [item.job.id for item in await everything(folder / "copy.sift")] == [job.id]


async def test_a_backup_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder is synced once the file has its name."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    synced: list[tuple[Path, bool]] = []
    copy = tmp_path / "copy.sift"
    monkeypatch.setattr(files, "sync_folder", lambda folder: synced.append((folder, copy.exists())))
    await back_up_store(path, copy)
    assert synced == [(tmp_path, True)]


async def test_jobs_that_cannot_be_read_are_a_store_error(tmp_path: Path) -> None:
    """A store whose table of jobs is damaged is told like any other, and leaves no file."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    connection = sqlite3.connect(path)
    try:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'batch_job'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    finally:
        connection.close()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * 64)
    names = plain(tmp_path)
    with pytest.raises(StoreError, match="damaged"):
        await back_up_store(path, tmp_path / "copy.sift")
    assert plain(tmp_path) == names


async def test_sqlite_is_stopped_by_a_cancellation_of_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancellation while the copy is read back ends that as well, and leaves nothing behind."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    names = plain(tmp_path)
    with trio.CancelScope() as scope:

        def endless(connection: sqlite3.Connection) -> None:
            trio.from_thread.run_sync(scope.cancel)
            connection.execute(
                "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4000000) "
                "SELECT count(*) FROM n"
            ).fetchall()
            raise AssertionError

        verify, calls = backup.schema.verify, []

        def verifying(connection: sqlite3.Connection) -> None:
            calls.append(connection)
            # The store's own, then the copy's.
            (verify if len(calls) == 1 else endless)(connection)

        monkeypatch.setattr(backup.schema, "verify", verifying)
        await back_up_store(path, tmp_path / "copy.sift")
    assert scope.cancelled_caught
    assert plain(tmp_path) == names
