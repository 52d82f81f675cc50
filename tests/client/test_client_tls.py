"""Is it the service that the key goes to? TLS on loopback, with an authority made for the test."""

import ssl

import pytest
import trio
import trustme
from client_rig import KEY, answer, serving

from sift_batch._client import BadServer, Unreachable, open_client

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def authority():
    """An authority that nobody knows."""
    return trustme.CA()


@pytest.fixture
def ca_file(authority, tmp_path):
    """Its certificate in a file."""
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return tmp_path / "ca.pem"


def _secure(authority: trustme.CA, name: str):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name).configure_cert(context)
    got: list[bytes] = []

    async def handle(stream: trio.SocketStream) -> None:
        secure = trio.SSLStream(stream, context, server_side=True, https_compatible=True)
        try:
            got.append(await secure.receive_some())
            await secure.send_all(answer(b"1"))
            await secure.aclose()
        except trio.BrokenResourceError:
            return

    async def listen(nursery: trio.Nursery) -> int:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, handle, [listener])
        port: int = listener.socket.getsockname()[1]
        return port

    return listen, got


async def _ask(listen, **options) -> object:
    async with trio.open_nursery() as nursery:
        port = await listen(nursery)
        error = value = None
        try:
            async with open_client(f"https://localhost:{port}", KEY, **options) as client:
                value = (await client.call("GET", "/v1/batch", seconds=10)).json()
        except Unreachable as caught:
            error = caught
        nursery.cancel_scope.cancel()
    if error is not None:
        raise error
    return value


async def test_an_authority_of_a_file_is_trusted(authority, ca_file):
    """With --ca-file's authority the answer comes."""
    listen, got = _secure(authority, "localhost")
    assert await _ask(listen, ca_file=ca_file) == 1
    assert KEY.encode() in got[0]


async def test_an_unknown_authority_gets_no_key(authority, ca_file, monkeypatch):
    """A certificate of an unknown authority is refused, whatever the environment calls an authority."""
    monkeypatch.setenv("SSL_CERT_FILE", str(ca_file))
    listen, got = _secure(authority, "localhost")
    with pytest.raises(Unreachable, match="not trusted") as caught:
        await _ask(listen)
    assert not caught.value.transient
    assert got == []


async def test_a_certificate_of_another_name_gets_no_key(authority, ca_file):
    """A trusted certificate for another host is refused."""
    listen, got = _secure(authority, "other.example")
    with pytest.raises(Unreachable, match="not trusted"):
        await _ask(listen, ca_file=ca_file)
    assert got == []


async def test_no_session_key_is_written_for_others(authority, ca_file, tmp_path, monkeypatch):
    """SSLKEYLOGFILE gets nothing."""
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    listen, _ = _secure(authority, "localhost")
    assert await _ask(listen, ca_file=ca_file) == 1
    assert not (tmp_path / "keys").exists()


async def test_http_and_https_mixed_up_is_told(authority, ca_file):
    """TLS to a plain port, and plain HTTP to one of TLS, is an error and not a wait."""
    async with serving(answer()) as server:
        async with open_client(f"https://127.0.0.1:{server.port}", KEY) as client:
            # A plain server waits for the end of a head that never comes.
            with pytest.raises(Unreachable):
                await client.call("GET", "/", seconds=0.2)
    listen, got = _secure(authority, "localhost")
    async with trio.open_nursery() as nursery:
        port = await listen(nursery)
        async with open_client(f"http://127.0.0.1:{port}", KEY) as client:
            with pytest.raises(Unreachable):
                await client.call("GET", "/", seconds=10)
        nursery.cancel_scope.cancel()
    assert got == []


@pytest.mark.parametrize("content", [None, b"", b"no certificate", b"\0\xff"])
async def test_authorities_that_can_t_be_loaded_are_refused(tmp_path, content):
    """A ca_file that holds none is told by the name of its flag."""
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadServer, match="--ca-file"):
        async with open_client("https://localhost", KEY, ca_file=path):
            raise AssertionError("it must not open")
