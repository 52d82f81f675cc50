"""What if the application is broken, or the client leaves? Real sockets."""

import pytest
import trio
from server_rig import answer, echo, running, status_of

from sift_batch.service._refusal import ClientGone

pytestmark = pytest.mark.real

H = b" HTTP/1.1\r\nHost: x\r\n"
LAST = H + b"Connection: close\r\n"

FAULTS = {
    "exception": ValueError("sesame"),
    "group": ExceptionGroup("sesame", [ValueError("sesame"), OSError("sesame")]),
    "assertion": AssertionError("sesame"),
    "memory": MemoryError(),
    "recursion": RecursionError("sesame"),
    "os": BrokenPipeError("sesame"),
    "trio": trio.ClosedResourceError("sesame"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_whatever_the_application_raises_is_a_constant_500(name: str) -> None:
    """The client gets the same 500 for every exception, and the next request is answered."""

    async def app(scope, receive, send):
        if scope["raw_path"] == b"/":
            raise FAULTS[name]
        await answer(send)

    async with running(app) as server:
        reply = await server.talk(b"GET /" + H + b"\r\n")
        assert status_of(reply) == 500
        assert (await server.talk(b"HEAD /" + H + b"\r\n")).endswith(b"\r\n\r\n")
        assert reply.endswith(b'{"type":"about:blank","title":"Internal Server Error","status":500}')
        assert status_of(await server.talk(b"GET /well" + LAST + b"\r\n")) == 200
        assert server.events["app_failed"] == 2


async def _returns_nothing(scope, receive, send):
    pass


async def _starts_only(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def _body_first(scope, receive, send):
    await send({"type": "http.response.body", "body": b"x"})


async def _bad_header(scope, receive, send):
    await answer(send, 200, b"x", (b"x", b"a\r\nSet-Cookie: b"))


async def _bad_status(scope, receive, send):
    await answer(send, 99)


async def _websocket(scope, receive, send):
    await send({"type": "websocket.accept"})


async def _too_short(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"5")]})
    await send({"type": "http.response.body", "body": b"abc"})


BREAKS = [_returns_nothing, _starts_only, _body_first, _bad_header, _bad_status, _websocket, _too_short]


@pytest.mark.parametrize("app", BREAKS)
async def test_an_application_that_breaks_asgi_is_a_constant_500(app) -> None:
    """No answer, half an answer, a header with a line break: the client gets a 500 and nothing else."""
    async with running(app) as server:
        reply = await server.talk(b"GET /" + H + b"\r\n")
        assert status_of(reply) == 500
        assert b"cookie" not in reply.lower()
        assert server.events["app_failed"] == 1


async def _too_long(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"a", "more_body": True})
    await send({"type": "http.response.body", "body": b"bc"})


async def _raises_half_way(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"abc", "more_body": True})
    raise ValueError


@pytest.mark.parametrize("app", [_too_long, _raises_half_way])
async def test_an_answer_that_can_not_be_ended_is_cut(app) -> None:
    """Half an answer never looks whole: the connection is cut, and no second head follows."""
    async with running(app) as server:
        reply = await server.talk(b"GET /" + H + b"\r\n")
        assert reply.count(b"HTTP/1.1") == 1
        assert not reply.endswith(b"0\r\n\r\n")
        assert server.events["app_failed"] == 1


async def test_the_application_learns_that_the_client_left() -> None:
    """`http.disconnect` comes while the application waits, and a later `send` raises `ClientGone`."""
    told, raised = trio.Event(), trio.Event()

    async def app(scope, receive, send):
        assert (await receive())["type"] == "http.request"
        assert (await receive())["type"] == "http.disconnect"
        told.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            for _ in range(1000):
                await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
        except ClientGone:
            raised.set()
            raise

    async with running(app) as server:
        async with await server.connect() as stream:
            await stream.send_all(b"GET /" + H + b"\r\n")
            await trio.sleep(0.05)
        with trio.fail_after(5):
            await told.wait()
            await raised.wait()
            await server.wait_for("disconnected")
        assert server.events["app_failed"] == 0


async def test_a_look_for_the_disconnect_inside_a_cancelled_scope_finds_it() -> None:
    """Frameworks poll `receive()` in a cancelled scope; a known disconnect is returned all the same."""
    polled, done = [], trio.Event()

    async def app(scope, receive, send):
        await receive()
        for _ in range(200):
            message = {}
            with trio.CancelScope() as scope_of_poll:
                scope_of_poll.cancel()
                message = await receive()
            polled.append(message.get("type"))
            if message:
                done.set()
                return
            await trio.sleep(0.01)

    async with running(app) as server:
        async with await server.connect() as stream:
            await stream.send_all(b"GET /" + H + b"\r\n")
            await trio.sleep(0.05)
        with trio.fail_after(5):
            await done.wait()
    assert polled[0] is None
    assert polled[-1] == "http.disconnect"


async def test_after_the_answer_there_is_nothing_to_receive() -> None:
    """An application that waits for more after its answer gets `http.disconnect`; the client goes on."""
    seen = []

    async def app(scope, receive, send):
        await answer(send)
        seen.extend([(await receive())["type"], (await receive())["type"], (await receive())["type"]])

    async with running(app) as server:
        with trio.fail_after(5):
            reply = await server.talk(b"GET /" + H + b"\r\n" + b"GET /" + LAST + b"\r\n")
    assert reply.count(b"200 OK") == 2
    assert seen == ["http.request", "http.disconnect", "http.disconnect"] * 2


async def test_a_client_that_only_half_closes_is_answered() -> None:
    """A client that closes its sending side after the request reads its answer, a refusal too."""

    async def fails(scope, receive, send):
        await receive()
        await receive()
        raise ValueError

    async with running(fails) as server:
        assert status_of(await server.talk(b"GET /" + H + b"\r\n", half_close=True)) == 500
    async with running(echo) as server:
        assert (await server.talk(b"GET /h" + H + b"\r\n", half_close=True)).endswith(b"GET /h ")
        body = b"POST /h" + H + b"Content-Length: 3\r\n\r\nabc"
        assert (await server.talk(body, half_close=True)).endswith(b"POST /h abc")
