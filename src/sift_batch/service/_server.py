"""Who is let in, and when does the server stop? The accept loop, the cap, and the end.

Each connection is a task of its own (`_connection`) that lets no exception out. Nothing is logged; events go
to a callback, by name. No TLS, no HTTP/2, no WebSocket: a proxy in front has them.
"""

import errno
from collections.abc import Callable, Sequence
from typing import Any, Final

import trio

from ._asgi import App
from ._connection import Connection, Surroundings, say_and_linger
from ._events import OnEvent, contained
from ._lifespan import Lifespan
from ._limits import ServerLimits
from ._places import Places, Rank
from ._refusal import Answers, problem, refusal_bytes

_DEFAULTS: Final = ServerLimits()
_REFUSING: Final = 32  # refusals that are being told at the same time; more are closed without a word
_ACCEPT_PAUSE: Final = 0.1
_CLOSE_SECONDS: Final = 1.0


async def serve(
    app: App,
    listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
    *,
    stop: trio.Event,
    limits: ServerLimits = _DEFAULTS,
    answers: Answers = problem,
    on_event: OnEvent | None = None,
    task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve an ASGI application over HTTP/1.1 until `stop` is set and the last request has ended.

    Started (for `nursery.start`) once the application is up and connections are taken. On `stop` nothing new
    is taken, idle connections are closed, requests that run have `limits.grace_seconds`, then are cancelled
    and cut; then the application has as long again to shut down. Returns, raises or is cancelled with every
    connection and every listener closed.

    Each call has a cap and a lifespan of its own. Raises `StartupFailed`, and what the lifespan raises later;
    never what a request does.
    """
    lifespan = Lifespan(app)
    try:
        async with trio.open_nursery() as tasks:
            tasks.start_soon(lifespan.run, tasks.cancel_scope)
            if await lifespan.wait_started():
                server = _Server(app, limits, answers, contained(on_event), lifespan.state)
                await server.run(listeners, stop, lambda: task_status.started())
                await lifespan.shut_down(limits.grace_seconds)
            tasks.cancel_scope.cancel()
    finally:
        await _close(listeners)  # noqa: ASYNC102 - it has a shield of its own, with a deadline
    if lifespan.failure is not None:
        raise lifespan.failure


class _Server:
    def __init__(
        self, app: App, limits: ServerLimits, answers: Answers, tell: OnEvent, state: dict[str, Any]
    ) -> None:
        self._limits, self._answers, self._tell = limits, answers, tell
        # Those of the open connections that may end to make room.
        self._places: Places[Connection] = Places()
        self._around = Surroundings(app, limits, answers, tell, lambda: self._stopping, self._places, state)
        self._stopping = False
        # Open connections, less those that were told to go. Never more than the cap.
        self._open: set[Connection] = set()
        self._refusing = 0

    async def run(
        self,
        listeners: Sequence[trio.abc.Listener[trio.abc.Stream]],
        stop: trio.Event,
        started: Callable[[], None],
    ) -> None:
        # Two nurseries: the inner one takes connections, the outer one finishes them.
        async with trio.open_nursery() as connections:
            async with trio.open_nursery() as accepting:
                for listener in listeners:
                    accepting.start_soon(self._accept, listener, connections)
                started()
                await stop.wait()
                accepting.cancel_scope.cancel()
            await _close(listeners)
            self._stopping = True
            for connection in self._places.of(Rank.WAITS):
                if connection.silent:
                    connection.scope.cancel()
            connections.cancel_scope.deadline = trio.current_time() + self._limits.grace_seconds
        if connections.cancel_scope.cancelled_caught:
            self._tell("forced_close")

    async def _accept(self, listener: trio.abc.Listener[trio.abc.Stream], tasks: trio.Nursery) -> None:
        while True:
            try:
                stream = await listener.accept()
            except trio.ClosedResourceError:
                return
            except OSError as error:
                # No descriptors, no memory, a client that left in the queue: none of it is for ever.
                self._tell("accept_failed")
                if error.errno == errno.EMFILE:
                    self._make_room()  # the process has fewer descriptors than the cap would take
                await trio.sleep(_ACCEPT_PAUSE)
            else:
                self._admit(stream, tasks)

    def _admit(self, stream: trio.abc.Stream, tasks: trio.Nursery) -> None:
        if len(self._open) >= self._limits.connections and not self._make_room():
            tasks.start_soon(self._refuse, stream)
            return
        connection = Connection(stream, self._around)
        self._open.add(connection)
        tasks.start_soon(self._serve, connection)

    def _make_room(self) -> bool:
        """Close one connection for the sake of the next; False if all must stay."""
        # A flood of clients that say nothing, never finish, or have no key then only pushes itself out.
        first = self._places.first()
        if first is None:
            return False
        self._leave(first)
        first.scope.cancel()
        self._tell("evicted")
        return True

    async def _serve(self, connection: Connection) -> None:
        self._tell("connection_opened")
        try:
            await connection.run()
        finally:
            self._leave(connection)
            self._tell("connection_closed")

    async def _refuse(self, stream: trio.abc.Stream) -> None:
        self._tell("refused_full")
        self._refusing += 1
        try:
            if self._refusing <= _REFUSING:
                await say_and_linger(stream, refusal_bytes(503, self._answers), self._limits)
        except Exception:
            self._tell("connection_failed")
        finally:
            self._refusing -= 1
            await trio.aclose_forcefully(stream)

    def _leave(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._places.leave(connection)


async def _close(listeners: Sequence[trio.abc.Listener[trio.abc.Stream]]) -> None:
    # A cancel at the first one must not leave the second one open.
    with trio.move_on_after(_CLOSE_SECONDS, shield=True):
        for listener in listeners:
            await listener.aclose()
