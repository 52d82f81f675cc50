"""Who leaves is noticed, however much was sent before. Real sockets."""

import socket
import struct

import pytest
import trio
import trio.testing
from server_rig import answer, read_body, read_until, running

from sift_batch.service._hang_up import hung_up
from sift_batch.service._limits import ServerLimits

pytestmark = pytest.mark.real

ONE = b"GET /next HTTP/1.1\r\nHost: x\r\n\r\n"
MUCH = ONE * 800
"""More than one head may be, and less than the buffers of the system take."""


@pytest.mark.parametrize("how", ["ends", "resets"])
async def test_a_client_that_sent_much_and_leaves_is_noticed(how: str) -> None:
    """A request that waits hears of its client's leaving behind more bytes than are kept early."""
    heard = trio.Event()

    async def app(scope, receive, send):
        await read_body(receive)
        assert (await receive())["type"] == "http.disconnect"
        heard.set()

    assert ServerLimits().head_bytes < len(MUCH)
    async with running(app) as server:
        async with await server.connect() as client:
            await client.send_all(ONE + MUCH)
            await trio.sleep(0.1)
            assert not heard.is_set()
            if how == "resets":
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with trio.fail_after(30):
            await heard.wait()
            await server.wait_for("connection_closed")
        assert server.events["disconnected"] == 1


async def test_a_client_that_sends_much_at_once_gets_all_its_answers() -> None:
    """Behind a request that waits longer than between two looks, 800 more are answered, in order."""
    count = 0

    async def app(scope, receive, send):
        nonlocal count
        await read_body(receive)
        if scope["raw_path"] == b"/first":
            with trio.move_on_after(2.5):
                await receive()
                raise AssertionError("it has not left")
        count += 1
        await answer(send, 200, b"<%d>" % count)

    async with running(app) as server, await server.connect() as client:
        await client.send_all(ONE.replace(b"next", b"first") + MUCH)
        with trio.fail_after(30):
            await read_until(client, b"<801>")
        assert count == 801


async def test_what_is_seen_of_a_hang_up() -> None:
    """It is seen of a socket with bytes unread, not of one that only sends; of other streams nothing is."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    client = await trio.testing.open_stream_to_socket_listener(listeners[0])
    own = await listeners[0].accept()
    await client.send_all(b"x")
    assert not hung_up(own)
    await client.aclose()
    with trio.fail_after(30):
        while not hung_up(own):  # noqa: ASYNC110 - looking is what is tested
            await trio.sleep(0.01)
    await own.aclose()
    assert not hung_up(own)
    await listeners[0].aclose()
    one, _ = trio.testing.memory_stream_pair()
    await one.aclose()
    assert not hung_up(one)
