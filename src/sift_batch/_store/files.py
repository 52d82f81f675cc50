"""Which file is the store, who may write it, and how is it opened without harm?

Two rules stand behind this module. First: once a database file exists, only SQLite opens it. POSIX
drops every lock that a process holds on a file as soon as the process closes any descriptor of it;
an outside reader that then closes would delete the log under the runner, and an acknowledged job
with it. So nothing here reads a header, copies or re-opens a database by hand; `stat` is enough.
Second: without the owner's lock nothing is written. The lock is an `flock` on a side file beside the
resolved path, so that a link to a store is that store, and it dies with the process.
"""

import contextlib
import errno
import fcntl
import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from .._model.crash import crash_point
from .._model.errors import StoreError, StoreInUseError
from . import schema

_OWNER_ONLY: Final = 0o600
_LOCK_SUFFIX: Final = "-owner"
_DRAFT_SUFFIX: Final = "-draft"


def resolve(path: str | os.PathLike[str]) -> Path:
    """Return the file that `path` stands for, links followed; `StoreError` if there can't be one."""
    try:
        resolved = Path(os.path.realpath(os.fspath(path)))
        found = resolved.stat() if resolved.exists() else None
    except (OSError, ValueError) as exc:
        raise StoreError("this path can't be a store file; choose another path") from exc
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise StoreError("this path is no regular file; choose another path")
    if found is None and not resolved.parent.is_dir():
        raise StoreError("the folder of the store file does not exist; make it first")
    return resolved


def is_new(path: Path) -> bool:
    """Return whether there is no database yet: no file, or an empty one."""
    try:
        return path.stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError as exc:
        raise StoreError("this path can't be a store file; choose another path") from exc


def identity(path: Path) -> tuple[int, int]:
    """Return what tells this file from another one that is put in its place."""
    try:
        found = path.stat()
    except OSError as exc:
        raise StoreError("the store file is gone; restore it from a backup and start again") from exc
    return found.st_dev, found.st_ino


class OwnerLock:
    """The lock of the one process, and the one runner in it, that writes a store."""

    def __init__(self, path: Path) -> None:
        self._path = lock_file(path)
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock or raise `StoreInUseError`; never waits."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(self._path, flags, _OWNER_ONLY)
        except OSError as exc:
            raise StoreError(
                "the store's lock file can't be opened; check the permissions of its folder"
            ) from exc
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            os.close(descriptor)
            if isinstance(exc, BlockingIOError):
                raise StoreInUseError("another runner owns this store; close it first") from exc
            raise StoreError("this file system has no locks; put the store on a local disk") from exc
        if not _is_at(self._path, descriptor):
            # Removed, or replaced, between our opening and our locking it: this lock is nobody's.
            os.close(descriptor)
            raise StoreInUseError("another runner has just left or taken this store; try again")
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back, if it is held. The side file stays: removing it would be a race."""
        if self._descriptor is not None:
            # Unlocked and not only closed: a process that was forked meanwhile has the lock as well.
            with contextlib.suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            os.close(self._descriptor)
            self._descriptor = None

    def check(self) -> None:
        """Raise `StoreError` if the lock is held on a file that nobody else would find any more."""
        if self._descriptor is not None and not _is_at(self._path, self._descriptor):
            raise StoreError(
                "the store's lock file was removed while the store is in use, so another runner could "
                "take the store as well; close this runner and open it again"
            )


def _is_at(path: Path, descriptor: int) -> bool:
    """Return whether the open file is the one that `path` names."""
    try:
        found = path.stat()
    except OSError:
        return False
    mine = os.fstat(descriptor)
    return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Turn what SQLite, or the system, says of a file into a `StoreError` that says what to do."""
    try:
        yield
    except StoreError:
        raise
    except OSError as exc:
        # By its name alone: an OSError's text has the path.
        name = errno.errorcode.get(exc.errno or 0, type(exc).__name__)
        raise StoreError(
            f"this store can't be used; check its permissions, its folder's and the disk ({name})"
        ) from exc
    except sqlite3.DatabaseError as exc:
        code = getattr(exc, "sqlite_errorcode", 0) & 0xFF
        advice = {
            sqlite3.SQLITE_NOTADB: "this file is no database; choose another path",
            sqlite3.SQLITE_CORRUPT: "this store is damaged; restore it from a backup",
            sqlite3.SQLITE_READONLY: "this store can't be written; check its permissions and its folder's",
            sqlite3.SQLITE_CANTOPEN: "this store can't be opened; check its permissions and its folder's",
            sqlite3.SQLITE_FULL: "the disk is full; make room and start again",
            sqlite3.SQLITE_BUSY: "another process keeps this store locked; try again later",
        }.get(code, "this store can't be used")
        name = getattr(exc, "sqlite_errorname", type(exc).__name__)
        raise StoreError(f"{advice} ({name})") from exc
    except Exception as exc:
        # sqlite3 raises what it likes for a damaged schema: a UnicodeDecodeError for a name, for one.
        raise StoreError(f"this store is damaged; restore it from a backup ({type(exc).__name__})") from exc


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Open an existing database: mode "ro" or "rw". Our own query is all there is in the URI."""
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False, timeout=5
    )


def ensure_store(path: Path) -> None:
    """Make a new store at `path` if there is none. An existing file is not touched."""
    if not is_new(path):
        return
    lock = OwnerLock(path)
    lock.acquire()
    try:
        # Again, under the lock: another process may have been quicker.
        if is_new(path):
            with reported():
                _create(path)
    finally:
        lock.release()


def _create(path: Path) -> None:
    # Made under another name and moved into place when it is whole: a process that is killed, or a
    # disk that is full, leaves no half-made file that nobody could open again.
    draft = path.with_name(path.name + _DRAFT_SUFFIX)
    unlink(draft, *side_files(draft))
    try:
        # Made before SQLite sees it, so that the log and its index inherit the mode.
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY))
        draft.chmod(_OWNER_ONLY)
        crash_point("create: draft made")
        with contextlib.closing(connect(draft, "rw")) as connection:
            # Full: a store that was half written when the power went would be nobody's file.
            connection.execute("PRAGMA synchronous = FULL")
            schema.create(connection)
            crash_point("create: draft laid out")
            # Closing would move the log too, but says nothing if that fails: half a file would go into place.
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        # A log that an earlier file of this name left behind would be read into the new one.
        unlink(*side_files(path))
        crash_point("create: draft whole")
        draft.replace(path)
        crash_point("create: in place")
    except BaseException:
        with contextlib.suppress(OSError):
            unlink(draft, *side_files(draft))
        raise
    sync_folder(path.parent)


def side_files(path: Path) -> list[Path]:
    """Return what SQLite may put beside a database; read into whatever stands there under its name."""
    return [path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal")]


def lock_file(path: Path) -> Path:
    """Return the side file of which the owner of a store holds the lock."""
    return path.with_name(path.name + _LOCK_SUFFIX)


def unlink(*paths: Path) -> None:
    """Remove files, if they are there."""
    for path in paths:
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Let the new name survive a power cut, where the file system can promise that."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a verified connection that never writes."""
    with reported():
        connection = connect(path, "ro")
        try:
            schema.verify(connection)
            schema.configure_reader(connection)
        except BaseException:
            connection.close()
            raise
    return connection


def connect_writer(path: Path, durability: str) -> sqlite3.Connection:
    """Open the connection that writes. Only the holder of the owner's lock may call this."""
    with reported():
        if path.stat().st_mode & 0o077:
            path.chmod(_OWNER_ONLY)
        connection = connect(path, "rw")
        try:
            schema.verify(connection)
            schema.configure(connection, durability=durability)
        except BaseException:
            connection.close()
            raise
    return connection
