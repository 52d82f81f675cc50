"""The plain fetch, and a raw server for it to talk to."""

import functools

import pytest
import trio
from raw_server import Server

from sift_batch._gate.gate import Gate
from sift_batch._model.values import Caller, Options, Result, Target
from sift_batch.fetch import open_plain_fetch


@pytest.fixture
async def server(nursery):
    """Give a running server."""
    server = Server()
    listeners = await nursery.start(functools.partial(trio.serve_tcp, server.handle, 0, host="127.0.0.1"))
    server.authority = str(listeners[0].socket.getsockname()[1])
    return server


@pytest.fixture
def gate() -> Gate:
    """Give a gate with the usual limits."""
    return Gate()


@pytest.fixture
def get(gate):
    """Fetch one URL with the plain fetch, limits by keyword."""

    async def get(url: str, options: Options | None = None, **limits: float) -> Result:
        async with open_plain_fetch(gate, **limits) as fetch:
            return await fetch(Caller("somebody"), Target(url, options or Options()))

    return get
