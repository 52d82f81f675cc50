"""What does an open event stream cost, and how long does news take to reach a thousand of them?

1,000 streams of one job are opened on one service; then one target after the other is finished, and the time
until each stream has had the event is taken. The floor is a bare application on the same server that sends
one event of the same size to as many streams. How late the loop is at worst is measured inside the server,
as in `loop_stall.py`. At the end all streams close, and what the process then has is compared with before.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import measure
import service_client as client
from measure import Number
from service_servers import STREAMS, Server, raise_file_limit, running

QUICK = "--quick" in sys.argv
COUNT = 50 if QUICK else STREAMS
CHANGES = 2 if QUICK else 10
TARGETS = 32
_WARM = 20
_SETTLE = 0.5
_PAUSE = 0.1
_PATIENCE = 10.0


@dataclass
class Seen:
    """What was seen on one server; times in milliseconds."""

    bytes_each: float = 0.0
    opened: float = 0.0
    medians: list[float] = field(default_factory=list)
    lasts: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    more_each: float = 0.0
    descriptors: int = 0


def _look(
    server: Server, raw: bytes, mark: bytes, release: Callable[[], object], late: Callable[[], float]
) -> Seen:
    seen = Seen()
    descriptors = server.descriptors()
    # A few once, so that what is made at the first use is not taken for what a stream costs.
    _open(server, raw, _WARM).close()
    _wait_closed(server, descriptors)
    before = server.resident()
    began = time.perf_counter()
    streams = _open(server, raw, COUNT)
    seen.opened = 1e3 * (time.perf_counter() - began)
    time.sleep(_SETTLE)
    seen.bytes_each = (server.resident() - before) / COUNT
    for _ in range(CHANGES):
        late()
        began = time.perf_counter()
        release()
        times = sorted(when - began for when in streams.wait_for(mark))
        seen.stalls.append(1e3 * late())
        seen.medians.append(1e3 * statistics.median(times))
        seen.lasts.append(1e3 * times[-1])
        time.sleep(_PAUSE)
    streams.close()
    _wait_closed(server, descriptors)
    seen.descriptors = server.descriptors() - descriptors
    # What an allocator keeps is used again, what is lost comes on top of it: the third thousand says.
    second, third = (_resident_with_all_open(server, raw, descriptors) for _ in range(2))
    seen.more_each = (third - second) / COUNT
    return seen


def _resident_with_all_open(server: Server, raw: bytes, descriptors: int) -> int:
    streams = _open(server, raw, COUNT)
    time.sleep(_SETTLE)
    resident = server.resident()
    streams.close()
    _wait_closed(server, descriptors)
    return resident


def _open(server: Server, raw: bytes, count: int) -> client.Streams:
    streams = client.Streams(server.port, raw, count)
    streams.wait_for(b"event: job")
    return streams


def _wait_closed(server: Server, descriptors: int) -> None:
    until = time.perf_counter() + _PATIENCE
    while server.descriptors() > descriptors and time.perf_counter() < until:
        time.sleep(0.02)
    time.sleep(_SETTLE)


def of_the_service() -> Seen:
    with measure.folder() as folder, running("service", folder=str(folder), watched=True) as server:
        port, key = server.port, server.keys["ann"]
        job = client.submitted(port, key, [f"http://host.example/wait/{n}" for n in range(TARGETS)])
        client.wait_until(port, key, job, lambda view: view["targets"]["running"] == 1)
        raw = client.request("GET", f"/v1/batch/{job}/events", key)
        return _look(
            server,
            raw,
            b"event: target",
            lambda: client.told(port, key, "release"),
            lambda: client.told(port, key, "stall"),
        )


def of_the_floor() -> Seen:
    with running("bare", watched=True) as server:
        return _look(
            server,
            client.request("GET", "/follow/250"),
            b"event: job",
            lambda: _told_bare(server, "/release"),
            lambda: _told_bare(server, "/stall"),
        )


def _told_bare(server: Server, path: str) -> float:
    with client.Connection(server.port) as connection:
        return float(connection.ask(client.request("POST", path, body={})).body)


def numbers() -> Iterator[Number]:
    raise_file_limit()
    ours, floor = of_the_service(), of_the_floor()
    count = f"{COUNT:,} streams"
    yield Number(name="memory of an open event stream", values=[ours.bytes_each / 1024], unit="KiB")
    yield Number(
        name="memory of an open event stream",
        values=[ours.bytes_each / floor.bytes_each],
        unit="x a bare application's",
    )
    yield Number(name=f"{count}: all open, with their first event", values=[ours.opened], unit="ms")
    yield Number(name=f"{count}: one change, to the middle one", values=ours.medians, unit="ms")
    yield Number(name=f"{count}: one change, to the last one", values=ours.lasts, unit="ms")
    yield Number(
        name=f"{count}: one change, to the last one",
        values=[statistics.median(ours.lasts) / statistics.median(floor.lasts)],
        unit="x a bare application's",
    )
    yield Number(name=f"{count}: the loop's worst stall in it", values=ours.stalls, unit="ms")
    yield Number(name=f"{count}: the bare application's worst stall", values=floor.stalls, unit="ms")
    yield Number(
        name=f"{count} closed: files and sockets left", values=[ours.descriptors], unit="", at_most=0
    )
    yield Number(
        name=f"{count} opened a third time: memory on top",
        values=[ours.more_each / 1024],
        unit="KiB each",
        at_most=2,
    )


if __name__ == "__main__":
    measure.run(numbers, {})
