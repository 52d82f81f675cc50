"""How many fetches come in at once? A server that answers late and counts, for all and for each host.

It listens on 127.0.0.1 to 127.0.0.8, answers each GET after 20 ms with a page of 10 KB, and keeps the
connection open. A request counts from when it has been read to when its answer is written. The counts are
its own, so no client can flatter itself. `with CountingServer() as server` runs it in another process.
"""

import asyncio
import json
import subprocess
import sys
import urllib.request
from types import TracebackType
from typing import Any

DELAY = 0.020
TOTAL, PER_HOST = 8, 2
"""How many requests may be answered at the same time, in all and of one host."""
HOSTS = [f"127.0.0.{number}" for number in range(1, 9)]
PAGE = b"<html><body>" + b"<p>a paragraph of a page</p>" * 365 + b"</body></html>"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n"


class Counts:
    """What the server has seen since it was last asked."""

    def __init__(self) -> None:
        self.now: dict[str, int] = {}
        self.requests = self.peak = self.peak_of_a_host = 0
        self.over_total = self.over_host = self.connections = 0
        self.first = self.last = 0.0

    def begin(self, host: str, at: float) -> None:
        """Count a request that has been read."""
        self.first = self.first or at
        self.now[host] = self.now.get(host, 0) + 1
        in_all = sum(self.now.values())
        self.peak_of_a_host = max(self.peak_of_a_host, self.now[host])
        self.peak = max(self.peak, in_all)
        self.over_total += in_all > TOTAL
        self.over_host += self.now[host] > PER_HOST

    def end(self, host: str, at: float) -> None:
        """Count a request whose answer is written."""
        self.now[host] -= 1
        self.requests += 1
        self.last = at

    def report(self) -> dict[str, Any]:
        """Return what was counted; `span` is from the first request to the last answer, in seconds.

        `over_total` and `over_host` are requests that came in when there was no room for them.
        """
        return {
            "requests": self.requests,
            "peak": self.peak,
            "peak_of_a_host": self.peak_of_a_host,
            "over_total": self.over_total,
            "over_host": self.over_host,
            "connections": self.connections,
            "span": self.last - self.first,
        }


class Connection(asyncio.Protocol):
    """One connection; its requests are answered one after another."""

    counts = Counts()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # noqa: D102 - asyncio's
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host = transport.get_extra_info("sockname")[0]
        self._loop = asyncio.get_running_loop()
        self._read = b""
        self._used = False

    def data_received(self, data: bytes) -> None:  # noqa: D102 - asyncio's
        self._read += data
        while b"\r\n\r\n" in self._read:
            head, _, self._read = self._read.partition(b"\r\n\r\n")
            if head.startswith(b"GET /counts "):
                self._answer(json.dumps(self.counts.report()).encode())
                Connection.counts = Counts()
            else:
                # Counted with its first request: the one that asks for the counts is none of theirs.
                self.counts.connections += not self._used
                self._used = True
                self.counts.begin(self._host, self._loop.time())
                self._loop.call_later(DELAY, self._finish)

    def _finish(self) -> None:
        self.counts.end(self._host, self._loop.time())
        self._answer(PAGE)

    def _answer(self, body: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(_HEAD % len(body) + body)


async def serve() -> None:
    loop = asyncio.get_running_loop()
    first = await loop.create_server(Connection, HOSTS[0], 0)
    port = first.sockets[0].getsockname()[1]
    for host in HOSTS[1:]:
        await loop.create_server(Connection, host, port, backlog=1024)
    print(port, flush=True)
    await asyncio.Event().wait()


class CountingServer:
    """The server in a process of its own."""

    def __enter__(self) -> "CountingServer":
        self._process = subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def urls(self, count: int, order: str) -> list[str]:
        """Return `count` URLs, the same number for each host: host after host, or in turn."""
        each = count // len(HOSTS)
        pairs = [(host, page) for host in HOSTS for page in range(each)]
        if order == "mixed":
            pairs.sort(key=lambda pair: pair[1])
        return [f"http://{host}:{self.port}/{page}" for host, page in pairs]

    def counts(self) -> dict[str, Any]:
        """Return what was seen since the last time."""
        with urllib.request.urlopen(f"http://{HOSTS[0]}:{self.port}/counts") as reply:
            counts: dict[str, Any] = json.load(reply)
            return counts


if __name__ == "__main__":
    asyncio.run(serve())
