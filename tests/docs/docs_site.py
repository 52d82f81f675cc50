"""The site of docs/fetching.md: the files of docs/pages on loopback, under the names that the page shows.

It serves what a reader can look at, a few answers that are no pages, and an archive with one copy. The
names `docs.example.org` and `archive.example.org` resolve to this machine, and port 80 is the listener's,
so that what the page shows holds no port that changes from run to run.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from sift_batch.fetch import FetchConfig
from sift_batch.fetch._backend import GuardedBackend

PAGES = Path(__file__).parents[2] / "docs" / "pages"
SITE = "http://docs.example.org"
ARCHIVE = "http://archive.example.org/web/{url}"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".pdf": "application/pdf",
    ".json": "application/json",
    ".jsonl": "application/x-ndjson",
    ".rss": "application/rss+xml",
    ".csv": "text/csv",
    ".txt": "text/plain",
    ".sh": "text/x-sh",
    ".png": "image/png",
}
_COPY = b"<title>Prices of 2024</title><h1>Prices</h1><p>The gauge costs 480 crowns, the lid 35.</p>"


def _answer(status: str, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-').title()}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


_PARK = b"User-agent: *\nDisallow: /shop\nCrawl-delay: 2\n"
_ANSWERS = {
    "docs.example.org/tg2": _answer("301 Moved", location="/gauge.html"),
    "docs.example.org/again": _answer("302 Found", location="/again"),
    "docs.example.org/loading.html": _answer(
        "200 OK", b"<title>Loading</title><script>run()</script>", content_type="text/html"
    ),
    "docs.example.org/bridge.html": _answer(
        "200 OK",
        "<title>Br\xfccke</title><p>Der Pegel an der Br\xfccke</p>".encode("latin-1"),
        content_type="text/html; charset=latin-1",
    ),
    "docs.example.org/moved.html": _answer(
        "200 OK",
        b"<meta http-equiv=refresh content='0; url=/gauge.html'><p>The page about the gauge has moved.</p>",
        content_type="text/html",
        refresh="0; url=/gauge.html",
    ),
    "docs.example.org/fake.pdf": _answer("200 OK", b"no PDF", content_type="application/pdf"),
    "docs.example.org/packed.html": _answer(
        "200 OK", b"\x0b\x02\x80", content_type="text/html", content_encoding="br"
    ),
    "park.example.org/robots.txt": _answer("200 OK", _PARK),
    "busy.example.org/": _answer("429 Too Many Requests", retry_after="120"),
    "archive.example.org/web/http://docs.example.org/prices.html": _answer(
        "200 OK", _COPY, content_type="text/html", memento_datetime="Fri, 05 Jul 2024 12:30:00 GMT"
    ),
}
_ADDRESSES = {"nowhere.example.org": [], "many.example.org": ["127.0.0.1"] * 65}


def _served(host: str, path: str) -> bytes:
    known = _ANSWERS.get(host + path)
    if known is not None:
        return known
    file = PAGES / path.removeprefix("/")
    if host != "docs.example.org" or file.parent != PAGES or file.suffix not in _TYPES or not file.is_file():
        return _answer("404 Not Found")
    # Line ends as they are in the repository, whatever the checkout made of them.
    body = file.read_bytes() if file.suffix in (".png", ".pdf") else file.read_text("utf-8").encode()
    told = {"etag": f'"{file.stem}-1"', "last_modified": "Sat, 14 Mar 2026 09:00:00 GMT"}
    return _answer("200 OK", body, content_type=_TYPES[file.suffix], **told)


async def _serve(asked: list[str], stream: trio.SocketStream) -> None:
    async with stream:
        head = b""
        while b"\r\n\r\n" not in head:
            head += await stream.receive_some(4096)
        lines = head.decode("ascii").split("\r\n")
        host = next(line[6:] for line in lines if line.startswith("Host: "))
        asked.append(host + lines[0].split(" ")[1])
        await stream.send_all(_served(host, lines[0].split(" ")[1]))


async def _resolve(host: str) -> list[str]:
    return _ADDRESSES.get(host, ["127.0.0.1"])


def config(**settings: object) -> FetchConfig:
    """Settings with which the site can be fetched."""
    return FetchConfig(**{"allow": ["127.0.0.0/8"], "resolve": _resolve, "archive": ARCHIVE, **settings})


@asynccontextmanager
async def open_site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[list[str]]:
    """Serve the site. Gives what it was asked for, as host and path."""
    asked: list[str] = []
    connect = GuardedBackend._connect
    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(
            partial(trio.serve_tcp, partial(_serve, asked), 0, host="127.0.0.1")
        )
        port = listener.socket.getsockname()[1]
        monkeypatch.setattr(
            GuardedBackend, "_connect", lambda self, address, _port: connect(self, address, port)
        )
        try:
            yield asked
        finally:
            monkeypatch.setattr(GuardedBackend, "_connect", connect)
            nursery.cancel_scope.cancel()
