"""How do messages come in and go out? One JSON message a line, over two descriptors that nobody else has.

Reading and writing are done by threads that a stop leaves behind: a client that sends nothing, or reads
nothing, holds up nobody. A line that is no message is answered as such and costs only itself. Next: `_run`.
"""

import fcntl
import json
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any, Final, NamedTuple

import anyio
import mcp_types as types
import trio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

LONGEST_LINE: Final = 8 * 2**20
"""Bytes of one message: eight times what a service takes as a body."""

_LAST_WORDS: Final = 2.0
_STILL_ANSWERED: Final = 1.5
"""Seconds; a client of the SDK ends the process two seconds after it has closed its side."""
_CHUNK: Final = 2**16
_FIRST_OF_OURS: Final = 3

ReadStream = MemoryObjectReceiveStream[SessionMessage | Exception]
WriteStream = MemoryObjectSendStream[SessionMessage]


class Descriptors(NamedTuple):
    """Where messages come from and go to."""

    incoming: int
    outgoing: int


@contextmanager
def taken_over(incoming: int = 0, outgoing: int = 1) -> Iterator[Descriptors]:
    """Take standard input and output for messages alone. Raises `OSError` if one is not open.

    For whoever else uses them in the block there is nothing to read, and what is printed goes nowhere:
    one stray line would break the protocol, and could say what no log may.
    """
    ours = Descriptors(
        *(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_OF_OURS) for fd in (incoming, outgoing))
    )
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(nothing, incoming)
        os.dup2(nothing, outgoing)
    finally:
        os.close(nothing)
    try:
        yield ours
    finally:
        # Ours stay open: a thread may still read from one, and must not find another file there.
        os.dup2(ours.incoming, incoming)
        os.dup2(ours.outgoing, outgoing)


@asynccontextmanager
async def open_wire(
    ours: Descriptors, receiving: trio.CancelScope
) -> AsyncIterator[tuple[ReadStream, WriteStream]]:
    """Give the streams that the SDK's server takes.

    The first ends when the client closes its side, once what it asked before is answered or a second and
    a half have gone by, and when `receiving` is cancelled; the block is cancelled when the client reads no
    more. What was sent is written before the block is left, if the client takes it within two seconds.
    """
    to_server, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    out, sent, asked = _Out(ours.outgoing), trio.Event(), _Asked()
    async with trio.open_nursery() as tasks:

        async def receive() -> None:
            async with to_server, aclosing(_lines(ours.incoming)) as lines:
                with receiving:
                    async for line in lines:
                        message = await _message_of(line, out)
                        if message is not None:
                            asked.came(message)
                            await to_server.send(SessionMessage(message))
                    # Who writes all at once and closes still reads: the SDK's server would break these off.
                    with trio.move_on_after(_STILL_ANSWERED):
                        await asked.wait_answered()

        async def send() -> None:
            async with from_server:
                async for item in from_server:
                    await out.put(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
                    asked.went(item.message)
            sent.set()

        async def quietly(task: Callable[[], Any]) -> None:
            try:
                await task()
            except (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
                # The client is gone, or the server has ended: the other direction is of no use now.
                tasks.cancel_scope.cancel()

        tasks.start_soon(quietly, receive)
        tasks.start_soon(quietly, send)
        yield read, write
        with trio.move_on_after(_LAST_WORDS):
            await sent.wait()
        tasks.cancel_scope.cancel()


class _Asked:
    """Which requests have no answer yet."""

    def __init__(self) -> None:
        # Ids of requests; `_changed` is set, and made anew, whenever one of them goes.
        self._open: set[str | int] = set()
        self._changed = trio.Event()

    def came(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._open.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            named = (message.params or {}).get("requestId")
            if isinstance(named, str | int):  # whatever else a client may send
                self._close(named)

    def went(self, message: types.JSONRPCMessage) -> None:
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._close(message.id)

    async def wait_answered(self) -> None:
        while self._open:
            await self._changed.wait()

    def _close(self, request_id: str | int | None) -> None:
        if request_id is not None:
            self._open.discard(request_id)
        self._changed.set()
        self._changed = trio.Event()


class _Out:
    """The outgoing descriptor: one line at a time, whole."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._line = trio.Lock()

    async def put(self, line: bytes) -> None:
        async with self._line:
            await trio.to_thread.run_sync(self._write, line + b"\n", abandon_on_cancel=True)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._descriptor, view) :]


async def _lines(descriptor: int) -> AsyncGenerator[bytes | None]:
    """Yield the lines that come in, without their ends; None for one that is too long."""
    held, skipping = bytearray(), False
    while True:
        data = await trio.to_thread.run_sync(os.read, descriptor, _CHUNK, abandon_on_cancel=True)
        first, *others = data.split(b"\n")
        held += first
        for part in others if data else [b""]:
            if held and not skipping:
                yield bytes(held)
            held, skipping = bytearray(part), False
        if not data:
            return
        if len(held) > LONGEST_LINE:
            if not skipping:
                yield None
            held.clear()
            skipping = True


async def _message_of(line: bytes | None, out: _Out) -> types.JSONRPCMessage | None:
    """Return the message that a line is; if it is none, say so to the client, and return None."""
    if line is None:
        await out.put(_refusal(types.INVALID_REQUEST, f"a message has at most {LONGEST_LINE:,} bytes"))
        return None
    if not line.strip():
        return None
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        await out.put(_refusal(types.PARSE_ERROR, "the line is not JSON"))
        return None
    found = value.get("id") if isinstance(value, dict) else None
    known = found if isinstance(found, str | int) and not isinstance(found, bool) else None
    await out.put(_refusal(types.INVALID_REQUEST, "the line is no JSON-RPC message", known))
    return None


def _refusal(code: int, message: str, request_id: str | int | None = None) -> bytes:
    error = {"code": code, "message": message}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
