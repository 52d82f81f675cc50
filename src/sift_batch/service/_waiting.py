"""How long does a request that waits go on? Until its news, its time, its client's leaving, or its end.

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

from ._asgi import Receive
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
    """One request that may wait."""

    def __init__(self, caller: Caller, receive: Receive) -> None:
        self.caller = caller
        self.end: End | None = None
        """Why it must end now, if it must; set once, by `OpenRequests`."""
        self.receive = receive
        self._told = trio.Event()

    def tell(self, end: End) -> None:
        """Let it end."""
        if self.end is None:
            self.end = end
            self._told.set()

    async def wait(self, news: Callable[[], Awaitable[T]], *, seconds: float = math.inf) -> T | End:
        """Return what `news` gives, or why it was not waited for to the end: `news` is cancelled then.

        Raises what `news` raises, and `ClientGone` when the client leaves.
        """
        if self.end is not None:
            await trio.lowlevel.checkpoint()
            return self.end
        found: list[_News[T] | Exception] = []
        async with trio.open_nursery() as tasks:
            # Kept, and raised below: out of here it would come as a group.
            async def follow() -> None:
                try:
                    found.append(_News(await news()))
                except Exception as error:
                    found.append(error)
                tasks.cancel_scope.cancel()

            async def listen() -> None:
                try:
                    while (await self.receive())["type"] != "http.disconnect":
                        pass
                except BodyRefused:
                    pass  # a body where none belongs is no reason to go on
                found.append(ClientGone())
                tasks.cancel_scope.cancel()

            async def end() -> None:
                await self._told.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(follow)
            tasks.start_soon(listen)
            tasks.start_soon(end)
            tasks.cancel_scope.deadline = trio.current_time() + seconds
        if not found:
            return self.end or End.TIME
        if isinstance(found[0], _News):
            return found[0].value
        raise found[0]


class OpenRequests:
    """The requests that are open now, and whether more may wait."""

    def __init__(self) -> None:
        self._open: set[OpenRequest] = set()
        self._stopping = False

    @property
    def stopping(self) -> bool:
        """Whether the service stops."""
        return self._stopping

    @contextmanager
    def enter(self, caller: Caller, receive: Receive) -> Iterator[OpenRequest]:
        """Hold a request open."""
        request = OpenRequest(caller, receive)
        if self._stopping:
            request.tell(End.STOPPING)
        self._open.add(request)
        try:
            yield request
        finally:
            self._open.discard(request)

    def stop(self) -> None:
        """The service stops: end all waits, those to come as well."""
        self._stopping = True
        for request in list(self._open):
            request.tell(End.STOPPING)

    def revoke(self, *, callers: frozenset[str], keys: frozenset[str]) -> None:
        """End the requests of callers, and of keys, that are let in no more."""
        for request in list(self._open):
            if request.caller.name in callers or request.caller.key_sha256 in keys:
                request.tell(End.REVOKED)
