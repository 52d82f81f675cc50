"""An agent under test: the SDK's client, our server, and behind it an application or a scripted service."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio
from mcp.client.client import Client as Agent_
from mcp_types import CallToolResult

from sift_batch import Caller, Config, Gate, open_runner, open_store
from sift_batch._client import Client
from sift_batch.mcp._calls import Calls
from sift_batch.mcp._in_process import AppTransport
from sift_batch.mcp._serve import make_server
from sift_batch.service._app import make_app
from sift_batch.testing import ScriptedFetch

KEY = "siftb_" + "agent" * 5
CALLER = Caller("agent")


class OneCaller:
    """The caller whose key it is, and nobody else."""

    def find(self, authorization: list[bytes]) -> Caller | None:
        """Return who sends it."""
        return CALLER if authorization == [b"Bearer " + KEY.encode()] else None


class Fetch(ScriptedFetch):
    """A scripted fetch with the two calls that a service makes beside it."""

    async def interactive(self, caller: Caller, target: Any, *, patience: float = 0.0) -> Any:
        """Answer as in a batch."""
        return await self(caller, target)

    async def check(self, target: Any) -> None:
        """Find nothing wrong."""
        await trio.lowlevel.checkpoint()


class Told:
    """What a tool said: `view` is the JSON of its text, `text` that text, `bad` whether it is an error."""

    def __init__(self, result: CallToolResult) -> None:
        assert len(result.content) == 1
        self.text = result.content[0].text  # type: ignore[union-attr]
        self.view = json.loads(self.text)
        self.object = result.structured_content
        self.bad = result.is_error
        assert self.object in (None, self.view)

    def __getitem__(self, name: str) -> Any:
        return self.view[name]

    def problem(self, code: str) -> Any:
        """The view, which must be this problem."""
        assert (self.bad, self.view.get("code")) == (True, code), self.text
        return self.view


class Agent:
    """Calls tools and looks at what they say."""

    def __init__(
        self, client: Agent_, fetch: Fetch | None = None, runner: Any = None, transport: Any = None
    ) -> None:
        self.client, self.runner, self.transport = client, runner, transport
        self.fetch = fetch or Fetch()

    async def tell(self, tool: str, arguments: dict[str, Any] | None = None, **options: Any) -> Told:
        """Call a tool; a good or a bad answer."""
        return Told(await self.client.call_tool(tool, arguments, **options))

    async def call(self, tool: str, /, **arguments: Any) -> Told:
        """Call a tool, whose answer must be good."""
        told = await self.tell(tool, arguments)
        assert not told.bad, told.text
        return told

    async def follow(self, step: Any) -> Told:
        """Do what an answer's `next` says."""
        return await self.call(step["tool"], **step["arguments"])

    async def settled(self, *targets: Any, **arguments: Any) -> str:
        """Submit a job, wait until it has settled, and return its id."""
        job = await self.call("batch_submit", targets=list(targets), **arguments)
        while not (await self.call("batch_wait", job_id=job["id"], seconds=55))["settled"]:
            pass
        job_id: str = job["id"]
        return job_id


@asynccontextmanager
async def an_agent(
    fetch: Fetch | None = None, *, config: Config | None = None, mode: str = "auto"
) -> AsyncIterator[Agent]:
    """An agent of the application on an engine with a store in memory."""
    fetch, gate = fetch or Fetch(), Gate()
    config = config or Config(shutdown_grace=0.5)
    async with open_store(":memory:") as store, open_runner(store, fetch, config) as runner:
        app = make_app(runner, fetch, gate, OneCaller(), config=config)  # type: ignore[arg-type]
        transport = AppTransport(app)
        server = make_server(Calls(Client(transport, KEY)))
        async with Agent_(server, mode=mode) as client:
            yield Agent(client, fetch, runner, transport)
        fetch.release()


class Service:
    """A service that answers what it is told to; `asked` has the method and path of each request."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.answer: Callable[[str, str], tuple[int, Any]] = lambda _method, _path: (200, {})
        self.raises: Exception | None = None

    @asynccontextmanager
    async def request(
        self, method: str, path: str, headers: Any, body: bytes, *, seconds: float
    ) -> AsyncIterator[Any]:
        """Answer one request."""
        await trio.lowlevel.checkpoint()
        self.asked.append((method, path))
        self.bodies.append(body)
        if self.raises is not None:
            raise self.raises
        status, view = self.answer(method, path)
        kind = b"application/problem+json" if status >= 400 else b"application/json"
        yield status, [(b"content-type", kind)], _one(json.dumps(view).encode())


async def _one(body: bytes) -> AsyncIterator[bytes]:
    yield body


@asynccontextmanager
async def agent_of(service: Service, errors: list[Exception] | None = None) -> AsyncIterator[Agent]:
    """An agent of a scripted service."""
    on_error = None if errors is None else errors.append
    server = make_server(Calls(Client(service, KEY)), on_error=on_error)
    async with Agent_(server) as client:
        yield Agent(client)
