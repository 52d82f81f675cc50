"""How is the whole service put together? Store, fetch, engine, callers and application, on one server.

Opened in that order and closed in the reverse one. It reads no settings and installs no signals: whoever
opens it leaves the block when the service is to stop. Next: `_server`, which takes the connections.
"""

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from sift_batch import Gate, Hooks, Runner, open_runner, open_store
from sift_batch.fetch import open_fetcher
from sift_batch.logs import open_log

from ._app import OnError, ServiceApp, make_app
from ._caller_entries import CallersProblem
from ._callers import Callers, Taken, open_callers, open_single_user
from ._contain import alone
from ._counted_store import counted
from ._data_folder import cursor_key, data_folder
from ._events import OnEvent, ServerEvent
from ._events_log import ServiceLog
from ._listening import Listeners, open_listening
from ._metered import open_metered
from ._problems import server_answer
from ._revocation import end_taken
from ._server import serve
from ._service_config import STORE_FILE
from ._settings import Settings
from ._traffic import Both

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

OpenFetcher = Callable[..., AbstractAsyncContextManager[Any]]
"""`sift_batch.fetch.open_fetcher`, or what stands in for it: `opened(config, gate=gate)`."""


class Service:
    """A service that runs."""

    def __init__(
        self,
        app: ServiceApp,
        callers: Callers,
        runner: Runner,
        gate: Gate,
        listeners: Listeners,
        metrics: Listeners | None,
    ) -> None:
        self.app, self.callers, self.runner, self.gate = app, callers, runner, gate
        self.address = listeners.address
        """Where it listens: the host as it stands in a URL, and the port."""
        self.port = self.address[1]
        self.metrics_address = None if metrics is None else metrics.address
        """Where the metrics are, if there are any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What an application gives to its service."""

    hooks: Hooks | None
    registry: "CollectorRegistry | None"
    log: Any
    now: Callable[[], float]
    on_event: OnEvent | None
    on_reload: Callable[[CallersProblem | None], object] | None
    on_error: OnError | None
    fetcher: OpenFetcher


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    hooks: Hooks | None = None,
    registry: "CollectorRegistry | None" = None,
    log: Any = None,
    now: Callable[[], float] = time.time,
    on_event: OnEvent | None = None,
    on_reload: Callable[[CallersProblem | None], object] | None = None,
    on_error: OnError | None = None,
    fetcher: OpenFetcher = open_fetcher,
) -> AsyncGenerator[Service]:
    """Run the whole service round a block: `async with open_service(settings) as service`.

    On entering, it listens, and jobs that an earlier process left live have failed. On leaving: no
    target starts any more, waits and streams end, requests that run have `service.grace_seconds` and
    fetches in flight `engine.shutdown_grace`, beside each other; then everything is closed.

    With a `registry` it has metrics, and gives them on the second listener; they take the place of
    `hooks`.

    Raises on entering: `ValueError` without `service.data`, `CallersError`, `PrivateFileError`,
    `StoreError`, `AddressError` for an address that can't be had, and what the fetcher raises. What the
    body raises comes out as itself.
    """
    around = _Around(
        hooks=hooks,
        registry=registry,
        log=log,
        now=now,
        on_event=on_event,
        on_reload=on_reload,
        on_error=on_error,
        fetcher=fetcher,
    )
    # What the body raises waits here until all is closed: the nurseries would put it into groups.
    raised: BaseException | None = None
    try:
        async with _opened(settings, around) as service:
            try:
                yield service
            except Exception as error:
                raised = error
    except BaseExceptionGroup as group:
        closing = alone(group) or group
        if raised is not None:
            closing.__context__ = raised
        raised = closing
    if raised is not None:
        raise raised  # out here, so that it keeps the cause that it has


@asynccontextmanager
async def _opened(settings: Settings, around: _Around) -> AsyncGenerator[Service]:
    folder, chosen, gate = data_folder(settings.service), settings.service, settings.gate.make()
    told = ServiceLog(open_log(around.log))
    send, taken = trio.open_memory_channel[Taken](float("inf"))
    callers = _callers(settings, folder, around, told, send.send_nowait)
    async with (
        # The addresses first: with one that is taken, the store is left alone.
        open_listening("port", chosen.host, chosen.port, backlog=chosen.backlog) as listeners,
        open_metered(around.registry, settings, gate) as metered,
        open_store(folder / STORE_FILE) as store,
        around.fetcher(settings.fetch_kept(), gate=gate) as fetch,
        # The server outlives the runner's closing: what is under way is read to its end.
        trio.open_nursery() as serving,
        open_runner(
            store if metered is None else counted(store, metered.metrics.hooks.store_error),
            fetch,
            settings.engine,
            hooks=around.hooks if metered is None else metered.metrics.hooks,
            now=around.now,
            log=around.log,
        ) as runner,
        trio.open_nursery() as beside,
    ):
        app = make_app(
            runner,
            fetch,
            gate,
            callers,
            chosen,
            config=settings.engine,
            cursor_key=cursor_key(folder),
            on_error=around.on_error,
            traffic=told if metered is None else Both(metered.metrics, told),
        )
        stop = trio.Event()
        serving_app = partial(
            serve,
            app,
            listeners.all,
            stop=stop,
            limits=chosen.limits(),
            answers=server_answer,
            on_event=_both(told.server, around.on_event),
        )
        try:
            await serving.start(serving_app)
            if metered is not None:
                await serving.start(metered.server(app.health, callers, fetch, stop=stop))
            beside.start_soon(callers.watch)
            beside.start_soon(told.watch)
            beside.start_soon(end_taken, taken, app, runner, callers.let_in)
            measured = None if metered is None else metered.listeners
            yield Service(app, callers, runner, gate, listeners, measured)
        finally:
            app.stop()
            stop.set()
            beside.cancel_scope.cancel()


def _both(first: OnEvent, second: OnEvent | None) -> OnEvent:
    def tell(event: ServerEvent) -> None:
        first(event)
        if second is not None:
            second(event)

    return tell


def _callers(
    settings: Settings,
    folder: Path,
    around: _Around,
    told: ServiceLog,
    on_taken: Callable[[Taken], object],
) -> Callers:
    def reloaded(problem: CallersProblem | None) -> None:
        told.reloaded(problem)
        if around.on_reload is not None:
            around.on_reload(problem)

    def take(taken: Taken) -> None:
        on_taken(taken)
        told.taken(taken)

    path = settings.service.callers
    if path is None:
        return open_single_user(folder, now=around.now, on_reload=reloaded, on_taken=take)
    return open_callers(Path(path), now=around.now, on_reload=reloaded, on_taken=take)
