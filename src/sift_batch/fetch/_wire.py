"""How does one exchange read from its connection, and when has it waited long enough?

A network backend round the guarded one, for one exchange: it bounds what comes, measures its pace,
and remembers how far the exchange has come. It makes no connection and knows no HTTP but what `_framing`
checks. Next: `_client`.
"""

import math
import ssl
from typing import Any, Final, Literal

import httpcore2
import trio

from ._errors import FetchError
from ._framing import Framing

PACE_SECONDS: Final = 10.0
"""Once it has begun, a server has this long to send as much as the minimum pace asks of so many seconds."""

# A small read bounds what a parser can be busy with before others get their turn.
_READ_BYTES: Final = 16 * 1024


class Meter:
    """What is known of one exchange while it runs.

    `scope` ends it when the server is too slow: it has no deadline until the first byte has come (a
    server may think for as long as the whole fetch may take), then one that moves on with what comes.
    `stage` is how far it has come; `broken` tells that the connection ended or failed. `limit` bounds
    the body as it comes; `body` counts what was taken of it, and `announced` is what the site says it
    has, None if it does not. `was_cut`: a secure connection ended without the end that TLS has.
    """

    def __init__(self, *, pace: int, limit: int) -> None:
        self.scope = trio.CancelScope()
        self.limit = limit
        self.announced: int | None = None
        self.stage: Literal["connect", "tls", "head", "body"] = "connect"
        self.broken = False
        self.was_cut = False
        self.body = 0
        self._framing = Framing()
        self._window = pace * PACE_SECONDS
        self._in_window = 0
        self._pace = pace
        self._raw_body = 0

    def begin(self) -> None:
        """The connection stands, and the request goes out."""
        if self.stage in ("connect", "tls"):
            self.stage = "head"

    def take(self, data: bytes) -> None:
        """Account for bytes that came. Raises `FetchError`: `protocol`, `too_large`."""
        self._in_window += len(data)
        if self._in_window >= self._window or self.scope.deadline == math.inf:
            self._restart()
        if self.stage == "body":
            self._raw_body += len(data)
        self._framing.feed(data)
        if self._framing.in_body:
            self.stage = "body"
        # Counted as it comes, with the sizes of chunks: one letter to a chunk is mostly sizes.
        if self._raw_body > self.limit:
            raise too_large(None, self.limit)

    def cut_off(self) -> FetchError:
        """Return the error of a connection that ended or failed before the answer was whole."""
        if self.stage != "body":
            return FetchError("protocol", "the site broke off before it answered", transient=True)
        return FetchError(
            "protocol", f"the site broke off in the middle{self._progress()}", transient=not self.body
        )

    def too_slow(self) -> FetchError:
        """Return the error of a server that did not keep up the pace."""
        message = f"the site sent less than {self._pace:,} bytes a second"
        return FetchError("timeout", f"{message}{self._progress()}")

    def _progress(self) -> str:
        if self.announced is None:
            return ""
        return f": it announced {self.announced:,} bytes and sent {self.body:,}"

    def _restart(self) -> None:
        self._in_window = 0
        if self._window:
            self.scope.deadline = trio.current_time() + PACE_SECONDS


def too_large(size: int | None, limit: int) -> FetchError:
    """Return the error of a page over `limit` bytes; `size` is what the site says it has."""
    if size is None:
        return FetchError("too_large", f"the page has more than the {limit:,} bytes that are taken")
    message = f"the page has {size:,} bytes, and at most {limit:,} are taken"
    return FetchError("too_large", message)


class MeteredBackend(httpcore2.AsyncNetworkBackend):
    """Connects through `inner` and accounts for everything that comes in `meter`."""

    # The library's signatures, ASYNC109 or not: its own deadlines bound nothing and are not used here.

    def __init__(self, inner: httpcore2.AsyncNetworkBackend, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect."""
        stream = await self._inner.connect_tcp(
            host, port, timeout=timeout, local_address=local_address, socket_options=socket_options
        )
        return _MeteredStream(stream, self._meter)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109
        socket_options: Any = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse as the backend behind does."""
        return await self._inner.connect_unix_socket(path, timeout=timeout, socket_options=socket_options)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await trio.sleep(seconds)


class _MeteredStream(httpcore2.AsyncNetworkStream):
    def __init__(self, inner: httpcore2.AsyncNetworkStream, meter: Meter) -> None:
        self._inner = inner
        self._meter = meter

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        try:
            data = await self._inner.read(min(max_bytes, _READ_BYTES), timeout=timeout)
        except Exception:
            self._meter.broken = True
            raise
        if data:
            self._meter.take(data)
        else:
            self._meter.broken = True
            self._meter.was_cut = getattr(self._inner, "was_cut", False)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        self._meter.begin()
        await self._inner.write(buffer, timeout=timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        self._meter.stage = "tls"
        stream = await self._inner.start_tls(ssl_context, server_hostname, timeout=timeout)
        return _MeteredStream(stream, self._meter)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
