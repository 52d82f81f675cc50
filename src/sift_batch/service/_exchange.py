"""How does one request get its answer? The application is called, and what it sends goes out. ASGI's send.

What the application receives is `_body`'s; heads and the life of a connection are `_connection`'s.
"""

import enum
from collections.abc import Callable
from typing import Final

import h11
import trio

from ._asgi import App, Message, Scope
from ._body import Body
from ._contain import leaves, passing
from ._events import OnEvent
from ._limits import ServerLimits
from ._refusal import BodyRefused, ClientGone, Refused, title

_PIECE: Final = 64 * 1024
_NO_BODY: Final = (204, 304)


class After(enum.Enum):
    """What becomes of the connection once a request is answered."""

    KEEP = enum.auto()
    CLOSE = enum.auto()
    LAST = enum.auto()  # closed, but if more has come by now, as with LINGER
    LINGER = enum.auto()  # the client may still be sending: closing at once could destroy the answer


class Exchange:
    """One request of one connection, from the parsed head to the end of its answer."""

    def __init__(
        self,
        stream: trio.abc.Stream,
        wire: h11.Connection,
        request: h11.Request,
        *,
        limits: ServerLimits,
        early: bytearray,
        stopping: Callable[[], bool],
        tell: OnEvent,
    ) -> None:
        self._stream, self._wire, self._limits = stream, wire, limits
        self._early, self._stopping, self._tell = early, stopping, tell
        self._mute = request.method == b"HEAD"
        self._body = Body(stream, wire, request, limits=limits, early=early, put=self._put, tell=tell)
        self._broken = False  # the client takes no more
        # The answer: what the application started; its head is framed; bytes of it may be out; all of it is.
        self._start: h11.Response | None = None
        self._begun = False
        self._sent = False
        self._finished = False
        self._cut_short = False  # a HEAD was answered before the application had said it all

    async def run(self, app: App, scope: Scope) -> After:
        """Call the application and answer. `Refused` when there is no answer but the server's own."""
        async with trio.open_nursery() as tasks:
            self._body.open(tasks)
            failure = await self._call(app, scope)
            # Whoever of the application asks later than that is told at once.
            self._body.end()
            if tasks.child_tasks:  # a cancel costs as much as the nursery itself
                tasks.cancel_scope.cancel()
        return self._after(failure)

    async def _call(self, app: App, scope: Scope) -> BaseException | None:
        try:
            await app(scope, self._body.receive, self.send)
        except BaseException as error:  # noqa: ASYNC103 - what must pass is raised
            rest = passing(error)
            if rest is error:
                raise
            if rest is not None:
                self._tell("app_failed")
                raise rest from None  # noqa: ASYNC104 - the cancel in it goes on
            return error  # noqa: ASYNC104 - no cancel in it
        return None

    def _after(self, failure: BaseException | None) -> After:
        if self._finished and (failure is None or self._cut_short):
            done = self._wire.our_state is h11.DONE and self._wire.their_state is h11.DONE
            if done and not (self._body.left or self._cut_short or self._stopping()):
                return After.KEEP
            return After.LAST if self._body.whole and not self._early else After.LINGER
        if failure is not None:
            for error in leaves(failure):
                if isinstance(error, BodyRefused) and not self._sent:
                    raise Refused(error.status)
        self._tell("disconnected" if self._body.left and not self._finished else "app_failed")
        if self._finished and not self._body.whole:
            return After.LINGER
        if self._sent or self._broken or (self._body.left and not self._body.whole):
            return After.CLOSE
        raise Refused(500)

    async def send(self, message: Message) -> None:
        """Take one ASGI message. Waits until the client takes the bytes; `ClientGone` when it does not."""
        if self._broken or self._cut_short:
            await trio.lowlevel.checkpoint()
            raise ClientGone
        kind = message["type"]
        if kind == "http.response.start" and self._start is None:
            self._start = self._response(message)
        elif kind == "http.response.body" and self._start is not None and not self._finished:
            more = bool(message.get("more_body", False))
            await self._send_body(self._start, bytes(message.get("body", b"")), more=more)
        else:
            raise RuntimeError("the application sent a message out of order")

    def _response(self, message: Message) -> h11.Response:
        # Framing is the server's: a transfer coding of the application's own would be a second opinion.
        headers = [(bytes(name), bytes(value)) for name, value in message.get("headers", ())]
        headers = [pair for pair in headers if pair[0].lower() not in (b"transfer-encoding", b"connection")]
        status = int(message["status"])
        return h11.Response(status_code=status, headers=headers, reason=title(status).encode("ascii"))

    def _begin(self, start: h11.Response) -> bytes:
        self._begun = True
        self._body.take_what_came()
        # h11 takes a bare LF in trailers, where a proxy may not: a chunked request is the last one.
        if self._stopping() or not self._body.whole or self._body.declared is None or self._body.left:
            headers = [*start.headers.raw_items(), (b"connection", b"close")]
            start = h11.Response(status_code=start.status_code, headers=headers, reason=start.reason)
        return self._wire.send(start)

    async def _send_body(self, start: h11.Response, body: bytes, *, more: bool) -> None:
        out = bytearray() if self._begun else bytearray(self._begin(start))
        if not self._mute and start.status_code not in _NO_BODY:
            view = memoryview(body)
            for at in range(0, len(body), _PIECE):
                out += self._wire.send(h11.Data(data=view[at : at + _PIECE]))  # type: ignore[arg-type]
                if len(out) >= _PIECE:
                    self._sent = True
                    await self._put(bytes(out))
                    out.clear()
        if not more or self._mute:
            out += self._wire.send(h11.EndOfMessage())
        if out:
            self._sent = True
            await self._put(bytes(out))
        else:
            await trio.lowlevel.checkpoint()
        if not more or self._mute:
            self._finished = True
            self._cut_short = more  # HEAD has its answer; an endless stream must not go on for it
            self._body.end()

    async def _put(self, data: bytes) -> None:
        sent = False
        try:
            with trio.move_on_after(self._limits.send_seconds) as scope:
                await self._stream.send_all(data)
                sent = True
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            # Also when the application cancels its own sending: half of the bytes may be out.
            if not sent:
                self._lose()
        if scope.cancelled_caught:
            self._tell("slow_reader")
        if not sent:
            raise ClientGone

    def _lose(self) -> None:
        self._broken = True
        self._body.leave()
