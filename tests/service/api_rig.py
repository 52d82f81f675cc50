"""A service under test: the application on a real server, a scripted fetch behind it, plain clients."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import h11
import trio
from openapi_truth import check_event, check_reply
from server_rig import running

from sift_batch import Caller, CallerClass, Config, Gate, TargetError, open_runner, open_store
from sift_batch.service._app import make_app
from sift_batch.service._problems import server_answer
from sift_batch.service._room import Room
from sift_batch.service._service_config import ServiceConfig
from sift_batch.testing import ScriptedFetch

ANN, BOB, EVE = (f"siftb_{name * 5}" for name in ("anna", "bobb", "evee"))
CALLERS = {
    ANN: Caller("ann", key_sha256="a" * 64),
    BOB: Caller("bob", key_sha256="b" * 64),
    EVE: Caller("eve", key_sha256="e" * 64, caller_class=CallerClass.RESTRICTED),
}


class KnownCallers:
    """Three callers by key."""

    def find(self, authorization: list[bytes]) -> Caller | None:
        """Return who sends it."""
        for key, caller in CALLERS.items():
            if authorization == [b"Bearer " + key.encode()]:
                return caller
        return None


class Fetch(ScriptedFetch):
    """A scripted fetch with the two calls that a service makes beside it."""

    def __init__(self, **script: Any) -> None:
        super().__init__(**script)
        self.refuse: dict[str, TargetError] = {}
        self.patience: list[float] = []

    async def interactive(self, caller: Caller, target: Any, *, patience: float = 0.0) -> Any:
        """Answer as in a batch."""
        self.patience.append(patience)
        return await self(caller, target)

    async def check(self, target: Any) -> None:
        """Refuse the URLs that are to be refused."""
        await trio.lowlevel.checkpoint()
        if target.url in self.refuse:
            raise self.refuse[target.url].with_traceback(None)


class Reply:
    """A whole response."""

    def __init__(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        self.status, self.body = status, body
        self.headers = {name.decode().lower(): value.decode() for name, value in headers}
        self.raw_headers = headers

    @property
    def json(self) -> Any:
        """The body's JSON."""
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        """The body's JSON lines."""
        return [json.loads(line) for line in self.body.splitlines()]

    def problem(self, status: int, code: str) -> Any:
        """The body, which must be this problem."""
        assert (self.status, self.json["code"]) == (status, code), self.body
        assert self.headers["content-type"] == "application/problem+json"
        return self.json


class Client:
    """Sends requests with one key, each on a connection of its own."""

    def __init__(self, port: int, key: str | None) -> None:
        self.port, self.key = port, key

    def head(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
        """Return the bytes of a request."""
        fields = {"Host": "127.0.0.1", "Connection": "close"}
        if self.key is not None:
            fields["Authorization"] = f"Bearer {self.key}"
        if body:
            fields |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        fields |= headers
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in fields.items() if value),
        ]
        return "\r\n".join([*lines, "", ""]).encode() + body

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a request and read its response."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            await stream.send_all(self.head(method, path, raw, named))
            reply = await read_reply(stream, method)
        check_reply(method, path, reply.status, reply.headers, reply.body)
        return reply

    async def get(self, path: str, **headers: str) -> Reply:
        """Send a GET."""
        return await self.send("GET", path, **headers)

    async def post(self, path: str, body: Any = None, **headers: str) -> Reply:
        """Send a POST."""
        return await self.send("POST", path, body, **headers)

    @asynccontextmanager
    async def stream(self, path: str, **headers: str) -> AsyncIterator["Incoming"]:
        """Open a response that comes in pieces."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with await trio.open_tcp_stream("127.0.0.1", self.port) as stream:
            await stream.send_all(self.head("GET", path, b"", named))
            yield Incoming(stream)


class Incoming:
    """A response that is read in pieces. `whole` is None until it ended: then whether it was complete."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._wire, self._text = stream, h11.Connection(h11.CLIENT), b""
        request = h11.Request(method=b"GET", target=b"/", headers=[(b"host", b"x")])
        self._wire.send(request)
        self._wire.send(h11.EndOfMessage())
        self.whole: bool | None = None
        self._head: h11.Response | None = None

    async def head(self) -> h11.Response:
        """Return the response's head, once it is there."""
        while self._head is None:
            await self._more()
        return self._head

    async def block(self, mark: bytes) -> str | None:
        """Return what comes up to a mark; None at the end."""
        while mark not in self._text:
            if self.whole is not None:
                return None
            await self._more()
        found, _, self._text = self._text.partition(mark)
        return found.decode()

    async def _more(self) -> None:
        try:
            event = self._wire.next_event()
        except h11.RemoteProtocolError:
            self.whole = False
            return
        if event is h11.NEED_DATA:
            self._wire.receive_data(await self._stream.receive_some(65536))
        elif isinstance(event, h11.Response):
            self._head = event
        elif isinstance(event, h11.Data):
            self._text += event.data
        elif isinstance(event, h11.EndOfMessage):
            self.whole = True

    async def event(self) -> dict[str, Any] | None:
        """Return the next server-sent event; None at the end."""
        while (text := await self.block(b"\n\n")) is not None:
            if "event:" in text:
                fields: dict[str, Any] = dict(line.split(": ", 1) for line in text.splitlines())
                fields["data"] = json.loads(fields["data"])
                check_event(fields)
                return fields
        return None


async def until(holds: Callable[[], Any]) -> None:
    """Return once something holds; five seconds at most."""
    with trio.fail_after(5):
        while not holds():  # noqa: ASYNC110 - what is looked at tells nobody
            await trio.sleep(0.01)


@asynccontextmanager
async def holding(room: Room, nbytes: int) -> AsyncIterator[None]:
    """Hold room for results as long as the block lasts."""
    taken = await room.take(nbytes)
    try:
        yield
    finally:
        room.give(taken)


async def read_reply(stream: Any, method: str) -> Reply:
    """Read one response to its end."""
    wire = h11.Connection(h11.CLIENT)
    wire.send(h11.Request(method=method.encode(), target=b"/", headers=[(b"host", b"x")]))
    wire.send(h11.EndOfMessage())
    status, headers, body = 0, [], b""
    while True:
        event = wire.next_event()
        if event is h11.NEED_DATA:
            wire.receive_data(await stream.receive_some(65536))
        elif isinstance(event, h11.Response):
            status, headers = event.status_code, list(event.headers)
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return Reply(status, headers, body)


class Api:
    """The service under test, and a client for each caller."""

    def __init__(self, server: Any, app: Any, runner: Any, fetch: Fetch, errors: list[Exception]) -> None:
        self.server, self.app, self.runner, self.fetch, self.errors = server, app, runner, fetch, errors
        self.ann, self.bob, self.eve, self.nobody = (
            Client(server.port, key) for key in (ANN, BOB, EVE, None)
        )

    async def submitted(self, *urls: str, client: Client | None = None) -> str:
        """Submit a job and return its id."""
        reply = await (client or self.ann).post("/v1/batch", {"targets": list(urls)})
        assert reply.status == 202, reply.body
        job_id: str = reply.json["id"]
        return job_id

    async def settled(self, *urls: str, client: Client | None = None) -> str:
        """Submit a job, wait until it has settled, and return its id."""
        job_id = await self.submitted(*urls, client=client)
        with trio.fail_after(5):
            await self.runner.wait(job_id)
        return job_id


@asynccontextmanager
async def serving(
    fetch: Fetch | None = None,
    *,
    config: Config | None = None,
    service: ServiceConfig | None = None,
    store: Any = None,
    **options: Any,
) -> AsyncIterator[Api]:
    """Serve the application on a free port of 127.0.0.1, on an engine with a store in memory."""
    fetch, callers = fetch or Fetch(), KnownCallers()
    config, gate = config or Config(jobs_per_caller=4, retry_wait=0.05), Gate()
    config = replace(config, shutdown_grace=0.5)  # a test that fails with a fetch that hangs ends soon
    async with open_store(":memory:") as made, open_runner(store or made, fetch, config, **options) as runner:
        errors: list[Exception] = []
        service = service or ServiceConfig()
        app = make_app(runner, fetch, gate, callers, service, config=config, on_error=errors.append)  # type: ignore[arg-type]
        async with running(app, lifespan=True, answers=server_answer) as server:
            yield Api(server, app, runner, fetch, errors)
        fetch.release()
