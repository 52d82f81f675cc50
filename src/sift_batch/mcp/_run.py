"""How does the whole thing run, and how does it stop? Until the client closes its side, or a signal comes.

Then calls under way end, no target starts any more, and the fetch in flight is stored. A second signal
ends at once. Nothing is printed here; next: `cli`, which says what could not be opened.
"""

import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

import trio

from .._client import Client
from ..service._contain import alone
from ._calls import Calls
from ._serve import OnError, make_server
from ._wire import Descriptors, open_wire

OpenClient = Callable[[], AbstractAsyncContextManager[Client]]


async def run(
    opened: OpenClient,
    wire: Descriptors,
    *,
    signals: Sequence[signal.Signals] = (signal.SIGINT, signal.SIGTERM),
    on_error: OnError | None = None,
) -> None:
    """Serve the tools over `wire` with the client that `opened` gives, to the end.

    Raises what `opened` raises. Run it in Trio's main task of the main thread, as `trio.run` does.
    """
    receiving, raised = trio.CancelScope(), None
    with trio.open_signal_receiver(*signals) as incoming:
        try:
            async with trio.open_nursery() as beside:
                beside.start_soon(_obey, incoming, receiving)
                await _serve(opened, wire, receiving, on_error)
                beside.cancel_scope.cancel()
        except BaseExceptionGroup as group:
            raised = alone(group) or group
    if raised is not None:
        raise raised  # out here, so that it keeps the cause that it has


async def _serve(
    opened: OpenClient, wire: Descriptors, receiving: trio.CancelScope, on_error: OnError | None
) -> None:
    async with opened() as client:
        server = make_server(Calls(client), on_error=on_error)
        async with open_wire(wire, receiving) as (read, write):
            await server.run(read, write, server.create_initialization_options())


async def _obey(incoming: AsyncIterator[int], receiving: trio.CancelScope) -> None:
    """Stop in good order at the first signal, and at once at the second."""
    stopping = False
    async for number in incoming:
        if stopping:
            os._exit(128 + number)
        stopping = True
        receiving.cancel()
