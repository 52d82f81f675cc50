"""What happens on one connection? Heads are awaited, requests run one after the other, and it is closed.

Every exception ends here: nothing that a client sends and nothing that an application raises goes on to the
accept loop. One request is `_exchange`; how many connections there are is `_server`'s.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

import h11
import trio

from ._asgi import App, Scope
from ._contain import passing
from ._events import OnEvent
from ._exchange import After, Exchange
from ._head import head_end, parse_head
from ._limits import ServerLimits
from ._places import EXTENSION, Places, Rank
from ._refusal import Answers, Refused, refusal_bytes

_READ: Final = 16 * 1024
_LINGER_BYTES: Final = 4 * 1024 * 1024
_LOOK: Final = 0.001  # what has come is found in no time, but with none nothing is looked for


class Surroundings(NamedTuple):
    """What all connections of one server share."""

    app: App
    limits: ServerLimits
    answers: Answers
    tell: OnEvent
    stopping: Callable[[], bool]
    places: Places["Connection"]
    """Connections that may end to make room; each puts itself in, and out again if it goes on."""
    state: dict[str, Any]


class Connection:
    """One client's connection. `scope.cancel()` closes it at once, whatever it is doing."""

    def __init__(self, stream: trio.abc.Stream, around: Surroundings) -> None:
        self.scope = trio.CancelScope()
        self._stream, self._around, self._limits = stream, around, around.limits
        # Received and not yet read: part of a head, the start of a body, the next request.
        self._early = bytearray()
        self._mute = False  # the request that runs is HEAD: a refusal of it has no body
        self._client, self._server = _addresses(stream)

    @property
    def silent(self) -> bool:
        """Nothing of a next request has come."""
        return not self._early

    async def run(self) -> None:
        """Serve until the client leaves, breaks a rule, or is told to go. Raises nothing but a cancel."""
        try:
            with self.scope:
                await self._talk()
        except BaseException as error:  # noqa: ASYNC103 - what must pass is raised
            rest = passing(error)
            if rest is error:
                raise
            self._around.tell("connection_failed")
            if rest is not None:
                raise rest from None  # noqa: ASYNC104 - the cancel in it goes on
        finally:
            # Shielded: a cancel from outside must not take the place of what ends the program.
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)

    async def _talk(self) -> None:
        try:
            while True:
                parsed = await self._next_request()
                if parsed is None:
                    return
                after = await self._answer(*parsed)
                if after is After.LINGER or (after is After.LAST and await self._receive(_LOOK)):
                    await self._linger()
                if after is not After.KEEP:
                    return
        except Refused as refused:
            await self._refuse(refused.status)

    async def _next_request(self) -> tuple[h11.Connection, h11.Request] | None:
        self._mute = False
        try:
            head = await self._next_head()
            return None if head is None else parse_head(head, self._limits)
        except Refused as refused:
            self._around.tell("slow_head" if refused.status == 408 else "bad_request")
            raise

    async def _next_head(self) -> bytes | None:
        """The bytes of the next head. None when there is none to come."""
        end = head_end(self._early, self._limits) if self._early else -1
        if end < 0:
            self._stand(Rank.WAITS)
            try:
                end = await self._wait_head()
            finally:
                self._around.places.leave(self)
        if end < 0:
            return None
        head = bytes(self._early[:end])
        del self._early[:end]
        return head

    async def _wait_head(self) -> int:
        if self.silent and (self._around.stopping() or not await self._receive(self._limits.idle_seconds)):
            return -1
        end = head_end(self._early, self._limits)
        if end >= 0:
            return end
        with trio.move_on_after(self._limits.head_seconds):
            while await self._receive():
                end = head_end(self._early, self._limits)
                if end >= 0:
                    return end
            return -1
        raise Refused(408)

    async def _receive(self, seconds: float = float("inf")) -> bool:
        try:
            with trio.move_on_after(seconds):
                data = await self._stream.receive_some(_READ)
                self._early += data
                return bool(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        return False

    async def _answer(self, wire: h11.Connection, request: h11.Request) -> After:
        self._mute = request.method == b"HEAD"
        exchange = Exchange(
            self._stream,
            wire,
            request,
            limits=self._limits,
            early=self._early,
            stopping=self._around.stopping,
            tell=self._around.tell,
        )
        try:
            return await exchange.run(self._around.app, self._scope_of(request))
        finally:
            self._around.places.leave(self)

    def _counts(self, for_somebody: bool) -> None:
        if for_somebody:
            self._around.places.leave(self)
        else:
            self._stand(Rank.NOBODYS)

    def _stand(self, rank: Rank) -> None:
        if not self.scope.cancel_called:  # else it has given way already, and makes no more room
            self._around.places.stand(self, rank)

    def _scope_of(self, request: h11.Request) -> Scope:
        raw_path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            # Before 2.4 a framework watches for the disconnect while it streams, so an event
            # stream with nothing to say still ends when its reader leaves.
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": request.http_version.decode("ascii"),
            "method": request.method.decode("ascii"),
            "scheme": "http",
            "path": unquote_to_bytes(raw_path).decode("utf-8", "replace"),
            "raw_path": raw_path,
            "query_string": query,
            "root_path": "",
            "headers": list(request.headers),
            "client": self._client,
            "server": self._server,
            "state": self._around.state.copy(),
            "extensions": {EXTENSION: self._counts},
        }

    async def _refuse(self, status: int) -> None:
        await self._linger(refusal_bytes(status, self._around.answers, mute=self._mute))

    async def _linger(self, data: bytes = b"") -> None:
        self._stand(Rank.LINGERS)
        await say_and_linger(self._stream, data, self._limits)


async def say_and_linger(stream: trio.abc.Stream, data: bytes, limits: ServerLimits) -> None:
    """Send `data`, then wait a little for the client to stop sending.

    A close with bytes unread would reset the connection, and the client might never read what it was told.
    """
    with trio.move_on_after(limits.linger_seconds):
        try:
            if data:
                await stream.send_all(data)
            if isinstance(stream, trio.abc.HalfCloseableStream):
                await stream.send_eof()
            left = _LINGER_BYTES
            while left > 0:
                taken = len(await stream.receive_some(_READ))
                if not taken:
                    return
                left -= taken
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass


def _addresses(stream: trio.abc.Stream) -> tuple[tuple[str, int] | None, tuple[str, int] | None]:
    if not isinstance(stream, trio.SocketStream):
        return None, None
    try:
        peer, own = stream.socket.getpeername(), stream.socket.getsockname()
    except OSError:
        return None, None  # the client is gone already
    return (peer[0], peer[1]), (own[0], own[1])
