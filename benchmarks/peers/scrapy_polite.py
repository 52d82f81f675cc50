"""Scrapy with its own limits: 8 requests at once, 2 of a domain."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from polite import PAGE, PER_HOST, TOTAL, FetchAll, run

_SETTINGS = {
    "CONCURRENT_REQUESTS": TOTAL,
    "CONCURRENT_REQUESTS_PER_DOMAIN": PER_HOST,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    "LOG_ENABLED": False,
    "LOG_INSTALL_ROOT_HANDLER": False,
    "TELNETCONSOLE_ENABLED": False,
}


def prepare() -> FetchAll:
    from scrapy import Request, Spider
    from scrapy.crawler import CrawlerProcess
    from scrapy.http import Response

    def fetch_all(urls: Sequence[str]) -> int:
        whole = 0

        class Pages(Spider):
            name = "pages"

            async def start(self) -> AsyncIterator[Any]:
                for url in urls:
                    yield Request(url, dont_filter=True)

            def parse(self, response: Response) -> None:
                nonlocal whole
                whole += len(response.body) > PAGE

        process = CrawlerProcess(_SETTINGS)
        process.crawl(Pages)
        process.start()
        return whole

    return fetch_all


if __name__ == "__main__":
    run(prepare)
