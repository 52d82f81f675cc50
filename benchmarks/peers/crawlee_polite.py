"""Crawlee: 8 requests at once; it has no setting for how many of a host."""

from collections.abc import Sequence
from typing import Any

from polite import PAGE, TOTAL, FetchAll, run


def prepare() -> FetchAll:
    import asyncio
    import logging

    from crawlee import ConcurrencySettings, service_locator
    from crawlee.crawlers import HttpCrawler, HttpCrawlingContext
    from crawlee.storage_clients import MemoryStorageClient

    logging.disable(logging.WARNING)

    async def fetch_all(urls: Sequence[str]) -> int:
        service_locator.set_storage_client(MemoryStorageClient())
        together = ConcurrencySettings(
            min_concurrency=TOTAL, desired_concurrency=TOTAL, max_concurrency=TOTAL
        )
        crawler: Any = HttpCrawler(concurrency_settings=together, configure_logging=False)
        whole = 0

        @crawler.router.default_handler
        async def handle(context: HttpCrawlingContext) -> None:
            nonlocal whole
            whole += len(await context.http_response.read()) > PAGE

        await crawler.run(list(urls))
        return whole

    return lambda urls: asyncio.run(fetch_all(urls))


if __name__ == "__main__":
    run(prepare)
