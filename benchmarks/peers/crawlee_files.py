"""Crawlee on its file system storage: a request for each target, a handler that fetches nothing.

The next request of a batch is made by the handler of the one before.
"""

from typing import Any

from work import AT_ONCE, BATCH, Peer, Setting, Work, run

PEER = Peer(
    name="Crawlee, file system",
    packages=("crawlee[beautifulsoup,httpx]==1.11.0",),
    settings=(
        Setting(
            "as shipped",
            durable=False,
            how="a file for each result and request, never synced",
            workers=AT_ONCE,
        ),
    ),
    lacks="a crawler: no jobs, no cancel of a batch, nothing is ever synced",
    most=320,
)


def drain(work: Work) -> dict[int, str]:
    import asyncio
    import logging

    from crawlee import ConcurrencySettings, service_locator
    from crawlee.configuration import Configuration
    from crawlee.crawlers import BasicCrawler, BasicCrawlingContext
    from crawlee.storage_clients import FileSystemStorageClient

    logging.disable(logging.WARNING)

    async def main() -> dict[int, str]:
        service_locator.set_configuration(Configuration(storage_dir=str(work.folder / "storage")))
        service_locator.set_storage_client(FileSystemStorageClient())
        together = ConcurrencySettings(
            min_concurrency=work.workers, desired_concurrency=work.workers, max_concurrency=work.workers
        )
        crawler: Any = BasicCrawler(concurrency_settings=together, configure_logging=False)

        @crawler.router.default_handler
        async def handle(context: BasicCrawlingContext) -> None:
            number = work.number(context.request.url)
            await context.push_data({"number": number, "content": work.fetch(number)})
            following = number + 1
            if following % BATCH and following < work.targets:
                await context.add_requests([work.url(following)])

        work.begin()
        await crawler.run([work.url(batch[0]) for batch in work.batches])
        work.finished()
        dataset = await crawler.get_dataset()
        await work.time_look_async(lambda: dataset.get_data(limit=BATCH))
        rows = (await dataset.get_data()).items
        return {row["number"]: row["content"] for row in rows}

    return asyncio.run(main())


if __name__ == "__main__":
    run(drain)
