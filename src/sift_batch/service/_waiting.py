"""How long does a request wait, or send? Until its news, its time, its client's leaving, or its end.

An `OpenRequest` is told from outside that it must end: the service stops, or its caller is let in no
more. What is waited for, and what is said then, is the routes' business.
"""

import enum
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import trio

from sift_batch import Caller

from ._asgi import Message, Receive, Send
from ._refusal import BodyRefused, ClientGone

T = TypeVar("T")


class End(enum.Enum):
    """Why a wait ended without its news."""

    TIME = enum.auto()
    STOPPING = enum.auto()
    REVOKED = enum.auto()


class _News(Generic[T]):
    def __init__(self, value: T) -> None:
        self.value = value


class OpenRequest:
    """One request, from when it is let in until its answer is out."""

    def __init__(self, caller: Caller | None, receive: Receive) -> None:
        self.caller = caller
        """Who sends it; None for whoever has no key."""
        self.end: End | None = None
        """Why it must end now, if it must; set once, by `OpenRequests`."""
        self.receive = receive
        # What is cancelled to end the wait that is under way; set and unset by `wait`.
        self._waiting: trio.CancelScope | None = None
        # What is cancelled to end a sending that is under way; set and unset by `send`.
        self._sending: trio.CancelScope | None = None

    def tell(self, end: End) -> None:
        """Let it end."""
        if self.end is None:
            self.end = end
            if self._waiting is not None:
                self._waiting.cancel()
            # Who stops still lets out what is on its way; who is let in no more gets no more of it.
            if end is End.REVOKED and self._sending is not None:
                self._sending.cancel()

    async def wait(self, news: Callable[[], Awaitable[T]], *, seconds: float = math.inf) -> T | End:
        """Return what `news` gives, or why it was not waited for to the end: `news` is cancelled then.

        Raises what `news` raises, `ClientGone` when the client leaves, and `BodyRefused` for a bad body.
        """
        if self.end is not None:
            await trio.lowlevel.checkpoint()
            return self.end
        found: list[_News[T] | Exception] = []
        async with trio.open_nursery() as tasks:

            async def listen() -> None:
                try:
                    while (await self.receive())["type"] != "http.disconnect":
                        pass
                    found.append(ClientGone())
                except BodyRefused as refused:
                    found.append(refused)  # where none belongs, it is no reason to go on
                tasks.cancel_scope.cancel()

            tasks.cancel_scope.deadline = trio.current_time() + seconds
            tasks.start_soon(listen)
            self._waiting = tasks.cancel_scope
            try:
                found.append(_News(await news()))
            except Exception as error:
                found.append(error)  # raised below: out of here it would come as a group
            finally:
                self._waiting = None
            tasks.cancel_scope.cancel()
        if not found:
            return self.end or End.TIME
        if isinstance(found[0], _News):
            return found[0].value
        raise found[0]

    async def send(self, message: Message, send: Send) -> None:
        """Send a message; `ClientGone` if the caller is let in no more meanwhile: the rest is not sent."""
        with trio.CancelScope() as self._sending:
            try:
                await send(message)
            finally:
                scope, self._sending = self._sending, None
        if scope.cancelled_caught:
            raise ClientGone


class OpenRequests:
    """The requests that are open now, and whether more may wait.

    One caller may have `each` of them, and so may all who have no key together.
    """

    def __init__(self, each: float = math.inf) -> None:
        self._each = each
        self._open: set[OpenRequest] = set()
        self._counts: dict[str | None, int] = {}
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether the service stops."""
        return self._stopping

    def full(self, caller: Caller | None) -> bool:
        """Whether a caller has as many requests open as it may have: the rest is for others."""
        return self._counts.get(_name(caller), 0) >= self._each

    @contextmanager
    def enter(self, caller: Caller | None, receive: Receive) -> Iterator[OpenRequest]:
        """Hold a request open."""
        request, name = OpenRequest(caller, receive), _name(caller)
        if self._stopping:
            request.tell(End.STOPPING)
        self._open.add(request)
        self._counts[name] = self._counts.get(name, 0) + 1
        try:
            yield request
        finally:
            self._open.discard(request)
            left = self._counts.pop(name) - 1
            if left:
                self._counts[name] = left

    def stop(self) -> None:
        """The service stops: end all waits, those to come as well."""
        self._stopping = True
        for request in list(self._open):
            request.tell(End.STOPPING)

    def revoked(self, callers: frozenset[str]) -> bool:
        """Return whether requests of callers that were let in no more have not ended yet."""
        return any(
            request.end is End.REVOKED and request.caller is not None and request.caller.name in callers
            for request in self._open
        )

    def revoke(self, *, callers: frozenset[str], keys: frozenset[str]) -> None:
        """End the requests of callers, and of keys, that are let in no more."""
        for request in list(self._open):
            caller = request.caller
            if caller is not None and (caller.name in callers or caller.key_sha256 in keys):
                request.tell(End.REVOKED)


def _name(caller: Caller | None) -> str | None:
    return None if caller is None else caller.name
