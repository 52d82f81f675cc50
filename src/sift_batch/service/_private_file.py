"""Is this file nobody else's, and what does it hold?

For files that open doors: the callers file and the single user's key. A file that another user could
have written or read is refused. Nothing here knows what the bytes mean; `_callers` reads them.
"""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_OURS_ALONE: Final = 0o600
_FOLDER_OURS_ALONE: Final = 0o700
_NOT_FOR_OTHERS: Final = 0o177  # any right of the group or of others, or to run it
_WRITABLE_BY_OTHERS: Final = 0o022
_CHUNK: Final = 65_536


class Stamp(NamedTuple):
    """What tells one version of a file from another without reading it."""

    device: int
    inode: int
    size: int
    written: int
    changed: int  # rights and owner too: a file that is opened to others is a new version


class PrivateFileError(Exception):
    """A file that is not to be trusted, or can't be read; `code` is one of `CODES`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


CODES: Final = ("missing", "not_a_file", "owner", "mode", "too_large", "unreadable")


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of what is at `path` now, links not followed; None if nothing can be seen."""
    try:
        return _stamp(path.lstat())
    except (OSError, ValueError):
        return None


def read_private(path: Path, *, limit: int) -> tuple[bytes, Stamp]:
    """Return what a file holds, and the stamp it had before it was read.

    Raises `PrivateFileError` unless it is a regular file, no link, of this process's user, with rights
    for nobody else (0600 or fewer), of at most `limit` bytes.
    """
    # Without O_NONBLOCK the opening of a named pipe would wait for its other end, for ever.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError) as error:
        raise PrivateFileError(_code_of(error)) from None
    try:
        found = os.fstat(descriptor)
        _check(found)
        return _read(descriptor, limit), _stamp(found)
    except OSError:
        raise PrivateFileError("unreadable") from None
    finally:
        os.close(descriptor)


def make_private(path: Path, content: bytes) -> bool:
    """Make a file that only this user can read; False if there is something at `path` already.

    The name is given to a file that is whole and on the disk, so a process that dies meanwhile leaves no
    part of one at `path`. Raises `PrivateFileError` when it can't be made; then nothing is left of it.
    """
    try:
        if os.path.lexists(path):
            return False
        with _draft(path, content) as draft:
            os.link(draft, path)  # unlike a renaming, it never takes the place of another's file
    except FileExistsError:
        return False
    except (OSError, ValueError):
        raise PrivateFileError("unreadable") from None
    return True


def replace_private(path: Path, content: bytes) -> None:
    """Put such a file in the place of what is at `path`, at once. Raises `PrivateFileError`."""
    try:
        with _draft(path, content) as draft:
            draft.rename(path)
    except (OSError, ValueError):
        raise PrivateFileError("unreadable") from None


@contextlib.contextmanager
def _draft(path: Path, content: bytes) -> Iterator[Path]:
    """Write a file beside `path` that is to get its name in the block; then only the name is left."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.draft")
    # O_EXCL never opens what another has put there, and never follows a link.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(draft, flags, _OURS_ALONE)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - the descriptor is what was made with O_EXCL
            os.fchmod(descriptor, _OURS_ALONE)  # a umask may have taken rights away from us as well
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        yield draft
        _sync_folder(path.parent)
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()


def _sync_folder(folder: Path) -> None:
    """Make names in a folder outlive a loss of power, where the file system can say so."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_private_folder(path: Path) -> None:
    """Make a folder that only this user can enter, or check the one that is there.

    One that is there must be this user's, and writable by nobody else: who may write in it could put
    a file of their own in the place of ours. Raises `PrivateFileError`.
    """
    try:
        path.mkdir(mode=_FOLDER_OURS_ALONE, parents=True, exist_ok=True)
        found = path.stat()
    except FileExistsError:
        raise PrivateFileError("not_a_file") from None
    except (OSError, ValueError):
        raise PrivateFileError("unreadable") from None
    if found.st_uid != os.geteuid():
        raise PrivateFileError("owner")
    if found.st_mode & _WRITABLE_BY_OTHERS:
        raise PrivateFileError("mode")


def _check(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise PrivateFileError("not_a_file")
    if found.st_uid != os.geteuid():
        raise PrivateFileError("owner")
    if stat.S_IMODE(found.st_mode) & _NOT_FOR_OTHERS:
        raise PrivateFileError("mode")


def _read(descriptor: int, limit: int) -> bytes:
    parts: list[bytes] = []
    left = limit + 1
    while left and (part := os.read(descriptor, min(left, _CHUNK))):
        parts.append(part)
        left -= len(part)
    if not left:
        raise PrivateFileError("too_large")
    return b"".join(parts)


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def _code_of(error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "missing"
    # ELOOP: the last part is a link. ENXIO: a socket, or a pipe without another end.
    if isinstance(error, OSError) and error.errno in (errno.ELOOP, errno.ENXIO):
        return "not_a_file"
    return "unreadable"
