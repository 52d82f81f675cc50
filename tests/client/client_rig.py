"""Little servers that say exactly what they are told to, and a transport without a network."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import trio

from sift_batch._client import Client, open_client

KEY = "siftb_" + "k" * 40

Talk = Callable[[trio.SocketStream], Awaitable[object]]


class Server:
    """A server on loopback. `asked` has the heads of all requests, `left` is set when a client went."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[bytes] = []
        self.left = trio.Event()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"


@asynccontextmanager
async def serving(talk: Talk | bytes) -> AsyncIterator[Server]:
    """Read a request's head, then talk, or send bytes and close; once for each connection."""
    servers: list[Server] = []

    async def handle(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = await stream.receive_some()
                    if not piece:
                        return
                    head += piece
                servers[0].asked.append(head)
                if isinstance(talk, bytes):
                    await stream.send_all(talk)
                else:
                    await talk(stream)
            except trio.BrokenResourceError:
                servers[0].left.set()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        servers.append(Server(listener.socket.getsockname()[1]))
        nursery.start_soon(trio.serve_listeners, handle, [listener])
        yield servers[0]
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def client_of(server: Server) -> AsyncIterator[Client]:
    """A client of it."""
    async with open_client(server.url, KEY) as client:
        yield client


def answer(
    body: bytes = b"{}", *headers: str, status: str = "200 OK", kind: str = "application/json"
) -> bytes:
    """A whole answer."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Content-Type: {kind}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*pieces: bytes, kind: str = "application/jsonl", whole: bool = True) -> bytes:
    """An answer in chunks, with its last one or without."""
    head = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: {kind}\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + (b"0\r\n\r\n" if whole else b"")


class MemoryTransport:
    """Answers each request with the next of some scripts: status, headers, and pieces or waits or errors."""

    def __init__(self, *scripts: "Script") -> None:
        self.scripts = list(scripts)
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    @asynccontextmanager
    async def request(
        self, method: str, path: str, headers: Any, body: bytes, *, seconds: float
    ) -> AsyncIterator[Any]:
        """Answer from the script."""
        named = {name.decode(): value.decode() for name, value in headers}
        self.asked.append((method, path, named))
        script = self.scripts.pop(0) if len(self.scripts) > 1 else self.scripts[0]
        if isinstance(script, Exception):
            raise script.with_traceback(None)
        status, kind, steps = script
        await trio.lowlevel.checkpoint()
        yield status, [(b"content-type", kind.encode())], Pieces(steps)


Script = tuple[int, str, Sequence[bytes | float | Exception]] | Exception


class Pieces:
    """Pieces of a body: bytes, seconds to wait before the next one, or an error."""

    def __init__(self, steps: Iterable[bytes | float | Exception]) -> None:
        self._steps = iter(steps)

    def __aiter__(self) -> "Pieces":
        return self

    async def __anext__(self) -> bytes:
        for step in self._steps:
            if isinstance(step, Exception):
                raise step.with_traceback(None)
            if isinstance(step, bytes):
                await trio.lowlevel.checkpoint()
                return step
            await trio.sleep(step)
        raise StopAsyncIteration
