"""What does the server do with requests that are broken on purpose? Real sockets, raw bytes."""

import random

import pytest
import trio
from server_rig import HEALTHY, MemoryListener, answer, echo, read_all, read_body, running, status_of

pytestmark = pytest.mark.real

H = b" HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST /" + H + b"Transfer-Encoding: chunked\r\n\r\n"

# name: (bytes, statuses that may come back; 0 = closed without an answer)
HOSTILE: dict[str, tuple[bytes, set[int]]] = {
    "nothing-but-noise": (bytes(range(256)) * 8, {400}),
    "tls-client-hello": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500, {400}),
    "http2-preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", {400, 505}),
    "http2-version": (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", {505}),
    "http-0.9": (b"GET /\r\n\r\n", {400}),
    "http-1.2": (b"GET / HTTP/1.2\r\nHost: x\r\n\r\n", {505}),
    "version-of-letters": (b"GET / HTTP/x.y\r\nHost: x\r\n\r\n", {400}),
    "no-host": (b"GET / HTTP/1.1\r\n\r\n", {400}),
    "two-hosts": (b"GET /" + H + b"Host: y\r\n\r\n", {400}),
    "two-lengths-that-differ": (b"POST /" + H + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", {400}),
    "two-lengths-that-agree": (b"POST /" + H + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", {400}),
    "length-as-a-list": (b"POST /" + H + b"Content-Length: 3, 3\r\n\r\nabc", {400}),
    "length-with-a-sign": (b"POST /" + H + b"Content-Length: +3\r\n\r\nabc", {400}),
    "length-below-zero": (b"POST /" + H + b"Content-Length: -1\r\n\r\n", {400}),
    "length-in-hex": (b"POST /" + H + b"Content-Length: 0x3\r\n\r\nabc", {400}),
    "length-empty": (b"POST /" + H + b"Content-Length:\r\n\r\n", {400}),
    "length-of-40-digits": (b"POST /" + H + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", {400}),
    "length-of-16-digits": (b"POST /" + H + b"Content-Length: " + b"9" * 16 + b"\r\n\r\n", {413}),
    "length-in-arabic-digits": (b"POST /" + H + "Content-Length: ٣\r\n\r\nabc".encode(), {400}),
    "length-and-coding": (
        b"POST /" + H + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400},
    ),
    "coding-and-length": (
        b"POST /" + H + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", {400},
    ),
    "coding-twice": (
        b"POST /" + H + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {501},
    ),
    "coding-list": (b"POST /" + H + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", {501}),
    "coding-identity": (b"POST /" + H + b"Transfer-Encoding: identity\r\n\r\n", {501}),
    "coding-with-a-tab-inside": (b"POST /" + H + b"Transfer-Encoding: chun\x0bked\r\n\r\n0\r\n\r\n", {400}),
    "coding-in-1.0": (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", {400}),
    "space-before-colon": (b"GET /" + H + b"X : y\r\n\r\n", {400}),
    "no-colon": (b"GET /" + H + b"nonsense\r\n\r\n", {400}),
    "empty-name": (b"GET /" + H + b": y\r\n\r\n", {400}),
    "bare-lf-everywhere": (b"GET / HTTP/1.1\nHost: x\n\n", {400}),
    "bare-lf-in-one-line": (b"GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", {400}),
    "bare-cr": (b"GET /" + H + b"X: a\rb\r\n\r\n", {400}),
    "folded-line": (b"GET /" + H + b"X: a\r\n b\r\n\r\n", {400}),
    "folded-first-line": (b"GET / HTTP/1.1\r\n Host: x\r\n\r\n", {400}),
    "nul-in-a-value": (b"GET /" + H + b"X: a\x00b\r\n\r\n", {400}),
    "nul-in-the-path": (b"GET /a\x00b" + H + b"\r\n", {400}),
    "control-in-a-value": (b"GET /" + H + b"X: a\x1bb\r\n\r\n", {400}),
    "high-bytes-in-the-path": ("GET /ä".encode() + H + b"\r\n", {400}),
    "high-bytes-in-a-name": (b"GET /" + H + "Ä: y\r\n\r\n".encode(), {400}),
    "absolute-form": (b"GET http://other/secret" + H + b"\r\n", {400}),
    "authority-form": (b"CONNECT other:443" + H + b"\r\n", {501}),
    "connect-to-a-path": (b"CONNECT /" + H + b"\r\n", {501}),
    "asterisk-form": (b"OPTIONS *" + H + b"\r\n", {400}),
    "no-leading-slash": (b"GET secret" + H + b"\r\n", {400}),
    "fragment": (b"GET /a#b" + H + b"\r\n", {400}),
    "two-spaces": (b"GET  /" + H + b"\r\n", {400}),
    "tab-for-space": (b"GET\t/" + H + b"\r\n", {400}),
    "small-letters": (b"get /" + H + b"\r\n", {501}),
    "odd-method": (b"G@T /" + H + b"\r\n", {400}),
    "long-method": (b"G" * 40 + b" /" + H + b"\r\n", {501}),
    "long-path": (b"GET /" + b"a" * 20_000 + H + b"\r\n", {431}),
    "long-value": (b"GET /" + H + b"X: " + b"a" * 20_000 + b"\r\n\r\n", {431}),
    "many-headers": (b"GET /" + H + b"X: y\r\n" * 101 + b"\r\n", {431}),
    "endless-head": (b"GET /" + H + b"X: y\r\n" * 200_000, {431}),
    "blank-lines": (b"\r\n\r\n\r\nGET /" + H + b"\r\n", {400}),
    "head-cut-short": (b"GET / HTTP/1.1\r\nHos", {0}),
    "nothing": (b"", {0}),
    "chunk-size-of-letters": (CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n", {400}),
    "chunk-size-below-zero": (CHUNKED + b"-1\r\nabc\r\n0\r\n\r\n", {400}),
    "chunk-size-of-30-digits": (
        CHUNKED + b"f" * 30 + b"\r\nabc\r\n0\r\n\r\n", {400},
    ),
    "chunk-longer-than-said": (CHUNKED + b"2\r\nabc\r\n0\r\n\r\n", {400}),
    "chunk-line-with-bare-lf": (CHUNKED + b"3\nabc\r\n0\r\n\r\n", {400}),
    "chunk-extension-without-end": (
        CHUNKED + b"3;" + b"a" * 40_000, {400},
    ),
    "trailers-without-end": (
        CHUNKED + b"0\r\n" + b"X: y\r\n" * 10_000, {400},
    ),
    "body-cut-short": (b"POST /" + H + b"Content-Length: 10\r\n\r\nabc", {0}),
    "body-over-the-cap": (b"POST /" + H + b"Content-Length: 3000000\r\n\r\n" + b"a" * 3_000_000, {413}),
    "chunks-over-the-cap": (
        CHUNKED + (b"8000\r\n" + b"a" * 0x8000 + b"\r\n") * 64,
        {413},
    ),
    "chunks-of-one-byte": (
        CHUNKED + b"1\r\na\r\n" * 50_000 + b"0\r\n\r\n", {400},
    ),
    "expect-something-else": (b"GET /" + H + b"Expect: the-inquisition\r\n\r\n", {200}),
    "upgrade-h2c": (
        b"GET /" + H + b"Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\n"
        b"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", {200},
    ),
    "upgrade-websocket": (
        b"GET /" + H + b"Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", {200},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_request_is_refused_or_closed_and_the_next_is_answered(name: str) -> None:
    """Each broken request gets its refusal, or none; it ends nothing, the next client is answered."""
    data, statuses = HOSTILE[name]
    with trio.fail_after(20):
        async with running(echo) as server:
            reply = await server.talk(data, half_close=True)
            assert status_of(reply) in statuses, reply[:300]
            assert b" 101 " not in reply
            assert reply.count(b"HTTP/1.1 ") == bool(reply)
            assert (await server.talk(HEALTHY)).endswith(b"GET /healthy ")
            assert server.events["connection_failed"] == server.events["app_failed"] == 0


async def test_all_hostile_requests_at_once() -> None:
    """One server takes all of them side by side and is healthy after it."""
    with trio.fail_after(30):
        async with running(echo) as server:
            async with trio.open_nursery() as clients:
                for data, _ in HOSTILE.values():
                    clients.start_soon(server.talk, data)
                await trio.sleep(0.3)
                assert (await server.talk(HEALTHY)).endswith(b"GET /healthy ")
                clients.cancel_scope.cancel()
            assert (await server.talk(HEALTHY)).endswith(b"GET /healthy ")
            assert server.events["connection_failed"] == 0


async def test_a_refusal_repeats_nothing_of_the_request() -> None:
    """No byte of what a client sent comes back in a refusal."""
    async with running(echo) as server:
        reply = await server.talk(b"GET /sesame HTTP/1.1\r\nHost: sesame\r\nsesame: \x00\r\n\r\n")
    assert status_of(reply) == 400
    assert b"sesame" not in reply
    assert b"application/problem+json" in reply
    assert b'"status":400' in reply


async def test_a_request_behind_a_refused_one_is_not_run() -> None:
    """What follows a refused head on the same connection is never taken for a request."""
    asked = []

    async def app(scope, receive, send):
        asked.append(scope["raw_path"])
        await answer(send)

    async with running(app) as server:
        smuggled = b"GET /smuggled" + H + b"\r\n"
        await server.talk(b"POST /" + H + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd" + smuggled)
        await server.talk(b"GET / HTTP/1.1\r\nHost: x\n\r\n\r\n" + smuggled)
        await server.talk(CHUNKED + b"0\r\n\n" + smuggled)
        await server.talk(CHUNKED + b"0\r\nX: y\n\n" + smuggled)
    assert b"/smuggled" not in asked


async def test_bytes_of_a_body_are_not_taken_for_the_next_request() -> None:
    """A body that the application left unread is never parsed as a request."""
    asked = []

    async def app(scope, receive, send):
        asked.append(scope["raw_path"])
        await answer(send)

    inner = b"GET /inner" + H + b"\r\n"
    async with running(app) as server:
        async with await server.connect() as stream:
            await stream.send_all(b"POST /" + H + b"Content-Length: 5000\r\n\r\n")
            await trio.sleep(0.05)
            with trio.move_on_after(0.5):
                await stream.send_all(inner * 20)
            reply = await read_all(stream)
    assert b"connection: close" in reply.lower()
    assert asked == [b"/"]


async def test_a_refused_client_reads_why() -> None:
    """A client that sends 3 MiB before it reads still gets the 413, not a reset."""

    async def app(scope, receive, send):
        await read_body(receive)
        await answer(send)

    async with running(app) as server:
        for _ in range(5):
            head = b"POST /" + H + b"Content-Length: 3145728\r\n\r\n"
            assert status_of(await server.talk(head + b"a" * 3_145_728)) == 413
        assert server.events["body_too_large"] == 5


async def test_mangled_requests_break_nothing(autojump_clock) -> None:
    """500 good requests with a few bytes changed, cut or doubled: each is answered or closed in time."""
    dice = random.Random(7)
    good = [
        b"GET /a?b=c" + H + b"Accept: */*\r\n\r\n",
        b"POST /" + H + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\nhello",
        CHUNKED + b"5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
        b"HEAD / HTTP/1.0\r\n\r\n",
    ]
    odd = [
        b"\r",
        b"\n",
        b"\r\n",
        b"\x00",
        b" ",
        b":",
        b"0",
        b"9" * 30,
        b"chunked",
        b"Content-Length: 1\r\n",
        b"\xff",
    ]
    listener = MemoryListener()
    async with running(echo, [listener]) as server:
        for _ in range(500):
            data = bytearray(b"".join(dice.choices(good, k=2)))
            for _ in range(dice.randint(1, 4)):
                at = dice.randrange(len(data))
                data[at : at + dice.choice([0, 1, 5])] = dice.choice(odd)
            client = listener.connect()
            await client.send_all(data)
            with trio.fail_after(120):
                await read_all(client)
            await client.aclose()
        assert server.events["connection_failed"] == server.events["app_failed"] == 0
