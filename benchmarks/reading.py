"""What does it cost to read a page? Against the bare extractor, and against a client with it in threads.

The page is a typical article (`typical.py`). The floor is trafilatura alone, told to give Markdown with links
and tables, in the same process, page by page in turn. Three ways are measured against it: reading in process,
which is what a worker does; the round trip through the pool of worker processes, their starts amortised; and,
over loopback from a server in a process of its own, the whole pipeline as shipped against httpx2 and
trafilatura in eight threads. Without httpx2 the last is left out.
"""

import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import measure
import own_server
from measure import Number, ratios
from typical import told, typical_page

URL = "https://www.harbourpost.example/region/2026/ferry-timetable"
IN_PROCESS = 25
THROUGH_THE_POOL = 120
"""More than one worker process reads before another takes its place: starting it is in the time."""
OVER_LOOPBACK = 240
AT_ONCE = 8


def _extractor() -> Callable[[str], str | None]:
    import trafilatura

    def extract(source: str) -> str | None:
        return trafilatura.extract(
            source, url=URL, output_format="markdown", include_links=True, include_tables=True
        )

    return extract


def in_process() -> dict[str, float]:
    """Return the median seconds of the bare extractor and of this project's reading, page by page in turn."""
    from sift_batch import Options
    from sift_batch.fetch import _read
    from sift_batch.fetch._document import Document

    extract = _extractor()

    def ours(source: str) -> str:
        document = Document(body=[source.encode()], content_type="text/html; charset=utf-8", url=URL)
        return _read.read(document, Options(), result_max_bytes=2**20).content

    seconds: dict[str, list[float]] = {"bare": [], "ours": []}
    for number in range(IN_PROCESS + 3):
        page = typical_page(number)
        for name, read in (("bare", extract), ("ours", ours)):
            began = time.perf_counter()
            found = read(page)
            if number >= 3:  # the first ones import, and fill caches
                seconds[name].append(time.perf_counter() - began)
            assert found, name
            assert told(number) in found, name
    return {name: statistics.median(those) for name, those in seconds.items()}


def through_the_pool() -> dict[str, float]:
    """Return the seconds a page, bare and through one worker process, ten pages each in turn."""
    import trio

    from sift_batch import Options
    from sift_batch.fetch import FetchConfig
    from sift_batch.fetch._document import Document
    from sift_batch.fetch._pool import open_readers

    extract = _extractor()
    pages = [typical_page(number) for number in range(THROUGH_THE_POOL)]
    extract(pages[0])

    async def main() -> dict[str, float]:
        seconds = {"bare": 0.0, "ours": 0.0}
        async with open_readers(FetchConfig(extract_workers=1)) as readers:

            async def ours(source: str) -> None:
                document = Document(body=[source.encode()], content_type="text/html; charset=utf-8", url=URL)
                assert (await readers.read(document, Options())).content

            await ours(pages[0])
            for start in range(0, len(pages), 10):
                part = pages[start : start + 10]
                began = time.perf_counter()
                for page in part:
                    await ours(page)
                seconds["ours"] += time.perf_counter() - began
                began = time.perf_counter()
                for page in part:
                    extract(page)
                seconds["bare"] += time.perf_counter() - began
        return {name: total / len(pages) for name, total in seconds.items()}

    return trio.run(main)


def serve() -> None:
    """Be the server: print the port, answer each request with a page of its own until standard input ends."""
    import asyncio

    answers = []
    for number in range(OVER_LOOPBACK):
        body = typical_page(number).encode()
        head = f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}"
        answers.append(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                number = int(request.split(b" ", 2)[1].rpartition(b"/")[2])
                writer.write(answers[number % len(answers)])
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            writer.close()

    own_server.serve(answer)


def pipeline(address: str) -> dict[str, float]:
    """Fetch all pages through `open_fetcher`, as many at once as the gate of eight lets through."""
    import trio

    import sift_batch
    from sift_batch.fetch import FetchConfig, open_fetcher

    async def main() -> float:
        config = FetchConfig(allow=("127.0.0.0/8",), ports=None)
        gate = sift_batch.Gate(total=AT_ONCE, per_host=AT_ONCE)
        async with open_fetcher(config, gate=gate) as fetch:

            async def one(number: int) -> None:
                target = sift_batch.Target(f"{address}/{number}")
                result = await fetch.interactive(sift_batch.Caller("bench"), target, patience=float("inf"))
                assert told(number) in result.content

            async with trio.open_nursery() as nursery:  # as many workers as there are, each warm
                for number in range(2):
                    nursery.start_soon(one, number)
            began = time.perf_counter()
            async with trio.open_nursery() as nursery:
                for number in range(OVER_LOOPBACK):
                    nursery.start_soon(one, number)
            return time.perf_counter() - began

    return _used(trio.run(main))


def threads(address: str) -> dict[str, float]:
    """Fetch all pages with one httpx2 client in eight threads, each of which extracts what it fetched."""
    import httpx2

    extract = _extractor()
    with httpx2.Client(trust_env=False) as client, ThreadPoolExecutor(AT_ONCE) as pool:

        def one(number: int) -> None:
            found = extract(client.get(f"{address}/{number}").raise_for_status().text)
            assert found is not None
            assert told(number) in found

        list(pool.map(one, range(2)))
        began = time.perf_counter()
        list(pool.map(one, range(OVER_LOOPBACK)))
        seconds = time.perf_counter() - began
    return _used(seconds)


def _used(seconds: float) -> dict[str, float]:
    """Return the pages per second, and the CPU a page of this process and of those it started, all told."""
    cpu = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        cpu += usage.ru_utime + usage.ru_stime
    return {"rate": OVER_LOOPBACK / seconds, "cpu": cpu / OVER_LOOPBACK}


def numbers() -> Iterator[Number]:
    alone = [measure.in_child(__file__, "in_process") for _ in measure.rounds(least=3, most=7, seconds=20)]
    yield Number(
        name="reading a typical article, in process",
        values=[one["ours"] / one["bare"] for one in alone],
        unit="x the bare extractor's time",
        at_most=1.3,
    )
    yield Number(name="reading it itself", values=[1e3 * one["ours"] for one in alone], unit="ms")
    pool = [
        measure.in_child(__file__, "through_the_pool") for _ in measure.rounds(least=3, most=5, seconds=30)
    ]
    yield Number(
        name="reading it in a worker process, its starts amortised",
        values=[one["ours"] / one["bare"] for one in pool],
        unit="x the bare extractor's time",
        at_most=1.3,
    )
    if find_spec("httpx2") is None:
        print("left out, httpx2 is not installed: the pipeline over loopback", file=sys.stderr)
        return
    yield from _over_loopback()


def _over_loopback() -> Iterator[Number]:
    pairs: list[tuple[Any, Any]] = []
    with own_server.in_a_process(__file__) as address:
        for number in measure.rounds(least=3, most=5, seconds=45):
            kinds = ("pipeline", "threads") if number % 2 else ("threads", "pipeline")
            found = {kind: measure.in_child(__file__, kind, address=address) for kind in kinds}
            pairs.append((found["pipeline"], found["threads"]))
    yield Number(
        name=f"{OVER_LOOPBACK} pages over loopback, {AT_ONCE} at once",
        values=ratios((ours["rate"], theirs["rate"]) for ours, theirs in pairs),
        unit="x the pages/s of httpx2 and trafilatura in threads",
    )
    yield Number(name="the pipeline itself", values=[ours["rate"] for ours, _ in pairs], unit="pages/s")
    yield Number(
        name="CPU a page over loopback, workers and starts with it",
        values=ratios((ours["cpu"], theirs["cpu"]) for ours, theirs in pairs),
        unit="x that of httpx2 and trafilatura in threads",
    )
    yield Number(name="its CPU itself", values=[1e3 * ours["cpu"] for ours, _ in pairs], unit="ms")


KINDS = {
    "in_process": in_process,
    "through_the_pool": through_the_pool,
    "serve": serve,
    "pipeline": pipeline,
    "threads": threads,
}

if __name__ == "__main__":
    measure.run(numbers, KINDS)
