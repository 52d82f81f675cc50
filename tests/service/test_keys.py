"""Keys: how they are made, found in a request, compared, and written into a callers file."""

import base64
import hashlib
import hmac
import re
import tomllib
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import Caller, CallerClass
from sift_batch.service._caller_entries import CallersError, Entry, parse_callers
from sift_batch.service._keys import (
    PREFIX,
    bearer_key,
    digest_of,
    digest_text,
    matching,
    new_key,
    read_digest,
    read_key,
)
from sift_batch.service._new_entry import entry_text, make_key

KEY = b"siftb_ABCDEFGHIJKLMNOP"


class Held(NamedTuple):
    """What stands for one key."""

    digest: bytes
    who: str


def can_name(text: str) -> bool:
    """Say whether the engine takes this name."""
    try:
        Caller(text)
    except ValueError:
        return False
    return True


names = st.text(min_size=1, max_size=60).filter(can_name)


def test_a_key_is_32_random_bytes_behind_the_prefix() -> None:
    """A key is the prefix and 32 bytes of base32, different each time, and a request can carry it."""
    first, second = new_key(), new_key()
    assert first != second
    assert first.startswith(PREFIX)
    assert len(base64.b32decode(first.removeprefix(PREFIX) + "====")) == 32
    assert bearer_key([b"Bearer " + first.encode()]) == first.encode()


def test_a_digest_is_sha256_in_hexadecimal() -> None:
    """What a file keeps in place of a key is its plain SHA-256, and reads back as the same bytes."""
    text = digest_text(digest_of(KEY))
    assert text == "sha256:" + hashlib.sha256(KEY).hexdigest()
    assert read_digest(text) == hashlib.sha256(KEY).digest()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256:",
        "sha256:" + "0" * 63,
        "sha256:" + "0" * 65,
        "sha1:" + "0" * 64,
        "0" * 64,
        "sha256:" + "g" * 64,
        "sha256:" + "0" * 64 + "\n",
        "SHA256:" + "0" * 64,
        "sha256:" + "\u0660" * 64,  # a digit, but of another script
    ],
)
def test_what_is_no_digest(text: str) -> None:
    """Nothing but `sha256:` and 64 hexadecimal digits is a digest."""
    assert read_digest(text) is None


@pytest.mark.parametrize("scheme", [b"Bearer ", b"bearer ", b"BEARER ", b"bEaReR   "])
def test_the_scheme_in_any_case(scheme: bytes) -> None:
    """The scheme Bearer is known in any case of its letters."""
    assert bearer_key([scheme + KEY]) == KEY


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [b""],
        [KEY],
        [b"Bearer"],
        [b"Bearer "],
        [b"Basic " + KEY],
        [b"Bearer" + KEY],
        [b"Bearer\t" + KEY],
        [b" Bearer " + KEY],
        [b"Bearer " + KEY + b" "],
        [b"Bearer " + KEY + b"\n"],
        [b"Bearer " + KEY + b"="],
        [b"Bearer " + KEY + b", Bearer " + KEY],
        [b"Bearer " + KEY, b"Bearer " + KEY],
        [b"Bearer " + KEY, b""],
        [b"Bearer " + b"a" * 15],
        [b"Bearer " + b"a" * 257],
        [b"Bearer " + "ä".encode() * 10],
        [b"Bearer " + b"a" * 20 + b"\0"],
        [b"Bearer " + b"\xff" * 20],
    ],
)
def test_what_is_no_key(headers: list[bytes]) -> None:
    """Anything but one header with one well-formed key is no key at all."""
    assert bearer_key(headers) is None


@pytest.mark.parametrize("length", [16, 256])
def test_the_lengths_of_a_key(length: int) -> None:
    """A key may have from 16 to 256 characters."""
    assert bearer_key([b"Bearer " + b"_" * length]) == b"_" * length


@given(st.lists(st.binary(max_size=300) | st.binary(max_size=280).map(b"Bearer ".__add__), max_size=3))
def test_any_headers(headers: list[bytes]) -> None:
    """Whatever bytes the headers hold, the answer is None or a key that is in the only one of them."""
    key = bearer_key(headers)
    if key is not None:
        assert len(headers) == 1
        assert re.fullmatch(rb"[A-Za-z0-9_-]{16,256}", key)
        assert headers[0].endswith(b" " + key)


def test_every_digest_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is found at once takes as many comparisons as one that is not known, each constant."""
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", compare)
    held = [Held(digest_of(b"%d" % number), str(number)) for number in range(5)]
    for key, who in ((b"0", "0"), (b"2", "2"), (b"4", "4"), (b"unknown", None)):
        compared.clear()
        found = matching(key, held)
        assert (None if found is None else found.who) == who
        assert compared == [(item.digest, digest_of(key)) for item in held]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (KEY, KEY),
        (KEY + b"\n", KEY),
        (KEY + b"\r\n", KEY),
        (KEY + b"\n\n", None),
        (KEY + b" ", None),
        (b"", None),
        (b"short", None),
        (b"a" * 257, None),
    ],
)
def test_a_key_file(text: bytes, key: bytes | None) -> None:
    """A key file holds a key of the right form and one line end at most."""
    assert read_key(text) == key


@given(names, st.sampled_from(CallerClass))
def test_a_new_entry(name: str, caller_class: CallerClass) -> None:
    """Whatever the name, the entry is valid TOML, lets exactly the new key in, and does not hold it."""
    made = make_key(name, caller_class=caller_class)
    assert made.key not in made.entry
    assert (made.known, made.dropped, made.revoked) == (False, False, False)
    [entry] = parse_callers(made.entry.encode())
    assert (entry.name, entry.caller_class) == (name, caller_class)
    assert entry.keys == (digest_of(made.key.encode()),)


@given(
    names,
    st.text(max_size=60).filter(lambda text: "\0" not in text and text.isprintable()),
    st.none() | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=-11, minutes=30))])),
    st.booleans(),
)
def test_an_entry_round_trips(name: str, workspace: str, expires: datetime | None, revoked: bool) -> None:
    """An entry that is written reads as the same entry."""
    entry = Entry(name, CallerClass.FLEET, (b"0" * 32, b"1" * 32), workspace, expires, revoked)
    assert parse_callers(entry_text(entry).encode()) == (entry,)


def test_an_entry_is_harmless_on_a_terminal() -> None:
    """What a terminal would act on is written as a number."""
    entry = make_key("a\x1b[2J\u202e\n\x7f\U000e0001b").entry
    assert all(char.isprintable() for char in entry.replace("\n", ""))
    assert tomllib.loads(entry)["caller"][0]["name"] == "a\x1b[2J\u202e\n\x7f\U000e0001b"


def test_a_new_caller_is_of_the_fleet() -> None:
    """The class is fleet unless another is asked for."""
    assert parse_callers(make_key("ann").entry.encode())[0].caller_class is CallerClass.FLEET


@pytest.mark.parametrize("name", ["", "a\0b", "\ud800", "x" * 1_025])
def test_a_name_that_names_nobody(name: str) -> None:
    """A name that the engine would refuse gets no key."""
    with pytest.raises(ValueError, match="1 to 1,024 characters"):
        make_key(name)


def callers_file(folder: Path, text: str) -> Path:
    """Write a private file."""
    path = folder / "callers.toml"
    path.touch(0o600)
    path.write_text(text)
    return path


def test_a_second_key(tmp_path: Path) -> None:
    """For a known caller the entry has the older key first, the new one behind it, and all else as it was."""
    old = "sha256:" + "a1" * 32
    other = make_key("bob").entry
    path = callers_file(
        tmp_path,
        f'{other}[[caller]]\nname = "ann"\nclass = "restricted"\nkeys = ["{old}"]\nworkspace = "w\\t1"\n'
        "expires = 2030-01-31T00:00:00.5+02:00\nrevoked = true\n",
    )
    before = {entry.name: entry for entry in parse_callers(path.read_bytes())}["ann"]
    made = make_key("ann", callers=path)
    [entry] = parse_callers(made.entry.encode())
    assert entry.keys == (bytes.fromhex("a1" * 32), digest_of(made.key.encode()))
    assert (entry.workspace, entry.expires, entry.revoked) == ("w\t1", before.expires, True)
    assert entry.caller_class is CallerClass.RESTRICTED
    assert (made.known, made.dropped, made.revoked) == (True, False, True)


def test_a_third_key_drops_the_oldest(tmp_path: Path) -> None:
    """A caller with two keys keeps the younger of them, and the operator is told."""
    path = callers_file(tmp_path, make_key("ann").entry)
    path.write_text(make_key("ann", callers=path).entry)
    [before] = parse_callers(path.read_bytes())
    made = make_key("ann", callers=path)
    [after] = parse_callers(made.entry.encode())
    assert after.keys == (before.keys[1], digest_of(made.key.encode()))
    assert made.dropped


def test_an_unknown_name_in_a_file(tmp_path: Path) -> None:
    """A name that the file does not have gets a new entry, also next to others."""
    path = callers_file(tmp_path, make_key("ann").entry)
    made = make_key("bob", callers=path)
    assert not made.known
    assert [entry.name for entry in parse_callers((path.read_text() + made.entry).encode())] == ["ann", "bob"]


def test_a_class_that_the_file_denies(tmp_path: Path) -> None:
    """A new key does not change a caller's class."""
    path = callers_file(tmp_path, make_key("ann").entry)
    with pytest.raises(ValueError, match="other class"):
        make_key("ann", caller_class=CallerClass.RESTRICTED, callers=path)


def test_a_file_that_is_not_private(tmp_path: Path) -> None:
    """A second key is not made from a file that others can read."""
    path = callers_file(tmp_path, make_key("ann").entry)
    path.chmod(0o640)
    with pytest.raises(CallersError):
        make_key("ann", callers=path)


def test_a_new_key_is_not_shown_by_accident() -> None:
    """Neither a key that was made nor an entry shows itself in a text of the value."""
    made = make_key("ann")
    assert made.key not in f"{made!r}{made}"
    assert "ann" not in repr(parse_callers(made.entry.encode()))
