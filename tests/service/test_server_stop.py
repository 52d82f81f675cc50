"""How does the server stop, and start? At every stage of a request, by `stop`, by a cancel, by a failure."""

import random

import pytest
import trio
import trio.testing
from server_rig import MemoryListener, answer, echo, read_all, read_body, read_until, running, status_of

from sift_batch.service._lifespan import StartupFailed
from sift_batch.service._limits import ServerLimits
from sift_batch.service._listener import open_listeners
from sift_batch.service._server import serve

H = b" HTTP/1.1\r\nHost: x\r\n"
LIMITS = ServerLimits()


async def test_stop_with_nobody_there_is_at_once(autojump_clock) -> None:
    """A server without connections returns as soon as it is told."""
    async with running(echo, [MemoryListener()], limits=LIMITS) as server:
        start = trio.current_time()
        server.stop.set()
        await server.ended.wait()
        assert trio.current_time() == start


async def test_stop_closes_idle_connections_at_once(autojump_clock) -> None:
    """New and kept-alive connections without a request are closed at once, silently."""
    listener = MemoryListener()
    async with running(echo, [listener], limits=LIMITS) as server:
        new, kept = listener.connect(), listener.connect()
        await kept.send_all(b"GET /" + H + b"\r\n")
        await read_until(kept, b"GET / ")
        await trio.testing.wait_all_tasks_blocked()
        start = trio.current_time()
        server.stop.set()
        assert await read_all(new) == b""
        assert await read_all(kept) == b""
        await server.ended.wait()
        assert trio.current_time() == start
        assert server.events["forced_close"] == 0


@pytest.mark.parametrize("stage", ["head", "body", "application", "stream"])
async def test_stop_lets_a_request_finish_within_the_grace(autojump_clock, stage: str) -> None:
    """Whatever stage a request is at, it is answered if it ends in time, and its connection is closed."""
    listener = MemoryListener()

    async def app(scope, receive, send):
        body = await read_body(receive)
        await trio.sleep(3)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        await trio.sleep(3)
        await send({"type": "http.response.body", "body": body + b"last"})

    request = b"POST /" + H + b"Content-Length: 3\r\n\r\nabc"
    sent = {"head": 10, "body": len(request) - 2}.get(stage, len(request))
    async with running(app, [listener], limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(request[:sent])
        await trio.sleep(4 if stage == "stream" else 0.5)
        server.stop.set()
        await trio.sleep(0.5)
        await client.send_all(request[sent:])
        reply = await read_all(client)
        assert status_of(reply) == 200
        assert b"abclast" in reply
        assert (b"connection: close" in reply.lower()) == (stage != "stream")
        await server.ended.wait()
        assert server.events["forced_close"] == 0


@pytest.mark.parametrize("begun", [False, True])
async def test_stop_runs_no_request_sent_ahead(autojump_clock, begun: bool) -> None:
    """A second request already sent is not run after `stop`; an answer not begun yet says `close`."""
    listener = MemoryListener()
    asked = []

    async def app(scope, receive, send):
        asked.append(scope["raw_path"])
        if not begun:
            await trio.sleep(1)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await trio.sleep(1)
        await send({"type": "http.response.body", "body": b"b"})

    async with running(app, [listener], limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(b"GET /1" + H + b"\r\n" + b"GET /2" + H + b"\r\n")
        await trio.sleep(0.5)
        server.stop.set()
        reply = await read_all(client)
        await server.ended.wait()
        assert (b"connection: close" in reply.lower()) != begun
        assert asked == [b"/1"]


@pytest.mark.parametrize("stage", ["application", "stream", "not-reading"])
async def test_what_still_runs_after_the_grace_is_cut(autojump_clock, stage: str) -> None:
    """10 s after `stop` the rest is cancelled and its connections are closed, half an answer or none."""
    listener = MemoryListener(trio.testing.lockstep_stream_pair)
    cancelled = []

    async def app(scope, receive, send):
        try:
            if stage != "application":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                await send({"type": "http.response.body", "body": b"first", "more_body": True})
            await trio.sleep_forever()
        except trio.Cancelled:
            cancelled.append(trio.current_time())
            raise

    async with running(app, [listener], limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        if stage == "stream":
            await read_until(client, b"first")
        await trio.sleep(1)
        start = trio.current_time()
        server.stop.set()
        await server.ended.wait()
        assert cancelled == [start + 10]
        assert trio.current_time() == start + 10
        assert server.events["forced_close"] == 1
        assert not (await read_all(client)).endswith(b"0\r\n\r\n")


async def test_an_application_that_fails_while_it_is_cancelled_ends_nothing(autojump_clock) -> None:
    """A failure raised beside the cancel is counted and goes no further."""
    listener = MemoryListener()

    async def app(scope, receive, send):
        async def fail() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError

        async with trio.open_nursery() as tasks:
            tasks.start_soon(fail)
            await trio.sleep_forever()

    async with running(app, [listener], limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        await trio.sleep(1)
        server.stop.set()
        await server.ended.wait()
        assert server.events["app_failed"] == 1
        assert server.events["connection_failed"] == 0


@pytest.mark.real
async def test_a_stopped_server_has_closed_its_listeners() -> None:
    """After `stop` a connection is refused by the kernel, also while the last request still runs."""
    go_on = trio.Event()

    async def app(scope, receive, send):
        await go_on.wait()
        await answer(send)

    async with running(app) as server:
        port = server.port
        async with await server.connect() as stream:
            await stream.send_all(b"GET /" + H + b"\r\n")
            await trio.sleep(0.05)
            server.stop.set()
            await trio.sleep(0.05)
            with pytest.raises(OSError, match="127"):
                await trio.open_tcp_stream("127.0.0.1", port)
            go_on.set()
            assert status_of(await read_all(stream)) == 200
        await server.ended.wait()


@pytest.mark.real
async def test_a_cancel_at_any_moment_leaves_nothing_open() -> None:
    """The whole server is cancelled at 60 random moments under load: listener and connections are closed."""
    dice = random.Random(4)

    async def app(scope, receive, send):
        await read_body(receive)
        await trio.sleep(dice.random() / 100)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 100_000, "more_body": True})
        await send({"type": "http.response.body"})

    async def client(port: int) -> None:
        try:
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                for _ in range(20):
                    await stream.send_all(b"POST /" + H + b"Content-Length: 3\r\n\r\nabc")
                    await stream.receive_some(1000)
                await read_all(stream)
        except OSError:
            pass
        except trio.BrokenResourceError:
            pass

    with trio.fail_after(30):
        for _ in range(60):
            async with running(app) as server:
                async with trio.open_nursery() as clients:
                    for _ in range(4):
                        clients.start_soon(client, server.port)
                    await trio.sleep(dice.random() / 20)
                    server.scope.cancel()
                    await server.ended.wait()
                    # The clients end by themselves: their connections were closed.
                assert server.listeners[0].socket.fileno() == -1
                assert server.events["connection_opened"] == server.events["connection_closed"]
                assert server.events["connection_failed"] == 0


class Lifespanned:
    """An application with a lifespan that does as it is told."""

    def __init__(self, act=None) -> None:
        self.steps: list[str] = []
        self.act = act or {}

    async def __call__(self, scope, receive, send) -> None:
        """Act out the lifespan, or answer with the state."""
        if scope["type"] != "lifespan":
            self.steps.append("request")
            await answer(send, 200, str(scope["state"]).encode())
            return
        scope["state"]["word"] = "sesame"
        while True:
            step = (await receive())["type"]
            self.steps.append(step)
            kind, error = self.act.get(step, ("complete", None))
            await send({"type": f"{step}.{kind}", "message": "sesame"})
            if error is not None:
                raise error
            if step == "lifespan.shutdown":
                return


async def test_the_lifespan_surrounds_the_requests(autojump_clock) -> None:
    """Start-up before the first request, its state in each, shut-down after the last one."""
    app, listener = Lifespanned(), MemoryListener()
    async with running(app, [listener], lifespan=True, limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        await read_until(client, b"{'word': 'sesame'}")
        server.stop.set()
        await server.ended.wait()
    assert app.steps == ["lifespan.startup", "request", "lifespan.shutdown"]


@pytest.mark.parametrize("error", [None, ValueError("sesame")])
async def test_an_application_that_can_not_start_is_not_served(autojump_clock, error) -> None:
    """A failed start-up raises `StartupFailed` with its cause, without the application's message."""
    app = Lifespanned({"lifespan.startup": ("failed", error or SystemError())})
    listener = MemoryListener()
    with pytest.raises(StartupFailed) as caught:
        await serve(app, [listener], stop=trio.Event())
    assert type(caught.value.__cause__) is type(error or SystemError())
    assert "sesame" not in str(caught.value)
    with pytest.raises(trio.ClosedResourceError):
        await listener.accept()


async def _raises(scope, receive, send):
    assert scope["type"] == "http"
    await answer(send)


async def _returns(scope, receive, send):
    if scope["type"] == "http":
        await answer(send)


@pytest.mark.parametrize("app", [_raises, _returns])
async def test_an_application_without_a_lifespan_is_served(autojump_clock, app) -> None:
    """An application that raises or returns at the sight of a lifespan has none, and is served."""
    listener = MemoryListener()
    async with running(app, [listener], lifespan=True, limits=LIMITS) as server:
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        await read_until(client, b"ok")
        server.stop.set()
        await server.ended.wait()


async def test_a_lifespan_that_breaks_later_ends_the_server_with_its_error(autojump_clock) -> None:
    """What the application's lifespan raises after the start comes out of `serve` as it is."""

    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await trio.sleep(5)
        raise LookupError

    with pytest.raises(LookupError):
        await serve(app, [MemoryListener()], stop=trio.Event())
    assert trio.current_time() >= 5


async def test_a_shut_down_that_hangs_is_cut(autojump_clock) -> None:
    """An application that never shuts down costs the grace, not more."""

    async def app(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await trio.sleep_forever()

    async with running(app, [MemoryListener()], lifespan=True, limits=LIMITS) as server:
        start = trio.current_time()
        server.stop.set()
        await server.ended.wait()
        assert trio.current_time() == start + 10


@pytest.mark.real
async def test_a_cancel_during_the_start_closes_every_listener() -> None:
    """A cancel before the application is up leaves no listener open, the second one neither."""

    async def app(scope, receive, send):
        await trio.sleep_forever()

    listeners = [*await open_listeners("127.0.0.1", 0), *await open_listeners("127.0.0.1", 0)]
    with trio.move_on_after(0.05):
        await serve(app, listeners, stop=trio.Event())
    assert [listener.socket.fileno() for listener in listeners] == [-1, -1]
