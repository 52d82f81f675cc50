"""Is a busy host kept busy, and never too busy? The gate and the workers together, against the ideal.

320 jobs of one target on eight hosts, 20 ms a fetch, at most 8 at once and 2 of one host: 0.8 s if no slot
is ever idle. On Trio's mock clock, where only the engine's own waits count, and over real sockets with a
raw h11 fetch that keeps its connections; results are stored durably. Time runs from the first submit until
all is stored, and beside it as the server sees it, which also checks the limits. A bare Trio loop with the
same fetch and two capacity limiters, which stores nothing, is shown too.
Then one host, six jobs and room for two, on the mock clock.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import measure
from counting_server import DELAY, HOSTS, PER_HOST, TOTAL, CountingServer
from measure import Number

TARGETS = 320
IDEAL = TARGETS * DELAY / TOTAL


class KeptConnections:
    """A raw HTTP/1.1 client: h11 over Trio's streams, connections kept for the next fetch of their host."""

    def __init__(self) -> None:
        self._idle: dict[str, list[tuple[Any, Any]]] = defaultdict(list)

    async def get(self, url: str) -> str:
        """Return the body of the page at `url`."""
        import h11
        import trio

        parts = urlsplit(url)
        idle = self._idle[parts.netloc]
        if idle:
            stream, protocol = idle.pop()
        else:
            stream = await trio.open_tcp_stream(parts.hostname or "", parts.port or 80)
            protocol = h11.Connection(h11.CLIENT)
        request = h11.Request(method="GET", target=parts.path, headers=[("host", parts.netloc)])
        await stream.send_all(protocol.send(request) + protocol.send(h11.EndOfMessage()))
        body = bytearray()
        while True:
            event = protocol.next_event()
            if event is h11.NEED_DATA:
                protocol.receive_data(await stream.receive_some(65_536))
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
        protocol.start_next_cycle()
        idle.append((stream, protocol))
        return body.decode()


async def drain(
    store: Any,
    fetch: Any,
    jobs: Sequence[Sequence[str]],
    workers: int,
    *,
    gated: bool = True,
    mode: str = "",
) -> float:
    """Submit all jobs at once, drain them through a gate; return the seconds on Trio's clock.

    With `gated=False` the fetch goes through a gate by itself. `mode` is every target's.
    """
    import trio

    import sift_batch

    config = sift_batch.Config(
        jobs_total=10**6, jobs_per_caller=10**6, workers=workers, workers_limit=workers
    )
    options = sift_batch.Options(mode=mode)
    if gated:
        fetch = sift_batch.Gate(total=TOTAL, per_host=PER_HOST).batch(fetch)
    async with sift_batch.open_runner(store, fetch, config) as runner:
        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            for urls in jobs:
                targets = [sift_batch.Target(url, options) for url in urls]
                nursery.start_soon(runner.submit, sift_batch.Caller("bench"), targets)
        await runner.drain()
        taken = trio.current_time() - began
        done = await runner.jobs(status=sift_batch.JobState.DONE, limit=len(jobs) + 1)
        assert len(done) == len(jobs)
        return taken


def on_mock_clock(jobs: Sequence[Sequence[str]], workers: int, seconds: float) -> float:
    """Return how long the jobs take on a clock on which only waiting takes time."""
    import trio
    import trio.testing

    import sift_batch

    async def fetch(_: sift_batch.Caller, __: sift_batch.Target) -> sift_batch.Result:
        await trio.sleep(seconds)
        return sift_batch.Result("x" * 1_000)

    async def main() -> float:
        async with sift_batch.open_store(":memory:") as store:
            return await drain(store, fetch, jobs, workers)

    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def engine(path: str, urls: Sequence[str]) -> float:
    import trio

    import sift_batch

    client = KeptConnections()

    async def fetch(_: sift_batch.Caller, target: sift_batch.Target) -> sift_batch.Result:
        return sift_batch.Result(await client.get(target.url))

    async def main() -> float:
        async with sift_batch.open_store(path) as store:
            return await drain(store, fetch, [[url] for url in urls], TARGETS)

    return trio.run(main)


def bare_loop(path: str, urls: Sequence[str]) -> float:
    import trio

    client = KeptConnections()

    async def main() -> float:
        everywhere = trio.CapacityLimiter(TOTAL)
        of_host = {host: trio.CapacityLimiter(PER_HOST) for host in HOSTS}

        async def fetch(url: str) -> None:
            async with of_host[urlsplit(url).hostname or ""], everywhere:
                await client.get(url)

        began = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for url in urls:
                nursery.start_soon(fetch, url)
        return time.perf_counter() - began

    return trio.run(main)


KINDS: dict[str, Callable[..., float]] = {"engine": engine, "bare_loop": bare_loop}


def _over_sockets(order: str) -> dict[str, list[float]]:
    """Return the seconds of each kind, round by round, and the engine's as the server saw them."""
    taken: dict[str, list[float]] = {"engine": [], "server": [], "bare_loop": []}
    with CountingServer() as server:
        urls = server.urls(TARGETS, order)
        for _ in measure.rounds(least=5, most=7, seconds=10):
            for kind in KINDS:
                with measure.folder() as where:
                    server.counts()
                    taken[kind].append(measure.in_child(__file__, kind, path=str(where / "jobs"), urls=urls))
                seen = server.counts()
                assert seen["requests"] == TARGETS, seen
                assert seen["peak"] <= TOTAL, seen
                assert seen["peak_of_a_host"] <= PER_HOST, seen
                if kind == "engine":
                    taken["server"].append(seen["span"])
    return {kind: [each / IDEAL for each in seconds] for kind, seconds in taken.items()}


def numbers() -> Iterator[Number]:
    unit = "x the ideal"
    for order in ("grouped", "mixed"):
        urls = [f"http://{host}.example/{page}" for page in range(40) for host in HOSTS]
        if order == "grouped":
            urls.sort()
        taken = on_mock_clock([[url] for url in urls], TARGETS, DELAY)
        name = f"320 jobs, 8 hosts, {order}"
        yield Number(name=f"{name}, mock clock", values=[taken / IDEAL], unit=unit, at_most=1.05)
        over = _over_sockets(order)
        yield Number(name=f"{name}, sockets", values=over["engine"], unit=unit, at_most=1.15)
        yield Number(name=f"{name}, first request to last answer", values=over["server"], unit=unit)
        yield Number(name=f"{name}, bare loop", values=over["bare_loop"], unit=unit)
    jobs = [[f"http://one.example/{job}/{page}" for page in range(20)] for job in range(6)]
    taken = on_mock_clock(jobs, len(jobs), 1.0)
    yield Number(
        name="one host, 6 jobs, room for 2", values=[taken / (6 * 20 / PER_HOST)], unit=unit, at_most=1.1
    )


if __name__ == "__main__":
    measure.run(numbers, KINDS)
