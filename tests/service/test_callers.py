"""Callers: who is let in, how a changed file comes into force, and who is told of what was taken away."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sift_batch import Caller, CallerClass
from sift_batch.service._caller_entries import TEXTS, CallersError, CallersProblem, parse_callers
from sift_batch.service._callers import Callers, Reading, Taken, open_callers, open_single_user
from sift_batch.service._keys import bearer_key, digest_of, digest_text
from sift_batch.service._private_file import CODES, PrivateFileError, read_private
from sift_batch.service._toml import place_of

START = 1_900_000_000.0
ANN, BOB, EVE = (f"siftb_{name * 5}" for name in ("anna", "bobb", "evee"))


def bearer(key: str) -> list[bytes]:
    """Return the headers of a request with this key."""
    return [b"Bearer " + key.encode()]


def digest(key: str) -> str:
    """Return the digest of a key as files have it."""
    return digest_text(digest_of(key.encode()))


def entry(name: str, *keys: str, kind: str = "fleet", more: str = "") -> str:
    """Return one entry of a callers file."""
    listed = ", ".join(f'"{digest(key)}"' for key in keys)
    return f'[[caller]]\nname = "{name}"\nclass = "{kind}"\nkeys = [{listed}]\n{more}\n'


BOTH = entry("ann", ANN) + entry("bob", BOB, kind="restricted")


async def here(reading: Reading) -> object:
    """Read at once: under the mock clock a thread would let virtual time run away."""
    await trio.lowlevel.checkpoint()
    return reading()


class Service:
    """A service's side of the callers: a file, a wall clock, and what it was told."""

    def __init__(self, folder: Path, text: str = BOTH) -> None:
        self.path = folder / "callers.toml"
        self.path.touch(0o600)
        self.path.write_text(text)
        self.seconds = START
        self.told: list[CallersProblem | Taken | None] = []
        self.callers = open_callers(
            self.path,
            now=lambda: self.seconds,
            on_reload=self.told.append,
            on_taken=self.told.append,
            aside=here,
        )

    def names(self, *keys: str) -> list[str | None]:
        """Return who these keys let in."""
        found = [self.callers.find(bearer(key)) for key in keys]
        return [None if caller is None else caller.name for caller in found]

    def replace(self, text: str) -> None:
        """Put a new version in place as an editor does: written beside it, then renamed."""
        draft = self.path.with_suffix(".new")
        draft.touch(0o600)
        draft.write_text(text)
        draft.rename(self.path)

    def news(self) -> list[object]:
        """Return what was told since the last time, as plain values."""
        told = [plain(item) for item in self.told]
        self.told.clear()
        return told


def plain(item: CallersProblem | Taken | None) -> object:
    """Return what was told, so that it can be compared."""
    if isinstance(item, Taken):
        return sorted(item.callers)
    return "ok" if item is None else item.code


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """A service with two callers."""
    return Service(tmp_path)


def code_of(raw: bytes | str) -> str:
    """Return why a file is refused."""
    with pytest.raises(CallersError) as caught:
        parse_callers(raw if isinstance(raw, bytes) else raw.encode())
    return caught.value.problem.code


def test_a_key_lets_its_caller_in(service: Service) -> None:
    """A key finds its caller with all that the engine wants to know; any other key finds nobody."""
    found = service.callers.find(bearer(BOB))
    assert found == Caller("bob", "", digest(BOB).removeprefix("sha256:"), CallerClass.RESTRICTED)
    assert service.names(ANN, EVE) == ["ann", None]
    assert service.callers.find([]) is None
    assert service.callers.find(bearer(ANN) * 2) is None


def test_everything_an_entry_can_say(tmp_path: Path) -> None:
    """Workspace and both keys are in force, from a file with comments, CRLF and names in quotes."""
    text = (
        "# who may call\r\n[[caller]]\r\n"
        f'"name" = "ann"\r\nclass = "fleet"\r\nkeys = [\r\n'
        f'  "{digest(ANN)}", # old\r\n  "{digest(EVE)}",\r\n]\r\n'
        'workspace = "team a"\r\nexpires = 2099-01-01T00:00:00Z\r\nrevoked = false\r\n'
    )
    service = Service(tmp_path, text)
    assert service.names(ANN, EVE) == ["ann", "ann"]
    found = service.callers.find(bearer(EVE))
    assert found is not None
    assert found.workspace == "team a"


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("", "no_callers", None, None),
        ("# nobody\n", "no_callers", None, None),
        ("[[caller]\n", "toml", 1, None),
        ("[[caller]]\nname = \n", "toml", 2, 8),
        ("[[caller]]\nname = 'a'\nname = 'b'\n", "toml", 3, None),
        ("a = [", "toml", None, None),
        ("[[callers]]\n", "unknown_name", 1, 1),
        (BOTH + "[service]\nport = 1\n", "unknown_name", 11, 1),
        ("caller = 1\n", "bad_caller", 1, 1),
        ("caller = [1]\n", "bad_caller", 1, 1),
        ("[caller]\nname = 'a'\n", "bad_caller", 1, 1),
        ("[[caller]]\nname = 'a'\n", "missing_name", 1, 1),
        (BOTH + "[[caller]]\nclass = 'fleet'\nkeys = []\n", "missing_name", 11, 1),
        (BOTH.replace("class", "clas"), "unknown_name", 3, 1),
        (entry("ann", ANN, more="  revokd = true"), "unknown_name", 5, 3),
        (BOTH + entry("eve", EVE, kind="admin"), "bad_class", 13, 1),
        (entry("ann", ANN).replace('"fleet"', "1"), "bad_class", 3, 1),
        (entry("", ANN), "bad_name", 2, 1),
        (entry("a\\u0000", ANN), "bad_name", 2, 1),
        (entry("ann", ANN).replace('"ann"', "7"), "bad_name", 2, 1),
        (entry("ann"), "bad_keys", 4, 1),
        (entry("ann").replace("[]", f'"{digest(ANN)}"'), "bad_keys", 4, 1),
        (entry("ann", ANN, BOB, EVE), "too_many_keys", 4, 1),
        (entry("ann").replace("[]", f'["{ANN}"]'), "bad_digest", 4, 1),
        (entry("ann").replace("[]", "[1]"), "bad_digest", 4, 1),
        (entry("ann", ANN, ANN), "duplicate_key", 4, 1),
        (BOTH + entry("eve", ANN), "duplicate_key", 14, 1),
        (BOTH + entry("ann", EVE), "duplicate_name", 12, 1),
        (entry("ann", ANN, more="workspace = 1"), "bad_workspace", 5, 1),
        (entry("ann", ANN, more='revoked = "yes"'), "bad_revoked", 5, 1),
        (entry("ann", ANN, more='expires = "soon"'), "bad_expires", 5, 1),
        (entry("ann", ANN, more='expires = "2030-13-01T00:00:00Z"'), "bad_expires", 5, 1),
        (entry("ann", ANN, more="expires = 2030-01-01T00:00:00"), "bad_expires", 5, 1),
        (entry("ann", ANN, more="expires = 00:00:00"), "bad_expires", 5, 1),
        (entry("ann", ANN, more="expires = 1900000000"), "bad_expires", 5, 1),
    ],
)
def test_a_bad_file_and_where(text: str, code: str, line: int | None, column: int | None) -> None:
    """Each mistake has its code and its place, and its text holds nothing of the file."""
    with pytest.raises(CallersError) as caught:
        parse_callers(text.encode())
    problem = caught.value.problem
    assert problem.code == code
    if code != "toml" or line is not None:
        assert problem.line == line
    if column is not None:
        assert problem.column == column
    assert str(caught.value) == problem.text
    for value in (ANN, digest(ANN), "ann", "admin", "soon", "revokd"):
        assert value not in problem.text.replace("`", "")


def test_the_nearest_name() -> None:
    """A misspelt name is answered with the one that was meant."""
    with pytest.raises(CallersError, match="line 3, column 1: there is no such name; did you mean class"):
        parse_callers(entry("ann", ANN).replace("class", "clas").encode())


def test_bytes_that_are_no_text() -> None:
    """A byte that is not UTF-8 has its line and column."""
    with pytest.raises(CallersError) as caught:
        parse_callers(b"# a\n# \xff\n")
    assert caught.value.problem == CallersProblem("encoding", 2, 3)


@pytest.mark.parametrize(
    "raw",
    [
        "a = " + "[" * 100_000,
        "a = " + "9" * 10_000,
        "a = 9999-99-99",
        "\ufeff" + BOTH,
        "a = '''",
        "a." * 50_000 + "b = 1",
        "a = 1979-05-27T07:32:00+99:99",
    ],
)
def test_what_a_parser_dies_of(raw: str) -> None:
    """What makes the parser fail in ways of its own is a file that is no TOML."""
    assert code_of(raw) in ("toml", "unknown_name")


def test_every_code_has_a_text() -> None:
    """Each way to fail says what to do."""
    assert set(CODES) <= set(TEXTS)
    for code in TEXTS:
        assert CallersProblem(code).text
    assert CallersProblem("toml", 3).text.startswith("line 3: ")


@settings(max_examples=200)
@given(st.binary(max_size=200) | st.text("[]caler=\"'#\n. 0x{}", max_size=60).map(str.encode))
@example(BOTH.encode()[:60])
@example(b"caller = {}")
def test_any_bytes(raw: bytes) -> None:
    """Whatever a file holds, it is refused with a known code, or says plainly that nobody may call."""
    try:
        entries, code = parse_callers(raw), ""
    except CallersError as error:
        entries, code = (), error.problem.code
    assert entries == ()
    assert code in TEXTS or b"caller" in raw


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.integers(0, len(BOTH) - 1), st.binary(max_size=8))
async def test_a_damaged_file_changes_nothing(tmp_path: Path, cut: int, junk: bytes) -> None:
    """A file that was cut off or overwritten somewhere leaves everybody who was let in, or is valid."""
    service = Service(tmp_path)
    raw = BOTH.encode()[:cut] + junk
    service.path.write_bytes(raw)
    try:
        expected = {entry.name for entry in parse_callers(raw)}
    except CallersError:
        assert not await service.callers.reloaded()
        assert service.names(ANN, BOB) == ["ann", "bob"]
        assert service.callers.problem is not None
    else:
        assert await service.callers.reloaded()
        assert {name for name in service.names(ANN, BOB) if name} <= expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100, deadline=None)
@given(st.binary(max_size=300))
async def test_any_bytes_as_a_new_version(tmp_path: Path, raw: bytes) -> None:
    """Whatever bytes take the place of a callers file, the old callers stay."""
    service = Service(tmp_path)
    service.path.write_bytes(raw)
    assert not await service.callers.reloaded()
    assert service.names(ANN, BOB) == ["ann", "bob"]
    assert [item for item in service.told if isinstance(item, Taken)] == []


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o602, 0o601, 0o700, 0o610])
async def test_a_file_that_others_can_reach(service: Service, mode: int) -> None:
    """Rights for anybody else refuse the start, and later change nothing."""
    service.path.chmod(mode)
    with pytest.raises(CallersError) as caught:
        open_callers(service.path)
    assert caught.value.problem.code == "mode"
    assert not await service.callers.reloaded()
    assert service.names(ANN) == ["ann"]


@pytest.mark.parametrize("mode", [0o600, 0o400])
async def test_a_file_that_is_ours_alone(service: Service, mode: int) -> None:
    """Read and write for the owner, or less, is what a start wants."""
    service.path.chmod(mode)
    assert await service.callers.reloaded()


def test_another_users_file(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another user refuses the start."""
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    with pytest.raises(CallersError) as caught:
        open_callers(service.path)
    assert caught.value.problem.code == "owner"


def test_what_is_no_file(tmp_path: Path, service: Service) -> None:
    """A link, a folder, a pipe and nothing at all are no callers file; none of them is waited for."""
    link, pipe = tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(service.path)
    os.mkfifo(pipe, 0o600)
    for path, code in (
        (link, "not_a_file"),
        (pipe, "not_a_file"),
        (tmp_path, "not_a_file"),
        (tmp_path / "none", "missing"),
        (service.path / "below", "missing"),
        (tmp_path / "a\0b", "unreadable"),
    ):
        with pytest.raises(CallersError) as caught:
            open_callers(path)
        assert caught.value.problem.code == code


async def test_a_file_that_is_too_large(service: Service) -> None:
    """A file of more than a mebibyte is not read to its end; one of exactly that is."""
    text = BOTH + "#" * (2**20 - len(BOTH))
    service.path.write_text(text)
    assert await service.callers.reloaded()
    service.path.write_text(text + "#")
    assert not await service.callers.reloaded()
    assert service.news() == ["ok", "too_large"]


async def test_reload_says_what_was_taken(service: Service) -> None:
    """Who was removed is not let in after a reload and is told of, before the reload itself is."""
    service.path.write_text(entry("ann", ANN) + entry("eve", EVE))
    assert await service.callers.reloaded()
    assert service.names(ANN, BOB, EVE) == ["ann", None, "eve"]
    assert service.news() == [["bob"], "ok"]
    assert await service.callers.reloaded()
    assert service.news() == ["ok"]


async def test_revoked(service: Service) -> None:
    """A revoked caller is not let in, though the file still has the keys."""
    service.path.write_text(entry("ann", ANN) + entry("bob", BOB, more="revoked = true"))
    await service.callers.reloaded()
    assert service.names(ANN, BOB) == ["ann", None]
    assert service.news() == [["bob"], "ok"]


async def test_a_revoked_caller_needs_no_key(service: Service) -> None:
    """The keys of a revoked caller may be taken out of the file."""
    service.path.write_text(entry("ann", ANN) + entry("bob", more="revoked = true"))
    assert await service.callers.reloaded()


async def test_nobody_at_all(service: Service) -> None:
    """An empty list shuts everybody out, which an empty file does not."""
    service.path.write_text("")
    await service.callers.reloaded()
    assert service.names(ANN, BOB) == ["ann", "bob"]
    service.path.write_text("caller = []\n")
    await service.callers.reloaded()
    assert service.names(ANN, BOB) == [None, None]
    assert service.news() == ["no_callers", ["ann", "bob"], "ok"]


async def test_rotation(service: Service) -> None:
    """Both keys of a caller are good; taking one out is told of as a key, and takes no caller away."""
    service.path.write_text(entry("ann", ANN, EVE) + entry("bob", BOB))
    await service.callers.reloaded()
    assert service.names(ANN, EVE) == ["ann", "ann"]
    assert service.news() == ["ok"]
    service.path.write_text(entry("ann", EVE) + entry("bob", BOB))
    await service.callers.reloaded()
    assert service.names(ANN, EVE) == [None, "ann"]
    assert service.told[0] == Taken(frozenset(), frozenset({digest(ANN).removeprefix("sha256:")}))


async def test_the_class_is_that_of_the_file(service: Service) -> None:
    """A change of class holds from the next request on and takes nobody away."""
    service.path.write_text(BOTH.replace("fleet", "restricted"))
    await service.callers.reloaded()
    found = service.callers.find(bearer(ANN))
    assert found is not None
    assert found.caller_class is CallerClass.RESTRICTED
    assert service.news() == ["ok"]


async def test_problem_goes_with_the_next_valid_version(service: Service) -> None:
    """What is wrong is known until a valid version is read."""
    service.path.write_text("x")
    assert not await service.callers.reloaded()
    assert service.callers.problem is not None
    assert (service.callers.problem.code, service.callers.problem.line) == ("toml", 1)
    service.path.write_text(BOTH)
    assert await service.callers.reloaded()
    assert service.callers.problem is None


def test_expiry_is_at_its_second(tmp_path: Path) -> None:
    """A caller is let in until the second it expires, and not from then on, without any reload."""
    service = Service(tmp_path, entry("ann", ANN, more="expires = 2030-03-17T17:46:50Z") + entry("bob", BOB))
    for seconds, name in ((9.999, "ann"), (10.0, None), (10.001, None), (9.0, "ann")):
        service.seconds = START + seconds
        assert service.names(ANN, BOB) == [name, "bob"]


@pytest.mark.parametrize(
    "written",
    [
        "2030-03-17T17:46:40Z",
        '"2030-03-17T17:46:40Z"',
        "2030-03-17T19:46:40+02:00",
        '"2030-03-17 17:46:40.0z"',
    ],
)
def test_how_a_time_is_written(written: str) -> None:
    """A time may be TOML's or a text, in any zone."""
    [found] = parse_callers(entry("ann", ANN, more=f"expires = {written}").encode())
    assert found.expires_at == START


def test_a_day_begins_in_utc() -> None:
    """A day without a time is its first second in UTC."""
    [found] = parse_callers(entry("ann", ANN, more="expires = 2030-03-17").encode())
    assert found.expires_at == START - (START % 86_400)
    [never] = parse_callers(entry("ann", ANN).encode())
    assert never.expires_at == math.inf


@contextmanager
def counted(service: Service, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """Count how often the file is read."""
    reads = 0

    def count(path: Path, *, limit: int) -> object:
        nonlocal reads
        reads += 1
        return read_private(path, limit=limit)

    monkeypatch.setattr("sift_batch.service._callers.read_private", count)
    yield lambda: reads


async def watched(service: Service, steps: Callable[[], object]) -> None:
    """Run the async function `steps` while the callers are watched."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(service.callers.watch)
        await steps()  # type: ignore[misc]
        nursery.cancel_scope.cancel()


async def test_a_changed_file_comes_into_force(
    service: Service, autojump_clock: trio.testing.MockClock
) -> None:
    """A file that was put in the place of the old one is in force within a second and a quarter."""

    async def steps() -> None:
        await trio.sleep(5)
        assert service.news() == []
        service.replace(entry("ann", ANN) + entry("eve", EVE))
        await trio.sleep(1.3)
        assert service.names(ANN, BOB, EVE) == ["ann", None, "eve"]
        assert service.news() == [["bob"], "ok"]
        await trio.sleep(5)
        assert service.news() == []

    await watched(service, steps)


async def test_a_half_written_file(service: Service, autojump_clock: trio.testing.MockClock) -> None:
    """A file that is still being written is left alone, even where its first half is valid."""

    async def steps() -> None:
        for cut in (0, 20, len(entry("ann", ANN)), len(BOTH)):
            service.path.write_text(BOTH[:cut])
            await trio.sleep(0.2)
        await trio.sleep(2)
        assert service.news() == ["ok"]
        service.path.write_text(BOTH[:20])
        await trio.sleep(3)
        assert service.names(ANN, BOB) == ["ann", "bob"]
        assert service.news() == ["toml"]
        service.path.write_text(BOTH)
        await trio.sleep(2)
        assert service.news() == ["ok"]

    await watched(service, steps)


async def test_a_file_that_keeps_changing(service: Service, autojump_clock: trio.testing.MockClock) -> None:
    """As long as two looks differ, nothing is read."""

    async def steps() -> None:
        for size in range(1, 40):
            service.path.write_text("#" * size)
            await trio.sleep(0.2)
        assert service.news() == []

    await watched(service, steps)


async def test_a_file_that_goes_and_comes(service: Service, autojump_clock: trio.testing.MockClock) -> None:
    """A file that is gone for long is told of once; the callers stay, and the new file comes into force."""

    async def steps() -> None:
        await trio.sleep(3)
        service.path.unlink()
        await trio.sleep(30)
        assert service.news() == ["missing"]
        assert service.names(ANN) == ["ann"]
        service.replace(entry("bob", BOB))
        await trio.sleep(2)
        assert service.news() == [["ann"], "ok"]

    await watched(service, steps)


async def test_rights_are_looked_at_too(service: Service, autojump_clock: trio.testing.MockClock) -> None:
    """Rights that are given to others are told of without a change of what the file holds."""

    async def steps() -> None:
        service.path.chmod(0o644)
        await trio.sleep(2)
        service.path.chmod(0o600)
        await trio.sleep(2)
        assert service.news() == ["mode", "ok"]

    await watched(service, steps)


async def test_a_write_within_one_tick(
    service: Service, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that leaves the same size and time right after a reading is found by the next look."""
    service.replace(entry("ann", ANN))
    stamp = service.path.stat()

    async def steps() -> None:
        await trio.sleep(1.3)
        assert service.names(ANN, BOB) == ["ann", None]
        service.news()
        same_size = entry("bob", BOB)
        assert len(same_size) == stamp.st_size
        service.path.write_text(same_size)
        # As if the file system's clock had not moved on: the stamp is the one that was read.
        frozen = service.callers._stamp
        with monkeypatch.context() as patch:
            patch.setattr("sift_batch.service._callers.stamp_of", lambda path: frozen)
            await trio.sleep(1.1)
        assert service.names(ANN, BOB) == [None, "bob"]
        assert service.news() == [["ann"], "ok"]

    await watched(service, steps)


async def test_a_fault_that_passes(
    service: Service, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reading that fails for want of a descriptor is tried again, and told of once."""
    failing = True

    def sometimes(path: Path, *, limit: int) -> object:
        if failing:
            raise PrivateFileError("unreadable")
        return read_private(path, limit=limit)

    monkeypatch.setattr("sift_batch.service._callers.read_private", sometimes)

    async def steps() -> None:
        nonlocal failing
        service.replace(entry("ann", ANN))
        await trio.sleep(10)
        assert service.news() == ["unreadable"]
        failing = False
        await trio.sleep(1.1)
        assert service.news() == [["bob"], "ok"]

    await watched(service, steps)


async def test_a_quiet_file_is_not_read(
    service: Service, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that does not change is looked at and not read, but once more after each reading."""
    with counted(service, monkeypatch) as reads:

        async def steps() -> None:
            await trio.sleep(100)
            assert reads() == 1
            await service.callers.reloaded()
            await trio.sleep(100)
            assert reads() == 3

        await watched(service, steps)
    assert service.news() == ["ok"]


@pytest.mark.parametrize("offset", [0.0, 0.3, 0.75])
def test_expiry_is_told_of(tmp_path: Path, offset: float) -> None:
    """Who expires is told of at that second, once, between two looks as well, and nobody else is."""
    text = entry("ann", ANN, more=f"expires = 2030-03-17T17:46:{50 + offset}Z") + entry("bob", BOB)
    clock = trio.testing.MockClock(autojump_threshold=0)
    service = Service(tmp_path, text)
    service.callers._now = lambda: START + clock.current_time() - begin

    async def steps() -> None:
        await trio.sleep(10 + offset - 0.02)
        assert service.news() == []
        await trio.sleep(0.04)
        assert service.news() == [["ann"]]
        await trio.sleep(20)
        assert service.news() == []

    begin = clock.current_time()
    trio.run(watched, service, steps, clock=clock)


async def test_expiry_does_not_hurry_the_reading(
    service: Service, autojump_clock: trio.testing.MockClock
) -> None:
    """A clock that is about to reach an expiry makes no half-written file count as quiet."""
    service.replace(entry("ann", ANN, more="expires = 2030-03-17T17:46:40.02Z") + entry("bob", BOB))
    await service.callers.reloaded()
    service.news()

    async def steps() -> None:
        for size in range(1, 30):
            service.path.write_text("#" * size)
            await trio.sleep(0.2)
        assert service.news() == []

    await watched(service, steps)


async def test_a_watch_ends_when_cancelled(service: Service, autojump_clock: trio.testing.MockClock) -> None:
    """A watch that is cancelled ends at once, and the callers go on as they were."""
    with trio.move_on_after(3.5) as scope:
        await service.callers.watch()
    assert scope.cancelled_caught
    assert service.names(ANN) == ["ann"]


def test_a_single_users_key_is_made_once(tmp_path: Path) -> None:
    """The first start makes a folder and a key for this user alone; the second one uses them."""
    folder = tmp_path / "new" / "data"
    callers = open_single_user(folder)
    path = folder / "key"
    assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    key = path.read_text().strip()
    assert bearer_key(bearer(key)) is not None
    found = callers.find(bearer(key))
    assert found is not None
    assert (found.name, found.caller_class) == ("local", CallerClass.FLEET)
    assert callers.find(bearer(ANN)) is None
    again = open_single_user(folder)
    assert path.read_text().strip() == key
    assert again.find(bearer(key)) is not None


def test_a_single_users_key_under_any_umask(tmp_path: Path) -> None:
    """The rights of the key do not depend on the umask."""
    before = os.umask(0o777)
    try:
        open_single_user(tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ["", "short", f"{ANN}\n\n", f"{ANN} {ANN}", "ä" * 20])
def test_a_key_file_that_holds_no_key(tmp_path: Path, text: str) -> None:
    """A key file that is damaged refuses the start and is left as it is."""
    path = tmp_path / "key"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(CallersError) as caught:
        open_single_user(tmp_path)
    assert caught.value.problem.code == "bad_key_file"
    assert path.read_text() == text


def test_a_single_users_folder(tmp_path: Path) -> None:
    """A folder that others can write in, a link as the key, a key for all to read: no start."""

    def code() -> str:
        with pytest.raises(CallersError) as caught:
            open_single_user(tmp_path)
        return caught.value.problem.code

    tmp_path.chmod(0o770)
    assert code() == "bad_folder"
    tmp_path.chmod(0o700)
    (tmp_path / "key").symlink_to(tmp_path / "elsewhere")
    assert code() == "not_a_file"
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "key").unlink()
    open_single_user(tmp_path)
    (tmp_path / "key").chmod(0o604)
    assert code() == "mode"


def test_a_data_folder_that_is_a_file(tmp_path: Path) -> None:
    """A file in the place of the data folder is told as such."""
    path = tmp_path / "data"
    path.touch()
    with pytest.raises(CallersError) as caught:
        open_single_user(path)
    assert caught.value.problem.code == "bad_folder"


async def test_a_new_single_user_key(tmp_path: Path) -> None:
    """A key that is put in the place of the old one is in force after a reload; the caller stays."""
    told: list[Taken] = []
    callers = open_single_user(tmp_path, on_taken=told.append)
    (tmp_path / "key").write_text(EVE)
    assert await callers.reloaded()
    assert callers.find(bearer(EVE)) is not None
    assert [(sorted(item.callers), len(item.keys)) for item in told] == [([], 1)]


async def test_what_was_taken_is_not_shown_by_accident(service: Service) -> None:
    """Neither digests nor names are in the text of what was taken, or of the callers."""
    service.path.write_text(entry("ann", ANN))
    await service.callers.reloaded()
    shown = f"{service.told} {service.callers!r}"
    assert "bob" not in shown
    assert digest(BOB).removeprefix("sha256:") not in shown


@pytest.mark.parametrize(
    ("text", "path", "place"),
    [
        ("[a]\nb = 1\n", ["a", "b"], (2, 1)),
        ("[a]\n  'b' = 1\n", ["a", "b"], (2, 3)),
        ("a.b = 1\n", ["a", "b"], (1, 1)),
        ("a = { b = 1 }\n", ["a", "b"], (1, 1)),
        ("x = '''\n[a]\nb = 1\n'''\n[a]\nb = 1\n", ["a", "b"], (6, 1)),
        ("[x]\nb = 1\n[a]\nb = [\n 1,\n]\n", ["a", "b"], (4, 1)),
        ("[a]\nc = 1\n", ["a", "b"], (1, 1)),
        ("[a]\n", ["z"], (None, None)),
        ("[[a]]\n[[x]]\n[[a]]\n[[a]]\nb=1\n", ["a", 2, "b"], (5, 1)),
        ("[[a]]\n[[a.c]]\n[[a]]\nb=1\n", ["a", 1, "b"], (4, 1)),
        ("[[a]]\nb=1\n" * 50, ["a", 40, "b"], (82, 1)),
    ],
)
def test_where_a_value_is(text: str, path: list[str | int], place: tuple[int | None, int | None]) -> None:
    """The place of a value is its name's, or that of the nearest table round it; never another one's."""
    assert place_of(text, path) == place


def test_callers_is_what_opens() -> None:
    """Both ways to open give the same kind of thing."""
    assert open_callers.__annotations__["return"] is open_single_user.__annotations__["return"] is Callers
