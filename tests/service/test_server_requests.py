"""How do requests and answers cross? Real sockets, an application in a few lines."""

import logging

import pytest
import trio
from server_rig import answer, echo, read_all, read_body, read_until, running, status_of

from sift_batch.service._refusal import Answer, BodyRefused, ClientGone

pytestmark = pytest.mark.real

H = b" HTTP/1.1\r\nHost: x\r\n"
LAST = H + b"Connection: close\r\n"


def stream_of(*pieces, status=200, headers=()):
    """An application that sends `pieces` one by one."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": status, "headers": list(headers)})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    return app


async def test_the_scope_is_asgi_3_and_the_raw_path_is_untouched() -> None:
    """The application sees the target's bytes as they came, and every header, repeated ones too."""
    seen = []

    async def app(scope, receive, send):
        seen.append(scope)
        await answer(send)

    path = b"/a%2fb/%2e%2E//c;d/%ff"
    async with running(app) as server:
        await server.talk(
            b"GET " + path + b"?q=%41&q=2" + LAST + b"Authorization: a\r\nauthorization: b\r\n\r\n"
        )
        (scope,) = seen
        assert scope["raw_path"] == path
        assert scope["path"] == "/a/b/..//c;d/\ufffd"
        assert scope["query_string"] == b"q=%41&q=2"
        assert scope["method"] == "GET"
        assert scope["http_version"] == "1.1"
        assert [pair for pair in scope["headers"] if pair[0] == b"authorization"] == [
            (b"authorization", b"a"),
            (b"authorization", b"b"),
        ]
        assert scope["server"] == ("127.0.0.1", server.port)
        assert scope["client"][0] == "127.0.0.1"


async def test_one_connection_carries_many_requests_sent_ahead() -> None:
    """Pipelined requests, with and without bodies, are answered in order on one connection."""
    async with running(echo) as server:
        reply = await server.talk(
            b"GET /1" + H + b"\r\n"
            b"POST /2" + H + b"Content-Length: 3\r\n\r\nabc"
            b"GET /3" + H + b"\r\n"
            b"GET /4" + LAST + b"\r\n"
        )  # fmt: skip
        assert [reply.find(what) > 0 for what in (b"GET /1 ", b"POST /2 abc", b"GET /3 ", b"GET /4 ")] == [
            True
        ] * 4
        assert reply.count(b"HTTP/1.1 200 OK") == 4
        assert server.events["connection_opened"] == 1


async def test_requests_sent_ahead_wait_without_bound_on_the_client_only() -> None:
    """While a request runs, no more than about a head is read of what the client sends ahead."""
    go_on = trio.Event()

    async def app(scope, receive, send):
        await go_on.wait()
        await answer(send)

    async with running(app) as server:
        async with await server.connect() as stream:
            with trio.move_on_after(1) as scope:
                for _ in range(2000):
                    await stream.send_all((b"GET /" + H + b"\r\n") * 1000)
            assert scope.cancelled_caught


async def test_a_chunked_body_arrives_whole_and_ends_the_connection() -> None:
    """A chunked request is read to its end, and its answer says that the connection closes."""
    async with running(echo) as server:
        reply = await server.talk(
            b"POST /c"
            + H
            + b"Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n"
        )
    assert reply.endswith(b"POST /c abcde")
    assert b"connection: close" in reply.lower()


async def test_an_answer_of_unknown_length_is_chunked_for_1_1_and_closed_for_1_0() -> None:
    """Streams are framed in chunks, for an HTTP/1.0 client by the end of the connection."""
    async with running(stream_of(b"ab", b"", b"c")) as server:
        reply = await server.talk(b"GET /" + LAST + b"\r\n")
        assert b"transfer-encoding: chunked" in reply.lower()
        assert reply.endswith(b"\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")
        reply = await server.talk(b"GET / HTTP/1.0\r\n\r\n")
        assert b"transfer-encoding" not in reply.lower()
        assert reply.endswith(b"\r\n\r\nabc")


async def test_the_framing_is_the_servers_own() -> None:
    """A transfer coding or a `Connection` of the application's own never reaches the client."""
    headers = [(b"Transfer-Encoding", b"gzip"), (b"connection", b"upgrade"), (b"x", b"y")]
    async with running(stream_of(b"a", headers=headers)) as server:
        reply = await server.talk((b"GET /" + H + b"\r\n") + b"GET /" + LAST + b"\r\n")
    assert reply.count(b"HTTP/1.1 200 OK") == reply.count(b"x: y") == 2
    assert b"gzip" not in reply
    assert b"upgrade" not in reply


async def test_pieces_go_out_as_they_are_sent() -> None:
    """The client has a piece before the application sends the next one."""
    go_on = trio.Event()

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await go_on.wait()
        await send({"type": "http.response.body", "body": b"second"})

    async with running(app) as server:
        async with await server.connect() as stream:
            await stream.send_all(b"GET /" + H + b"\r\n")
            await read_until(stream, b"first")
            go_on.set()
            await read_until(stream, b"second")


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    """HEAD carries the length, no body, and the connection goes on; an endless stream ends."""
    left = trio.Event()

    async def app(scope, receive, send):
        if scope["raw_path"] == b"/endless":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            try:
                while True:
                    await send({"type": "http.response.body", "body": b"x", "more_body": True})
            except ClientGone:
                left.set()
                raise
        await answer(send, 200, b"12345")

    async with running(app) as server:
        reply = await server.talk(b"HEAD /" + H + b"\r\n" + b"GET /" + LAST + b"\r\n")
        head, _, rest = reply.partition(b"\r\n\r\n")
        assert b"content-length: 5" in head
        assert rest.startswith(b"HTTP/1.1 200")
        assert rest.endswith(b"12345")
        reply = await server.talk(b"HEAD /endless" + LAST + b"\r\n")
        assert reply.endswith(b"\r\n\r\n")
        assert left.is_set()
        assert server.events["app_failed"] == 0


@pytest.mark.parametrize("status", [204, 304])
async def test_answers_without_a_body_have_none(status: int) -> None:
    """204 and 304 carry no body and no framing, and the connection goes on."""
    async with running(stream_of(b"ignored", status=status)) as server:
        reply = await server.talk(b"GET /" + H + b"\r\n" + b"GET /" + LAST + b"\r\n")
    assert reply.count(b"HTTP/1.1 %d" % status) == 2
    assert b"ignored" not in reply
    assert b"chunked" not in reply


async def test_a_client_that_waits_for_100_continue_is_told_when_the_body_is_wanted() -> None:
    """`100 Continue` is sent once, when the application reads; never before a refusal of the length."""

    async def app(scope, receive, send):
        if scope["raw_path"] == b"/unread":
            await answer(send, 401, b"no")
        else:
            await answer(send, 200, await read_body(receive))

    async with running(app) as server:
        async with await server.connect() as stream:
            await stream.send_all(b"POST /" + LAST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            assert await read_until(stream, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            await stream.send_all(b"abc")
            assert (await read_all(stream)).endswith(b"abc")
        for path, length, status in ((b"/unread", b"3", 401), (b"/", b"9999999", 413)):
            async with await server.connect() as stream:
                await stream.send_all(
                    b"POST " + path + H + b"Content-Length: " + length + b"\r\nExpect: 100-continue\r\n\r\n"
                )
                reply = await read_all(stream)
                assert status_of(reply) == status
                assert b"connection: close" in reply.lower()


async def test_a_short_body_left_unread_costs_no_connection() -> None:
    """An answer without reading a body that came along keeps the connection."""

    async def app(scope, receive, send):
        await answer(send, 401, b"no")

    async with running(app) as server:
        reply = await server.talk(
            (b"POST /" + H + b"Content-Length: 3\r\n\r\nabc") * 2 + b"GET /" + LAST + b"\r\n"
        )
        assert reply.count(b"HTTP/1.1 401") == 3


async def test_the_application_can_answer_a_refused_body_itself() -> None:
    """`BodyRefused` can be caught, and the application's own answer goes out, then the connection closes."""

    async def app(scope, receive, send):
        try:
            await read_body(receive)
        except BodyRefused as refused:
            await answer(send, refused.status, b"mine")

    async with running(app) as server:
        reply = await server.talk(b"POST /" + H + b"Content-Length: 9999999\r\n\r\n" + b"a" * 9_999_999)
    assert status_of(reply) == 413
    assert reply.endswith(b"mine")
    assert b"connection: close" in reply.lower()


async def test_the_application_can_replace_the_refusals_of_the_server() -> None:
    """`answers` gives headers and body of every refusal; one that raises falls back to the server's own."""

    def answers(status):
        if status == 431:
            raise LookupError
        if status == 505:
            return Answer(((b"x", None),), b"")
        return Answer(((b"x-mine", b"yes"), (b"content-length", b"999")), b"mine %d" % status)

    async with running(echo, answers=answers) as server:
        reply = await server.talk(b"GET /\x00" + H + b"\r\n")
        assert reply.startswith(b"HTTP/1.1 400 Bad Request\r\nx-mine: yes\r\ncontent-length: 8\r\n")
        assert reply.endswith(b"mine 400")
        reply = await server.talk(b"GET /" + b"a" * 20_000 + H + b"\r\n")
        assert status_of(reply) == 431
        assert b"about:blank" in reply
        assert b"about:blank" in await server.talk(b"GET / HTTP/3.0\r\n\r\n")


async def test_the_server_says_nothing_of_itself_and_logs_nothing(caplog, capfd) -> None:
    """No `Server`, no `Date`; no log record and no output, for good and for bad requests."""
    with caplog.at_level(logging.DEBUG):
        async with running(echo) as server:
            for data in (b"GET /sesame" + LAST + b"\r\n", b"GET /sesame\x00" + H + b"\r\n", b"\x16\x03"):
                reply = (await server.talk(data, half_close=True)).lower()
                assert b"server:" not in reply
                assert b"date:" not in reply
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


async def test_a_callback_that_raises_costs_nothing() -> None:
    """An `on_event` that raises changes no answer."""

    def on_event(event):
        raise ValueError

    async with running(echo, on_event=on_event) as server:
        for _ in range(3):
            assert status_of(await server.talk(b"GET /" + LAST + b"\r\n")) == 200


async def test_a_starlette_application_runs() -> None:
    """Starlette's routing, body, stream and lifespan work, with its state in the requests."""
    starlette = pytest.importorskip("starlette.applications")
    from contextlib import asynccontextmanager

    from starlette.responses import PlainTextResponse, StreamingResponse
    from starlette.routing import Route

    left = trio.Event()

    @asynccontextmanager
    async def lifespan(app):
        yield {"word": "sesame"}

    async def post(request):
        return PlainTextResponse(request.state.word + (await request.body()).decode())

    async def events(request):
        async def endless():
            try:
                while True:
                    yield b"data: x\n\n"
                    await trio.sleep(0.01)
            finally:
                left.set()

        return StreamingResponse(endless(), media_type="text/event-stream")

    async def boom(request):
        raise ValueError("sesame")

    routes = [Route("/", post, methods=["POST"]), Route("/events", events), Route("/boom", boom)]
    async with running(starlette.Starlette(routes=routes, lifespan=lifespan), lifespan=True) as server:
        reply = await server.talk(b"POST /" + LAST + b"Content-Length: 4\r\n\r\nopen")
        assert reply.endswith(b"sesameopen")
        async with await server.connect() as stream:
            await stream.send_all(b"GET /events" + H + b"\r\n")
            await read_until(stream, b"data: x")
        with trio.fail_after(5):
            await left.wait()
        assert status_of(await server.talk(b"GET /boom" + LAST + b"\r\n")) == 500
        assert status_of(await server.talk(b"POST /" + LAST + b"Content-Length: 0\r\n\r\n")) == 200
