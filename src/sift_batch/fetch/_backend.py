"""How does the HTTP library get its connection? Only to addresses that were checked.

`GuardedBackend` stands between httpcore2 and the network. It owns everything up to the moment when the
connection stands, TLS included: the look-up, the tries within one deadline, the proof that the other
end is the address that was checked, and what goes wrong on the way, as a `FetchError` of ours. What
happens on the connection afterwards is the client's: `_client` is the next room.
"""

# ruff: noqa: ASYNC109  # the library's own interface passes deadlines as `timeout`

import ssl
from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from typing import Any, Final

import httpcore2
import trio

from ._address import Address
from ._config import FetchConfig
from ._errors import FetchError, refused
from ._guard import Guard

SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """The network for one `Address`: whatever httpcore2 asks for, it connects to that and to nothing else.

    A failure before the connection stands comes out as `FetchError`, through httpcore2 too: `refused`,
    or an `FetchError` with `dns`, `connect` or `tls`. One deadline of `connect_timeout` seconds, which
    starts after the look-up, holds for all tries and for TLS. `close` leaves no socket open, whatever
    was cancelled.
    """

    def __init__(self, guard: Guard, address: Address, config: FetchConfig) -> None:
        self._guard = guard
        self._address = address
        self._seconds = config.connect_timeout
        # The sockets of this backend, written by `connect_tcp` alone; closed ones may be among them.
        self._sockets: list[trio.socket.SocketType] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to one of the checked addresses; `timeout` is the configuration's, not the argument."""
        if (host.strip("[]"), port) != (self._address.host, self._address.port) or local_address is not None:
            raise FetchError("internal", "the HTTP library asked for another server than the one checked")
        numeric = await self._guard.addresses(self._address)
        deadline = trio.current_time() + self._seconds
        for tries_left in range(len(numeric), 0, -1):
            address = numeric[-tries_left]
            # An address that never answers must leave time for the others.
            seconds = (deadline - trio.current_time()) / tries_left
            connected = None
            with trio.move_on_after(seconds) as scope:
                connected = await self._connect(address, port)
            if connected is not None:
                for option in socket_options or ():
                    connected.setsockopt(*option)
                return _Connection(connected, self._address, deadline)
        if scope.cancelled_caught:
            raise FetchError("connect", "the site did not take the connection in time", transient=True)
        raise FetchError("connect", "the site could not be reached", transient=True)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[SocketOption] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no target names a file."""
        raise FetchError("internal", "the HTTP library asked for a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await trio.sleep(seconds)

    def close(self) -> None:
        """Close what is still open, at once. The last resort after a cancel; does no harm otherwise."""
        for opened in self._sockets:
            opened.close()
        self._sockets.clear()

    async def _connect(self, address: str, port: int) -> trio.SocketStream | None:
        """Return a connection to `address`, or None if it can't be reached. If cancelled, nothing is open."""
        wanted = ip_address(address)
        family = trio.socket.AF_INET6 if wanted.version == 6 else trio.socket.AF_INET
        try:
            opened = trio.socket.socket(family, trio.socket.SOCK_STREAM)
        except OSError:
            return None  # no such family here, or no descriptor left
        self._sockets.append(opened)
        try:
            await opened.connect((address, port))
            peer = opened.getpeername()
        except OSError:
            opened.close()
            return None
        except BaseException:
            opened.close()
            raise
        found = ip_address(peer[0].partition("%")[0])
        if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        if found != wanted or peer[1] != port:
            opened.close()
            raise refused("special_address", "the connection led to another address than the one checked")
        return trio.SocketStream(opened)


class _Connection(httpcore2.AsyncNetworkStream):
    """A connection to the server of `address`, with TLS once `start_tls` has returned."""

    def __init__(self, transport: trio.SocketStream, address: Address, deadline: float) -> None:
        self._transport = transport
        self._stream: trio.abc.Stream = transport
        self._address = address
        self._deadline = deadline

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            with trio.fail_after(_INF if timeout is None else timeout):
                return bytes(await self._stream.receive_some(max_bytes))
        except trio.TooSlowError:
            raise httpcore2.ReadTimeout from None
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore2.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        try:
            with trio.fail_after(_INF if timeout is None else timeout):
                await self._stream.send_all(buffer)
        except trio.TooSlowError:
            raise httpcore2.WriteTimeout from None
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore2.WriteError from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Speak TLS from here on, with the server that the name of `address` proves to be."""
        secure = trio.SSLStream(
            self._transport, ssl_context, server_hostname=self._address.host, https_compatible=True
        )
        try:
            with trio.fail_at(self._deadline):
                await secure.do_handshake()
        except trio.TooSlowError:
            self._transport.socket.close()
            message = "the site did not make the connection secure in time"
            raise FetchError("connect", message, transient=True) from None
        except Exception as error:
            self._transport.socket.close()
            raise _tls_error(error) from None
        except BaseException:
            self._transport.socket.close()
            raise
        self._stream = secure
        return self

    def get_extra_info(self, info: str) -> Any:
        match info:
            case "is_readable":  # the pool asks whether an idle connection was dropped
                return self._transport.socket.is_readable()
            case "socket":
                return self._transport.socket
            case "client_addr":
                return self._transport.socket.getsockname()
            case "server_addr":
                return self._transport.socket.getpeername()
        # No "ssl_object": the library looks there for HTTP/2 only, which is never offered.
        return None


_INF: Final = float("inf")


def _tls_error(error: BaseException) -> FetchError:
    """Say why no secure connection came about. On Trio the text is empty and the causes tell."""
    causes = list(_causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return FetchError(
            "tls",
            "the site's certificate does not prove that it is this site",
            transient=False,
            hint="an operator can give the authority of a private site in `ca_file` or `tls_context`",
        )
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        return FetchError("tls", "no secure connection to the site could be made", transient=False)
    return FetchError("connect", "the site broke off before the connection was secure", transient=True)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
