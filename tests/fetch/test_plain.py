"""The plain fetch against a real socket on loopback."""

import datetime
import functools
import gzip
import struct
import time
from collections.abc import Callable

import pytest
import trio
from raw_server import answer

from sift_batch._model.errors import RetryLater, TargetError
from sift_batch._model.values import Caller, Options, Target
from sift_batch.fetch import open_plain_fetch
from sift_batch.fetch._plain import _Limits, _PlainFetch

pytestmark = pytest.mark.real


async def _until(true: Callable[[], object]) -> None:
    """Wait for what happens on the other side of a socket."""
    with trio.fail_after(5):
        while not true():  # noqa: ASYNC110  # nothing on this side could set an event
            await trio.sleep(0.01)


async def _code(get, url: str, *args, **limits) -> str:
    with pytest.raises(TargetError) as caught:
        await get(url, *args, **limits)
    return caught.value.code


async def test_gives_a_page_with_what_is_known_about_it(server, get):
    """A page comes as its text, with the documented facts as meta and nothing else."""
    body = b"<html><head><title> A  page </title></head><body><p>one</p><p>two</p></body></html>"
    server.answers["/p"] = answer(body=body, content_type="text/html; charset=utf-8")
    result = await get(server.url("/p#part"))
    assert result.content == "one\ntwo"
    meta = dict(result.meta)
    assert 0 <= meta.pop("elapsed_seconds") < 5
    fetched_at = datetime.datetime.strptime(meta.pop("fetched_at"), "%Y-%m-%dT%H:%M:%S%z")
    assert abs(fetched_at.timestamp() - time.time()) < 60
    assert meta == {
        "url": server.url("/p"),
        "http_status": 200,
        "content_type": "text/html",
        "charset": "utf-8",
        "title": "A page",
        "bytes_wire": len(body),
        "chars": 7,
        "redirects": [],
    }


@pytest.mark.parametrize("mode", ["html", "raw"])
async def test_source_modes_give_the_page_as_it_is(server, get, mode):
    """`html` and `raw` give the decoded source."""
    server.answers["/p"] = answer(body="<p>grün</p>".encode(), content_type="text/html")
    assert (await get(server.url("/p"), Options(mode=mode))).content == "<p>grün</p>"


async def test_json_comes_unchanged(server, get):
    """JSON is given as it was sent."""
    server.answers["/j"] = answer(body=b'{"b": 1,  "a": [2.50]}', content_type="application/json")
    assert (await get(server.url("/j"))).content == '{"b": 1,  "a": [2.50]}'


async def test_sends_one_plain_request(server, get):
    """The request names the host and port and offers gzip alone; nothing of the caller is in it."""
    server.answers["/p?q=%C3%BC"] = answer(body=b"x")
    await get(server.url("/p?q=ü"))
    head = server.requests[0].decode()
    assert head.startswith("GET /p?q=%C3%BC HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{server.authority}\r\n" in head
    assert "Accept-Encoding: gzip\r\n" in head
    assert "somebody" not in head


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        ("401 Unauthorized", "auth_required", False),
        ("403 Forbidden", "blocked", False),
        ("404 Not Found", "page_not_found", False),
        ("410 Gone", "page_gone", False),
        ("451 Withheld", "page_gone", False),
        ("418 Teapot", "http_error", False),
        ("300 Choices", "http_error", False),
        ("304 Same", "http_error", False),
        ("500 Oops", "server_error", True),
        ("503 Away", "server_error", True),
    ],
)
async def test_each_refusal_has_its_code(server, get, status, code, retryable):
    """A status that is no page fails the target with the code for it, and says so in own words."""
    server.answers["/p"] = answer(status, b"secret body of the site")
    with pytest.raises(TargetError) as caught:
        await get(server.url("/p"))
    assert (caught.value.code, caught.value.retryable) == (code, retryable)
    assert status[:3] in caught.value.message
    assert status[4:] not in caught.value.message


@pytest.mark.parametrize(
    ("value", "seconds", "reason"),
    [
        ("7", 7.0, "retry_after"),
        ("0", 1.0, "retry_after"),
        ("99999", 600.0, "retry_after"),
        ("9" * 5_000, 600.0, "retry_after"),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 1.0, "retry_after"),
        ("Mon, 01 Jan 2120 00:00:00 GMT", 600.0, "retry_after"),
        ("Mon, 01 Jan 2120 00:00:00", 600.0, "retry_after"),
        ("-5", None, "host"),
        ("soon", None, "host"),
        ("1.5", None, "host"),
        ("", None, "host"),
    ],
)
async def test_429_is_busy_for_as_long_as_the_host_asks(server, get, gate, value, seconds, reason):
    """A 429 becomes `RetryLater` with the clamped Retry-After, and that holds the host at the gate."""
    server.answers["/p"] = answer("429 Slow down", retry_after=value)
    with pytest.raises(RetryLater) as caught:
        await get(server.url("/p"))
    assert (caught.value.retry_after, caught.value.reason) == (seconds, reason)
    assert gate.statistics().held == (seconds is not None)
    assert gate.statistics().in_use == 0


async def test_503_is_busy_only_with_retry_after(server, get):
    """A 503 that names a time is busy."""
    server.answers["/p"] = answer("503 Away", retry_after="3")
    with pytest.raises(RetryLater) as caught:
        await get(server.url("/p"))
    assert caught.value.retry_after == 3


async def test_a_busy_host_is_not_called(server, get, gate):
    """While the gate has no slot of the host, the fetch gives way without a request."""
    async with gate.slot(server.url("/")), gate.slot(server.url("/")):
        with pytest.raises(RetryLater) as caught:
            await get(server.url("/p"))
    assert caught.value.reason == "gate"
    assert server.requests == []


async def test_follows_redirects(server, get):
    """Redirects are followed, relative ones too, and the URLs passed are in meta."""
    server.answers["/a"] = answer("302 Found", location="b?x=1")
    server.answers["/b?x=1"] = answer("308 Moved", location="/c#top")
    server.answers["/c"] = answer(body=b"here")
    result = await get(server.url("/a"))
    assert result.content == "here"
    assert result.meta["url"] == server.url("/c")
    assert result.meta["redirects"] == [server.url("/a"), server.url("/b?x=1")]


async def test_a_location_in_utf8_is_followed(server, get):
    """A Location of raw UTF-8 is percent-encoded and followed."""
    server.answers["/a"] = b"HTTP/1.1 301 M\r\nContent-Length: 0\r\nLocation: /gr\xc3\xbcn\r\n\r\n"
    server.answers["/gr%C3%BCn"] = answer(body=b"here")
    assert (await get(server.url("/a"))).content == "here"


@pytest.mark.parametrize(
    ("location", "code"),
    [
        ("/a", "redirect_loop"),
        ("ftp://example.org/", "refused"),
        ("http://user:pw@example.org/", "refused"),
        ("http://[::1/", "refused"),
        ("http://exa mple.org/", "refused"),
    ],
)
async def test_a_bad_redirect_fails(server, get, location, code):
    """A redirect to itself, or to what is no http URL, fails the target and quotes nothing."""
    server.answers["/a"] = answer("301 M", location=location)
    with pytest.raises(TargetError) as caught:
        await get(server.url("/a"))
    assert caught.value.code == code
    assert "example" not in caught.value.message


async def test_gives_up_after_five_redirects(server, get):
    """The sixth redirect in a row fails the target."""
    for n in range(10):
        server.answers[f"/{n}"] = answer("302 F", location=f"/{n + 1}")
    assert await _code(get, server.url("/0")) == "redirect_loop"
    assert len(server.requests) == 6


async def test_each_hop_holds_a_slot_of_its_own_host(server, get, gate):
    """A hop holds one slot, of the host it talks to, and the one before has given its back."""
    seen = []

    def note(reply: bytes):
        async def handler(stream: trio.SocketStream) -> None:
            seen.append(gate.statistics().in_use)
            # Both slots of the other host are free.
            other = server.url("/") if len(seen) > 1 else server.url("/", "localhost")
            async with gate.slot(other), gate.slot(other):
                pass
            await stream.send_all(reply)

        return handler

    server.answers["/a"] = note(answer("302 F", location=server.url("/b", "localhost")))
    server.answers["/b"] = note(answer(body=b"x"))
    await get(server.url("/a"))
    assert seen == [1, 1]
    assert gate.statistics().in_use == 0


async def test_a_later_hop_waits_for_its_host(server, get, gate, nursery):
    """A redirect to a host without room waits for it and does not fetch the first hop again."""
    there = server.url("/b", "localhost")
    server.answers["/a"] = answer("302 F", location=there)
    server.answers["/b"] = answer(body=b"x")
    got = []

    async def fetch() -> None:
        got.append(await get(server.url("/a")))

    async with gate.slot(there), gate.slot(there):
        nursery.start_soon(fetch)
        await _until(lambda: gate.statistics().waiting == 1)
        assert len(server.requests) == 1
    await _until(lambda: got)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (b"", "protocol"),
        (b"garbage\r\n\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ncut", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "protocol"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", "protocol"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 131_072 + b"\r\n\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n", "protocol"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 15 + b"\r\n\r\n", "too_large"),
        (answer(body=b"not zlib", content_encoding="gzip"), "protocol"),
        (answer(body=gzip.compress(b"whole text " * 99)[:-9], content_encoding="gzip"), "protocol"),
        (answer(body=b"x", content_encoding="br"), "unsupported_type"),
        (answer(body=b"x", content_encoding="gzip, gzip"), "unsupported_type"),
        (answer(body=b"x", content_type="image/png"), "unsupported_type"),
        (answer(body=b"bin\0ary", content_type="text/html"), "unsupported_type"),
        (answer(body=b"bin\0ary", content_type=None), "unsupported_type"),
    ],
)
async def test_bad_answers_fail_the_target(server, get, gate, reply, code):
    """A cut, malformed, oversized or unreadable answer fails the target with a code of its own."""
    server.answers["/p"] = reply
    assert await _code(get, server.url("/p")) == code
    assert gate.statistics().in_use == 0


async def test_a_reset_in_the_body_is_a_fault_of_protocol(server, get):
    """A connection that is reset in mid-body fails the target; half a page is never a page."""

    async def reset(stream: trio.SocketStream) -> None:
        await stream.send_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\nhalf"
        )
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, struct.pack("ii", 1, 0))

    server.answers["/p"] = reset
    assert await _code(get, server.url("/p")) == "protocol"


async def test_gzip_is_unpacked_member_by_member(server, get):
    """All members of a gzip body are unpacked; what follows them is ignored."""
    body = gzip.compress(b"one ") + gzip.compress(b"two") + b"\0\0padding"
    server.answers["/p"] = answer(body=body, content_encoding="gzip")
    result = await get(server.url("/p"))
    assert result.content == "one two"
    assert result.meta["bytes_wire"] == len(body)


@pytest.mark.parametrize("headers", [{}, {"content_encoding": "gzip"}], ids=["plain", "packed"])
async def test_too_many_bytes_fail_the_target(server, get, headers):
    """A body over the cap, as it comes or unpacked, is `too_large`."""
    body = b"a" * 200_001
    server.answers["/p"] = answer(body=gzip.compress(body) if headers else body, **headers)
    assert await _code(get, server.url("/p"), max_bytes=200_000) == "too_large"
    assert (await get(server.url("/p"), max_bytes=200_001)).content == body.decode()


async def test_the_total_deadline_ends_a_drip(server, get, gate):
    """A body that drips for ever ends at the total deadline, however short its pauses are."""

    async def drip(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            await stream.send_all(b"x")
            await trio.sleep(0.02)

    server.answers["/p"] = drip
    began = trio.current_time()
    assert await _code(get, server.url("/p"), total_timeout=0.3) == "timeout"
    assert trio.current_time() - began < 2
    assert gate.statistics().in_use == 0


async def test_nobody_there_is_connect(get):
    """A port where nobody listens is `connect`, and may be tried again."""
    with trio.socket.socket() as taken:
        await taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(TargetError) as caught:
            await get(f"http://127.0.0.1:{port}/")
    assert (caught.value.code, caught.value.retryable) == ("connect", True)
    assert str(port) not in caught.value.message


async def test_a_name_without_address_is_dns(get, monkeypatch):
    """A name that has no address is `dns`, and the text does not hold the name."""

    async def nothing(*_args: object, **_kwargs: object) -> None:
        raise trio.socket.gaierror(-2, "secret.example: Name or service not known")

    monkeypatch.setattr(trio.socket, "getaddrinfo", nothing)
    with pytest.raises(TargetError) as caught:
        await get("http://secret.example/")
    assert caught.value.code == "dns"
    assert "secret" not in caught.value.message


async def test_https_to_a_plain_server_is_tls(get, nursery):
    """A server that speaks no TLS on https is `tls`."""

    async def plain(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad\r\n\r\n")

    listeners = await nursery.start(functools.partial(trio.serve_tcp, plain, 0, host="127.0.0.1"))
    port = listeners[0].socket.getsockname()[1]
    assert await _code(get, f"https://127.0.0.1:{port}/p") == "tls"


@pytest.mark.parametrize(
    "url",
    ["", "x", "ftp://example.org/", "http://u:p@example.org/", "http://a b/", "http://\ud800/", "h" * 9_000],
)
async def test_a_url_that_is_none_is_refused(get, url):
    """What is no http URL fails the target without a connection."""
    assert await _code(get, url) == "refused"


@pytest.mark.parametrize(
    "options",
    [
        Options(jq="."),
        Options(grep="x"),
        Options(pages="1"),
        Options(question="why"),
        Options(recover=True),
        Options(context=True),
        Options(mode="links"),
    ],
)
async def test_an_option_that_is_not_known_yet_fails(get, options):
    """An option that this fetch can't honour fails the target; it is never silently ignored."""
    assert await _code(get, "http://127.0.0.1:1/", options) == "bad_option"


async def test_a_cancelled_fetch_leaves_nothing_behind(server, get, gate):
    """Cancelled in mid-body, a fetch gives its slot back and closes its socket."""

    async def hang(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhalf")
        await stream.receive_some()

    server.answers["/p"] = hang
    with trio.move_on_after(0.2) as scope:
        await get(server.url("/p"))
    assert scope.cancelled_caught
    assert gate.statistics().in_use == 0
    await _until(lambda: not server.open_now)


async def test_a_page_without_type_is_judged_by_its_bytes(server, get):
    """Text without a Content-Type is text."""
    server.answers["/p"] = answer(body="grün".encode(), content_type=None)
    result = await get(server.url("/p"))
    assert result.content == "grün"
    assert "content_type" not in result.meta


@pytest.mark.parametrize("label", ["utf-7", "zlib_codec", "idna", "undefined", "hex", "rot13", "x" * 99])
async def test_a_strange_charset_label_is_never_obeyed(server, get, label):
    """A label that is no charset means UTF-8 with replacement."""
    server.answers["/p"] = answer(body=b"+ADw-script \xff", content_type=f"text/plain; charset={label}")
    assert (await get(server.url("/p"))).content == "+ADw-script \ufffd"


async def test_large_pages_are_read_outside_the_event_loop(server, get):
    """A page of a megabyte comes whole, read in a thread."""
    body = b"<p>" + b"word " * 200_000 + b"</p>"
    server.answers["/p"] = answer(body=body, content_type="text/html")
    assert len((await get(server.url("/p"))).content) == 999_999


async def test_one_fetch_serves_many_targets_at_once(server, gate):
    """Targets that are fetched side by side don't get each other's pages."""
    got = {}
    for n in range(2):
        server.answers[f"/{n}"] = answer(body=str(n).encode())
    async with open_plain_fetch(gate) as fetch, trio.open_nursery() as nursery:

        async def one(n: int) -> None:
            got[n] = (await fetch(Caller("c"), Target(server.url(f"/{n}")))).content

        for n in range(2):
            nursery.start_soon(one, n)
    assert got == {0: "0", 1: "1"}


async def test_a_body_of_tiny_chunks_lets_others_run(gate):
    """A body that comes in thousands of chunks, all at hand already, can be cancelled half-way."""
    chunks = iter([b"x"] * 5_000)

    async def stream():
        for chunk in chunks:
            yield chunk

    class Response:
        status = 200
        headers = ((b"Content-Type", b"text/plain"),)
        aiter_stream = staticmethod(stream)

    limits = _Limits(total_timeout=60, connect_timeout=10, redirects=5, max_bytes=10_000)
    with trio.CancelScope() as scope:
        scope.cancel()
        await _PlainFetch(gate, limits)._read_response(Response())
    assert scope.cancelled_caught
    assert len(list(chunks)) > 4_000
