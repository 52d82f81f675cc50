"""Which files are a store, and what happens to those that are not?"""

import os
import shutil
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from folders import bytes_of, jobs, listed, make, sql

from sift_batch import StoreError, StoreVersionError, open_reader, open_store
from sift_batch._store import schema
from sift_batch.testing._ledger import OWNER, T0, Ledger

pytestmark = pytest.mark.real


def _text(path: Path) -> None:
    path.write_text("not a database\n" * 500)


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(8_192))


def _one_byte(path: Path) -> None:
    path.write_bytes(b"S")


def _other_program(path: Path) -> None:
    sql(path, "CREATE TABLE notes(text)", "INSERT INTO notes VALUES ('mine')")


def _other_marked_program(path: Path) -> None:
    sql(path, "PRAGMA application_id = 252006674", "PRAGMA user_version = 1", "CREATE TABLE fossil(x)")


def _other_program_with_our_tables(path: Path) -> None:
    tables = [f"CREATE TABLE {name}(id)" for name in ("batch_job", "batch_target", "batch_gone")]
    sql(path, "PRAGMA application_id = 252006674", "PRAGMA user_version = 1", *tables)


def _other_program_with_a_hot_log(path: Path) -> None:
    origin = path.with_name("origin.db")
    connection = sqlite3.connect(origin, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE notes(text)")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.execute("INSERT INTO notes VALUES ('in the log alone')")
    # What a killed program leaves: the log was never moved into the file.
    shutil.copyfile(origin, path)
    shutil.copyfile(f"{origin}-wal", f"{path}-wal")
    connection.close()
    origin.unlink()


def _other_program_with_a_hot_journal(path: Path) -> None:
    origin = path.with_name("origin.db")
    sql(origin, "CREATE TABLE notes(text)", "INSERT INTO notes VALUES (hex(zeroblob(60000)))")
    connection = sqlite3.connect(origin, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1").fetchall()
    connection.execute("PRAGMA cache_spill = 1").fetchall()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE notes SET text = hex(zeroblob(50000))")
    shutil.copyfile(origin, path)
    shutil.copyfile(f"{origin}-journal", f"{path}-journal")
    connection.close()
    origin.unlink()


def _ours_without_tables(path: Path) -> None:
    sql(
        path,
        f"PRAGMA application_id = {schema.APPLICATION_ID}",
        f"PRAGMA user_version = {schema.SCHEMA_VERSION}",
        "CREATE TABLE batch_job(id)",
    )


def _ours_without_a_version(path: Path) -> None:
    sql(path, f"PRAGMA application_id = {schema.APPLICATION_ID}", "CREATE TABLE batch_job(id)")


NO_STORES: list[Callable[[Path], None]] = [
    _text,
    _zeros,
    _one_byte,
    _other_program,
    _other_marked_program,
    _other_program_with_our_tables,
    _other_program_with_a_hot_log,
    _other_program_with_a_hot_journal,
    _ours_without_tables,
    _ours_without_a_version,
]


@pytest.mark.parametrize("spoil", NO_STORES, ids=lambda spoil: spoil.__name__.strip("_"))
async def test_what_is_no_store_is_left_byte_for_byte(tmp_path: Path, spoil: Callable[[Path], None]) -> None:
    """A file that is no store of ours is a StoreError, to reader and runner, and is left as it was."""
    path = tmp_path / "jobs.sift"
    spoil(path)
    before = bytes_of(tmp_path)
    for opened in (open_store(path), open_reader(path)):
        with pytest.raises(StoreError) as caught:
            async with opened:
                pass
        assert str(tmp_path) not in str(caught.value)
        assert not isinstance(caught.value, StoreVersionError)
    assert bytes_of(tmp_path) == before


async def test_a_truncated_store(tmp_path: Path) -> None:
    """A store that lost its second half is a StoreError, at the latest when all of it is read."""
    path = tmp_path / "jobs.sift"
    await make(path, *(f"https://example.com/{'x' * 3_000}/{n}" for n in range(30)))
    os.truncate(path, path.stat().st_size // 2)
    before = bytes_of(tmp_path)

    async def read_all() -> None:
        async with open_store(path) as store:
            await Ledger(store).everything()

    with pytest.raises(StoreError):
        await read_all()
    assert bytes_of(tmp_path) == before


async def test_a_newer_version(tmp_path: Path) -> None:
    """A store of a newer version is a StoreVersionError that says so, and is left as it was."""
    path = tmp_path / "jobs.sift"
    await make(path, "u")
    sql(path, f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    before = bytes_of(tmp_path)
    for opened in (open_store(path), open_reader(path)):
        with pytest.raises(StoreVersionError, match="newer"):
            async with opened:
                pass
    assert bytes_of(tmp_path) == before


# ---- paths


@pytest.mark.parametrize(
    "kind", ["folder", "fifo", "device", "socket", "missing folder", "NUL", "long", "loop"]
)
async def test_paths_that_can_be_no_store(tmp_path: Path, kind: str) -> None:
    """A path that can hold no file is a StoreError at once, and nothing is made."""
    path = tmp_path / "jobs.sift"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path = Path("/dev/null")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    elif kind == "missing folder":
        path = tmp_path / "no" / "jobs.sift"
    elif kind == "NUL":
        path = Path(f"{path}\0")
    elif kind == "long":
        path = tmp_path / ("x" * 300)
    else:
        path.symlink_to(path)
    before = listed(tmp_path)
    for opened in (open_store(path), open_reader(path)):
        with trio.fail_after(5), pytest.raises(StoreError):
            async with opened:
                pass
    assert listed(tmp_path) == before


@pytest.mark.parametrize(
    "name",
    [
        "two words.sift",
        "100%25.sift",
        "q?mode=memory",
        "q?vfs=none&x=y#z",
        "file:x?mode=memory",
        "ünïcode \U0001f600",
        "-wal",
        "semi;colon'quote\"",
        ":memory: ",
        "back\\slash",
        "new\nline",
    ],
)
async def test_odd_names_are_plain_names(tmp_path: Path, name: str) -> None:
    """Whatever a file is called, it is that file: the store is durable and stands under that name."""
    path = tmp_path / name
    ids = await make(path, "u")
    assert path.is_file()
    assert await jobs(path) == ids
    async with open_reader(path) as reader:
        assert [job.id for job in await reader.jobs()] == ids


async def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path means the file it meant when it was opened."""
    monkeypatch.chdir(tmp_path)
    async with open_store("jobs.sift") as store:
        monkeypatch.chdir("/")
        await store.acquire(OWNER, now=T0)
        await Ledger(store).ended("u")
    assert len(await jobs(tmp_path / "jobs.sift")) == 1


async def test_memory_is_private() -> None:
    """A store in memory is one of its own each time, and no file."""
    async with open_store(":memory:") as one, open_store(":memory:") as two:
        for store in (one, two):
            await store.acquire(OWNER, now=T0)
        await Ledger(one).ended("u")
        assert await Ledger(two).jobs() == []
    assert ":memory:" not in listed(Path())
