"""Several sites on one loopback port, told apart by the Host of a request, and counted from their side."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import trio

from sift_batch.fetch import FetchConfig

Page = bytes | Callable[[trio.SocketStream], Awaitable[None]]


def page(status: str = "200 OK", body: bytes = b"", **headers: str) -> bytes:
    """A whole answer; header names are written with _ for -."""
    named = {"content_type": "text/plain", "content_length": str(len(body))} | headers
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


async def silence(stream: trio.SocketStream) -> None:
    """Say nothing until the client leaves."""
    while await stream.receive_some():
        pass


class Sites:
    """What the sites have (by "host/path"), what they were asked for, and how much of it at once."""

    def __init__(self) -> None:
        self.port = 0
        self.pages: dict[str, Page] = {}
        self.asked: list[str] = []
        self.seconds = 0.0
        self.open_now = 0
        self.now: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()

    def url(self, place: str) -> str:
        """Return the URL of "host/path"."""
        host, _, path = place.partition("/")
        return f"http://{host}:{self.port}/{path}"

    def config(self, **settings) -> FetchConfig:
        """Return settings of a fetcher that finds the sites."""

        async def resolve(host: str) -> list[str]:
            await trio.lowlevel.checkpoint()
            return ["127.0.0.1"]

        return FetchConfig(**({"allow": ["127.0.0.0/8"], "ports": None, "resolve": resolve} | settings))

    async def handle(self, stream: trio.SocketStream) -> None:
        """Serve one connection."""
        self.open_now += 1
        try:
            async with stream:
                await self._answer(stream)
        except trio.BrokenResourceError:
            return
        finally:
            self.open_now -= 1

    async def _answer(self, stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await stream.receive_some()
            if not piece:
                return
            head += piece
        lines = head.decode().split("\r\n")
        host = next(line.split(" ")[1].split(":")[0] for line in lines if line.startswith("Host:"))
        place = host + lines[0].split(" ")[1]
        self.asked.append(place)
        for name in (host, "all"):
            self.now[name] += 1
            self.peak[name] = max(self.peak[name], self.now[name])
        try:
            await trio.sleep(self.seconds)
            found = self.pages.get(place, page("404 Not Found"))
            await (stream.send_all(found) if isinstance(found, bytes) else found(stream))
        finally:
            for name in (host, "all"):
                self.now[name] -= 1


@asynccontextmanager
async def open_sites() -> AsyncGenerator[Sites]:
    """Run the sites on 127.0.0.1 for the time of the block."""
    sites = Sites()
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, sites.handle, 0, host="127.0.0.1")
        listeners = await nursery.start(serve)
        sites.port = listeners[0].socket.getsockname()[1]
        yield sites
        nursery.cancel_scope.cancel()
