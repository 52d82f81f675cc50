"""When does the server stop waiting? Streams in memory, the mock clock, times to the second."""

import pytest
import trio
import trio.testing
from server_rig import MemoryListener, answer, echo, read_all, read_body, read_until, running, status_of

from sift_batch.service._limits import ServerLimits
from sift_batch.service._refusal import BodyRefused, ClientGone

H = b" HTTP/1.1\r\nHost: x\r\n"
LIMITS = ServerLimits()


async def test_a_connection_without_a_request_is_closed_after_the_idle_time(autojump_clock) -> None:
    """A silent client is closed after 5 s, without a word, first and between requests."""
    listener = MemoryListener()
    async with running(echo, [listener], limits=LIMITS) as server:
        client = listener.connect()
        start = trio.current_time()
        assert await read_all(client) == b""
        assert trio.current_time() - start == pytest.approx(5)

        client = listener.connect()
        await trio.sleep(4.5)
        await client.send_all(b"GET /" + H + b"\r\n")
        await read_until(client, b"GET / ")
        start = trio.current_time()
        assert await read_all(client) == b""
        assert trio.current_time() - start == pytest.approx(5)
        assert server.events["slow_head"] == 0


async def test_a_head_that_trickles_is_refused_after_its_time(autojump_clock) -> None:
    """A byte a second keeps nothing open: 408 at 5 s from the first byte, the first head and a later one."""
    listener = MemoryListener()
    async with running(echo, [listener], limits=LIMITS) as server:
        for before in (b"", b"GET /" + H + b"\r\n"):
            client = listener.connect()
            if before:
                await client.send_all(before)
                await read_until(client, b"GET / ")
                await trio.sleep(3)
            start = trio.current_time()
            async with trio.open_nursery() as tasks:

                async def trickle(client=client) -> None:
                    for byte in (b"GET /" + H) * 3:
                        await client.send_all(bytes([byte]))
                        await trio.sleep(1)

                tasks.start_soon(trickle)
                assert status_of(await read_until(client, b"\r\n\r\n")) == 408
                assert trio.current_time() - start == pytest.approx(5)
                tasks.cancel_scope.cancel()
            await client.aclose()
        assert server.events["slow_head"] == 2


async def test_a_body_that_trickles_is_refused_after_its_time(autojump_clock) -> None:
    """The deadline is for the whole body: a byte each ten seconds still ends in 408 at 30 s."""
    listener = MemoryListener()
    caught = []

    async def app(scope, receive, send):
        await trio.sleep(20)  # the application's own time is not the client's
        start = trio.current_time()
        try:
            await read_body(receive)
        except BodyRefused as refused:
            caught.append((refused.status, trio.current_time() - start))
            raise

    async with running(app, [listener], limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(b"POST /" + H + b"Content-Length: 100\r\n\r\n")
        async with trio.open_nursery() as tasks:

            async def trickle() -> None:
                while True:
                    await client.send_all(b"a")
                    await trio.sleep(10)

            tasks.start_soon(trickle)
            assert status_of(await read_until(client, b"\r\n\r\n")) == 408
            tasks.cancel_scope.cancel()
        assert caught == [(408, pytest.approx(30))]
        assert server.events["slow_body"] == 1


async def test_a_refused_body_stays_refused(autojump_clock) -> None:
    """An application that goes on reading after a refusal is refused again, at once."""
    listener = MemoryListener()
    statuses = []

    async def app(scope, receive, send):
        for _ in range(3):
            try:
                await receive()
            except BodyRefused as refused:
                statuses.append((refused.status, trio.current_time()))
        await answer(send, 413)

    async with running(app, [listener], limits=LIMITS):
        client = listener.connect()
        await client.send_all(b"POST /" + H + b"Content-Length: 10000000\r\n\r\n")
        await read_until(client, b"\r\n\r\n")
    assert statuses == [(413, statuses[0][1])] * 3


async def test_a_client_that_does_not_read_is_cut(autojump_clock) -> None:
    """30 s without taking a piece: `ClientGone`, then `http.disconnect`, and the connection is cut."""
    listener = MemoryListener(trio.testing.lockstep_stream_pair)
    seen = []

    async def app(scope, receive, send):
        await read_body(receive)
        start = trio.current_time()
        try:
            await answer(send, 200, b"a" * 1_000_000)
        except ClientGone:
            seen.append(trio.current_time() - start)
            seen.append((await receive())["type"])
            raise

    async with running(app, [listener], limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        await trio.sleep(29)
        assert seen == []
        await trio.sleep(2)
        assert seen == [pytest.approx(30), "http.disconnect"]
        assert server.events["slow_reader"] == server.events["connection_closed"] == 1


async def test_a_client_that_reads_slowly_is_served(autojump_clock) -> None:
    """The send deadline is for a piece: a client that takes one each 20 s gets all of them."""
    listener = MemoryListener(trio.testing.lockstep_stream_pair)
    pieces = 12

    async def app(scope, receive, send):
        await answer(send, 200, b"a" * 65536 * pieces)

    async with running(app, [listener], limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        got = 0
        while got < 65536 * pieces:
            await trio.sleep(20)
            got += len(await client.receive_some(70_000))
        assert trio.current_time() > 200
        assert server.events["slow_reader"] == 0


async def test_a_long_wait_of_the_application_is_nobody_s_deadline(autojump_clock) -> None:
    """A request may run for an hour, and a stream may pause for one: only the client has deadlines."""
    listener = MemoryListener()

    async def app(scope, receive, send):
        await trio.sleep(3600)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await trio.sleep(3600)
        await send({"type": "http.response.body", "body": b"second"})

    async with running(app, [listener], limits=LIMITS):
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        await read_until(client, b"second")
        assert trio.current_time() >= 7200


@pytest.mark.parametrize("said", [b"\x00", b"POST /" + H + b"Content-Length: 900000\r\n\r\n"])
async def test_a_client_that_goes_on_sending_after_its_answer_is_closed(autojump_clock, said: bytes) -> None:
    """Refused, or answered before its body: the server listens for 2 s more, then closes."""
    listener = MemoryListener()

    async def app(scope, receive, send):
        await answer(send, 401)

    async with running(app, [listener], limits=LIMITS) as server:
        client = listener.connect()
        start = trio.current_time()
        await client.send_all(said)
        with pytest.raises(trio.BrokenResourceError):  # noqa: PT012
            while True:
                await client.send_all(b"a")
                await trio.sleep(0.1)
        assert trio.current_time() - start == pytest.approx(2, abs=0.2)
        assert server.events["connection_closed"] == 1


async def test_a_cancelled_send_cuts_the_connection(autojump_clock) -> None:
    """An application that gives up in the middle of a send leaves no half answer that looks whole."""
    listener = MemoryListener(trio.testing.lockstep_stream_pair)
    raised = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        with trio.move_on_after(1):
            await send({"type": "http.response.body", "body": b"x", "more_body": True})
        try:
            await send({"type": "http.response.body", "body": b"y"})
        except ClientGone as error:
            raised.append(error)

    async with running(app, [listener], limits=LIMITS):
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        await trio.sleep(2)
        reply = await read_all(client)
        assert not reply.endswith(b"0\r\n\r\n")
        assert b"y" not in reply
    assert len(raised) == 1
