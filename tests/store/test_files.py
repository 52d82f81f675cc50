"""Which files are a store, and what happens to those that are not?"""

import hashlib
import os
import shutil
import socket
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from sift_batch import StoreError, StoreInUseError, StoreVersionError, open_reader, open_store
from sift_batch._store import schema
from sift_batch.testing._ledger import OWNER, T0, Ledger

pytestmark = pytest.mark.real


def _bytes_of(folder: Path) -> dict[str, str]:
    """Return a digest of every file in a folder that holds data: no index of a log, no empty log."""
    return {
        item.name: hashlib.sha256(item.read_bytes()).hexdigest()
        for item in folder.iterdir()
        if item.is_file() and not item.name.endswith("-shm")
        if not (item.name.endswith("-wal") and item.stat().st_size == 0)
    }


def _listed(folder: Path) -> list[str]:
    return sorted(item.name for item in folder.iterdir())


async def _make(path: Path, *urls: str) -> list[str]:
    """Make a store with one done job of these urls if there are any; return the ids of all jobs."""
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        if urls:
            await ledger.ended(*urls)
        return await ledger.jobs() or []


async def _jobs(path: Path) -> list[str]:
    async with open_store(path) as store:
        return await Ledger(store).jobs() or []


def _sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        for statement in statements:
            connection.execute(statement).fetchall()
    finally:
        connection.close()


# ---- what is no store


def _text(path: Path) -> None:
    path.write_text("not a database\n" * 500)


def _zeros(path: Path) -> None:
    path.write_bytes(bytes(8_192))


def _one_byte(path: Path) -> None:
    path.write_bytes(b"S")


def _other_program(path: Path) -> None:
    _sql(path, "CREATE TABLE notes(text)", "INSERT INTO notes VALUES ('mine')")


def _other_marked_program(path: Path) -> None:
    _sql(path, "PRAGMA application_id = 252006674", "PRAGMA user_version = 1", "CREATE TABLE fossil(x)")


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
    _sql(origin, "CREATE TABLE notes(text)", "INSERT INTO notes VALUES (hex(zeroblob(60000)))")
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
    _sql(
        path,
        f"PRAGMA application_id = {schema.APPLICATION_ID}",
        f"PRAGMA user_version = {schema.SCHEMA_VERSION}",
        "CREATE TABLE batch_job(id)",
    )


def _ours_without_a_version(path: Path) -> None:
    _sql(path, f"PRAGMA application_id = {schema.APPLICATION_ID}", "CREATE TABLE batch_job(id)")


NO_STORES: list[Callable[[Path], None]] = [
    _text,
    _zeros,
    _one_byte,
    _other_program,
    _other_marked_program,
    _other_program_with_a_hot_log,
    _other_program_with_a_hot_journal,
    _ours_without_tables,
    _ours_without_a_version,
]


@pytest.mark.parametrize("make", NO_STORES, ids=lambda make: make.__name__.strip("_"))
async def test_what_is_no_store_is_left_byte_for_byte(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """A file that is no store of ours is a StoreError, to reader and runner, and is left as it was."""
    path = tmp_path / "jobs.sift"
    make(path)
    before = _bytes_of(tmp_path)
    for opened in (open_store(path), open_reader(path)):
        with pytest.raises(StoreError) as caught:
            async with opened:
                pass
        assert str(tmp_path) not in str(caught.value)
        assert not isinstance(caught.value, StoreVersionError)
    assert _bytes_of(tmp_path) == before


async def test_a_truncated_store(tmp_path: Path) -> None:
    """A store that lost its second half is a StoreError, at the latest when all of it is read."""
    path = tmp_path / "jobs.sift"
    await _make(path, *(f"https://example.com/{'x' * 3_000}/{n}" for n in range(30)))
    os.truncate(path, path.stat().st_size // 2)
    before = _bytes_of(tmp_path)

    async def read_all() -> None:
        async with open_store(path) as store:
            await Ledger(store).everything()

    with pytest.raises(StoreError):
        await read_all()
    assert _bytes_of(tmp_path) == before


async def test_a_newer_version(tmp_path: Path) -> None:
    """A store of a newer version is a StoreVersionError that says so, and is left as it was."""
    path = tmp_path / "jobs.sift"
    await _make(path, "u")
    _sql(path, f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    before = _bytes_of(tmp_path)
    for opened in (open_store(path), open_reader(path)):
        with pytest.raises(StoreVersionError, match="newer"):
            async with opened:
                pass
    assert _bytes_of(tmp_path) == before


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
    before = _listed(tmp_path)
    for opened in (open_store(path), open_reader(path)):
        with trio.fail_after(5), pytest.raises(StoreError):
            async with opened:
                pass
    assert _listed(tmp_path) == before


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
    ids = await _make(path, "u")
    assert path.is_file()
    assert await _jobs(path) == ids
    async with open_reader(path) as reader:
        assert [job.id for job in await reader.jobs()] == ids


async def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path means the file it meant when it was opened."""
    monkeypatch.chdir(tmp_path)
    async with open_store("jobs.sift") as store:
        monkeypatch.chdir("/")
        await store.acquire(OWNER, now=T0)
        await Ledger(store).ended("u")
    assert len(await _jobs(tmp_path / "jobs.sift")) == 1


async def test_memory_is_private() -> None:
    """A store in memory is one of its own each time, and no file."""
    async with open_store(":memory:") as one, open_store(":memory:") as two:
        for store in (one, two):
            await store.acquire(OWNER, now=T0)
        await Ledger(one).ended("u")
        assert await Ledger(two).jobs() == []
    assert ":memory:" not in _listed(Path())


# ---- new files


@pytest.mark.parametrize("umask", [0o022, 0o000, 0o077])
async def test_nobody_else_can_read_it(tmp_path: Path, umask: int) -> None:
    """The file and all its side files are readable by their owner alone, whatever the umask."""
    before = os.umask(umask)
    try:
        async with open_store(tmp_path / "jobs.sift") as store:
            await store.acquire(OWNER, now=T0)
            await Ledger(store).ended("u")
            modes = {name: oct(stat.S_IMODE((tmp_path / name).stat().st_mode)) for name in _listed(tmp_path)}
        sides = ("", "-owner", "-shm", "-wal")
        assert modes == {f"jobs.sift{side}": "0o600" for side in sides}
    finally:
        os.umask(before)


async def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """A store that was made readable for others is the owner's alone as soon as a runner owns it."""
    path = tmp_path / "jobs.sift"
    await _make(path)
    path.chmod(0o644)
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_an_empty_file_is_a_new_store(tmp_path: Path) -> None:
    """An empty file becomes a store, and the owner's alone."""
    path = tmp_path / "jobs.sift"
    path.touch(0o644)
    ids = await _make(path, "u")
    assert await _jobs(path) == ids
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
    ids = await _make(path, "u")
    assert await _jobs(path) == ids
    assert not [name for name in _listed(tmp_path) if "draft" in name or "journal" in name]


# ---- one owner


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
    ids = await _make(path, "u")
    before = _bytes_of(tmp_path)
    stamp = path.stat().st_mtime_ns
    async with open_store(path) as store:
        assert await Ledger(store).jobs() == ids
        with pytest.raises(StoreError):
            await store.check(OWNER, now=T0)
    async with open_reader(path) as reader:
        assert await reader.job(ids[0])
    assert (_bytes_of(tmp_path), path.stat().st_mtime_ns) == (before, stamp)


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
    assert await _jobs(path) == []
    await _make(path, "v")
    assert len(await _jobs(path)) == 1


async def test_a_reader_needs_a_store(tmp_path: Path) -> None:
    """A reader makes no file: where there is none it is a StoreError."""
    for path in (tmp_path / "jobs.sift", tmp_path / "empty.sift"):
        if path.name == "empty.sift":
            path.touch()
        before = _listed(tmp_path)
        with pytest.raises(StoreError):
            async with open_reader(path):
                pass
        assert _listed(tmp_path) == before


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


@pytest.mark.parametrize("durability", ["FULL", "", None, 2])
async def test_an_unknown_durability(tmp_path: Path, durability: str) -> None:
    """A durability that is neither "full" nor "normal" is a ValueError, and nothing is made."""
    with pytest.raises(ValueError, match="durability"):
        async with open_store(tmp_path / "jobs.sift", durability=durability):  # type: ignore[arg-type]
            pass
    assert _listed(tmp_path) == []
