"""What does one server answer to one request?

One GET over HTTP/1.1 on a connection of its own, which is closed in the end. Whatever a server does ends
in an `Answer` or in a `FetchError` of the closed list; no text of a library reaches the caller. It
follows no redirect, judges no status, tries nothing twice and keeps nothing from one exchange to the
next. Next: `_wire`, which it reads through; `_hops`, which calls it.
"""

import ssl
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import httpcore2
import trio

from .._passing import leaves_of, what_passes
from ._address import Address
from ._backend import GuardedBackend
from ._body import is_packed, read_body
from ._causes import causes, fault
from ._config import FetchConfig
from ._errors import FetchError
from ._framing import malformed
from ._wire import Meter, MeteredBackend

if TYPE_CHECKING:
    from ._guard import Guard

ACCEPT: Final = "text/html, application/xhtml+xml, application/json, text/*;q=0.9, */*;q=0.5"
"""What a page is asked for as."""

_EMPTY: Final = frozenset({204, 205})
_PARTIAL: Final = 206
# Repeats of these are one list; of any other header the first counts.
_LISTS: Final = frozenset({"content-encoding", "retry-after"})


class Answer(NamedTuple):
    """What a server answered.

    `headers` by lower-case name, the first of equals; repeats of Retry-After are joined by a comma.
    `body` is unpacked, in pieces, and empty unless the status is 2xx. `wire` counts its bytes as they
    came, without the sizes of chunks, `decoded` unpacked.
    """

    status: int
    headers: Mapping[str, bytes]
    body: list[bytes]
    wire: int
    decoded: int


class Client:
    """Makes exchanges by one `FetchConfig`; shared by all fetches and holds no state of theirs."""

    def __init__(self, config: FetchConfig, guard: "Guard") -> None:
        self._config = config
        self._guard = guard
        # Made at the first https address, in a thread: reading the authorities takes some 20 ms.
        self._tls = config.tls_context
        # What the library gets in place of it: it sets protocols on its context at each connection, and
        # an application's own may be in use elsewhere. Nothing is spoken with this one; it trusts nobody.
        self._stand_in = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._one_loader = trio.CapacityLimiter(1)

    async def get(self, address: Address, *, accept: str = ACCEPT, max_bytes: int | None = None) -> Answer:
        """Return what the server of `address` answers, whatever its status.

        Bounds are those of the config but for the total time, which is the caller's cancel scope;
        `max_bytes` lowers the bounds of the body. If cancelled, no connection stays open.

        Raises `FetchError`; `transient` is true where the same try a moment later often ends otherwise.
        """
        wire_limit = min(self._config.max_wire_bytes, max_bytes or self._config.max_wire_bytes)
        decoded_limit = min(self._config.max_decoded_bytes, max_bytes or self._config.max_decoded_bytes)
        meter = Meter(pace=self._config.min_bytes_per_second, limit=wire_limit)
        with _own_errors(meter):
            if address.scheme == "https":
                await self._load_tls()
            with meter.scope:
                return await self._exchange(address, accept, meter, decoded_limit)
        raise meter.too_slow()

    def _backend(self, address: Address) -> GuardedBackend:
        return GuardedBackend(self._guard, address, self._config, self._tls)

    async def _exchange(self, address: Address, accept: str, meter: Meter, decoded_limit: int) -> Answer:
        url = httpcore2.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode(),
            port=address.port,
            target=address.target.encode(),
        )
        headers = [
            ("Host", address.authority),
            ("Accept", accept),
            ("Accept-Encoding", "gzip"),
            ("User-Agent", self._config.user_agent),
        ]
        guarded = self._backend(address)
        # A pool for this one exchange: one that lives longer loses a connection for ever when a call is
        # cancelled at the wrong moment, and would carry state from one caller to the next.
        pool = httpcore2.AsyncConnectionPool(
            ssl_context=self._stand_in,
            max_connections=1,
            max_keepalive_connections=0,
            http2=False,
            retries=0,
            network_backend=MeteredBackend(guarded, meter),
        )
        try:
            async with (
                pool,
                pool.stream("GET", url, headers=headers) as response,
            ):
                return await _receive(response, meter, decoded_limit)
        finally:
            guarded.close()  # whatever the library lost when it was cancelled

    async def _load_tls(self) -> None:
        if self._tls is None:
            self._tls = await trio.to_thread.run_sync(
                self._load, limiter=self._one_loader, thread_name="sift-batch tls"
            )

    def _load(self) -> ssl.SSLContext:
        if self._tls is not None:
            return self._tls  # somebody else waited less
        import certifi

        # Not `create_default_context`: that one writes every session's keys into the file that
        # SSLKEYLOGFILE names. No default paths either: SSL_CERT_FILE and SSL_CERT_DIR would move them.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_verify_locations(cafile=self._config.ca_file or certifi.where())
        except (OSError, ValueError):
            raise FetchError(
                "tls",
                "the certificate authorities can't be read",
                hint="an operator should check `ca_file`",
            ) from None
        return context


async def _receive(response: httpcore2.Response, meter: Meter, decoded_limit: int) -> Answer:
    status = response.status
    headers = _headers(response.headers)
    if not 200 <= status < 600 or status == _PARTIAL:
        raise malformed()  # an upgrade, a part, or a status that does not exist: nobody asked for it
    if status >= 300 or status in _EMPTY:
        return Answer(status, headers, [], 0, 0)
    if "content-length" in headers:
        meter.announced = int(headers["content-length"])  # the parser let ASCII digits pass, twenty at most
    packed = is_packed(headers.get("content-encoding", b""))
    async with aclosing(response.aiter_stream()) as chunks:
        body = await read_body(chunks, meter, packed=packed, limit=decoded_limit)
    if meter.was_cut and "content-length" not in headers and "transfer-encoding" not in headers:
        raise meter.cut_off()  # the end of the connection was to be the end of the body, and it was no end
    return Answer(status, headers, body.pieces, meter.body, body.size)


def _headers(found: list[tuple[bytes, bytes]]) -> dict[str, bytes]:
    headers: dict[str, bytes] = {}
    for raw, value in found:
        name = raw.decode("ascii").lower()
        if name not in headers:
            headers[name] = value
        elif name in _LISTS:
            headers[name] += b", " + value
    if "content-length" in headers and "transfer-encoding" in headers:
        raise malformed()  # two opinions on where the body ends
    return headers


@contextmanager
def _own_errors(meter: Meter) -> Iterator[None]:
    """Turn whatever comes out of the HTTP stack into an error of ours; its text could hold the target."""
    try:
        yield
    except FetchError:
        raise
    except BaseExceptionGroup as group:
        # A look-up of the application's own may have a nursery. A cancellation in it passes alone.
        passes = what_passes(group)
        if passes is not None:
            raise passes from None
        raise _first(group, meter) from None
    except Exception as error:
        raise _meaning(error, meter) from None


def _first(group: BaseExceptionGroup[BaseException], meter: Meter) -> FetchError:
    found = list(leaves_of(group))
    for leaf in found:
        if isinstance(leaf, FetchError):
            return leaf
    return _meaning(found[0], meter)


def _meaning(error: BaseException, meter: Meter) -> FetchError:
    if not isinstance(error, httpcore2.NetworkError | httpcore2.RemoteProtocolError):
        return fault()
    insecure = any(isinstance(cause, ssl.SSLError) for cause in causes(error))
    if insecure and meter.stage != "body":
        return FetchError("tls", "no secure connection to the site could be made")
    if meter.stage in ("connect", "tls"):
        return FetchError("connect", "the site could not be reached", transient=True)
    if not meter.broken:
        return malformed()
    return meter.cut_off()
