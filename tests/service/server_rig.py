"""A server under test, with plain clients: real sockets, or streams in memory for the mock clock."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing

from sift_batch.service._limits import ServerLimits
from sift_batch.service._listener import open_listeners
from sift_batch.service._server import serve

HEALTHY = b"GET /healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def answer(send: Any, status: int = 200, body: bytes = b"ok", *headers: tuple[bytes, bytes]) -> None:
    """Send a whole response with its length."""
    fields = [(b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def read_body(receive: Any) -> bytes:
    """Read a request's body to its end."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client left")
        body += message["body"]
        if not message["more_body"]:
            return body


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answer with method, raw path and body."""
    body = await read_body(receive)
    await answer(send, 200, b"%s %s %s" % (scope["method"].encode(), scope["raw_path"], body))


class MemoryListener(trio.abc.Listener[trio.abc.HalfCloseableStream]):
    """Takes connections that exist in memory only."""

    def __init__(self, pair: Any = trio.testing.memory_stream_pair) -> None:
        self._pair = pair
        self._put, self._take = trio.open_memory_channel[Any](1000)

    def connect(self) -> Any:
        """Connect, and give the client's end."""
        client, server = self._pair()
        self.take(server)
        return client

    def take(self, server: Any) -> None:
        """Hand a server's end over as it is."""
        self._put.send_nowait(server)

    async def accept(self) -> Any:
        """The server's end of the next connection."""
        return await self._take.receive()

    async def aclose(self) -> None:
        """Take no more."""
        self._put.close()
        self._take.close()
        await trio.lowlevel.checkpoint()


class Running:
    """A server that runs: its port, its events, its stop."""

    def __init__(self, listeners: list[Any]) -> None:
        self.listeners = listeners
        self.stop = trio.Event()
        self.ended = trio.Event()
        self.events: Counter[str] = Counter()
        self.scope = trio.CancelScope()

    @property
    def port(self) -> int:
        """Its port on 127.0.0.1."""
        port: int = self.listeners[0].socket.getsockname()[1]
        return port

    def count(self, event: str) -> None:
        """Count an event."""
        self.events[event] += 1

    async def wait_for(self, event: str, times: int = 1) -> None:
        """Wait until an event was reported so often; five seconds at most."""
        with trio.fail_after(5):
            while self.events[event] < times:  # noqa: ASYNC110 - the callback is the server's, not ours
                await trio.sleep(0.01)

    async def connect(self) -> trio.SocketStream:
        """A plain connection to it."""
        return await trio.open_tcp_stream("127.0.0.1", self.port)

    async def talk(self, data: bytes, *, half_close: bool = False) -> bytes:
        """Send `data` on a connection of its own, and read to the end of what comes back."""
        async with await self.connect() as stream:
            try:
                await stream.send_all(data)
                if half_close:
                    await stream.send_eof()
            except trio.BrokenResourceError:
                pass
            return await read_all(stream)


async def read_all(stream: Any) -> bytes:
    """Everything until the other side closes; a reset counts as its end."""
    got = b""
    try:
        while data := await stream.receive_some(65536):
            got += data
    except trio.BrokenResourceError:
        pass
    return got


async def read_until(stream: Any, mark: bytes) -> bytes:
    """Everything up to `mark` and what came with it."""
    got = b""
    while mark not in got:
        data = await stream.receive_some(65536)
        assert data, f"closed before the mark, after {got!r}"
        got += data
    return got


@asynccontextmanager
async def running(
    app: Any, listeners: list[Any] | None = None, *, lifespan: bool = False, **options: Any
) -> AsyncIterator[Running]:
    """A server for `app` on a free port of 127.0.0.1; stopped at the end, at once."""
    served = app if lifespan else _without_lifespan(app)
    server = Running(listeners if listeners is not None else await open_listeners("127.0.0.1", 0))
    options.setdefault("limits", ServerLimits(linger_seconds=0.5))
    options.setdefault("on_event", server.count)

    async def run(task_status: Any) -> None:
        with server.scope:
            await serve(served, server.listeners, stop=server.stop, task_status=task_status, **options)
        server.ended.set()

    async with trio.open_nursery() as tasks:
        await tasks.start(run)
        yield server
        server.scope.cancel()
        await server.ended.wait()


def _without_lifespan(app: Any) -> Any:
    async def served(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        await app(scope, receive, send)

    return served


def status_of(reply: bytes) -> int:
    """The status of the first response in `reply`; 0 when there is none."""
    return int(reply.split(b" ", 2)[1]) if reply.startswith(b"HTTP/1.1 ") else 0
