"""Files that open doors come into being whole or not at all, whenever the process that makes them dies."""

import os
import signal
import sys
import warnings
from pathlib import Path

import pytest

from sift_batch import StoreError
from sift_batch.service._callers import open_single_user
from sift_batch.service._cursors import KEY_BYTES
from sift_batch.service._data_folder import CURSOR_KEY_FILE, cursor_key
from sift_batch.service._keys import read_key
from sift_batch.service._private_file import PrivateFileError, make_private, read_private, replace_private

# Whatever of these a process does last, it was killed right before.
STEPS = ["open", "fchmod", "fsync", "link", "rename", "unlink"]


def dies_before(step: str, times: int, act: object) -> bool:
    """Act in a process that is killed before it does a step so many times; False if it came to its end."""
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of other tests are idle, and not needed
        process = os.fork()
    if process == 0:
        real, left = getattr(os, step), times

        def killed(*args: object, **named: object) -> object:
            nonlocal left
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **named)

        try:
            setattr(os, step, killed)
            act()  # type: ignore[operator]
        finally:
            os._exit(0)
    return os.waitpid(process, 0)[1] == signal.SIGKILL


@pytest.mark.real
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("step", STEPS)
def test_a_process_that_is_killed_leaves_no_part_of_a_key(tmp_path: Path, step: str, times: int) -> None:
    """Whenever the first start is killed, the next one has both keys whole, and keeps them."""

    def start() -> None:
        open_single_user(tmp_path)
        cursor_key(tmp_path)

    dies_before(step, times, start)
    for name in ("key", CURSOR_KEY_FILE):
        if (tmp_path / name).exists():
            assert len((tmp_path / name).read_bytes()) >= KEY_BYTES
    start()
    key = (tmp_path / "key").read_bytes()
    assert read_key(key) is not None
    assert cursor_key(tmp_path) == cursor_key(tmp_path)
    start()
    assert (tmp_path / "key").read_bytes() == key


@pytest.mark.parametrize("left", [b"", b"x" * (KEY_BYTES - 1)])
def test_a_cursor_key_that_is_not_whole_is_made_anew_and_kept(tmp_path: Path, left: bytes) -> None:
    """What is left of a cursor key signs nothing; the next start finds the new one."""
    path = tmp_path / CURSOR_KEY_FILE
    path.touch(0o600)
    path.write_bytes(left)
    key = cursor_key(tmp_path)
    assert len(key) == KEY_BYTES
    assert cursor_key(tmp_path) == path.read_bytes() == key
    assert path.stat().st_mode & 0o777 == 0o600
    assert [item.name for item in tmp_path.iterdir()] == [CURSOR_KEY_FILE]


def test_a_cursor_key_that_is_something_else_is_left_alone(tmp_path: Path) -> None:
    """A file that is too long is none of ours: the start is refused, and the file is as it was."""
    path = tmp_path / CURSOR_KEY_FILE
    make_private(path, b"x" * (KEY_BYTES + 1))
    with pytest.raises(StoreError):
        cursor_key(tmp_path)
    assert path.read_bytes() == b"x" * (KEY_BYTES + 1)


def test_what_is_there_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, a link to nothing and a folder stay, also when they come last of all; nothing is left over."""
    file, link, folder = tmp_path / "file", tmp_path / "link", tmp_path / "folder"
    file.write_bytes(b"old")
    link.symlink_to(tmp_path / "none")
    folder.mkdir()
    names = sorted(item.name for item in tmp_path.iterdir())
    for look in (os.path.lexists, lambda _: False):
        monkeypatch.setattr(os.path, "lexists", look)
        assert [make_private(path, b"new") for path in (file, link, folder)] == [False] * 3
    assert file.read_bytes() == b"old"
    assert not link.exists()
    assert sorted(item.name for item in tmp_path.iterdir()) == names


def test_what_can_not_be_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes no more ends in an error, with no file and no draft of one."""

    def full(_: int) -> None:
        raise OSError(28, "sesame")

    monkeypatch.setattr(os, "fsync", full)
    for make in (make_private, replace_private):
        with pytest.raises(PrivateFileError):
            make(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_replaced_file_is_private(tmp_path: Path) -> None:
    """What takes the place of a file is this user's alone, under any umask."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    before = os.umask(0o777)
    try:
        replace_private(path, b"new")
    finally:
        os.umask(before)
    assert read_private(path, limit=3)[0] == b"new"
