"""Does `key new` keep a key and its entry apart, and give out both or neither?"""

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.real


def key_in(text: str) -> str:
    """Return the one key in a text."""
    (key,) = (word for word in text.replace('"', " ").split() if word.startswith("siftb_"))
    return key


def digest(key: str) -> str:
    """Return what a callers file has in the place of a key."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def entries(out: bytes) -> list[dict]:
    """Return the callers of what was printed."""
    return tomllib.loads(out.decode())["caller"]


def private(path: Path, text: str | bytes) -> Path:
    """Make a file that only this user can read."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path


def test_an_entry_and_a_key(run) -> None:
    """Standard output has the entry with the key's hash, standard error the key and nothing else."""
    done = run("key", "new", "alice")
    assert done.code == 0
    key = done.err.strip()
    assert key == key_in(done.err)
    assert entries(done.out) == [{"name": "alice", "class": "fleet", "keys": [digest(key)]}]
    assert b"siftb_" not in done.out
    assert run("key", "new", "alice").err.strip() != key


def test_a_name_is_taken_as_it_was_typed(run) -> None:
    """A name beyond ASCII is that name where the locale knows ASCII alone, and what is no UTF-8 is told."""
    ascii_only = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = run("key", "new", "\u00e9".encode(), env=ascii_only)
    assert done.code == 0, done.err
    assert entries(done.out)[0]["name"] == "\u00e9"
    assert run("key", "new", b"\xe9", env=ascii_only).code == 2


def test_the_entry_opens_the_door(run, tmp_path) -> None:
    """A callers file made of two entries lets both callers in by their keys."""
    from sift_batch.service._callers import open_callers

    first, second = run("key", "new", "alice"), run("key", "new", 'bob "\x1b[31m"\n', "--class", "restricted")
    callers = open_callers(private(tmp_path / "callers.toml", first.out + second.out))
    for done, name, kind in ((first, "alice", "fleet"), (second, 'bob "\x1b[31m"\n', "restricted")):
        found = callers.find([b"Bearer " + done.err.strip().encode()])
        assert found is not None
        assert (found.name, found.caller_class.value) == (name, kind)
    assert b"\x1b" not in second.out


def test_a_known_name_has_both_hashes(run, tmp_path) -> None:
    """With the callers file, the entry of a known name is as it was, with the new hash behind the old."""
    first = run("key", "new", "alice", "--class", "restricted")
    more = 'workspace = "w"\nexpires = 2040-01-01T00:00:00Z\n'
    file = private(tmp_path / "callers.toml", first.out.decode() + more)
    second = run("key", "new", "alice", "--callers", "callers.toml")
    assert second.code == 0
    (entry,) = entries(second.out)
    assert entry["keys"] == [digest(first.err.strip()), digest(second.err.strip())]
    assert (entry["class"], entry["workspace"]) == ("restricted", "w")
    assert file.read_bytes() == first.out + more.encode()
    # A third key: the oldest goes, and that is said.
    file.write_bytes(second.out)
    third = run("key", "new", "alice", "--callers", "callers.toml")
    (entry,) = entries(third.out)
    assert entry["keys"] == [digest(second.err.strip()), digest(key_in(third.err))]
    assert "older one is not in the new entry" in third.err
    # Whatever is said of the entry, the key is the last line: a script may take it from there.
    assert third.err.splitlines()[-1] == key_in(third.err)
    unknown = run("key", "new", "zoe", "--callers", "callers.toml")
    assert (unknown.err.count("\n"), unknown.err.splitlines()[-1]) == (2, key_in(unknown.err))
    quiet = run("key", "new", "alice", "--callers", "callers.toml", "-q")
    assert quiet.err.strip() == key_in(quiet.err)


def test_a_revoked_caller(run, tmp_path) -> None:
    """A key of a caller that is shut out is told to be of no use."""
    first = run("key", "new", "alice")
    private(tmp_path / "callers.toml", first.out + b"revoked = true\n")
    done = run("key", "new", "alice", "--callers", "callers.toml")
    assert entries(done.out)[0]["revoked"] is True
    assert "revoked" in done.err
    assert done.err.splitlines()[-1] == key_in(done.err)


def test_as_json(run) -> None:
    """With --json either stream has one object, and only that of standard error has the key."""
    done = run("key", "new", "alice", "--json")
    view = json.loads(done.out)
    assert view == {
        "name": "alice",
        "entry": view["entry"],
        "known": False,
        "dropped": False,
        "revoked": False,
    }
    key = json.loads(done.err)
    assert list(key) == ["key"]
    assert entries(view["entry"].encode())[0]["keys"] == [digest(key["key"])]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("",), "1 to 1,024 characters"),
        (("x" * 1_025,), "1 to 1,024 characters"),
        (("alice", "--class", "odd"), "--class"),
        (("alice", "--callers", "missing.toml"), "no such file"),
        (("alice", "--callers", "open.toml"), "chmod 600"),
        (("alice", "--callers", "bad.toml"), "line 2"),
        (("alice", "--callers", "good.toml", "--class", "restricted"), "other class"),
    ],
)
def test_what_is_refused(run, tmp_path, args: tuple[str, ...], words: str) -> None:
    """A bad name, class or callers file is one line and exit 2; no key is made, no value is shown."""
    entry = run("key", "new", "alice").out.decode()
    private(tmp_path / "good.toml", entry)
    private(tmp_path / "bad.toml", "[[caller]]\nname = siftb_PASTED\n")
    private(tmp_path / "open.toml", entry).chmod(0o644)
    done = run("key", "new", *args)
    assert (done.code, done.out) == (2, b"")
    assert words in done.err
    assert done.err.count("\n") == 1
    assert "siftb_" not in done.err


def call(tmp_path: Path, **streams: object) -> subprocess.CompletedProcess[bytes]:
    """Run `key new` with these streams."""
    return subprocess.run(
        [sys.executable, "-m", "sift_batch", "key", "new", "alice"],
        cwd=tmp_path,
        timeout=60,
        check=False,
        **streams,  # type: ignore[call-overload]
    )


def test_one_file_for_both(tmp_path) -> None:
    """When both streams are one file, or one pipe, nothing is made, so that no key is beside its entry."""
    with (tmp_path / "both").open("wb") as file:
        assert call(tmp_path, stdout=file, stderr=file).returncode == 2
    piped = call(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert piped.returncode == 2
    for said in ((tmp_path / "both").read_bytes(), piped.stdout):
        assert b"2>&1" in said
        assert b"sha256" not in said
        assert b"siftb_" not in said


def test_two_files(tmp_path) -> None:
    """Where standard error is a file, the key is there."""
    with (tmp_path / "entry").open("wb") as entry, (tmp_path / "key").open("wb") as key:
        assert call(tmp_path, stdout=entry, stderr=key).returncode == 0
    made = (tmp_path / "key").read_text().strip()
    assert entries((tmp_path / "entry").read_bytes())[0]["keys"] == [digest(made)]


def test_an_entry_that_nobody_takes(tmp_path) -> None:
    """When the entry can't be written there is no key, and one line says so: exit 3."""
    read, write = os.pipe()
    os.close(read)
    broken = call(tmp_path, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    with Path("/dev/full").open("wb") as full:
        disk = call(tmp_path, stdout=full, stderr=subprocess.PIPE)
    closed = call(tmp_path, stderr=subprocess.PIPE, preexec_fn=lambda: os.close(1))
    for done in (broken, disk, closed):
        assert done.returncode == 3
        assert b"there is no key" in done.stderr, done
        assert b"siftb_" not in done.stderr
        assert done.stderr.count(b"\n") == 1


def test_a_key_that_nobody_takes(tmp_path) -> None:
    """When standard error is closed nothing is made: 2; when it takes nothing, the command fails: 3."""
    closed = call(tmp_path, stdout=subprocess.PIPE, preexec_fn=lambda: os.close(2))
    assert (closed.returncode, closed.stdout) == (2, b"")
    with Path("/dev/full").open("wb") as full:
        assert call(tmp_path, stdout=subprocess.PIPE, stderr=full).returncode == 3


def test_on_a_terminal(tmp_path) -> None:
    """On a terminal, which is both streams, both are shown, and what to do with them."""
    import pty

    parent, child = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sift_batch", "key", "new", "alice"], stdout=child, stderr=child, cwd=tmp_path
    )
    assert process.wait(60) == 0
    os.close(child)
    said = os.read(parent, 65_536).decode()
    os.close(parent)
    assert said.index("[[caller]]") < said.index("siftb_") < said.index("shown this once")
