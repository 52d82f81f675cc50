"""How does a request get to the service over a network? HTTP/1.1, a connection for each, TLS checked.

No variable of the environment turns it: no proxy, no authorities, no file for the keys of a session. What
goes wrong comes out as `Unreachable` in words of ours; nothing is tried twice. Next: nothing; below is the
network.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpcore2
import trio

from ._address import Address, check_key, parse_server
from ._calls import Client
from ._problems import BadServer, Unreachable
from ._transport import Headers

CONNECT_SECONDS: Final = 10.0
_USER_AGENT: Final = (b"user-agent", b"sift-batch")


@asynccontextmanager
async def open_client(
    server: str, key: str, *, ca_file: Path | None = None, plain_http: bool = False
) -> AsyncIterator[Client]:
    """Give a client of the service at `server`, with a key or `""` for none. Nothing is connected yet.

    Certificates are checked against `ca_file` in place of the public authorities, if it is given. A key
    is sent over plain HTTP to this machine only, unless `plain_http` allows more.

    Raises `BadServer` for an address, a key or a `ca_file` that can't be used.
    """
    address = parse_server(server, plain_http=plain_http)
    check_key(key)
    context = None
    if address.scheme == "https":
        context = await trio.to_thread.run_sync(_trusting, ca_file, thread_name="sift-batch tls")
    await trio.lowlevel.checkpoint()
    yield Client(HttpTransport(address, context), key)


def _trusting(ca_file: Path | None) -> ssl.SSLContext:
    import certifi

    # Not `create_default_context`: that one writes the keys of every session into the file that
    # SSLKEYLOGFILE names. No default paths either: SSL_CERT_FILE and SSL_CERT_DIR would move them.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_verify_locations(cafile=str(ca_file) if ca_file is not None else certifi.where())
    except (OSError, ValueError):
        raise BadServer(
            "the certificate authorities can't be loaded; give --ca-file a file in PEM form"
        ) from None
    return context


class HttpTransport:
    """A `Transport` to one address. Holds nothing between two requests."""

    def __init__(self, address: Address, context: ssl.SSLContext | None) -> None:
        self._address = address
        # Without TLS nothing is spoken with it; it trusts nobody.
        self._context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    @asynccontextmanager
    async def request(
        self, method: str, path: str, headers: Headers, body: bytes, *, seconds: float
    ) -> AsyncIterator[tuple[int, Headers, AsyncIterator[bytes]]]:
        """Send a request on a connection of its own, which is closed in the end."""
        backend = _Backend()
        # A pool for one exchange: one that lives longer loses a connection for ever when a call is
        # cancelled at the wrong moment.
        pool = httpcore2.AsyncConnectionPool(
            ssl_context=self._context,
            max_connections=1,
            max_keepalive_connections=0,
            http2=False,
            retries=0,
            network_backend=backend,
        )
        try:
            async with pool:
                response = await _head_of(pool, self._request(method, path, headers, body), backend, seconds)
                async with aclosing(response.aiter_stream()) as stream:
                    yield response.status, response.headers, _Pieces(stream, framed=_is_framed(response))
        finally:
            backend.close()  # whatever the library lost when it was cancelled

    def _request(self, method: str, path: str, headers: Headers, body: bytes) -> httpcore2.Request:
        address = self._address
        url = httpcore2.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode("ascii"),
            port=address.port,
            target=(address.prefix + path).encode("ascii"),
        )
        sent = [
            (b"host", address.authority.encode("ascii")),
            _USER_AGENT,
            (b"connection", b"close"),
            *headers,
        ]
        if body or method in ("POST", "PUT"):
            sent.append((b"content-length", b"%d" % len(body)))
        return httpcore2.Request(method, url, headers=sent, content=body)


async def _head_of(
    pool: httpcore2.AsyncConnectionPool, request: httpcore2.Request, backend: "_Backend", seconds: float
) -> httpcore2.Response:
    with trio.move_on_after(seconds):
        try:
            return await pool.handle_async_request(request)
        except Exception as error:
            raise _meaning(error, backend) from None
    if backend.connected:
        raise Unreachable("the service does not answer in time", transient=True)
    raise Unreachable("the service does not take the connection in time", transient=True)


class _Pieces:
    """The pieces of a body as they come; an end that could be a cut connection is one."""

    def __init__(self, stream: AsyncIterator[bytes], *, framed: bool) -> None:
        self._stream, self._framed = stream, framed

    def __aiter__(self) -> "_Pieces":
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._stream)
        except StopAsyncIteration:
            if not self._framed:
                raise Unreachable("the service's answer broke off", transient=True) from None
            raise
        except Exception as error:
            raise _meaning(error, None) from None


def _is_framed(response: httpcore2.Response) -> bool:
    """Whether the answer says where it ends, as every answer of the service does."""
    names = {name.lower() for name, _ in response.headers}
    return response.status in (204, 304) or bool(names & {b"content-length", b"transfer-encoding"})


class _Backend(httpcore2.AsyncNetworkBackend):
    """The network for one exchange: Trio's, with a bound on connecting, and all that was opened closed."""

    def __init__(self) -> None:
        self._network = httpcore2.TrioBackend()
        self._opened: list[socket.socket] = []
        self.connected = False

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's own interface
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect."""
        stream = await self._network.connect_tcp(
            host.strip("[]"), port, CONNECT_SECONDS, local_address, _keep_alive()
        )
        self._opened.append(stream.get_extra_info("socket"))
        self.connected = True
        return stream

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await trio.sleep(seconds)

    def close(self) -> None:
        """Close what is still open, at once."""
        for opened in self._opened:
            opened.close()


def _keep_alive() -> list[tuple[int, int, int]]:
    # A service that follows a slow job may say nothing for a long time. This tells that from one that is
    # gone without a word: a machine that was switched off, a cable that was pulled.
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


def _meaning(error: Exception, backend: _Backend | None) -> Exception:
    """Return what an error of the library says, in words of ours."""
    if isinstance(error, Unreachable):
        return error
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return Unreachable("the service's certificate is not trusted; name its authority with --ca-file")
        if isinstance(seen, ssl.SSLError) and backend is not None:
            return Unreachable("no secure connection to the service can be made; is it http://?")
        seen = seen.__cause__ or seen.__context__
    if isinstance(error, httpcore2.ProtocolError):
        if backend is None:
            return Unreachable("the service's answer broke off", transient=True)
        return Unreachable("what answers there does not speak HTTP as the service does", transient=True)
    if isinstance(error, httpcore2.TimeoutException):
        return Unreachable("the service does not take the connection in time", transient=True)
    if backend is not None and not backend.connected:
        return Unreachable("nothing answers there", transient=True)
    return Unreachable("the service's answer broke off", transient=True)
