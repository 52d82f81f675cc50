"""How many requests does the service answer in a second, and how much of that is the server's own work?

Each kind of request goes to the service, and in turn, for as long, to a bare application on the same server
that takes and gives as many bytes: the ratio of the two rates is what stays when routes, callers, engine and
store are added. One client on one connection, and eight at once; the store on tmpfs and on the disk. Server
and client have a core each where there are two.

Polls are of a live job of 32 targets, half of them done. Submits are of 32 new targets, each a synced
transaction, while one job waits in its fetch. A page has 32 results of 2 KB. Events are those of a settled
job read from its beginning: 34 of them in each answer.
"""

import itertools
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import measure
import service_client as client
from measure import Number
from service_servers import Server, running

TARGETS = 32
EVENTS = TARGETS + 2
QUICK = "--quick" in sys.argv
SECONDS = 0.05 if QUICK else 0.5
ROUNDS = 1 if QUICK else 5


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request: how to make one for the service, and one for the bare application."""

    name: str
    ours: Callable[[], bytes]
    floor: Callable[[], bytes]
    status: int = 200
    each: int = 1
    """How many of what is counted are in one answer."""


def kinds(server: Server, where: str) -> list[Kind]:
    """Fill the service, and return what can be asked of it."""
    port, key = server.port, server.keys["ann"]
    done = client.settled(port, key, [f"http://host.example/quick/{n}" for n in range(TARGETS)])
    half = [f"http://host.example/{'quick' if n < TARGETS // 2 else 'wait'}/a/{n}" for n in range(TARGETS)]
    live = client.submitted(port, key, half)
    client.wait_until(port, key, live, lambda view: view["targets"]["done"] == TARGETS // 2)
    # Both workers wait, so that nothing drains while submits are counted.
    client.submitted(port, key, ["http://host.example/wait/b"])

    def get(path: str, **headers: str) -> Callable[[], bytes]:
        raw = client.request("GET", path, key, **headers)
        return lambda: raw

    def like(raw: bytes, path: str = "/bytes") -> Callable[[], bytes]:
        with client.Connection(port) as connection:
            reply = connection.ask(raw)
        made = raw.replace(raw.split(b" ")[1], f"{path}/{len(reply.body)}".encode(), 1)
        return lambda: made

    numbers = itertools.count()

    def submit() -> bytes:
        job = next(numbers)
        urls = [f"http://host.example/{where}/{job}/{n}" for n in range(TARGETS)]
        return client.request("POST", "/v1/batch", key, {"targets": urls})

    with client.Connection(port) as connection:
        tag = connection.ask(client.request("GET", f"/v1/batch/{live}", key)).header(b"etag").decode()
        stream = connection.ask(client.request("GET", f"/v1/batch/{done}/events", key)).body
    poll = get(f"/v1/batch/{live}")
    same = get(f"/v1/batch/{live}", If_None_Match=tag)
    page = get(f"/v1/batch/{done}/results")
    follow = get(f"/v1/batch/{done}/events")
    bare_events = client.request("GET", f"/events/{EVENTS}/{len(stream) // EVENTS - 30}", key)
    return [
        Kind("poll", poll, like(poll())),
        Kind("poll that finds nothing new", same, like(same(), "/304"), 304),
        Kind("page of 32 results", page, like(page())),
        Kind("event", follow, lambda: bare_events, each=EVENTS),
        Kind("submit of 32 targets", submit, like(submit()), 202),
    ]


def _rounds(kind: Kind, ours: Server, floor: Server, connections: int) -> list[tuple[float, float]]:
    """Return answers per second of the service and of the floor, round by round."""
    found = []
    for _ in range(ROUNDS):
        rates = []
        for server, make, status in ((ours, kind.ours, kind.status), (floor, kind.floor, 0)):
            status = status or (304 if kind.status == 304 else 200)
            asked = client.ask_for(server.port, make, connections=connections, seconds=SECONDS, status=status)
            rates.append(asked.rate * kind.each)
        found.append((rates[0], rates[1]))
    return found


def numbers() -> Iterator[Number]:
    for where, tmpfs in (("tmpfs", True), ("disk", False)):
        with (
            measure.folder(tmpfs=tmpfs) as folder,
            running("service", folder=str(folder)) as ours,
            running("bare") as floor,
        ):
            for kind in kinds(ours, where):
                if not tmpfs and kind.status != 202:
                    continue  # what only reads finds its pages in memory: the disk has no part in it
                for connections in (1, 8):
                    rates = _rounds(kind, ours, floor, connections)
                    name = f"{kind.name}, {connections} at once, {where}"
                    unit = "x a bare application's rate"
                    yield Number(name=name, values=measure.ratios(rates), unit=unit)
                    yield Number(name=f"{name}: itself", values=[rate for rate, _ in rates], unit="a second")
            if tmpfs:
                bare = statistics.median(rate for _, rate in _rounds(kinds_of_floor(), floor, floor, 8))
                yield Number(name="the bare application itself, 8 at once", values=[bare], unit="a second")


def kinds_of_floor() -> Kind:
    """Return a small answer of the bare application, asked of itself."""
    raw = client.request("GET", "/bytes/700", "x" * 58)
    return Kind("bare", lambda: raw, lambda: raw)


if __name__ == "__main__":
    measure.run(numbers, {})
