"""Who serves the demo's pages? A small HTTP server on this machine's own addresses.

Loopback only, GET only, one answer per connection; it is not a server for anything else. Next:
`demo_command`, which fetches from it.
"""

import math
from collections import Counter
from http import HTTPStatus
from typing import Final

import trio

from .._model.values import Target
from .demo_pages import PAGES, Page, wire_body

_ADDRESSES: Final = ("127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4")
_PATIENCE: Final = 3
_HEAD_LIMIT: Final = 16_384
_PIECES: Final = 8


class Site:
    """The site while it is served, by `hosts` hosts: `targets` are its pages, in the order of `PAGES`."""

    def __init__(self, hosts: list[str], port: int) -> None:
        self.port = port
        self.hosts = len(hosts)
        self._authorities = [f"{host}:{port}" for host in hosts]
        self._asked: Counter[str] = Counter()
        self._pages = {page.path: page for page in PAGES}
        self.targets = [
            Target(f"http://{self._authority(page.host)}{page.path}", page.options) for page in PAGES
        ]

    def _authority(self, index: int) -> str:
        return self._authorities[index % len(self._authorities)]

    async def answer(self, stream: trio.SocketStream) -> None:
        """Answer one connection. A peer that leaves early or talks nonsense is let go."""
        try:
            async with stream:
                with trio.move_on_after(30):
                    await self._answer(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return

    async def _answer(self, stream: trio.SocketStream) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = await stream.receive_some()
            if not piece or len(head) > _HEAD_LIMIT:
                return
            head += piece
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        page = self._pages.get(words[1]) if len(words) == 3 and words[0] == "GET" else None
        if page is None:
            await stream.send_all(_head(404, "text/plain", 0))
            return
        self._asked[page.path] += 1
        if self._asked[page.path] <= page.busy:
            await stream.send_all(_head(429, "text/plain", 0, f"Retry-After: {_PATIENCE}"))
            return
        await self._send(stream, page)

    async def _send(self, stream: trio.SocketStream, page: Page) -> None:
        body = wire_body(page)
        extra = ["Content-Encoding: gzip"] if page.packed else []
        extra += [f"Location: {page.location.format(host0=self._authority(0))}"] if page.location else []
        head = _head(page.status, page.kind, len(body), *extra)
        if not page.slowly:
            await trio.sleep(page.seconds)
            await stream.send_all(head + body)
            return
        await stream.send_all(head)
        size = math.ceil(len(body) / _PIECES)
        for at in range(0, len(body), size):
            await trio.sleep(page.seconds / _PIECES)
            await stream.send_all(body[at : at + size])


def _head(status: int, kind: str, length: int, *extra: str) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Length: {length}",
        "Connection: close",
    ]
    lines += [f"Content-Type: {kind}", *extra]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def open_site(port: int) -> tuple[Site, list[trio.SocketListener]]:
    """Bind the site's addresses, on `port` if that is free, else on another one.

    Each of four loopback addresses is a host of its own. Where a system has only one, as macOS does,
    that one is all hosts. Serve the listeners with `Site.answer`. Raises `OSError` when not even one
    can be bound.
    """
    try:
        first = await _bind(_ADDRESSES[0], port)
    except OSError:
        first = await _bind(_ADDRESSES[0], 0)
    port = int(first.socket.getsockname()[1])
    listeners = [first]
    try:
        for address in _ADDRESSES[1:]:
            listeners.append(await _bind(address, port))  # noqa: PERF401  # kept when a later one fails
    except OSError:
        for listener in listeners[1:]:
            await listener.aclose()
        del listeners[1:]
    return Site(list(_ADDRESSES[: len(listeners)]), port), listeners


async def _bind(address: str, port: int) -> trio.SocketListener:
    (listener,) = await trio.open_tcp_listeners(port, host=address)
    return listener
