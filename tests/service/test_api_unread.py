"""Answers that come late, or that nobody takes: streams begin at once, what is unread is its reader's."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest
import trio
from api_rig import Client, Fetch, read_reply, serving, until

from sift_batch import Config, Result
from sift_batch.service import _lines
from sift_batch.service._callers import Taken
from sift_batch.service._service_config import ServiceConfig

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


async def test_followed_lines_begin_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who follows lines has the head of the answer before there is any line."""
    monkeypatch.setattr(_lines, "_STILL_HERE", 1_000)
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        with trio.fail_after(30):
            async with api.ann.stream(f"/v1/batch/{job_id}/results?follow=1", Accept=LINES) as lines:
                assert (await lines.head()).status_code == 200
                api.fetch.release()
                assert '"idx":0' in (await lines.block(b"\n") or "")


async def test_followed_lines_that_are_quiet_are_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """While no line comes there are spaces, and each line is still one JSON value."""
    monkeypatch.setattr(_lines, "_STILL_HERE", 0.02)
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        with trio.fail_after(30):
            async with api.ann.stream(f"/v1/batch/{job_id}/results?follow=1", Accept=LINES) as lines:
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
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        with trio.fail_after(30):
            async with api.ann.stream(f"/v1/batch/{job_id}/results?follow=1", Accept=LINES) as lines:
                assert (await lines.head()).status_code == 200
                api.app.stop()
                assert await lines.block(b"\n") is None
                assert lines.whole is False
        api.fetch.release()
        assert api.errors == []


@pytest.mark.parametrize("who", ["a caller", "strangers"])
async def test_answers_that_nobody_takes_leave_connections_to_others(who: str) -> None:
    """One caller's answers on their way count as its open requests, and so do all strangers' together."""
    service = ServiceConfig(connections=8)
    async with serving(Long(), service=service) as api:
        opened = api.app._shared.open
        ask = (
            (api.ann, "POST", "/v1/fetch", b'{"url":"https://a.example/"}')
            if who == "a caller"
            else (api.nobody, "GET", "/openapi.json")
        )
        async with unread(*ask), unread(*ask):
            await until(lambda: sum(opened._counts.values()) == 2)
            await trio.sleep(0.1)
            assert sum(opened._counts.values()) == 2
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
