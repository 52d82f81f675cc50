"""How does a store become a file of its own, while its runner goes on?

SQLite's backup API copies the pages of one moment: whatever was acknowledged before it began is in the
copy, whatever comes later is not, and the runner's own steps wait for nothing. The copy is made and
checked in a private folder beside its destination and gets its name when it is whole, so that a process
that is stopped or a disk that is full leaves nothing under that name. Next: `beside.py`, which brings
this to a thread.
"""

import contextlib
import errno
import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from .._model.errors import StoreError
from . import files, schema

# Two megabytes a step: between two of them a cancellation is heard, and the lock on Python is let go.
_PAGES_A_STEP: Final = 512
_DRAFT_FOLDER: Final = ".sift-backup-"
_OWNER_ONLY: Final = 0o600
_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_FULL: Final = "the disk of the backup is full; make room, or choose another disk"
_UNWRITABLE: Final = "the backup can't be written; check its folder and its disk"
_JOBS: Final = "SELECT count(*), coalesce(sum(version), 0) FROM batch_job"


class BackupExistsError(StoreError):
    """There is a file of the backup's name already, or a log of one beside it."""

    def __init__(self) -> None:
        super().__init__("there is a file of this name, or beside it a log of one; choose another name")


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup that was made: its file, its size in bytes, and the jobs in it."""

    path: Path
    nbytes: int
    jobs: int


def back_up(
    source: Path,
    destination: Path,
    *,
    replace: bool,
    on_progress: Callable[[int, int], object],
    watch: Callable[[sqlite3.Connection], object],
) -> Backup:
    """Copy the store at `source`. `on_progress` hears of bytes; what it raises ends the backup.

    `watch` gets each connection that reads for long, and may set a handler that ends it. Raises
    `StoreError`, with nothing left behind.
    """
    destination = _place(source, destination, replace=replace)
    # Closed, and so unlocked, before anything moves: the copy is whole then.
    with contextlib.closing(files.connect_reader(source)) as reader:
        # One transaction for all steps: a write meanwhile would have the copying begin anew each time.
        watch(reader)
        with files.reported():
            reader.execute("BEGIN")
            marks = reader.execute(_JOBS).fetchone()
        _check_room(reader, destination)
        draft_folder = _make_folder(destination)
        try:
            draft = draft_folder / "store"
            with _at_destination():
                _copy(reader, draft, on_progress)
                _verify(draft, marks, watch)
            reader.execute("COMMIT")
            with _at_destination():
                nbytes = draft.stat().st_size
                _name(draft, destination, replace=replace)
        finally:
            shutil.rmtree(draft_folder, ignore_errors=True)
    with _at_destination():
        files.sync_folder(destination.parent)
    return Backup(destination, nbytes, marks[0])


def _place(source: Path, destination: Path, *, replace: bool) -> Path:
    """Return where the backup goes, its folder resolved; refuse what must not be written over."""
    try:
        destination = destination.parent.resolve(strict=True) / destination.name
        found = destination.lstat() if os.path.lexists(destination) else None
        in_the_way = found is not None or any(map(os.path.lexists, files.side_files(destination)))
        same = found is not None and stat.S_ISREG(found.st_mode) and destination.samefile(source)
    except (OSError, ValueError) as exc:
        raise StoreError(
            "there is no such folder for the backup, or it can't be used; make it first"
        ) from exc
    if same or destination in (*files.side_files(source), files.lock_file(source)):
        raise StoreError("the backup would take the place of the store itself; choose another name")
    if found is not None and not stat.S_ISREG(found.st_mode):
        raise StoreError("there is something else than a file of this name; choose another name")
    if in_the_way and not replace:
        raise BackupExistsError
    return destination


def _check_room(reader: sqlite3.Connection, destination: Path) -> None:
    # A disk that a backup has filled may be the one that the runner writes on.
    pages = reader.execute("PRAGMA page_count").fetchone()[0]
    needed = pages * reader.execute("PRAGMA page_size").fetchone()[0]
    with contextlib.suppress(OSError):
        if shutil.disk_usage(destination.parent).free < needed:
            raise StoreError("the disk has no room for the backup; make room, or choose another disk")


def _make_folder(destination: Path) -> Path:
    with _at_destination():
        return Path(tempfile.mkdtemp(prefix=_DRAFT_FOLDER, dir=destination.parent))


def _copy(reader: sqlite3.Connection, draft: Path, on_progress: Callable[[int, int], object]) -> None:
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY))
    draft.chmod(_OWNER_ONLY)
    page_size = reader.execute("PRAGMA page_size").fetchone()[0]
    with contextlib.closing(files.connect(draft, "rw")) as writer:
        # On the disk before it has its name. No journal: half a draft is of no use to anybody.
        writer.execute("PRAGMA synchronous = FULL")
        writer.execute("PRAGMA journal_mode = OFF").fetchall()
        reader.backup(
            writer,
            pages=_PAGES_A_STEP,
            progress=lambda _, left, pages: on_progress((pages - left) * page_size, pages * page_size),
        )
    with contextlib.closing(files.connect(draft, "rw")) as writer:
        # One file, to which nothing beside it belongs. A runner that opens it turns the log on again.
        if writer.execute("PRAGMA journal_mode = DELETE").fetchone()[0] != "delete":
            raise StoreError("the backup could not be finished; try again")


def _verify(draft: Path, marks: tuple[int, int], watch: Callable[[sqlite3.Connection], object]) -> None:
    """Read the copy back as a stranger would."""
    with contextlib.closing(files.connect(draft, "ro")) as reader:
        watch(reader)
        schema.verify(reader)
        whole = reader.execute("PRAGMA integrity_check(1)").fetchone()[0] == "ok"
        if not whole or reader.execute(_JOBS).fetchone() != marks:
            raise StoreError("the backup is damaged, and so may be the store; check the store and the disk")


def _name(draft: Path, destination: Path, *, replace: bool) -> None:
    if not replace:
        _name_new(draft, destination)
        return
    lock = files.OwnerLock(destination)
    # Only if it was ever owned: a backup needs no lock file beside it.
    owned = os.path.lexists(files.lock_file(destination))
    if owned:
        lock.acquire()
    try:
        # A log that belongs to the file of before would be read into this one. What it holds goes into
        # its own file first: should the next step fail, that file is all that there is.
        _fold_log(destination)
        files.unlink(*files.side_files(destination))
        draft.replace(destination)
    finally:
        lock.release()


def _fold_log(path: Path) -> None:
    # What is no store, or a damaged one, has no log to lose.
    with contextlib.suppress(sqlite3.Error):
        if os.path.lexists(path):
            with contextlib.closing(files.connect(path, "rw")) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _name_new(draft: Path, destination: Path) -> None:
    """Give the draft its name unless there is something of that name, in one step."""
    try:
        os.link(draft, destination)
    except FileExistsError:
        raise BackupExistsError from None
    except OSError:
        # No hard links here: the name is taken with an empty file first, which nobody else can have.
        try:
            os.close(os.open(destination, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _OWNER_ONLY))
        except FileExistsError:
            raise BackupExistsError from None
        try:
            draft.replace(destination)
        except OSError:
            files.unlink(destination)
            raise


@contextlib.contextmanager
def _at_destination() -> Iterator[None]:
    """Tell trouble with the backup's file from trouble with the store."""
    try:
        yield
    except OSError as exc:
        name = errno.errorcode.get(exc.errno or 0, type(exc).__name__)
        raise StoreError(_FULL if exc.errno in _NO_ROOM else f"{_UNWRITABLE} ({name})") from exc
    except sqlite3.Error as exc:
        code = getattr(exc, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CORRUPT:
            raise StoreError("this store is damaged; restore it from a backup") from exc
        name = getattr(exc, "sqlite_errorname", type(exc).__name__)
        raise StoreError(_FULL if code == sqlite3.SQLITE_FULL else f"{_UNWRITABLE} ({name})") from exc
