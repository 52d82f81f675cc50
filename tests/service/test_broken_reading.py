"""Readers that are slow, and a store that takes no write: what they may cost others."""

import socket
from contextlib import AsyncExitStack

import pytest
import trio
from api_rig import ANN, Fetch, holding, serving, until
from trio.testing import MockClock, wait_all_tasks_blocked

from sift_batch import Caller, Config, Options, Result, StoreError, TargetState, TargetStatus, open_store
from sift_batch.service._leases import Leases
from sift_batch.service._lines import chunk_end
from sift_batch.service._room import Held, SharedRoom
from sift_batch.service._service_config import ServiceConfig
from sift_batch.testing import FaultyStore

LARGE = [f"https://a.example/{number}" for number in range(16)]


@pytest.mark.real
async def test_a_page_holds_its_room_until_its_reader_has_it() -> None:
    """While a client takes nothing of its page, its bytes are counted; once it has left, they are not."""
    fetch = Fetch(results={url: Result("x" * 2**18) for url in LARGE})
    async with serving(fetch, config=Config(max_bytes=2**24)) as api:
        job_id = await api.settled(*LARGE)
        room = api.app._shared.room
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            slow.connect(("127.0.0.1", api.server.port))
            head = f"GET /v1/batch/{job_id}/results HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            slow.sendall(f"{head}Authorization: Bearer {ANN}\r\n\r\n".encode())
            await until(lambda: room.free < room.total)
            await trio.sleep(0.3)
            held = room.total - room.free
            assert 16 * 2**18 <= held < 17 * 2**18  # what is sent, no more
            assert (await api.ann.get(f"/v1/batch/{job_id}/targets/0")).status == 200
        await until(lambda: room.free == room.total)
        assert room.callers == 0


async def test_one_callers_slow_readers_keep_no_other_from_reading(autojump_clock: MockClock) -> None:
    """A caller gets a part of the room: with that full it waits, in order, and others do not."""
    room = SharedRoom(100)
    first, second, third, other = (Held(room, name) for name in ("ann", "ann", "ann", "bob"))
    assert first.take_now(20)
    assert not second.take_now(10)
    async with trio.open_nursery() as tasks:
        tasks.start_soon(second.take, 10)
        await wait_all_tasks_blocked()
        assert not third.take_now(1)  # it would overtake
        assert other.take_now(99)  # as much as one caller gets
        assert (room.free, room.callers) == (55, 2)
        first.keep(15)
    assert room.free == 50
    for held in (first, second, third, other):
        held.close()
        held.close()
    assert (room.free, room.callers) == (100, 0)


async def test_who_leaves_a_line_for_room_holds_nothing(autojump_clock: MockClock) -> None:
    """A wait that is cancelled, for the caller's part or for the room, leaves both as they were."""
    room = SharedRoom(8)
    mine = Held(room, "ann")
    for full in (room.enter("ann"), room):
        async with holding(full, 99):
            with trio.move_on_after(1) as scope:
                await mine.take(2)
            assert scope.cancelled_caught
            mine.close()
    room.leave("ann")
    assert mine.take_now(2)
    mine.close()
    assert (room.free, room.callers) == (8, 0)


def test_large_targets_are_read_one_at_a_time_for_lines() -> None:
    """So that a slow reader of lines costs one result and not four."""
    sizes = [10, 10, 10, 10, 10, 2**18, 10, 2**18, 2**18]
    targets = [
        TargetStatus(
            idx, "https://a.example/", Options(), TargetState.DONE, None, "", "", "", None, False, size
        )
        for idx, size in enumerate(sizes)
    ]
    ends, start = [], 0
    while start < len(targets):
        start = chunk_end(targets, start)
        ends.append(start)
    assert ends == [4, 5, 6, 7, 8, 9]


@pytest.mark.real
async def test_what_is_stored_is_read_though_no_lease_can_be_bumped() -> None:
    """A store that takes no write, as on a full disk, costs no reader the job, a target, or the results."""
    async with open_store(":memory:") as made:
        store = FaultyStore(made)
        async with serving(store=store) as api:
            job_id = await api.settled(*LARGE[:2])
            await trio.sleep(1.1)  # until its lease is to be bumped again
            store.fail(operations={"touch"}, times=float("inf"))
            for path in ("", "/targets", "/results", "/targets/1"):
                assert (await api.ann.get(f"/v1/batch/{job_id}{path}")).status == 200
            lines = await api.ann.get(f"/v1/batch/{job_id}/results", Accept="application/jsonl")
            assert len(lines.lines) == 2
            async with api.ann.stream(f"/v1/batch/{job_id}/events") as events:
                assert [(await events.event() or {})["event"] for _ in range(4)] == [
                    "job",
                    "target",
                    "target",
                    "end",
                ]
            assert store.failed >= 5


async def test_a_lease_that_was_not_bumped_is_bumped_by_the_next_reader(autojump_clock: MockClock) -> None:
    """A failed touch does not count as one."""
    touched = []

    class Runner:
        async def touch(self, job_id: str, *, caller: Caller) -> None:
            touched.append(job_id)
            if len(touched) == 1:
                raise StoreError("full")

    leases = Leases(Runner())  # type: ignore[arg-type]
    for _ in range(3):
        await leases.touch(Caller("ann"), "x")
    assert touched == ["x", "x"]


@pytest.mark.real
async def test_one_callers_streams_shut_nobody_else_out() -> None:
    """A caller that fills the service with streams is refused the next one; others are served, and health."""
    async with serving(Fetch(hang=LARGE[:1]), service=ServiceConfig(connections=16)) as api:
        path = f"/v1/batch/{await api.submitted(LARGE[0])}/events"
        async with AsyncExitStack() as streams:
            for _ in range(14):
                stream = await streams.enter_async_context(api.ann.stream(path))
                assert (await stream.event() or {})["event"] == "job"
            refused = await api.ann.get("/v1/limits")
            assert refused.problem(503, "server_busy")["retry_after"] >= 1
            assert (await api.bob.get("/v1/limits")).status == 200
            assert (await api.nobody.get("/healthz")).status == 200
        await until(lambda: not api.app._shared.open._open)
        assert (await api.ann.get("/v1/limits")).status == 200
        assert api.app._shared.open._counts == {}
