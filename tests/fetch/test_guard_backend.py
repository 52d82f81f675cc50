"""The network behind the HTTP library: whom it connects to, how it fails, and what it leaves open."""

import errno
import ssl
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace

import httpcore2
import pytest
import trio
import trio.testing
import trustme

from sift_batch.fetch._backend import GuardedBackend
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._guard import Guard

LOOPBACK = ["127.0.0.0/8", "::1/128"]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Give a certificate authority of our own."""
    return trustme.CA()


def client_context(authority: trustme.CA | None = None) -> ssl.SSLContext:
    """Give a context that trusts one authority, or none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authority is not None:
        authority.configure_trust(context)
    return context


def server_context(authority: trustme.CA, seen: list[str | None], *names: str) -> ssl.SSLContext:
    """Give the context of a server that keeps the names it is asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    context.sni_callback = lambda _socket, name, _context: seen.append(name)
    return context


@asynccontextmanager
async def serving(answer, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"):
    """Run a server; gives its port, the heads it got and the peers that came."""
    stage = SimpleNamespace(port=0, heads=[], peers=[])

    async def handle(stream: trio.SocketStream) -> None:
        stage.peers.append(stream.socket.getpeername())
        wrapped = trio.SSLStream(stream, tls, server_side=True, https_compatible=True) if tls else stream
        try:
            if answer is None:
                await trio.sleep_forever()
            if answer == b"":
                await stream.aclose()
                return
            head = b""
            while b"\r\n\r\n" not in head:
                got = await wrapped.receive_some(4096)
                if not got:
                    return
                head += got
            stage.heads.append(head.decode())
            await wrapped.send_all(answer)
            await wrapped.aclose()
        except trio.BrokenResourceError:
            pass

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host=host))
        stage.port = listeners[0].socket.getsockname()[1]
        yield stage
        nursery.cancel_scope.cancel()


def resolver(*answers: str):
    """Give a look-up that answers these."""

    async def resolve(_host: str) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        return answers

    return resolve


def backend_for(url: str, tls: ssl.SSLContext | None = None, **settings) -> GuardedBackend:
    """Give the network for one URL."""
    settings.setdefault("resolve", resolver("127.0.0.1"))
    config = FetchConfig(allow=LOOPBACK, ports=None, **settings)
    guard = Guard(config)
    return GuardedBackend(guard, guard.parse(url), config, tls)


async def get(backend: GuardedBackend) -> bytes:
    """Fetch over a pool of the library, with a context that trusts nobody, as the client does."""
    address = backend._address
    url = httpcore2.URL(
        scheme=address.scheme.encode(), host=address.host.encode(), port=address.port, target=b"/"
    )
    async with httpcore2.AsyncConnectionPool(
        network_backend=backend, ssl_context=client_context(), max_connections=1, max_keepalive_connections=0
    ) as pool:
        response = await pool.request("GET", url, headers={"Host": address.authority})
    return response.content


def all_closed(backend: GuardedBackend) -> bool:
    """Say whether the backend has opened sockets and left none open."""
    return bool(backend._sockets) and all(opened.fileno() == -1 for opened in backend._sockets)


async def test_connects_to_what_was_looked_up():
    """The request goes to the address that was looked up, with Host of the name."""
    async with serving(OK) as server:
        backend = backend_for(f"http://a.org:{server.port}/")
        assert await get(backend) == b"hi"
    assert f"Host: a.org:{server.port}\r\n" in server.heads[0]
    assert all_closed(backend)


async def test_a_resolver_that_flips_changes_nothing():
    """The name is looked up once for a connection: what a second answer would say is never asked."""
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])

    async def resolve(_host: str) -> list[str]:
        await trio.lowlevel.checkpoint()
        return next(answers)

    async with serving(OK) as server:
        backend = backend_for(f"http://a.org:{server.port}/", resolve=resolve)
        assert await get(backend) == b"hi"
        with pytest.raises(FetchError) as caught:
            await get(backend)
    assert caught.value.reason == "special_address"
    assert len(server.heads) == 1


async def test_tls_is_for_the_name(authority):
    """The server is asked for its name by SNI and must prove that name, though a number is connected to."""
    seen: list[str | None] = []
    async with serving(OK, tls=server_context(authority, seen, "a.org")) as server:
        backend = backend_for(f"https://a.org:{server.port}/", client_context(authority))
        assert await get(backend) == b"hi"
        assert seen == ["a.org"]
        other = backend_for(f"https://b.org:{server.port}/", client_context(authority))
        with pytest.raises(FetchError) as caught:
            await get(other)
    assert (caught.value.code, caught.value.transient) == ("tls", False)
    assert len(server.heads) == 1
    assert all_closed(backend)
    assert all_closed(other)


@pytest.mark.parametrize("name", ["bücher.de", "b.c.org", "127.0.0.1"])
async def test_tls_for_unusual_names(authority, name):
    """International names, names under a wildcard and addresses are proved as they are."""
    proved = server_context(authority, [], "xn--bcher-kva.de", "*.c.org", "127.0.0.1")
    async with serving(OK, tls=proved) as server:
        backend = backend_for(f"https://{name}:{server.port}/", client_context(authority))
        assert await get(backend) == b"hi"


async def test_an_unknown_authority_is_tls(authority):
    """A certificate that nobody we trust has signed is `tls`, with the option that would help."""
    async with serving(OK, tls=server_context(authority, [], "a.org")) as server:
        backend = backend_for(f"https://a.org:{server.port}/", client_context())
        with pytest.raises(FetchError) as caught:
            await get(backend)
    assert (caught.value.code, caught.value.transient) == ("tls", False)
    assert "`ca_file`" in caught.value.hint
    assert "a.org" not in caught.value.message
    assert server.heads == []
    assert all_closed(backend)


async def answer_in_the_clear(stream: trio.SocketStream) -> None:
    """Speak no TLS and answer whatever comes."""
    await stream.receive_some()
    await stream.send_all(OK)


async def test_no_tls_at_the_other_end_is_tls(nursery):
    """A server that answers in the clear where TLS is due is `tls`."""
    listeners = await nursery.start(partial(trio.serve_tcp, answer_in_the_clear, 0, host="127.0.0.1"))
    backend = backend_for(f"https://a.org:{listeners[0].socket.getsockname()[1]}/", client_context())
    with pytest.raises(FetchError) as caught:
        await get(backend)
    assert caught.value.code == "tls"
    assert all_closed(backend)


async def test_a_server_that_hangs_up_in_the_handshake():
    """A connection that ends before it is secure fails in a code of ours and leaves nothing open."""
    async with serving(b"") as server:
        backend = backend_for(f"https://a.org:{server.port}/", client_context())
        with pytest.raises(FetchError) as caught:
            await get(backend)
    assert caught.value.code in ("tls", "connect")
    assert all_closed(backend)


async def test_a_handshake_has_the_connect_deadline(autojump_clock):
    """A server that never answers the handshake fails after `connect_timeout`, as `connect`."""
    async with serving(None) as server:
        backend = backend_for(f"https://a.org:{server.port}/", client_context(), connect_timeout=7.0)
        began = trio.current_time()
        with pytest.raises(FetchError) as caught:
            await get(backend)
        assert trio.current_time() - began == pytest.approx(7.0)
    assert (caught.value.code, caught.value.transient) == ("connect", True)
    assert all_closed(backend)


async def test_the_next_address_is_tried():
    """An address that refuses the connection gives way to the next one."""
    async with serving(OK) as server:
        backend = backend_for(
            f"http://a.org:{server.port}/", resolve=resolver("127.0.0.2", "127.0.0.3", "127.0.0.1")
        )
        assert await get(backend) == b"hi"
    assert all_closed(backend)


async def test_no_address_answers():
    """Where every address refuses, the failure is `connect`, and another try may help."""
    async with serving(OK) as server:
        port = server.port
    backend = backend_for(f"http://a.org:{port}/")
    with pytest.raises(FetchError) as caught:
        await get(backend)
    assert (caught.value.code, caught.value.transient, caught.value.retryable) == ("connect", True, True)
    assert all_closed(backend)


async def test_a_failed_look_up_comes_through_the_library():
    """`dns` and `refused` reach the caller as they are, and no connection was tried."""

    async def resolve(_host: str) -> list[str]:
        raise OSError

    backend = backend_for("http://a.org/", resolve=resolve)
    with pytest.raises(FetchError) as caught:
        await get(backend)
    assert caught.value.code == "dns"
    refused = backend_for("http://a.org/", resolve=resolver("127.0.0.1", "10.0.0.1"))
    with pytest.raises(FetchError) as caught:
        await get(refused)
    assert caught.value.reason == "special_address"
    assert backend._sockets == refused._sockets == []


class _Sockets(trio.abc.SocketFactory):
    """Makes sockets that connect as a script says: to nobody, never, or to somebody else."""

    def __init__(self, script) -> None:
        self.script = script
        self.made: list[_Socket] = []

    def socket(self, family=-1, type=-1, proto=-1):
        made = _Socket(family, self.script)
        made.began = trio.current_time()
        self.made.append(made)
        return made


class _Socket:
    def __init__(self, family, script) -> None:
        self.family, self.script, self.open, self.wanted = family, script, True, None

    async def connect(self, sockaddr):
        self.wanted = sockaddr
        await trio.lowlevel.checkpoint()
        await self.script(self)

    def getpeername(self):
        return self.peer

    def close(self):
        self.open = False


async def unreachable(_socket) -> None:
    """Fail as a machine without a route does."""
    raise OSError(errno.ENETUNREACH, "no route")


async def silent(_socket) -> None:
    """Never answer."""
    await trio.sleep_forever()


@pytest.mark.parametrize(
    "peer",
    [("127.0.0.2", 80), ("127.0.0.1", 81), ("::ffff:127.0.0.2", 80, 0, 0), ("::1", 80, 0, 0)],
    ids=["address", "port", "mapped", "family"],
)
async def test_another_peer_is_refused(peer):
    """A connection whose other end is not the checked address is closed before a byte is sent."""

    async def elsewhere(made) -> None:
        made.peer = peer

    sockets = _Sockets(elsewhere)
    trio.socket.set_custom_socket_factory(sockets)
    with pytest.raises(FetchError) as caught:
        await get(backend_for("http://a.org/"))
    assert (caught.value.code, caught.value.reason) == ("refused", "special_address")
    assert [made.open for made in sockets.made] == [False]


async def test_at_most_four_within_one_deadline(autojump_clock):
    """At most four addresses are tried, each for its share of `connect_timeout` and no longer."""
    sockets = _Sockets(silent)
    trio.socket.set_custom_socket_factory(sockets)
    backend = backend_for("http://a.org/", resolve=resolver(*(f"127.0.0.{n}" for n in range(1, 9))))
    began = trio.current_time()
    with pytest.raises(FetchError) as caught:
        await get(backend)
    assert trio.current_time() - began == pytest.approx(10.0)
    assert [made.wanted for made in sockets.made] == [(f"127.0.0.{n}", 80) for n in range(1, 5)]
    assert [made.began - began for made in sockets.made] == pytest.approx([0.0, 2.5, 5.0, 7.5])
    assert not any(made.open for made in sockets.made)
    assert (caught.value.code, caught.value.transient) == ("connect", True)


async def test_ipv6_without_a_route_falls_through():
    """IPv6 addresses on a machine without IPv6 cost no more than their turn: IPv4 is tried."""
    sockets = _Sockets(unreachable)
    trio.socket.set_custom_socket_factory(sockets)
    backend = backend_for(
        "http://a.org/",
        resolve=resolver("2606:4700::1", "2606:4700::2", "2606:4700::3", "2606:4700::4", "8.8.8.8"),
    )
    with pytest.raises(FetchError) as caught:
        await get(backend)
    assert caught.value.message == "the site could not be reached"
    tried = [made.wanted[0] for made in sockets.made]
    assert tried == ["2606:4700::1", "8.8.8.8", "2606:4700::2", "2606:4700::3"]
    assert [made.family for made in sockets.made][:2] == [trio.socket.AF_INET6, trio.socket.AF_INET]


@pytest.mark.parametrize(
    ("host", "port"), [("b.org", 80), ("127.0.0.1", 80), ("a.org", 443)], ids=["name", "number", "port"]
)
async def test_connects_for_its_own_address_alone(host, port):
    """Whatever else the library asks for is refused, files of this machine included."""
    backend = backend_for("http://a.org/")
    with pytest.raises(FetchError) as caught:
        await backend.connect_tcp(host, port)
    assert caught.value.code == "internal"
    with pytest.raises(FetchError):
        await backend.connect_unix_socket("/run/docker.sock")
    assert backend._sockets == []


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_cancel_leaves_no_socket(scheme):
    """A fetch that is cancelled in the handshake, or while it waits for the answer, leaves no socket open."""
    async with serving(None) as server:
        backend = backend_for(f"{scheme}://a.org:{server.port}/", client_context())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(get, backend)
            while not server.peers:
                await trio.testing.wait_all_tasks_blocked(0.001)
            nursery.cancel_scope.cancel()
        assert all_closed(backend)


@pytest.mark.parametrize("steps", range(16))
async def test_a_cancel_at_any_step_leaves_no_socket(authority, steps):
    """Cancelled after any number of its steps, a fetch over TLS leaves no socket open after `close`."""
    async with serving(OK, tls=server_context(authority, [], "a.org")) as server:
        backend = backend_for(f"https://a.org:{server.port}/", client_context(authority))
        with trio.CancelScope() as scope:

            async def cancel() -> None:
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(cancel)
                nursery.start_soon(get, backend)
        opened = list(backend._sockets)
        backend.close()
        assert all(socket.fileno() == -1 for socket in opened)


async def test_what_happens_later_is_the_librarys():
    """On a standing connection errors are those that the library knows."""
    async with serving(None) as server:
        backend = backend_for(f"http://a.org:{server.port}/")
        stream = await backend.connect_tcp("a.org", server.port)
        assert stream.get_extra_info("ssl_object") is None
        await stream.aclose()
        with pytest.raises(httpcore2.ReadError):
            await stream.read(10)
        with pytest.raises(httpcore2.WriteError):
            await stream.write(b"x")


@pytest.mark.parametrize("where", ["socket", "connect"])
@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM])
async def test_a_machine_without_a_socket_to_spare_is_not_the_sites_failure(where, number, monkeypatch):
    """No descriptor or memory left is `internal` and may pass: nobody is sent to the archive for it."""

    async def spent(_socket) -> None:
        raise OSError(number, "none left")

    def none_left(*_given):
        raise OSError(number, "none left")

    sockets = _Sockets(spent)
    if where == "socket":
        sockets.socket = none_left
    trio.socket.set_custom_socket_factory(sockets)
    with pytest.raises(FetchError) as caught:
        await get(backend_for("http://a.org/", resolve=resolver("127.0.0.1", "127.0.0.2")))
    assert (caught.value.code, caught.value.retryable) == ("internal", True)
    assert not any(made.open for made in sockets.made)


async def test_a_process_that_stood_still_between_two_tries_is_out_of_time(mock_clock):
    """A machine that slept past the deadline fails as `connect`; the next address is not tried any more."""

    async def slept(_socket) -> None:
        mock_clock.jump(60)
        raise OSError(errno.ECONNREFUSED, "refused")

    sockets = _Sockets(slept)
    trio.socket.set_custom_socket_factory(sockets)
    with pytest.raises(FetchError) as caught:
        await get(backend_for("http://a.org/", resolve=resolver("127.0.0.1", "127.0.0.2", "127.0.0.3")))
    assert (caught.value.code, caught.value.transient) == ("connect", True)
    assert len(sockets.made) == 1


async def test_a_process_that_stood_still_before_tls_is_out_of_time(mock_clock, authority):
    """A connection that stands, on a machine that then slept past the deadline, is not used."""
    async with serving(OK, tls=server_context(authority, [], "a.org")) as server:
        backend = backend_for(f"https://a.org:{server.port}/", client_context(authority))
        stream = await backend.connect_tcp("a.org", server.port)
        mock_clock.jump(60)
        with pytest.raises(FetchError) as caught:
            await stream.start_tls(client_context())
    assert (caught.value.code, caught.value.transient) == ("connect", True)
    assert all_closed(backend)


async def test_a_context_that_promises_http2_is_tls_with_what_to_do(authority):
    """Where an application's own context offered HTTP/2 and the site took it, nothing is misread."""
    served = server_context(authority, [], "a.org")
    served.set_alpn_protocols(["h2"])
    offered = client_context(authority)
    offered.set_alpn_protocols(["h2", "http/1.1"])
    async with serving(OK, tls=served) as server:
        backend = backend_for(f"https://a.org:{server.port}/", offered)
        with pytest.raises(FetchError) as caught:
            await get(backend)
    assert caught.value.code == "tls"
    assert "`tls_context`" in caught.value.hint
    assert all_closed(backend)
