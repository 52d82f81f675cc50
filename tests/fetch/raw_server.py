"""A raw HTTP server on loopback that says exactly what a test tells it to."""

from collections.abc import Awaitable, Callable

import trio

Answer = bytes | Callable[[trio.SocketStream], Awaitable[object]]


def answer(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    """A whole answer; header names are written with _ for -."""
    names = {"content_type": "text/plain", "content_length": str(len(body)), "connection": "close"} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in names.items() if value is not None]
    return (
        f"HTTP/1.1 {status}\r\n".encode() + "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body
    )


class Server:
    """Answers each path with what `answers` has for it, and remembers the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.requests: list[bytes] = []
        self.open_now = 0
        self.authority = ""

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        """Return the URL of a path on this server."""
        return f"http://{host}:{self.authority}{path}"

    async def handle(self, stream: trio.SocketStream) -> None:
        """Answer one connection."""
        self.open_now += 1
        try:
            async with stream:
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = await stream.receive_some()
                    if not piece:
                        return
                    head += piece
                self.requests.append(head)
                reply = self.answers[head.split(b" ")[1].decode()]
                await (stream.send_all(reply) if isinstance(reply, bytes) else reply(stream))
        except trio.BrokenResourceError:
            return
        finally:
            self.open_now -= 1
