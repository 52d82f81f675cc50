"""Where does a fetch's time go? The parts of `politeness.py`'s rows, each measured by itself.

CPU of the application for each fetch of a page of 10 KB from the counting server, eight at once, a new
connection each: the least that Trio and h11 can do, the HTTP library, what the guard and the caps add, then
the gate, the options and the facts (with workers that answer at once), then real workers. And the CPU of the
workers: a start, a page given as it was served, a page read, the bare extractor on the same page. The engine
and its store are in no part: `cost_map.py` has those.
"""

import resource
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import measure
from counting_server import PAGE, TOTAL, CountingServer
from measure import Number

FETCHES = 400
_FIRST = 16
_NETWORKS = ["127.0.0.0/8"]

Fetch = Callable[[str], Awaitable[object]]


async def _each(urls: Sequence[str], fetch: Fetch) -> float:
    """Fetch all URLs, eight at once; return the microseconds of CPU for each of them."""
    import trio

    async def some(part: Sequence[str]) -> None:
        for url in part:
            await fetch(url)

    await some(urls[:_FIRST])  # the first ones import
    began = time.process_time()
    async with trio.open_nursery() as nursery:
        for number in range(TOTAL):
            nursery.start_soon(some, urls[number::TOTAL])
    return 1e6 * (time.process_time() - began) / len(urls)


def bare_h11(urls: Sequence[str]) -> float:
    """h11 over Trio's streams."""
    import h11
    import trio

    async def fetch(url: str) -> None:
        parts = urlsplit(url)
        protocol = h11.Connection(h11.CLIENT)
        request = h11.Request(method="GET", target=parts.path, headers=[("host", parts.netloc)])
        async with await trio.open_tcp_stream(parts.hostname or "", parts.port or 80) as stream:
            await stream.send_all(protocol.send(request) + protocol.send(h11.EndOfMessage()))
            while not isinstance(event := protocol.next_event(), h11.EndOfMessage):
                if event is h11.NEED_DATA:
                    protocol.receive_data(await stream.receive_some(65_536))

    return trio.run(_each, urls, fetch)


def library(urls: Sequence[str]) -> float:
    """httpcore2, a connection for each fetch."""
    import httpcore2
    import trio

    async def fetch(url: str) -> None:
        address = httpcore2.URL(url)
        async with httpcore2.AsyncHTTPConnection(address.origin) as connection:
            await connection.request("GET", address)

    return trio.run(_each, urls, fetch)


def library_pool(urls: Sequence[str]) -> float:
    """httpcore2, a pool for each fetch."""
    import httpcore2
    import trio

    async def fetch(url: str) -> None:
        async with httpcore2.AsyncConnectionPool(max_connections=1, max_keepalive_connections=0) as pool:
            await pool.request("GET", url)

    return trio.run(_each, urls, fetch)


def client(urls: Sequence[str]) -> float:
    """The pipeline's client: the library behind the guard, with every cap."""
    import trio

    from sift_batch.fetch import FetchConfig
    from sift_batch.fetch._client import Client
    from sift_batch.fetch._guard import Guard

    async def main() -> float:
        config = FetchConfig(allow=_NETWORKS, ports=None)
        guard = Guard(config)
        one = Client(config, guard)
        return await _each(urls, lambda url: one.get(guard.parse(url)))

    return trio.run(main)


async def _fetched(urls: Sequence[str]) -> float:
    import sift_batch
    from sift_batch.fetch import FetchConfig, open_fetcher

    config = FetchConfig(allow=_NETWORKS, ports=None)
    gate = sift_batch.Gate(total=TOTAL, per_host=TOTAL)
    async with open_fetcher(config, gate=gate) as fetch:

        async def one(url: str) -> None:
            target = sift_batch.Target(url, sift_batch.Options(mode="raw"))
            await fetch.interactive(sift_batch.Caller("bench"), target, patience=float("inf"))

        return await _each(urls, one)


def unread(urls: Sequence[str]) -> float:
    """The pipeline, with workers that answer at once."""
    import trio

    from sift_batch.fetch._document import Reading
    from sift_batch.fetch._pool import Readers

    async def warm(_: Readers) -> None:
        await trio.lowlevel.checkpoint()

    async def read(_: Readers, *args: object, **kwargs: object) -> Reading:
        await trio.lowlevel.checkpoint()
        return Reading("x" * len(PAGE), {"content_type": "text/html", "charset": "utf-8"})

    Readers.warm = warm  # type: ignore[method-assign,assignment]
    Readers.read = read  # type: ignore[method-assign,assignment]
    return trio.run(_fetched, urls)


def pipeline(urls: Sequence[str]) -> float:
    """The pipeline, mode raw."""
    import trio

    return trio.run(_fetched, urls)


def workers(mode: str, pages: int) -> float:
    """Return the microseconds of CPU of a worker that starts and then gives one page, so many times."""
    import trio

    from sift_batch import Options
    from sift_batch.fetch import FetchConfig
    from sift_batch.fetch._document import Document
    from sift_batch.fetch._pool import open_readers

    async def main() -> None:
        document = Document(body=[PAGE], content_type="text/html", url="http://host.example/")
        async with open_readers(FetchConfig(extract_workers=1)) as readers:
            for _ in range(pages):
                await readers.read(document, Options(mode=mode))

    trio.run(main)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1e6 * (used.ru_utime + used.ru_stime)


def extractor(pages: int) -> float:
    """Return the microseconds of CPU that trafilatura alone takes for the page."""
    import trafilatura

    source = PAGE.decode()
    for number in range(pages + 1):
        if number == 1:  # the first one imports
            began = time.process_time()
        trafilatura.extract(source, output_format="markdown", include_links=True, include_tables=True)
    return 1e6 * (time.process_time() - began) / pages


KINDS: dict[str, Callable[..., float]] = {
    "bare_h11": bare_h11,
    "library": library,
    "library_pool": library_pool,
    "client": client,
    "unread": unread,
    "pipeline": pipeline,
    "workers": workers,
    "extractor": extractor,
}
_PARTS = {
    "bare_h11": "h11 over Trio",
    "library": "httpcore2, a connection each",
    "library_pool": "httpcore2, a pool each",
    "client": "the client: guard and caps",
    "unread": "the pipeline, workers that answer at once",
    "pipeline": "the pipeline, mode raw",
}


def _round(urls: Sequence[str]) -> dict[str, float]:
    def of(kind: str, **arguments: Any) -> float:
        return float(measure.in_child(__file__, kind, **arguments))

    found = {kind: of(kind, urls=urls) for kind in _PARTS}
    once, often = (of("workers", mode="raw", pages=pages) for pages in (1, 81))
    read_once, read_often = (of("workers", mode="", pages=pages) for pages in (1, 41))
    found["start"] = once
    found["raw"] = (often - once) / 80
    found["read_first"] = read_once - once
    found["read"] = (read_often - read_once) / 40
    found["extractor"] = of("extractor", pages=20)
    return found


def numbers() -> Iterator[Number]:
    with CountingServer() as server:
        urls = server.urls(FETCHES, "mixed")
        rounds = [_round(urls) for _ in measure.rounds(least=3, most=5, seconds=60)]
    for kind, name in _PARTS.items():
        yield Number(name=f"a fetch: {name}", values=[one[kind] for one in rounds], unit="us of CPU")
    for kind, name in {
        "start": "a worker: its start",
        "raw": "a worker: a page of 10 KB, mode raw",
        "read_first": "a worker: the first page that it reads",
        "read": "a worker: a page of 10 KB in 365 paragraphs, read",
        "extractor": "the bare extractor: the same page",
    }.items():
        yield Number(name=name, values=[one[kind] / 1e3 for one in rounds], unit="ms of CPU")


if __name__ == "__main__":
    measure.run(numbers, KINDS)
