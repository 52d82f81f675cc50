"""How does the HTTP library get its connection? Only to addresses that were checked.

`GuardedBackend` stands between httpcore2 and the network. It owns everything up to the moment when the
connection stands, TLS included: the look-up, the tries within one deadline, the proof that the other
end is the address that was checked, and what goes wrong on the way, as a `FetchError` of ours. What
happens on the connection afterwards is the client's: `_client` is the next room.
"""

# The library's own interface passes deadlines as `timeout`.
# flake8: noqa: ASYNC109

import ssl
from ipaddress import IPv6Address, ip_address
from typing import Any

import httpcore2
import trio

from ._address import Address
from ._causes import causes, fault, is_spent, spent
from ._config import FetchConfig
from ._errors import FetchError, refused
from ._guard import Guard


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """The network for one `Address`: whatever httpcore2 asks for, it connects to that and to nothing else.

    A failure before the connection stands comes out as `FetchError`, through httpcore2 too: `refused`,
    `dns`, `connect`, `tls`, or `internal` when this machine has no socket left. One deadline of
    `connect_timeout` seconds, which starts after the look-up, holds for all tries and for TLS; later
    ones are the client's, and those that the library passes as `timeout` or `socket_options` count for
    nothing. TLS is spoken with `tls`, and the library's own context is not looked at. `close` leaves no
    socket open, whatever was cancelled.
    """

    def __init__(
        self, guard: Guard, address: Address, config: FetchConfig, tls: ssl.SSLContext | None = None
    ) -> None:
        self._guard = guard
        self._address = address
        self._tls = tls
        self._seconds = config.connect_timeout
        # The sockets of this backend, written by `connect_tcp` alone; closed ones may be among them.
        self._sockets: list[trio.socket.SocketType] = []

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: object = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to one of the checked addresses."""
        if (host.strip("[]"), port) != (self._address.host, self._address.port) or local_address is not None:
            raise fault()  # the library asked for another server than the one that was checked
        numeric = await self._guard.addresses(self._address)
        now = trio.current_time()
        deadline = now + self._seconds
        late = False
        for tries_left in range(len(numeric), 0, -1):
            # An address that never answers must leave time for the others.
            with trio.CancelScope(deadline=now + (deadline - now) / tries_left) as scope:
                connected = await self._connect(numeric[-tries_left], port)
                if connected is not None:
                    return _Connection(connected, self._address, self._tls, deadline)
            late = scope.cancelled_caught
            now = trio.current_time()
            if now >= deadline:
                late = True  # also where the process stood still in between, as a sleeping machine's does
                break
        if late:
            raise FetchError("connect", "the site did not take the connection in time", transient=True)
        raise FetchError("connect", "the site could not be reached", transient=True)

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: object = None
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: no target names a file."""
        raise fault()

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
        except OSError as error:
            if is_spent(error):
                raise spent() from None
            return None  # no such family here
        self._sockets.append(opened)
        try:
            await opened.connect((address, port))
            peer = opened.getpeername()
        except OSError as error:
            opened.close()
            if is_spent(error):
                raise spent() from None
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

    def __init__(
        self, transport: trio.SocketStream, address: Address, tls: ssl.SSLContext | None, deadline: float
    ) -> None:
        self._transport = transport
        self._stream: trio.abc.Stream = transport
        self._address = address
        self._tls = tls
        self._deadline = deadline
        self.was_cut = False
        """The other end went away without the end that TLS has: anybody on the way could do that."""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return bytes(await self._stream.receive_some(max_bytes))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            # Most sites end like this, and where a length is announced it does no harm: the client judges.
            if any(isinstance(cause, ssl.SSLEOFError) for cause in causes(error)):
                self.was_cut = True
                return b""
            raise httpcore2.ReadError from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        try:
            await self._stream.send_all(buffer)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore2.WriteError from error

    async def aclose(self) -> None:
        # The transport at once: a farewell in TLS would wait for the other end's.
        await self._transport.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Speak TLS from here on, with the server that the name of `address` proves to be."""
        if self._tls is None:
            raise fault()
        secure = trio.SSLStream(
            self._transport, self._tls, server_hostname=self._address.host, https_compatible=False
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
        if secure.selected_alpn_protocol() == "h2":  # only a context of the application's own offers it
            self._transport.socket.close()
            hint = "an operator should take h2 out of the protocols of `tls_context`"
            raise FetchError("tls", "the site was promised HTTP/2, which is not spoken here", hint=hint)
        self._stream = secure
        return self

    def get_extra_info(self, info: str) -> Any:
        """Tell nothing: the library looks for HTTP/2, which is never offered, and for idle connections."""
        return None


def _tls_error(error: BaseException) -> FetchError:
    """Say why no secure connection came about. On Trio the text is empty and the causes tell."""
    found = list(causes(error))
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in found):
        return FetchError(
            "tls",
            "the site's certificate does not prove that it is this site",
            transient=False,
            hint="an operator can give the authority of a private site in `ca_file` or `tls_context`",
        )
    if any(isinstance(cause, ssl.SSLError) for cause in found):
        return FetchError("tls", "no secure connection to the site could be made", transient=False)
    return FetchError("connect", "the site broke off before the connection was secure", transient=True)
