"""Scrapy with a JOBDIR: a request for each target, answered by a download handler that does nothing.

The next request of a batch is made by the callback of the one before. Scrapy has no status and no
results: they go into a JSON lines feed as shipped, or into a SQLite pipeline of ours, which syncs.
"""

import json
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any

from work import AT_ONCE, BATCH, Peer, Setting, Work, run

PEER = Peer(
    name="Scrapy, JOBDIR",
    packages=("scrapy==2.19.0",),
    settings=(
        Setting("feed of JSON lines", durable=False, how="nothing is ever synced", workers=AT_ONCE),
        Setting("SQLite pipeline, FULL", durable=True, how="a pipeline of ours, WAL", workers=AT_ONCE),
    ),
    lacks="a crawler: no jobs, no status, no cancel of a batch; a process that dies fetches part of it again",
)


def drain(work: Work) -> dict[int, str]:
    from scrapy import Request, Spider
    from scrapy.core.downloader.handlers.base import BaseDownloadHandler
    from scrapy.crawler import CrawlerProcess
    from scrapy.http import Response, TextResponse

    class NoFetch(BaseDownloadHandler):
        lazy = False

        async def download_request(self, request: Request) -> Response:
            body = work.fetch(work.number(request.url)).encode()
            return TextResponse(request.url, body=body, request=request)

    class Batches(Spider):
        name = "batches"

        async def start(self) -> AsyncIterator[Any]:
            for batch in work.batches:
                yield Request(work.url(batch[0]), dont_filter=True)

        def parse(self, response: Response) -> Iterator[Any]:
            assert isinstance(response, TextResponse)
            number = work.number(response.url)
            yield {"number": number, "content": response.text}
            following = number + 1
            if following % BATCH and following < work.targets:
                yield Request(work.url(following), dont_filter=True)

    class Rows:
        def __init__(self) -> None:
            self._connection = sqlite3.connect(work.folder / "results.db", isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.execute("CREATE TABLE result(number INTEGER PRIMARY KEY, content TEXT)")

        def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
            self._connection.execute("INSERT INTO result VALUES (:number, :content)", item)
            return item

    feed = work.folder / "results.jsonl"
    settings: dict[str, Any] = {
        "JOBDIR": str(work.folder / "job"),
        "DOWNLOAD_HANDLERS": {"http": NoFetch},
        "CONCURRENT_REQUESTS": work.workers,
        "CONCURRENT_REQUESTS_PER_DOMAIN": work.workers,
        "LOG_ENABLED": False,
        "LOG_INSTALL_ROOT_HANDLER": False,
        "TELNETCONSOLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "DOWNLOAD_DELAY": 0,
    }
    if work.setting.startswith("SQLite"):
        settings["ITEM_PIPELINES"] = {Rows: 100}
    else:
        settings["FEEDS"] = {str(feed): {"format": "jsonlines"}}
    process = CrawlerProcess(settings)
    process.crawl(Batches)
    work.begin()
    process.start()
    work.finished()
    if work.setting.startswith("SQLite"):
        connection = sqlite3.connect(work.folder / "results.db")
        return dict(connection.execute("SELECT number, content FROM result").fetchall())
    rows = [json.loads(line) for line in feed.read_text().splitlines()]
    return {row["number"]: row["content"] for row in rows}


if __name__ == "__main__":
    run(drain)
