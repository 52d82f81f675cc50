"""What one exchange says, gives and refuses to be told."""

import ssl
from functools import partial

import pytest
import trio
import trustme
from hostile import SWITCHES, Switch, hostile_server
from hostile_talk import answer, says
from test_client_hostile import make, outcome

from sift_batch.fetch._client import Answer, Client
from sift_batch.fetch._errors import FetchError


@pytest.fixture(scope="module")
def authority():
    """Give a certificate authority of the tests' own."""
    return trustme.CA()


@pytest.fixture(scope="module")
def server_tls(authority):
    """Give the context of a server that can prove to be 127.0.0.1."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def ca_file(authority, tmp_path):
    """Give the path of the authority's certificate."""
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


async def test_a_request_says_no_more_than_it_must():
    """Four headers go out, in one GET, and nothing else; a cookie of the exchange before neither."""
    async with hostile_server() as server:
        client, guard = make(user_agent="tests/1")
        for name in ("cookie", "ok/a?b=c"):
            await client.get(guard.parse(server.url(name)), accept="text/plain")
        assert server.heads[-1].decode().split("\r\n") == [
            "GET /ok/a?b=c HTTP/1.1",
            f"Host: 127.0.0.1:{server.port}",
            "Accept: text/plain",
            "Accept-Encoding: gzip",
            "User-Agent: tests/1",
            "",
            "",
        ]


@pytest.mark.parametrize(
    ("name", "body", "wire"),
    [
        ("ok", b"hello", 5),
        ("chunk_ok", b"hello", 5),
        ("length_long", b"hello", 5),
        ("length_long_open", b"hello", 5),
        ("gzip_ok", b"0123456789abcdef" * 64, None),
        ("gzip_two_members", b"0123456789abcdef" * 128, None),
        ("gzip_padding", b"0123456789abcdef" * 64, None),
        ("gzip_empty", b"", 0),
        ("identity", b"0123456789abcdef" * 64, 1_024),
        ("body_quick_drip", b"ab" * 2_000, 4_000),
        ("head_http10", b"hi", 2),
        ("head_interim_then_ok", b"hi", 2),
        ("status_204", b"", 0),
        ("status_205", b"", 0),
        ("status_404", b"", 0),
        ("bomb_in_redirect", b"", 0),
    ],
)
async def test_a_body_is_whole(name, body, wire):
    """What a site sent is there to the last byte, unpacked; only a 2xx has a body."""
    async with hostile_server() as server:
        found = await outcome(server, name)
        assert isinstance(found, Answer)
        assert b"".join(found.body) == body
        assert found.decoded == len(body)
        if wire is None:
            assert 0 < found.wire < len(body) + 1_000
        else:
            assert found.wire == wire


async def test_a_drip_costs_one_piece():
    """Thousands of small pieces arrive as few big ones."""
    async with hostile_server() as server:
        found = await outcome(server, "body_quick_drip")
        assert len(found.body) == 1


async def test_repeated_headers():
    """The first of equal headers counts, and repeats of Retry-After make a list."""
    data = answer(b"", "X-A: 1", "x-a: 2", "Retry-After: 5", "RETRY-AFTER: 6", status="429 Busy")
    async with hostile_server(more={"mine": Switch(says(data))}) as server:
        found = await outcome(server, "mine")
        assert found.status == 429
        assert found.headers["x-a"] == b"1"
        assert found.headers["retry-after"] == b"5, 6"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("length_10_gib", ["10,737,418,240", "10,485,760"]),
        ("body_cut", ["5,000", " 5"]),
        ("bomb_1000", ["10,485,760"]),
        ("length_unpacked", ["1,024"]),
    ],
)
async def test_an_error_tells_the_sizes(name, words):
    """Who announced what, and how much there was, is in the text."""
    async with hostile_server() as server:
        found = await outcome(server, name)
        assert all(word in found.message for word in words)


TEXTS = ("head", "length", "status")  # the other kinds end in the same few texts


@pytest.mark.parametrize(
    "name", sorted(name for name, s in SWITCHES.items() if s.code and s.kind in TEXTS and not s.slow)
)
async def test_no_error_quotes_the_site(name):
    """No text of an error holds the target, the host or what the site said, and nothing hangs on it."""
    async with hostile_server() as server:
        found = await outcome(server, name)
        text = f"{found.message} {found.hint}"
        assert "127.0.0.1" not in text
        assert name not in text
        assert str(server.port) not in text
        assert found.__cause__ is None
        assert found.__suppress_context__ or found.__context__ is None


@pytest.mark.parametrize(
    ("name", "transient"),
    [
        ("head_nothing", True),
        ("head_cut", True),
        ("head_reset", True),
        ("head_reset_inside", True),
        ("body_reset_before", True),
        ("body_cut_at_once", True),
        ("body_reset_inside", False),
        ("body_cut", False),
        ("head_garbage", False),
        ("head_257_headers", False),
        ("length_10_gib", False),
        ("gzip_cut", False),
        ("coding_br", False),
    ],
)
async def test_only_what_broke_off_before_the_body_is_transient(name, transient):
    """An exchange is worth a second try if the connection failed before the first byte of a body."""
    async with hostile_server() as server:
        found = await outcome(server, name)
        assert getattr(found, "transient", False) is transient


async def test_a_refused_connection_is_transient():
    """A port on which nobody listens is `connect`, and worth a second try."""
    async with hostile_server() as server:
        pass
    found = await outcome(server, "ok")
    assert (found.code, found.transient) == ("connect", True)


@pytest.mark.parametrize(("accept", "codes"), [("close", {"protocol"}), ("reset", {"protocol"})])
async def test_a_connection_that_ends_at_once(accept, codes):
    """A server that takes a connection and drops it is a transient fault of the site."""
    async with hostile_server(accept=accept) as server:
        found = await outcome(server, "ok")
        assert found.code in codes
        assert found.transient


async def test_a_call_may_lower_the_caps():
    """`max_bytes` bounds a body as it comes and unpacked, and never raises a cap."""
    async with hostile_server() as server:
        client, guard = make(max_decoded_bytes=900)
        for name, cap in [("ok", 4), ("gzip_ok", 100), ("body_endless", 100), ("gzip_ok", 10**9)]:
            with pytest.raises(FetchError) as caught:
                await client.get(guard.parse(server.url(name)), max_bytes=cap)
            assert caught.value.code == "too_large"
        assert (await client.get(guard.parse(server.url("ok")), max_bytes=5)).decoded == 5


@pytest.mark.parametrize("name", ["body_endless", "body_endless_extensions"])
async def test_all_that_comes_counts_against_the_cap(name):
    """The cap on what comes counts the sizes of chunks too, and a call can't raise it."""
    async with hostile_server() as server:
        client, guard = make(max_wire_bytes=50_000)
        with pytest.raises(FetchError) as caught:
            await client.get(guard.parse(server.url(name)), max_bytes=10**9)
        assert caught.value.code == "too_large"
        assert "50,000 bytes" in caught.value.message


async def test_the_caps_are_to_the_byte():
    """A body of exactly the cap passes, and one byte more does not, announced or not."""
    for announced in (True, False):
        body = b"x" * 1_000
        data = answer(body, length="" if announced else None)
        async with hostile_server(more={"mine": Switch(says(data))}) as server:
            assert isinstance(await outcome(server, "mine", max_decoded_bytes=1_000), Answer)
            assert (await outcome(server, "mine", max_decoded_bytes=999)).code == "too_large"


async def test_tls_is_verified(server_tls, ca_file, authority):
    """A certificate of an authority that is trusted is good; an unknown one or another name is not."""
    async with hostile_server(tls=server_tls) as server:
        assert (await outcome(server, "ok", ca_file=ca_file)).decoded == 5
        assert (await outcome(server, "ok")).code == "tls"
        context = ssl.create_default_context()
        authority.configure_trust(context)
        assert (await outcome(server, "ok", tls_context=context)).decoded == 5
        for name in ("gzip_ok", "body_cut", "body_endless", "head_reset", "bomb_1000", "head_10000_headers"):
            found = await outcome(server, name, ca_file=ca_file)
            assert getattr(found, "code", "") == SWITCHES[name].code
        await server.no_connection()
    other = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.example").configure_cert(other)
    async with hostile_server(tls=other) as server:
        found = await outcome(server, "ok", ca_file=ca_file)
        assert found.code == "tls"
        assert not found.retryable


@pytest.mark.parametrize(("accept", "code"), [("garbage", "tls"), ("mute", "connect"), ("reset", "connect")])
async def test_what_is_no_tls(server_tls, ca_file, accept, code):
    """A server that speaks no TLS, or nothing at all, ends in a code within the connect deadline."""
    async with hostile_server(tls=server_tls, accept=accept) as server:
        with trio.fail_after(5):
            found = await outcome(server, "ok", ca_file=ca_file, connect_timeout=0.3)
        assert found.code == code
        await server.no_connection()


async def test_authorities_that_cannot_be_read(server_tls, tmp_path):
    """A `ca_file` that is not there, or holds no certificate, is `tls` with a hint and no path."""
    (tmp_path / "empty.pem").write_text("")
    async with hostile_server(tls=server_tls) as server:
        for name in ("empty.pem", "missing.pem"):
            found = await outcome(server, "ok", ca_file=str(tmp_path / name))
            assert found.code == "tls"
            assert "ca_file" in found.hint
            assert str(tmp_path) not in found.message + found.hint


async def test_authorities_are_read_once(server_tls, ca_file, monkeypatch):
    """Exchanges at the same time and later ones share one context."""
    loaded = []
    real = Client._load

    def load(self):
        if self._tls is None:
            loaded.append(1)
        return real(self)

    monkeypatch.setattr(Client, "_load", load)
    async with hostile_server(tls=server_tls) as server:
        client, guard = make(ca_file=ca_file)
        for _ in range(2):
            async with trio.open_nursery() as nursery:
                for _ in range(4):
                    nursery.start_soon(client.get, guard.parse(server.url("ok")))
        assert len(loaded) == 1


async def test_the_environment_has_no_effect(server_tls, ca_file, tmp_path, monkeypatch):
    """Proxies, netrc, certificates and key logs that the environment names are not used."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password secret\n")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    async with hostile_server(tls=server_tls) as server:
        assert (await outcome(server, "ok", ca_file=ca_file)).decoded == 5
        assert b"uthorization" not in server.heads[-1]
        monkeypatch.setenv("SSL_CERT_FILE", ca_file)
        assert (await outcome(server, "ok")).code == "tls"
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ZeroDivisionError("secret"), "internal"),
        (UnicodeError("secret"), "internal"),
        (AssertionError("secret"), "internal"),
        (ExceptionGroup("secret", [ValueError("secret")]), "internal"),
        (ExceptionGroup("secret", [ValueError("secret"), FetchError("dns", "no address")]), "dns"),
    ],
)
async def test_what_nobody_foresaw_is_internal(error, code):
    """Any exception on the way ends in a code, groups by what is in them, and its text stays inside."""

    class Backend:
        async def connect_tcp(self, *_given, **_more):
            await trio.lowlevel.checkpoint()
            raise error

        def close(self):
            """Leave nothing open."""

    client, guard = make()
    client._backend = lambda _address: Backend()
    with pytest.raises(FetchError) as caught:
        await client.get(guard.parse("http://127.0.0.1/"))
    assert caught.value.code == code
    assert "secret" not in caught.value.message


async def test_a_cancellation_in_a_group_passes():
    """A group that holds a cancellation and an error of its own is a cancellation, not an error."""

    class Backend:
        async def connect_tcp(self, *_given, **_more):
            try:
                await trio.sleep_forever()
            except trio.Cancelled as cancelled:
                raise BaseExceptionGroup("both", [cancelled, ValueError("secret")]) from None  # noqa: ASYNC104 - it is in the group

        def close(self):
            """Leave nothing open."""

    client, guard = make()
    client._backend = lambda _address: Backend()
    with trio.move_on_after(0.01) as scope:
        await client.get(guard.parse("http://127.0.0.1/"))
    assert scope.cancelled_caught


async def test_an_applications_own_tls_context_is_not_changed(tmp_path):
    """A context that is shared with other connections keeps the protocols that it had."""
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    served.set_alpn_protocols(["http/1.1", "other"])
    given = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(given)
    given.set_alpn_protocols(["other"])
    agreed = []
    async with hostile_server(tls=served) as server:
        client, guard = make(tls_context=given)
        assert (await client.get(guard.parse(server.url("ok")))).decoded == 5
        # Another connection of the application's, with the same context.
        stream = trio.SSLStream(
            await trio.open_tcp_stream("127.0.0.1", server.port), given, server_hostname="127.0.0.1"
        )
        await stream.do_handshake()
        agreed.append(stream.selected_alpn_protocol())
        await trio.aclose_forcefully(stream)
    assert agreed == ["other"]


@pytest.mark.parametrize(
    ("head", "cut"),
    [(b"", "protocol"), (b"Content-Length: 5\r\n", ""), (b"Transfer-Encoding: chunked\r\n", "")],
    ids=["until the end", "by length", "in chunks"],
)
async def test_the_end_of_a_secure_connection_is_no_end_by_itself(server_tls, ca_file, head, cut):
    """A body that lasts as long as the connection is whole only if the site says in TLS that this was all."""
    body = b"5\r\nhello\r\n0\r\n\r\n" if b"chunked" in head else b"hello"
    data = b"HTTP/1.1 200 OK\r\n" + head + b"\r\n" + body

    async def ends(stream, farewell: bool) -> None:
        secure = trio.SSLStream(stream, server_tls, server_side=True)
        await secure.receive_some(65_536)
        await secure.send_all(data)
        if farewell:
            with trio.move_on_after(5):
                await secure.unwrap()
        await stream.aclose()

    for farewell in (True, False):
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, partial(ends, farewell=farewell), 0, host="127.0.0.1")
            (listener,) = await nursery.start(serve)
            client, guard = make(ca_file=ca_file)
            port = listener.socket.getsockname()[1]
            try:
                code = ""
                answered = await client.get(guard.parse(f"https://127.0.0.1:{port}/"))
                assert b"".join(answered.body) == b"hello"
            except FetchError as error:
                code = error.code
            assert code == ("" if farewell else cut)
            nursery.cancel_scope.cancel()
