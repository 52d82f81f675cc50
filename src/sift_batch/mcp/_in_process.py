"""How can a whole service run in this process, without a socket? Its application, called as a function.

Store, fetch, engine and application are put together as those of a service in single-user mode, so that a
service on the same folder, later, has the same jobs for the same caller. Next: `_calls`.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import trio

from sift_batch import open_runner, open_store

from .._client import Client, Unreachable
from ..fetch import open_fetcher
from ..service._app import make_app
from ..service._asgi import App, Message
from ..service._callers import KEY_FILE, open_single_user
from ..service._data_folder import cursor_key, data_folder
from ..service._keys import read_key
from ..service._open import OpenFetcher
from ..service._private_file import read_private
from ..service._service_config import STORE_FILE
from ..service._settings import Settings

_HOST: Final = (b"host", b"127.0.0.1")
_LONGEST_KEY: Final = 1_024


@asynccontextmanager
async def open_in_process(
    settings: Settings,
    *,
    log: Any = None,
    now: Callable[[], float] = time.time,
    on_error: Callable[[Exception], object] | None = None,
    fetcher: OpenFetcher = open_fetcher,
) -> AsyncIterator[Client]:
    """Give a client of a service that is opened for it and closed after it.

    On leaving, no target starts any more, and fetches in flight have `engine.shutdown_grace` seconds.

    Raises on entering: `ValueError` without `service.data`, `CallersError`, `PrivateFileError`,
    `StoreInUseError` while a service or another process has the folder, `StoreError`, and what the fetcher
    raises.
    """
    folder = data_folder(settings.service)
    callers = open_single_user(folder, now=now)
    raw, _ = read_private(folder / KEY_FILE, limit=_LONGEST_KEY)
    key = read_key(raw)
    assert key is not None  # the callers would not have opened
    gate = settings.gate.make()
    async with (
        open_store(folder / STORE_FILE) as store,
        fetcher(settings.fetch_kept(), gate=gate) as fetch,
        open_runner(store, fetch, settings.engine, now=now, log=log) as runner,
    ):
        app = make_app(
            runner,
            fetch,
            gate,
            callers,
            settings.service,
            config=settings.engine,
            cursor_key=cursor_key(folder),
            on_error=on_error,
        )
        try:
            yield Client(AppTransport(app), key.decode("ascii"))
        finally:
            app.stop()


class AppTransport:
    """A `Transport` that calls an ASGI application, for answers that end: each is made before it is read."""

    def __init__(self, app: App) -> None:
        self._app = app

    @asynccontextmanager
    async def request(
        self, method: str, path: str, headers: Any, body: bytes, *, seconds: float
    ) -> AsyncIterator[tuple[int, list[tuple[bytes, bytes]], AsyncIterator[bytes]]]:
        """Send a request; give status, headers and body."""
        answer: list[Message] = []
        asked = False

        async def receive() -> Message:
            nonlocal asked
            if asked:
                await trio.sleep_forever()
            asked = True
            await trio.lowlevel.checkpoint()
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            await trio.lowlevel.checkpoint()
            answer.append(message)

        with trio.move_on_after(seconds) as limit:
            await self._app(_scope(method, path, [_HOST, *headers]), receive, send)
        if limit.cancelled_caught:
            raise Unreachable("the answer was not there in time", transient=True)
        if not answer or answer[-1].get("more_body", False):
            raise Unreachable("the answer broke off", transient=True)
        yield answer[0]["status"], answer[0]["headers"], _pieces(answer[1:])


async def _pieces(messages: list[Message]) -> AsyncIterator[bytes]:
    for message in messages:
        await trio.lowlevel.checkpoint()
        yield message.get("body", b"")


def _scope(method: str, path: str, headers: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    raw_path, _, query = path.encode("ascii").partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote_to_bytes(raw_path).decode("utf-8", "replace"),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": None,
        "server": None,
        "state": {},
    }
