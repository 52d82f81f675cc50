"""Answers that come late, or that nobody takes: streams begin at once, what is unread is its reader's."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from api_rig import Api, Client, Fetch, Incoming, holding, read_reply, serving, until

from sift_batch import Config, Result, TargetError, open_store
from sift_batch.service import _lines, _pages, _submissions
from sift_batch.service._callers import Taken
from sift_batch.service._problems import BadItem
from sift_batch.service._response import text_response
from sift_batch.service._service_config import ServiceConfig
from sift_batch.testing import FaultyStore

pytestmark = pytest.mark.real

A = "https://a.example/"
LINES = "application/jsonl"
LONG = 12_000_000
"""Characters: more than the buffers of the system take."""


class Long(Fetch):
    """A fetch of long pages."""

    async def __call__(self, *_: object) -> Result:
        """Give a long page."""
        await trio.lowlevel.checkpoint()
        return Result("x" * LONG, {})


@asynccontextmanager
async def unread(
    client: Client, method: str, path: str, body: bytes = b""
) -> AsyncIterator[trio.SocketStream]:
    """Send a request on a connection that takes little at a time, and read nothing yet."""
    sock = trio.socket.socket()
    sock.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 2048)
    await sock.connect(("127.0.0.1", client.port))
    async with trio.SocketStream(sock) as stream:
        await stream.send_all(client.head(method, path, body, {"Accept": LINES}))
        yield stream


@asynccontextmanager
async def followed() -> AsyncIterator[tuple[Api, Incoming]]:
    """Follow the lines of a job whose fetch hangs; what is said in the block comes within half a minute."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        with trio.fail_after(30):
            async with api.ann.stream(f"/v1/batch/{job_id}/results?follow=1", Accept=LINES) as lines:
                yield api, lines


async def test_followed_lines_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who follows lines has the head of the answer before there is any line."""
    monkeypatch.setattr(_lines, "_STILL_HERE", 1_000)
    async with followed() as (api, lines):
        assert (await lines.head()).status_code == 200
        api.fetch.release()
        assert '"idx":0' in (await lines.block(b"\n") or "")


async def test_followed_lines_that_are_quiet_are_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """While no line comes there are spaces, and each line is still one JSON value."""
    monkeypatch.setattr(_lines, "_STILL_HERE", 0.02)
    async with followed() as (api, lines):
        for _ in range(3):
            assert await lines.block(b" ") == ""
        api.fetch.release()
        line = await lines.block(b"\n")
        assert (line or "").strip().startswith('{"idx":0')
        assert await lines.block(b"\n") is None
        assert lines.whole is True


async def test_lines_that_are_cut_before_the_first_are_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop before the first line cuts the stream; it is no internal error."""
    monkeypatch.setattr(_lines, "_STILL_HERE", 1_000)
    async with followed() as (api, lines):
        assert (await lines.head()).status_code == 200
        api.app.stop()
        assert await lines.block(b"\n") is None
        assert lines.whole is False
        api.fetch.release()
        assert api.errors == []


@pytest.mark.parametrize("who", ["a caller", "strangers"])
async def test_answers_that_nobody_takes_leave_connections_to_others(
    who: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One caller's answers on their way count as its open requests, and so do all strangers' together."""
    monkeypatch.setitem(_pages._MADE, (b"/llms.txt", b""), text_response("x" * LONG))
    service = ServiceConfig(connections=8)
    async with serving(Long(), service=service) as api:
        opened = api.app._shared.open
        ask = (
            (api.ann, "POST", "/v1/fetch", b'{"url":"https://a.example/"}')
            if who == "a caller"
            else (api.nobody, "GET", "/llms.txt")
        )
        async with unread(*ask), unread(*ask):
            await until(lambda: sum(opened._counts.values()) == 2)
            await trio.sleep(0.1)
            assert sum(opened._counts.values()) == 2
            room = api.app._shared.room
            assert (room.free < room.total) is (who == "a caller")
        await until(lambda: not opened._counts)


@pytest.mark.parametrize("sending", [True, False])
async def test_a_caller_that_is_let_in_no_more_gets_no_more_of_its_answer(sending: bool) -> None:
    """A revocation ends an answer that is being sent, in the middle of a line; what it held is given back."""
    config = Config(jobs_per_caller=4, result_max_bytes=2**24, max_bytes=2**28)
    async with serving(Long(), config=config) as api:
        job_id = await api.settled(A)
        for path in ("results", "targets/0"):
            async with unread(api.ann, "GET", f"/v1/batch/{job_id}/{path}") as stream:
                room = api.app._shared.room
                await until(lambda room=room: room.free < room.total)
                if sending:  # else it may be revoked before there is an answer
                    await trio.sleep(0.5)
                api.app.revoke(Taken(frozenset({"ann"}), frozenset()))
                await until(lambda room=room: room.free == room.total)
                assert not api.app.revoked(frozenset({"ann"}))
                got = 0
                with trio.fail_after(60):
                    try:
                        while data := await stream.receive_some(2**16):
                            got += len(data)
                    except trio.BrokenResourceError:
                        pass
                assert got < LONG


async def test_a_refusal_for_want_of_room_is_said_to_who_asks() -> None:
    """Whoever has as many requests open as one may have is told so, and the next caller is served."""
    async with serving(Fetch(hang=[A]), service=ServiceConfig(connections=8)) as api:
        job_id = await api.submitted(A)
        async with AsyncExitStack() as waits:
            for _ in range(7):
                await waits.enter_async_context(unread(api.ann, "GET", f"/v1/batch/{job_id}?wait=30"))
            await until(lambda: api.app._shared.open._counts == {"ann": 7})
            async with await trio.open_tcp_stream("127.0.0.1", api.server.port) as stream:
                await stream.send_all(api.ann.head("GET", "/v1/batch", b"", {}))
                (await read_reply(stream, "GET")).problem(503, "server_busy")
            assert (await api.bob.get("/v1/batch")).status == 200
        api.fetch.release()


@pytest.mark.parametrize("path", ["targets", "events"])
async def test_what_waits_for_room_ends_when_the_service_stops(path: str) -> None:
    """While all the memory for results is held, a list of targets or events waits, and a stop ends it."""
    async with serving() as api:
        job_id = await api.settled(A)
        room = api.app._shared.room
        async with holding(room, room.free), unread(api.ann, "GET", f"/v1/batch/{job_id}/{path}"):
            await until(lambda: room._line.locked())
            api.app.stop()
            await until(lambda: not api.app._shared.open._open)
            assert not room._line.locked()
        assert room.free == room.total


async def test_one_damaged_row_does_not_shut_the_service() -> None:
    """A read that fails is answered as such; whether the store works, a look at it says."""
    async with open_store(":memory:") as made:
        store = FaultyStore(made)
        async with serving(store=store) as api:
            job_id = await api.settled(A)
            store.fail(operations=["status"])
            (await api.ann.get(f"/v1/batch/{job_id}/results")).problem(503, "store_unavailable")
            assert await api.app.health.is_ready()
            store.recover()
            store.fail(1, operations=["submit"])
            refused = await api.ann.post("/v1/batch", {"targets": [f"{A}new"]})
            refused.problem(503, "store_unavailable")
            assert not await api.app.health.is_ready()


async def test_thousands_of_unknown_names_are_not_all_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many faults of a body are gathered as are told, however many there are."""
    made: list[BadItem] = []

    def counted(*args: str) -> BadItem:
        made.append(BadItem(*args))
        return made[-1]

    monkeypatch.setattr(_submissions, "BadItem", counted)
    async with serving() as api:
        body = {f"name{number}": 1 for number in range(5_000)}
        told = (await api.ann.post("/v1/batch", {"targets": [A], **body})).problem(422, "bad_request")
    assert len(told["errors"]) == 200
    assert len(made) == 200


async def test_whatever_version_is_there_a_change_is_waited_for() -> None:
    """`If-None-Match: *` with `until=change` means the version of now: it waits, and tells the next one."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        await api.fetch.wait_started(1)
        version = (await api.runner.job(job_id)).version
        path = f"/v1/batch/{job_id}?wait=30&until=change"
        with trio.fail_after(60):
            async with trio.open_nursery() as tasks:

                async def look() -> None:
                    reply = await api.ann.get(path, If_None_Match="*")
                    assert reply.status == 200
                    assert reply.headers["etag"] != f'W/"{version}"'

                tasks.start_soon(look)
                await until(lambda: api.app._shared.open._open)
                await trio.sleep(0.1)
                assert api.app._shared.open._open
                api.fetch.release()


@pytest.mark.parametrize(
    ("retryable", "hint"),
    [
        ([False], "1 failed, not retryable: a rerun won't help"),
        ([False, False], "2 failed, none of them retryable: a rerun won't help"),
        ([False, True], "2 failed; a rerun fetches them"),
        ([True], "1 failed; a rerun fetches it"),
    ],
)
async def test_a_job_says_whether_a_rerun_helps(retryable: list[bool], hint: str) -> None:
    """The hint of a settled job is about what failed; the list, which has not looked, leaves it open."""
    fetch, urls = Fetch(), [f"{A}{number}" for number in range(len(retryable))]
    for url, worth in zip(urls, retryable, strict=True):
        fetch.fail(url, TargetError("no", code="page_not_found", retryable=worth))
    async with serving(fetch) as api:
        job_id = await api.settled(*urls, f"{A}done")
        view = (await api.ann.get(f"/v1/batch/{job_id}")).json
        assert view["hint"] == hint
        assert view["next"]["path"] == f"/v1/batch/{job_id}/rerun"
        (listed,) = (await api.ann.get("/v1/batch")).json["items"]
        assert "a rerun helps if" in listed["hint"]


async def test_followed_lines_of_a_job_that_went_are_not_whole() -> None:
    """A job that is deleted between the head and the first look at it gives a stream that is cut."""
    async with open_store(":memory:") as made:
        store = FaultyStore(made)
        async with serving(store=store) as api:
            job_id = await api.settled(A)
            watch = api.runner.watch

            def deleted_first(*args: object, **options: object) -> object:
                made_watch = watch(*args, **options)

                @asynccontextmanager
                async def gone() -> AsyncIterator[object]:
                    await api.runner.delete(job_id)
                    async with made_watch as statuses:
                        yield statuses

                return gone()

            api.runner.watch = deleted_first  # type: ignore[method-assign]
            with trio.fail_after(30):
                async with api.ann.stream(f"/v1/batch/{job_id}/results?follow=1", Accept=LINES) as lines:
                    assert await lines.block(b"\n") is None
                    assert lines.whole is False
