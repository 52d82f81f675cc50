"""How is the whole service put together? Store, fetch, engine, callers and application, on one server.

Opened in that order and closed in the reverse one. It reads no settings and installs no signals: whoever
opens it leaves the block when the service is to stop. Next: `_server`, which takes the connections.
"""

import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import trio

from sift_batch import Gate, Hooks, JobState, Runner, StoreError, open_runner, open_store
from sift_batch.fetch import FetchConfig, open_fetcher

from ._app import OnError, ServiceApp, make_app
from ._caller_entries import CallersProblem
from ._callers import Callers, Taken, open_callers, open_single_user
from ._contain import leaves
from ._cursors import KEY_BYTES
from ._events import OnEvent
from ._listener import address_of, open_listeners
from ._private_file import make_private, make_private_folder, read_private
from ._problems import server_answer
from ._server import serve
from ._settings import Settings

STORE_FILE: Final = "jobs.sift"
CURSOR_KEY_FILE: Final = "cursor-key"
_AGAIN_AFTER: Final = 1.0

OpenFetcher = Callable[..., AbstractAsyncContextManager[Any]]
"""`sift_batch.fetch.open_fetcher`, or what stands in for it: `opened(config, gate=gate)`."""


class Service:
    """A service that runs."""

    def __init__(self, app: ServiceApp, callers: Callers, runner: Runner, gate: Gate, port: int) -> None:
        self.app, self.callers, self.runner, self.gate = app, callers, runner, gate
        self.port = port
        """Where it listens."""


@asynccontextmanager
async def open_service(
    settings: Settings,
    *,
    hooks: Hooks | None = None,
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

    Raises on entering: `ValueError` without `service.data`, `CallersError`, `PrivateFileError`,
    `StoreError`, `OSError` for an address that can't be had, and what the fetcher raises. What the body
    raises comes out as itself.
    """
    try:
        async with _opened(settings, hooks, log, now, on_event, on_reload, on_error, fetcher) as service:
            yield service
    except BaseExceptionGroup as group:
        found = list(leaves(group))
        if len(found) == 1:
            raise found[0] from None
        raise


@asynccontextmanager
async def _opened(
    settings: Settings,
    hooks: Hooks | None,
    log: Any,
    now: Callable[[], float],
    on_event: OnEvent | None,
    on_reload: Callable[[CallersProblem | None], object] | None,
    on_error: OnError | None,
    open_fetch: OpenFetcher,
) -> AsyncGenerator[Service]:
    folder = _folder(settings)
    send, taken = trio.open_memory_channel[Taken](float("inf"))
    callers = _callers(settings, folder, now, on_reload or (lambda _: None), send.send_nowait)
    gate = settings.gate.make()
    async with (
        open_store(folder / STORE_FILE) as store,
        _fetcher_of(open_fetch, settings.fetch, gate) as fetch,
        # The server outlives the runner's closing: what is under way is read to its end.
        trio.open_nursery() as serving,
        open_runner(store, fetch, settings.engine, hooks=hooks, now=now, log=log) as runner,
        trio.open_nursery() as beside,
    ):
        app = make_app(
            runner,
            fetch,
            gate,
            callers,
            settings.service,
            config=settings.engine,
            cursor_key=_cursor_key(folder),
            on_error=on_error,
        )
        listeners = await open_listeners(settings.service.host, settings.service.port)
        stop = trio.Event()
        serving_app = partial(
            serve,
            app,
            listeners,
            stop=stop,
            limits=settings.service.limits(),
            answers=server_answer,
            on_event=on_event,
        )
        try:
            await serving.start(serving_app)
            beside.start_soon(callers.watch)
            beside.start_soon(_end_taken, taken, app, runner)
            yield Service(app, callers, runner, gate, address_of(listeners[0])[1])
        finally:
            app.stop()
            stop.set()
            beside.cancel_scope.cancel()


def _fetcher_of(opened: OpenFetcher, config: FetchConfig, gate: Gate) -> AbstractAsyncContextManager[Any]:
    return opened(config, gate=gate)


def _callers(
    settings: Settings,
    folder: Path,
    now: Callable[[], float],
    on_reload: Callable[[CallersProblem | None], object],
    on_taken: Callable[[Taken], object],
) -> Callers:
    path = settings.service.callers
    if path is None:
        return open_single_user(folder, now=now, on_reload=on_reload, on_taken=on_taken)
    return open_callers(Path(path), now=now, on_reload=on_reload, on_taken=on_taken)


def _folder(settings: Settings) -> Path:
    if settings.service.data is None:
        raise ValueError("service.data must name the folder of the store")
    folder = Path(settings.service.data).absolute()
    make_private_folder(folder)
    return folder


def _cursor_key(folder: Path) -> bytes:
    path = folder / CURSOR_KEY_FILE
    make_private(path, secrets.token_bytes(KEY_BYTES))
    key, _ = read_private(path, limit=KEY_BYTES)
    # A file that was cut short is no secret.
    return key if len(key) == KEY_BYTES else secrets.token_bytes(KEY_BYTES)


async def _end_taken(taken: trio.MemoryReceiveChannel[Taken], app: ServiceApp, runner: Runner) -> None:
    """End what those have under way who are let in no more: their streams, then their live jobs."""
    async for item in taken:
        app.revoke(item)
        await _cancel_jobs(runner, item.callers)
        # A submit that was in the store's hands just then is stored by now.
        await trio.sleep(_AGAIN_AFTER)
        await _cancel_jobs(runner, item.callers)


async def _cancel_jobs(runner: Runner, names: frozenset[str]) -> None:
    left = set(names)
    while left:
        name = next(iter(left))
        try:
            for state in (JobState.QUEUED, JobState.RUNNING):
                for job in await runner.jobs(name, status=state, limit=1_000):
                    await runner.cancel(job.id, caller=name)
            left.discard(name)
        except StoreError:
            await trio.sleep(_AGAIN_AFTER)
