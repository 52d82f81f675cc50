"""What a switch of the hostile server is made of. See `hostile`."""

import socket
import struct
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import trio

Act = Callable[["Talk"], Awaitable[None]]


@dataclass(frozen=True)
class Switch:
    """One way to misbehave. `code`: what one exchange ends in; `fetch`: a whole fetch, if not the same.

    `slow` marks those that end only by a limit in time.
    """

    act: Act
    code: str = ""
    fetch: str | None = None
    kind: str = ""
    slow: bool = False


class Talk:
    """One connection on the server's side, with full control of the bytes."""

    def __init__(self, stream: Any, server: Any) -> None:
        self.stream = stream
        self.server = server
        self.target = ""

    @property
    def query(self) -> str:
        """What follows the first question mark."""
        return self.target.partition("?")[2]

    @property
    def authority(self) -> str:
        """Host and port of the server."""
        return f"127.0.0.1:{self.server.port}"

    async def read_head(self) -> bytes:
        """Read one request; "" if there is none."""
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await self.stream.receive_some()
            if not piece:
                return b""
            head += piece
        self.target = head.split(b" ")[1].decode()
        return head

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self.stream.send_all(data)

    async def drip(self, data: Iterable[bytes] | bytes, every: float | None = None) -> None:
        """Send pieces (single bytes of `bytes`) with the server's pause after each."""
        pieces = (bytes([byte]) for byte in data) if isinstance(data, bytes) else data
        for piece in pieces:
            await self.send(piece)
            await trio.sleep(self.server.pause if every is None else every)

    async def flood(self, pieces: Iterable[bytes] | AsyncIterable[bytes]) -> None:
        """Send pieces without a pause, until the client has had enough."""
        if isinstance(pieces, AsyncIterable):
            async for piece in pieces:
                await self.send(piece)
        else:
            for piece in pieces:
                await self.send(piece)

    async def silence(self) -> None:
        """Keep the connection open and say nothing until the client leaves."""
        try:
            while await self.stream.receive_some():
                pass
        except trio.BrokenResourceError:
            return

    def reset(self) -> None:
        """End the connection with a reset instead of a farewell."""
        stream = self.stream
        while not isinstance(stream, trio.SocketStream):
            stream = stream.transport_stream
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.socket.close()


def says(data: bytes, *, hold: bool = False) -> Act:
    """Return an act that sends `data` and then closes, or with `hold` keeps the connection open."""

    async def act(talk: Talk) -> None:
        await talk.send(data)
        if hold:
            await talk.silence()

    return act


def answer(body: bytes = b"", *headers: str, status: str = "200 OK", length: str | None = "") -> bytes:
    """Return a whole answer. `length` is the Content-Length: the right one for "", none for None."""
    lines = [f"HTTP/1.1 {status}", *headers]
    if length is not None:
        lines.append(f"Content-Length: {length or len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
