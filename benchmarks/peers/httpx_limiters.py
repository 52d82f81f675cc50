"""httpx on Trio with two capacity limiters by hand: what somebody writes who needs just this once."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from polite import CLOCK, PAGE, PER_HOST, TOTAL, FetchAll, run


def prepare() -> FetchAll:
    import httpx
    import trio

    async def fetch_politely(urls: Sequence[str]) -> int:
        everywhere = trio.CapacityLimiter(TOTAL)
        of_host = {urlsplit(url).hostname: trio.CapacityLimiter(PER_HOST) for url in urls}
        whole = 0

        async def fetch(client: httpx.AsyncClient, url: str) -> None:
            nonlocal whole
            async with of_host[urlsplit(url).hostname], everywhere:
                reply = await client.get(url)
            whole += len(reply.text) > PAGE

        # No page is behind TLS: reading the system's certificates would be CPU for nothing.
        async with httpx.AsyncClient(trust_env=False, verify=False) as client:
            CLOCK.begin()
            async with trio.open_nursery() as nursery:
                for url in urls:
                    nursery.start_soon(fetch, client, url)
            CLOCK.end()
        return whole

    return lambda urls: trio.run(fetch_politely, urls)


if __name__ == "__main__":
    run(prepare)
