"""Is the application's run loop held up by a hostile page? The worst stall while such pages are fetched.

A task sleeps for a millisecond again and again; the longest it ever comes late is the stall. Meanwhile the
pipeline, as shipped, fetches each of the pages below twice, one after the other, from a server in a process
of its own. Nearly all of them are made to cost whoever reads them; each fetch must end as the table says, or
the run is an error. The floor is the same task in an idle loop, just after. Since a busy machine makes any
task late, two more numbers stand beside it: the same task while two other processes keep two cores busy, and
the longest single step of the loop in CPU time of its own thread, which no other process can lengthen.
"""

import gzip
import math
import multiprocessing
import statistics
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import measure
import own_server
from measure import Number

TICK = 0.001
TIMES = 2
IDLE_SECONDS = 2.0
TEN = 10 * 2**20 - 1024
DEADLINE = 2.0
"""Seconds for a fetch in all: what drips must end."""

OUTCOMES: Mapping[str, frozenset[str]] = {
    # What each page's fetch may end as: "done", or a code. A limit that is met sooner is no fault here.
    "html of 10 MiB": frozenset({"done", "extract_failed"}),
    "tags 100,000 deep": frozenset({"done", "extract_failed"}),
    "a table of 300,000 cells": frozenset({"done", "extract_failed"}),
    "gzip of 10 MiB": frozenset({"done", "extract_failed"}),
    "gzip bomb": frozenset({"too_large"}),
    "json of 10 MiB": frozenset({"done", "too_large", "extract_failed"}),
    "json 5,000,000 deep": frozenset({"done", "too_large", "extract_failed"}),
    "pdf bomb": frozenset({"done", "extract_failed"}),
    "drip": frozenset({"timeout"}),
    "endless headers": frozenset({"too_large", "protocol"}),
    "text of 10 MiB": frozenset({"done", "too_large"}),
    "one line of 10 MiB": frozenset({"done", "too_large"}),
}
NAMES = list(OUTCOMES)


def bodies() -> dict[str, tuple[str, bytes]]:
    """Return the pages that come in one piece: their headers and bodies."""
    paragraph = b"<p>Some <b>words</b> with <a href='/x'>a link</a> &amp; more &lt;of&gt; it.</p>\n"
    html = b"<html><body><main>" + paragraph * (TEN // len(paragraph) - 1)
    row = b'{"name": "value", "list": [1, 2, 3.5, true, null]},\n'
    pages = {
        "html of 10 MiB": ("text/html", html),
        "tags 100,000 deep": ("text/html", b"<div>" * 100_000 + b"words" + b"</div>" * 100_000),
        "a table of 300,000 cells": ("text/html", b"<table>" + b"<tr><td>1<td>2<td>3" * 100_000),
        "gzip of 10 MiB": ("text/html\r\nContent-Encoding: gzip", gzip.compress(html, 6)),
        "gzip bomb": ("text/html\r\nContent-Encoding: gzip", gzip.compress(bytes(2**28), 9)),
        "json of 10 MiB": ("application/json", b"[" + row * (TEN // len(row) - 1) + b"0]"),
        "json 5,000,000 deep": ("application/json", b"[" * 5_000_000 + b"]" * 5_000_000),
        "pdf bomb": ("application/pdf", _pdf_bomb()),
        "text of 10 MiB": ("text/plain", b"a line of plain text, as many as will do\n" * (TEN // 41)),
        "one line of 10 MiB": ("text/plain", b"x" * TEN),
    }
    return {name: (f"Content-Type: {kind}", body) for name, (kind, body) in pages.items()}


def _pdf_bomb() -> bytes:
    """Return a small PDF whose one page's content unpacks to 200 MB."""
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(b"BT (x) Tj ET\n" * 77_000) for _ in range(200)) + packer.flush()
    parts = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(packed), packed),
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, part in enumerate(parts, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, part)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(out)
    return out + b"xref\n0 5\n0000000000 65535 f \n" + table + end


def serve() -> None:
    """Be the server: print the port, answer with the page of the number, until standard input ends."""
    import asyncio

    ready = {
        name: f"HTTP/1.1 200 OK\r\n{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        for name, (head, body) in bodies().items()
    }

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            name = NAMES[int(request.split(b" ", 2)[1].rpartition(b"/")[2])]
            if name in ready:
                writer.write(ready[name])
            else:
                writer.write(b"HTTP/1.1 200 OK\r\n")
                if name == "drip":
                    writer.write(b"Content-Type: text/html\r\nContent-Length: 1000000\r\n\r\n")
                while True:
                    writer.write(b"x" if name == "drip" else b"X-Filler: " + b"y" * 1000 + b"\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.001)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        writer.close()

    own_server.serve(answer)


async def _worst_while(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Do some work, and return how late the tick came at the worst, and the longest step, in seconds."""
    import trio

    late, steps = [0.0], [0.0]

    class Steps(trio.abc.Instrument):
        """Takes the time of every step of every task."""

        began = math.inf  # the step in which it is told to watch does not count

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.began = time.thread_time()

        def after_task_step(self, task: trio.lowlevel.Task) -> None:
            steps.append(time.thread_time() - self.began)

    watch = Steps()

    async def tick(task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        while True:
            began = time.perf_counter()
            await trio.sleep(TICK)
            late.append(time.perf_counter() - began - TICK)

    async with trio.open_nursery() as nursery:
        await nursery.start(tick)
        await trio.sleep(TICK)  # it must be on its way before the work has its first turn
        trio.lowlevel.add_instrument(watch)
        await work()
        await trio.sleep(2 * TICK)  # a stall at the very end makes a tick late that must still come
        trio.lowlevel.remove_instrument(watch)
        nursery.cancel_scope.cancel()
    return max(late), max(steps)


def hostile(address: str) -> dict[str, tuple[float, float]]:
    """Return the worst stall and step of each page, of an idle loop, and of one beside two busy processes."""
    import trio

    import sift_batch
    from sift_batch.fetch import FetchConfig, FetchError, open_fetcher

    async def main() -> dict[str, tuple[float, float]]:
        config = FetchConfig(
            allow=("127.0.0.0/8",), ports=None, total_timeout=DEADLINE, extract_timeout=3.0, retries=0
        )
        worst = {}
        async with open_fetcher(config) as fetch:

            async def one(name: str) -> None:
                target = sift_batch.Target(f"{address}/{NAMES.index(name)}")
                try:
                    await fetch.interactive(sift_batch.Caller("bench"), target, patience=60.0)
                    outcome = "done"
                except FetchError as error:
                    outcome = error.code
                assert outcome in OUTCOMES[name], f"{name} ended as {outcome}"

            await one("html of 10 MiB")  # what the first fetch imports is not the page's doing
            for name in NAMES:
                found = [await _worst_while(partial(one, name)) for _ in range(TIMES)]
                worst[name] = (max(late for late, _ in found), max(step for _, step in found))
        worst["idle"] = await _worst_while(partial(trio.sleep, IDLE_SECONDS))
        with _busy(2):
            worst["busy"] = await _worst_while(partial(trio.sleep, IDLE_SECONDS))
        return worst

    return trio.run(main)


@contextmanager
def _busy(count: int) -> Iterator[None]:
    """Keep some processes busy meanwhile."""
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=_burn, daemon=True) for _ in range(count)]
    for child in children:
        child.start()
    try:
        yield
    finally:
        for child in children:
            child.kill()
            child.join()


def _burn() -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        sum(range(10_000))


def numbers() -> Iterator[Number]:
    with own_server.in_a_process(__file__) as address:
        worst: list[Any] = [
            measure.in_child(__file__, "hostile", address=address)
            for _ in measure.rounds(least=3, most=5, seconds=60)
        ]
    yield Number(
        name="worst stall while hostile pages are fetched",
        values=[1e3 * max(one[name][0] for name in NAMES) for one in worst],
        unit="ms",
        at_most=20,
    )
    yield Number(
        name="the same stall",
        values=[max(one[name][0] for name in NAMES) / one["idle"][0] for one in worst],
        unit="x an idle loop's",
    )
    yield Number(
        name="an idle loop's worst in 2 s", values=[1e3 * one["idle"][0] for one in worst], unit="ms"
    )
    yield Number(
        name="an idle loop's beside two busy processes",
        values=[1e3 * one["busy"][0] for one in worst],
        unit="ms",
    )
    yield Number(
        name="longest step of the loop while hostile pages are fetched",
        values=[1e3 * max(one[name][1] for name in NAMES) for one in worst],
        unit="ms of its thread's CPU",
    )
    for name in NAMES:
        stalls = [1e3 * one[name][0] for one in worst]
        steps = statistics.median(1e3 * one[name][1] for one in worst)
        yield Number(name=f"worst stall: {name}", values=stalls, unit=f"ms, the longest step {steps:.2g} ms")


if __name__ == "__main__":
    measure.run(numbers, {"hostile": hostile, "serve": serve})
