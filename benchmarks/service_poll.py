"""What does one look at a job cost, and does it wait while others drain?

The cost is that of a poll of a job of 32 targets, beside an application on the same server that looks at
host and key as the service does, reads the same JSON from a file, and answers it: in the loop's own thread,
and in another one as an application would that must not hold its loop up. Then the slowest of a hundred
polls, on one connection, while eight jobs drain: each target takes ten milliseconds and stores 50 KB.
"""

import itertools
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import measure
import service_client as client
from measure import Number
from service_servers import Server, running

TARGETS = 32
JOBS = 8
QUICK = "--quick" in sys.argv
SECONDS = 0.1 if QUICK else 0.7
ROUNDS = 1 if QUICK else 7
DRAINING_ROUNDS = 1 if QUICK else 5
SERIES = 1 if QUICK else 4
"""Jobs that each of the eight workers drains in a round."""


def _medians(service: Server, file: Server, poll: bytes) -> list[tuple[float, float, float]]:
    """Return seconds for a poll of the service, of a file in the loop, of one in a thread, by round."""
    key = file.keys["ann"]
    asked = [
        (service, poll),
        (file, client.request("GET", "/plain", key)),
        (file, client.request("GET", "/threaded", key)),
    ]
    found = []
    for _ in range(ROUNDS):
        ours, plain, threaded = (
            statistics.median(
                client.ask_for(server.port, lambda raw=raw: raw, connections=1, seconds=SECONDS).times
            )
            for server, raw in asked
        )
        found.append((ours, plain, threaded))
    return found


def against_a_file() -> Iterator[Number]:
    with (
        measure.folder(tmpfs=True) as ours,
        measure.folder(tmpfs=True) as theirs,
        running("service", folder=str(ours)) as service,
        running("file", folder=str(theirs)) as file,
    ):
        key = service.keys["ann"]
        job = client.settled(service.port, key, [f"http://host.example/quick/{n}" for n in range(TARGETS)])
        poll = client.request("GET", f"/v1/batch/{job}", key)
        with client.Connection(service.port) as connection:
            Path(theirs, "status.json").write_bytes(connection.ask(poll).body)
        found = _medians(service, file, poll)
    yield Number(
        name="a poll, and the same JSON from a file",
        values=[one / plain for one, plain, _ in found],
        unit="x the file's time",
    )
    yield Number(
        name="a poll, and the same from a file read in a thread",
        values=[one / threaded for one, _, threaded in found],
        unit="x the file's time",
    )
    yield Number(name="a poll itself", values=[1e6 * one for one, _, _ in found], unit="microseconds")


def _slowest(times: list[float]) -> float:
    """Return the 99th percentile, in milliseconds."""
    return 1e3 * sorted(times)[len(times) * 99 // 100]


def while_draining() -> Iterator[Number]:
    busy, idle, middle = [], [], []
    numbers = itertools.count()
    with measure.folder() as folder, running("service", folder=str(folder), workers=JOBS) as server:
        port, key = server.port, server.keys["ann"]
        quiet = client.settled(port, key, ["http://host.example/quick"])
        look = partial(client.request, "GET", f"/v1/batch/{quiet}", key)
        for _ in range(DRAINING_ROUNDS):
            jobs = [
                client.submitted(
                    port, key, [f"http://host.example/drain/{next(numbers)}" for _ in range(TARGETS)]
                )
                for _ in range(JOBS * SERIES)
            ]
            polls = [client.request("GET", f"/v1/batch/{job}", key) for job in jobs]
            times: list[float] = []
            with client.Connection(port) as connection:
                # Each live job in turn, until all have settled.
                while polls:
                    asked = client.timed(connection, polls[0])
                    times.append(asked.seconds)
                    polls = polls[1:] + ([] if b'"settled":true' in asked.reply.body else polls[:1])
            busy.append(_slowest(times))
            middle.append(1e3 * statistics.median(times))
            idle.append(_slowest(client.ask_for(port, look, connections=1, seconds=SECONDS).times))
    yield Number(name="a poll while eight jobs drain, 99th percentile", values=busy, unit="ms")
    yield Number(name="a poll while eight jobs drain, median", values=middle, unit="ms")
    yield Number(
        name="the 99th percentile while eight jobs drain",
        values=measure.ratios(zip(busy, idle, strict=True)),
        unit="x an idle service's",
    )


def numbers() -> Iterator[Number]:
    yield from against_a_file()
    yield from while_draining()


if __name__ == "__main__":
    measure.run(numbers, {})
