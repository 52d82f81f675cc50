"""Who asks? Plain sockets that send requests as bytes and look at as little of an answer as will do.

What asks must be quicker than what answers, or it is itself that is measured: no HTTP library, no tasks. The
servers are in `service_servers.py`.
"""

import json
import selectors
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_READ = 2**18
_PATIENCE = 60.0
_NO_BODY = (204, 304)


def request(method: str, path: str, key: str = "", body: Any = None, **headers: str) -> bytes:
    """Return the bytes of a request; `None_Match` as a name of a header is `None-Match`."""
    raw = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
    fields = {"Host": "127.0.0.1", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if key:
        fields["Authorization"] = f"Bearer {key}"
    if raw:
        fields |= {"Content-Type": "application/json", "Content-Length": str(len(raw))}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode() + raw


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    head: bytes
    body: bytes

    def json(self) -> Any:
        """Return the value of its body."""
        return json.loads(self.body)

    def header(self, name: bytes) -> bytes:
        """Return the value of a header, empty if there is none."""
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.lower() == name:
                return value.strip()
        return b""


class Connection:
    """One connection that is kept open; requests go one after the other."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.began = 0.0
        self._got = bytearray()

    def __enter__(self) -> "Connection":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, raw: bytes) -> Reply:
        """Send a request and wait for its answer."""
        self.send(raw)
        while (reply := self.take()) is None:
            pass
        return reply

    def send(self, raw: bytes) -> None:
        """Send a request."""
        self.began = time.perf_counter()
        self.socket.sendall(raw)

    def take(self) -> Reply | None:
        """Read what has come; return the answer once it is whole."""
        data = self.socket.recv(_READ)
        if not data:
            raise ConnectionError("the server closed the connection")
        self._got += data
        end = self._got.find(b"\r\n\r\n") + 4
        if end < 4:
            return None
        stop = self._stop(end)
        if stop is None or len(self._got) < stop:
            return None
        reply = Reply(int(self._got[9:12]), bytes(self._got[:end]), bytes(self._got[end:stop]))
        del self._got[:stop]
        return reply

    def _stop(self, end: int) -> int | None:
        """Where the answer ends whose head ends at `end`; None while that is not known."""
        head = bytes(self._got[:end]).lower()
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            return end + int(head[at + 17 : head.index(b"\r\n", at + 2)])
        if int(head[9:12]) in _NO_BODY:
            return end
        # A chunked body ends with a chunk of no bytes; nothing else comes on this connection by then.
        return len(self._got) if self._got.endswith(b"\r\n0\r\n\r\n") else None


class Timed(NamedTuple):
    """An answer, and the seconds until it had come."""

    reply: Reply
    seconds: float


def timed(connection: Connection, raw: bytes) -> Timed:
    """Send one request and time its answer."""
    began = time.perf_counter()
    reply = connection.ask(raw)
    return Timed(reply, time.perf_counter() - began)


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of asking for some time: seconds that it took in all, and each answer's own."""

    seconds: float
    times: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Answers per second."""
        return len(self.times) / self.seconds


def ask_for(
    port: int, make: Callable[[], bytes], *, connections: int, seconds: float, status: int = 200
) -> Asked:
    """Ask on so many connections at once, each again as soon as it has its answer.

    `make` gives the next request; every answer must have the status.
    """
    times: list[float] = []
    with selectors.DefaultSelector() as selector:
        opened = [Connection(port) for _ in range(connections)]
        for connection in opened:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.send(make())
        began = time.perf_counter()
        going = connections
        while going:
            for key, _ in selector.select(_PATIENCE):
                connection = key.data
                reply = connection.take()
                if reply is None:
                    continue
                now = time.perf_counter()
                times.append(now - connection.began)
                if reply.status != status:
                    raise RuntimeError(f"{reply.status} in place of {status}: {reply.body[:200]!r}")
                if now - began < seconds:
                    connection.send(make())
                else:
                    going -= 1
        taken = time.perf_counter() - began
        for connection in opened:
            connection.socket.close()
    return Asked(taken, times)


class Streams:
    """Many event streams that are open at once."""

    def __init__(self, port: int, raw: bytes, count: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._sockets: list[socket.socket] = []
        # What came on each since the last look, by its socket.
        self._got: dict[socket.socket, bytearray] = {}
        for _ in range(count):
            stream = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE)
            stream.sendall(raw)
            self._sockets.append(stream)
            self._selector.register(stream, selectors.EVENT_READ)

    def wait_for(self, mark: bytes) -> list[float]:
        """Wait until each stream has had `mark` once more; return when each had it, and forget it all."""
        self._got = {stream: bytearray() for stream in self._sockets}
        had: dict[socket.socket, float] = {}
        until = time.perf_counter() + _PATIENCE
        while len(had) < len(self._sockets):
            if time.perf_counter() > until:
                raise RuntimeError(f"{len(had)} of {len(self._sockets)} streams had their event")
            for key, _ in self._selector.select(1):
                stream = key.fileobj
                assert isinstance(stream, socket.socket)
                data = stream.recv(_READ)
                if not data:
                    raise ConnectionError("the server closed a stream")
                self._got[stream] += data
                if stream not in had and mark in self._got[stream]:
                    had[stream] = time.perf_counter()
        return list(had.values())

    def close(self) -> None:
        """Close all of them."""
        self._selector.close()
        for stream in self._sockets:
            stream.close()


def submitted(port: int, key: str, urls: list[str]) -> str:
    """Submit a job and return its id."""
    with Connection(port) as connection:
        reply = connection.ask(request("POST", "/v1/batch", key, {"targets": urls}))
    if reply.status != 202:
        raise RuntimeError(f"{reply.status}: {reply.body[:200]!r}")
    job_id: str = reply.json()["id"]
    return job_id


def settled(port: int, key: str, urls: list[str]) -> str:
    """Submit a job, wait until it has settled, and return its id."""
    job_id = submitted(port, key, urls)
    wait_until(port, key, job_id, lambda view: view["settled"])
    return job_id


def wait_until(port: int, key: str, job_id: str, holds: Callable[[Mapping[str, Any]], bool]) -> None:
    """Wait until something holds of a job's view."""
    until = time.perf_counter() + _PATIENCE
    with Connection(port) as connection:
        while time.perf_counter() < until:
            if holds(connection.ask(request("GET", f"/v1/batch/{job_id}", key)).json()):
                return
            time.sleep(0.01)
    raise RuntimeError("the job did not get that far")


def told(port: int, key: str, word: str) -> float:
    """Ask the fetch behind the service for something (`release`, `stall`): how late its loop was since."""
    with Connection(port) as connection:
        reply = connection.ask(request("POST", "/v1/fetch", key, {"url": f"http://host.example/{word}"}))
    return float(reply.json()["content"])
