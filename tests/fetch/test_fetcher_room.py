"""Pages that wait for their readers: how many there may be, and who goes first."""

from functools import partial

import pytest
import trio
from fetcher_stage import FLEET, Stage, answer

from sift_batch import Options, Target
from sift_batch.fetch import FetchError
from sift_batch.fetch._client import Answer
from sift_batch.fetch._room import BYTES, Room

MIB = 2**20
BODY = b"x" * (8 * MIB)


def big(body: bytes = BODY) -> Answer:
    """An answer with a large page."""
    return answer(body=body)


class Stuck:
    """Readers that read nothing until they are let go on."""

    def __init__(self, stage: Stage) -> None:
        self.go_on = trio.Event()
        self.waiting = 0
        self._read = stage.desk.read
        stage.desk.read = self.read

    async def read(self, document, options, **how):
        """Wait, then read."""
        self.waiting += 1
        try:
            await self.go_on.wait()
        finally:
            self.waiting -= 1
        return await self._read(document, options, **how)


async def test_readers_that_are_stuck_stop_the_network(autojump_clock):
    """While the room for pages is full, those that came keep their slots; all end when reading goes on."""
    stage = Stage()
    stuck = Stuck(stage)
    urls = [f"http://h{n}.org/" for n in range(40)]
    done: list[str] = []

    async def call(url: str) -> None:
        stage.site.give(url, big())
        result = await stage.fetch.interactive(FLEET, Target(url), patience=3_600)
        done.append(result.meta["url"])

    async with trio.open_nursery() as nursery:
        for url in urls:
            nursery.start_soon(call, url)
        await trio.sleep(600)
        held = len(stage.site.asked) * len(BODY)
        assert held <= BYTES + stage.gate.statistics().total * len(BODY)
        assert stuck.waiting == BYTES // len(BODY)
        assert stage.gate.statistics().in_use == 8
        stuck.go_on.set()
    assert sorted(done) == sorted(urls)
    assert (stage.gate.statistics().in_use, stage.fetch._pipeline._room.taken) == (0, 0)


async def test_the_wait_for_room_is_not_the_sites(autojump_clock):
    """Waiting for room uses up nothing of the total deadline: there is time to look for a copy after it."""
    stage = Stage(total_timeout=20, archive="http://archive.org/{url}")
    stuck = Stuck(stage)
    results = []

    async def call(url: str) -> None:
        seems_empty = Answer(200, {"content-type": b"text/plain"}, [b""], len(BODY), len(BODY))
        stage.site.give(url, seems_empty)
        stage.site.give("http://archive.org/" + url, answer(body=b"a copy"))
        target = Target(url, Options(recover=True))
        results.append((await stage.fetch.interactive(FLEET, target, patience=3_600)).content)

    async with trio.open_nursery() as nursery:
        for n in range(12):
            nursery.start_soon(call, f"http://h{n}.org/")
        await trio.sleep(100)
        stuck.go_on.set()
    assert results == ["a copy"] * 12


async def test_after_cancels_and_failures_all_room_is_free(autojump_clock):
    """Whatever ends a call, cancelled while it waits for room or while it is read, its room is free."""
    stage = Stage(archive="http://archive.org/{url}")
    stage.desk.seconds = 1
    room = stage.fetch._pipeline._room

    async def call(n: int) -> None:
        url = f"http://h{n % 9}.org/{n}"
        stage.site.give(url, big(b"" if n % 5 == 0 else BODY))
        stage.site.give("http://archive.org/" + url, big())
        with trio.move_on_after(n % 13 / 3):
            await stage.fetch.interactive(FLEET, Target(url, Options(recover=True)), patience=100)

    async with trio.open_nursery() as nursery:
        for n in range(200):
            nursery.start_soon(call, n)
    assert (room.taken, [len(line) for line in room._lines]) == (0, [0, 0])
    stage.desk.error = FetchError("extract_failed", "it failed")
    stage.site.give("http://a.org/", big())
    with pytest.raises(FetchError):
        await stage.batch("http://a.org/")
    assert room.taken == 0


async def test_interactive_pages_take_room_first(autojump_clock):
    """Who is waited for goes before the batch, each line in order, and small ones overtake nobody."""
    room = Room(10)
    await room.take("first", 8, interactive=False)
    lines = (
        ("batch", 10, False),
        ("small batch", 1, False),
        ("huge", 25, True),  # more than there is: all of it
        ("small", 1, True),
    )
    async with trio.open_nursery() as nursery:
        for name, size, interactive in lines:
            take = partial(room.take, name, size, interactive=interactive)
            nursery.start_soon(take)
            await trio.testing.wait_all_tasks_blocked()
        for name in ("first", "huge", "small", "batch", "small batch"):
            assert list(room._taken) == [name]
            room.give_back(name)
    assert room.taken == 0


async def test_a_waiter_that_leaves_lets_the_next_one_in(autojump_clock):
    """Those behind a large page that is cancelled while it waits get the room that there is."""
    room = Room(10)
    await room.take("first", 8, interactive=True)
    async with trio.open_nursery() as nursery:
        with trio.move_on_after(1) as scope:
            nursery.start_soon(trio.sleep, 0)
            await room.take("large", 9, interactive=True)
        assert scope.cancelled_caught
        with trio.fail_after(1):
            await room.take("small", 2, interactive=True)
    assert room.taken == 10


async def test_a_cancelled_caller_takes_nothing(autojump_clock):
    """Room that is granted in the moment of a cancel is free again."""
    room = Room(10)
    with trio.CancelScope() as scope:
        scope.cancel()
        await room.take("cancelled", 9, interactive=True)
    assert scope.cancelled_caught
    assert room.taken == 0


async def test_the_readers_hear_who_is_waited_for(autojump_clock):
    """A page that somebody waits for goes before the batch's at the readers, a copy from the archive too."""
    stage = Stage(archive="http://archive.org/{url}", retries=0)
    stage.site.give("http://a.org/", answer(404))
    stage.site.give("http://archive.org/http://a.org/", answer())
    target = Target("http://a.org/", Options(recover=True))
    await stage.fetch(FLEET, target)
    await stage.fetch.interactive(FLEET, target)
    assert stage.desk.interactive == [False, True]
