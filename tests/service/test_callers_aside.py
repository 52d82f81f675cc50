"""A callers file is read and parsed beside the loop: however long that takes, requests go on."""

import threading
from pathlib import Path

import pytest
import trio
from test_callers import ANN, BOB, BOTH, bearer, entry

from sift_batch.service import _callers
from sift_batch.service._caller_entries import CallersProblem, Entry, parse_callers
from sift_batch.service._callers import Callers, Taken, open_callers

pytestmark = pytest.mark.real


class Held:
    """Parsing that takes as long as it is held, in whatever thread."""

    def __init__(self) -> None:
        self.begun, self.let_go = threading.Event(), threading.Event()
        self.threads: list[int] = []

    def parse(self, raw: bytes) -> tuple[Entry, ...]:
        """Parse when let go; at once while `begun` is not looked for."""
        self.threads.append(threading.get_ident())
        self.begun.set()
        assert self.let_go.wait(30)
        return parse_callers(raw)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    """Parsing that is let go for the start."""
    made = Held()
    made.let_go.set()
    monkeypatch.setattr(_callers, "parse_callers", made.parse)
    return made


def write(folder: Path, text: str) -> Path:
    """Write a callers file."""
    path = folder / "callers.toml"
    path.touch(0o600)
    path.write_text(text)
    return path


def hold_next(held: Held) -> None:
    """Let the next parsing wait."""
    held.begun.clear()
    held.let_go.clear()
    held.threads.clear()


async def begun(held: Held) -> None:
    """Return once somebody parses; the loop must run for that."""
    with trio.fail_after(30):
        while not held.begun.is_set():  # noqa: ASYNC110 - another thread sets it
            await trio.sleep(0.01)


def let_in(callers: Callers) -> list[bool]:
    """Whether each of the two is let in."""
    return [callers.find(bearer(key)) is not None for key in (ANN, BOB)]


async def test_a_reload_is_read_in_a_thread_and_in_force_at_once(tmp_path: Path, held: Held) -> None:
    """While a new version is parsed the old one is in force; then the new one is, and is told of."""
    told: list[CallersProblem | Taken | None] = []
    path = write(tmp_path, BOTH)
    callers = open_callers(path, on_reload=told.append, on_taken=told.append)
    async with trio.open_nursery() as tasks:
        tasks.start_soon(callers.watch)
        write(tmp_path, entry("ann", ANN))
        hold_next(held)
        callers.reload()
        await begun(held)
        assert held.threads != [threading.get_ident()]
        assert let_in(callers) == [True, True]
        assert told == []
        held.let_go.set()
        with trio.fail_after(30):
            while len(told) < 2:  # noqa: ASYNC110 - the callback is the application's
                await trio.sleep(0.01)
        assert let_in(callers) == [True, False]
        assert callers.let_in() == frozenset({"ann"})
        tasks.cancel_scope.cancel()


async def test_a_reload_that_is_asked_for_before_there_is_a_watch(tmp_path: Path) -> None:
    """`watch` begins with the reading that was asked for."""
    told: list[CallersProblem | None] = []
    callers = open_callers(write(tmp_path, BOTH), on_reload=told.append)
    callers.reload()
    write(tmp_path, "x")
    async with trio.open_nursery() as tasks:
        tasks.start_soon(lambda: callers.watch(every=1_000))
        with trio.fail_after(30):
            while not told:  # noqa: ASYNC110 - the callback is the application's
                await trio.sleep(0.01)
        tasks.cancel_scope.cancel()
    assert [problem and problem.code for problem in told] == ["toml"]


async def test_a_reading_holds_up_no_end(tmp_path: Path, held: Held) -> None:
    """Who waits for a reading can be cancelled while it is parsed, and nothing changes afterwards."""
    callers = open_callers(write(tmp_path, BOTH))
    write(tmp_path, entry("ann", ANN))
    hold_next(held)
    with trio.fail_after(30):
        async with trio.open_nursery() as tasks:
            tasks.start_soon(callers.reloaded)
            await begun(held)
            tasks.cancel_scope.cancel()
    held.let_go.set()
    assert let_in(callers) == [True, True]
    with trio.fail_after(30):
        assert await callers.reloaded()
    assert let_in(callers) == [True, False]


async def test_two_readings_come_one_after_the_other(tmp_path: Path, held: Held) -> None:
    """A reading that begins while another one is under way waits, so the newest version is in force."""
    callers = open_callers(write(tmp_path, BOTH))
    hold_next(held)
    async with trio.open_nursery() as tasks:
        tasks.start_soon(callers.reloaded)
        await begun(held)
        write(tmp_path, entry("ann", ANN))
        tasks.start_soon(callers.reloaded)
        await trio.sleep(0.1)
        assert len(held.threads) == 1
        held.let_go.set()
    assert let_in(callers) == [True, False]
    assert len(held.threads) == 2
