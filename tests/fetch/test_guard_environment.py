"""What the environment says has no effect on whom a fetch calls, how, or what it tells."""

import ssl
from functools import partial

import pytest
import trio
import trustme

from sift_batch.fetch._client import Client
from sift_batch.fetch._config import FetchConfig
from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._guard import Guard

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nhi"


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """Set every variable that some HTTP, TLS or DNS library obeys; gives the folder of their files."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        # Nobody listens there: a fetch that obeyed would fail.
        monkeypatch.setenv(name, "http://user:secret@127.0.0.1:9")
        monkeypatch.setenv(name.lower(), "http://user:secret@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "none.org")
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine a.org login somebody password secret\ndefault login somebody password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    monkeypatch.setenv("LOCALDOMAIN", "corp.test")
    monkeypatch.setenv("HOSTALIASES", str(tmp_path / "aliases"))
    (tmp_path / "aliases").write_text("a.org evil.org\n")
    return tmp_path


async def resolve(host: str) -> list[str]:
    """Answer for one name only."""
    await trio.lowlevel.checkpoint()
    assert host == "a.org"
    return ["127.0.0.1"]


async def serve(nursery, tls: ssl.SSLContext | None, heads: list[str]) -> int:
    """Run a server; returns its port."""

    async def handle(stream) -> None:
        wrapped = trio.SSLStream(stream, tls, server_side=True, https_compatible=True) if tls else stream
        try:
            heads.append(bytes(await wrapped.receive_some(4096)).decode())
            await wrapped.send_all(OK)
            await wrapped.aclose()
        except trio.BrokenResourceError:
            heads.append("no handshake")

    listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
    return listeners[0].socket.getsockname()[1]


async def fetch(url: str, **settings) -> bytes:
    """Get one page by the pipeline's own client."""
    config = FetchConfig(allow=["127.0.0.0/8"], ports=None, resolve=resolve, **settings)
    guard = Guard(config)
    answer = await Client(config, guard).get(guard.parse(url))
    return b"".join(answer.body)


def server_side(authority: trustme.CA) -> ssl.SSLContext:
    """Give the context of the server a.org."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("a.org").configure_cert(context)
    return context


async def test_no_proxy_and_no_netrc(nursery, environment):
    """Proxies and netrc are not read: the server itself is called, and gets no password."""
    heads: list[str] = []
    port = await serve(nursery, None, heads)
    assert await fetch(f"http://a.org:{port}/x") == b"hi"
    assert heads[0].startswith("GET /x HTTP/1.1\r\n")
    assert "authorization" not in heads[0].lower()
    assert "secret" not in heads[0]


async def test_no_authority_and_no_key_log(nursery, environment, monkeypatch):
    """The certificate variables neither add nor take away an authority, and no key is written down."""
    authority, other = trustme.CA(), trustme.CA()
    heads: list[str] = []
    port = await serve(nursery, server_side(authority), heads)
    ours, theirs, folder = environment / "ours.pem", environment / "theirs.pem", environment / "certs"
    authority.cert_pem.write_to_path(ours)
    other.cert_pem.write_to_path(theirs)
    folder.mkdir()
    # The server's authority in the environment alone is not trusted.
    monkeypatch.setenv("SSL_CERT_FILE", str(ours))
    monkeypatch.setenv("SSL_CERT_DIR", str(environment))
    with pytest.raises(FetchError) as caught:
        await fetch(f"https://a.org:{port}/")
    assert caught.value.code == "tls"
    # And the environment can't take away the one that the operator gave.
    monkeypatch.setenv("SSL_CERT_FILE", str(theirs))
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    assert await fetch(f"https://a.org:{port}/", ca_file=str(ours)) == b"hi"
    assert not (environment / "keys").exists()
