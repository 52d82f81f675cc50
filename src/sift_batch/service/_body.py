"""How does a body reach the application, and how does it learn that the client left? ASGI's receive.

The body is read when the application asks for it, so a slow application slows its client and nobody else.
When it asks again after the end, a task watches the connection for the client's leaving, and keeps what it
sends early for the next request. An application that does not ask does not learn of it before it sends, and
pays for no task: most answer at once. What goes the other way is `_exchange`'s.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, Never

import h11
import trio

from ._asgi import Message
from ._events import OnEvent
from ._hang_up import hung_up
from ._head import declared_length
from ._limits import ServerLimits
from ._refusal import BodyRefused, ClientGone

_READ: Final = 16 * 1024
_OVERHEAD: Final = 64 * 1024
_LOOK_EVERY: Final = 1.0


class Body:
    """The receiving side of one request."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        wire: h11.Connection,
        request: h11.Request,
        *,
        limits: ServerLimits,
        early: bytearray,
        put: Callable[[bytes], Awaitable[None]],
        tell: OnEvent,
    ) -> None:
        self.declared = declared_length(request)
        self.whole = False
        """The client sent all of it."""
        self.left = False
        """The client sends no more."""
        self._stream, self._wire, self._limits = stream, wire, limits
        self._put, self._tell = put, tell
        # The connection's bytes after the head: the start of the body, then whatever follows the body.
        self._early = early
        # The body so far: bytes off the wire, bytes of content, pieces not yet handed over.
        self._read, self._counted = 0, 0
        self._pieces: list[bytes] = []
        self._delivered = False  # the application has all of it
        self._deadline: float | None = None  # set when the application first asks for the body
        self._refused: int | None = None
        self._reading = trio.Lock()
        # There is nothing more to receive: the client left, or has its answer. And: the application knows.
        self._gone = trio.Event()
        self._told = False
        # Where the watching will run; None before `open`, and again once it has begun.
        self._tasks: trio.Nursery | None = None

    def open(self, tasks: trio.Nursery) -> None:
        """Begin, with what came along with the head; a request without a body is whole at once."""
        self._tasks = tasks
        self._feed()
        if self.declared == 0:
            self._parse()

    def take_what_came(self) -> None:
        """Read what is here already, without waiting: a short body left unread costs no connection."""
        if not self.whole and self._refused is None:
            with suppress(BodyRefused):
                self._parse()

    def end(self) -> None:
        """There is nothing more to receive."""
        self._gone.set()

    def leave(self) -> None:
        """The client is gone."""
        self.left = True
        self._gone.set()

    async def receive(self) -> Message:
        """The next piece of the body; after it `http.disconnect`, once the client left or has its answer."""
        if not self._delivered:
            async with self._reading:
                if not self._delivered:
                    return await self._next_piece()
        # Frameworks look for a disconnect inside a scope that is cancelled already: the first
        # report comes without a checkpoint, or they would never see it.
        if self._gone.is_set() and not self._told:
            self._told = True
            return {"type": "http.disconnect"}
        if self._tasks is not None and not self._gone.is_set():
            self._tasks.start_soon(self._watch)
            self._tasks = None
        await self._gone.wait()
        self._told = True
        return {"type": "http.disconnect"}

    async def _next_piece(self) -> Message:
        if self._refused is not None:
            raise BodyRefused(self._refused)
        if self._deadline is None:
            self._deadline = trio.current_time() + self._limits.body_seconds
            if self.declared is not None and self.declared > self._limits.body_bytes:
                self._refuse(413)
        self._parse()
        while not self._pieces and not self.whole:
            if not self._gone.is_set():
                await self._read_more(self._deadline)
            if self._gone.is_set():
                self._told = True
                return {"type": "http.disconnect"}
            self._parse()
        body = b"".join(self._pieces)
        self._pieces.clear()
        self._delivered = self.whole
        return {"type": "http.request", "body": body, "more_body": not self.whole}

    async def _read_more(self, deadline: float) -> None:
        if self._wire.they_are_waiting_for_100_continue and self._wire.our_state is h11.SEND_RESPONSE:
            go_on = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
            try:
                await self._put(self._wire.send(go_on))
            except ClientGone:
                return
        with trio.CancelScope(deadline=deadline) as scope:
            try:
                self._early += await self._stream.receive_some(_READ)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                self.leave()
        if scope.cancelled_caught:
            self._refuse(408)
        if not self._early:
            self.leave()
        self._feed()

    def _feed(self) -> None:
        if self._early and not self.whole:
            self._read += len(self._early)
            self._wire.receive_data(bytes(self._early))
            self._early.clear()

    def _parse(self) -> None:
        while not self.whole:
            try:
                event = self._wire.next_event()
            except h11.RemoteProtocolError:
                self._refuse(400)
            if type(event) is h11.Data:
                self._counted += len(event.data)
                self._pieces.append(bytes(event.data))
                if self._counted > self._limits.body_bytes:
                    self._refuse(413)
            elif type(event) is h11.EndOfMessage:
                self.whole = True
                self._early += self._wire.trailing_data[0]
            else:
                break
        # Chunks of one byte cost six on the wire and a parser's turn each.
        overhead = self._read - self._counted - len(self._early)
        if self.declared is None and overhead > _OVERHEAD + self._counted // 8:
            self._refuse(400)

    def _refuse(self, status: int) -> Never:
        self._refused = status
        self._tell("body_too_large" if status == 413 else "slow_body" if status == 408 else "bad_request")
        raise BodyRefused(status)

    async def _watch(self) -> None:
        """Notice that the client leaves; keep what it sends early, up to one head."""
        try:
            while len(self._early) < self._limits.head_bytes:
                data = await self._stream.receive_some(_READ)
                if not data:
                    self.leave()
                    return
                self._early += data
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.leave()
            return
        # Nothing more is read before the answer is out, so a client's leaving has to be looked for.
        while not self.left:
            await trio.sleep(_LOOK_EVERY)
            if hung_up(self._stream):
                self.leave()
