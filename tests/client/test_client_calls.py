"""What does a client make of whatever answers? Real sockets on loopback."""

import gzip
import json

import pytest
import trio
from client_rig import KEY, answer, chunked, client_of, serving

import sift_batch._client._calls as calls
from sift_batch._client import BadServer, Client, ServiceProblem, Unreachable, open_client

pytestmark = pytest.mark.real

_PROBLEM = "application/problem+json"
_DEEP = b"[" * 100_000 + b"]" * 100_000


async def test_a_call_sends_key_and_body_and_gives_the_whole_answer():
    """The request has the key, the body as JSON and its length; the answer comes with status and headers."""
    async with serving(answer(b'{"a": 1}', "X-One: 1", "X-One: 2", status="202 Accepted")) as server:
        async with client_of(server) as client:
            got = await client.call("POST", "/v1/batch?x=1", {"ü": 1}, headers={"if-none-match": '"3"'})
    assert (got.status, got.json(), got.headers["x-one"]) == (202, {"a": 1}, "1")
    line, *fields = server.asked[0].partition(b"\r\n\r\n")[0].decode().split("\r\n")
    named = {name.lower(): value for name, value in (field.split(": ", 1) for field in fields)}
    assert line == "POST /v1/batch?x=1 HTTP/1.1"
    assert named["authorization"] == f"Bearer {KEY}"
    assert named["content-type"] == "application/json"
    assert named["host"] == f"127.0.0.1:{server.port}"
    assert named["if-none-match"] == '"3"'


async def test_a_path_before_the_service_is_kept():
    """A service behind a path of a proxy is asked there."""
    async with serving(answer()) as server, open_client(f"{server.url}/sift/", KEY) as client:
        await client.call("GET", "/v1/batch")
    assert server.asked[0].startswith(b"GET /sift/v1/batch HTTP/1.1\r\n")


async def test_not_modified_and_no_content_are_answers():
    """304 and 204 have no body, and are no errors."""
    for status in (304, 204):
        async with serving(b"HTTP/1.1 %d X\r\n\r\n" % status) as server, client_of(server) as client:
            assert await client.call("GET", "/") == (status, {}, b"")


async def test_a_problem_of_the_service_is_told_as_one():
    """A problem document is raised with its members, and what is no text in it does no harm."""
    view = {
        "code": "caller_busy",
        "detail": 5,
        "hint": "wait",
        "retry_after": 3,
        "retryable": True,
        "job_id": "x",
    }
    body = json.dumps(view).encode()
    async with serving(answer(body, status="429 X", kind=_PROBLEM)) as server, client_of(server) as client:
        with pytest.raises(ServiceProblem) as caught:
            await client.call("GET", "/v1/batch")
    problem = caught.value
    assert (problem.status, problem.code, problem.detail, problem.hint) == (429, "caller_busy", "", "wait")
    assert (problem.retry_after, problem.retryable, problem.view) == (3.0, True, view)


@pytest.mark.parametrize("value", ["soon", True, -1, 1e300, None, [], {}])
async def test_a_wait_that_is_none_is_none(value):
    """A retry_after that is no time to wait counts as not given."""
    body = json.dumps({"code": "x", "retry_after": value}).encode()
    async with serving(answer(body, status="503 X", kind=_PROBLEM)) as server, client_of(server) as client:
        with pytest.raises(ServiceProblem) as caught:
            await client.call("GET", "/v1/batch")
    assert caught.value.retry_after is None


@pytest.mark.parametrize(
    ("data", "transient"),
    [
        pytest.param(b"", True, id="nothing"),
        pytest.param(b"220 mail.example ready\r\n", True, id="another protocol"),
        pytest.param(b"\x16\x03\x01\x00\xff" * 20, True, id="bytes"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", True, id="half a head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", True, id="endless head"),
        pytest.param(answer(b"{}")[:-1], True, id="half a body"),
        pytest.param(chunked(b"{}", whole=False), True, id="no last chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n{}", True, id="an end that could be a cut"),
        pytest.param(answer(b"<html>", status="502 X", kind="text/html"), True, id="a proxy"),
        pytest.param(answer(b"<html>", status="404 X", kind="text/html"), False, id="another site"),
        pytest.param(answer(b"", status="503 X"), True, id="a proxy without a body"),
        pytest.param(answer(b"{", status="404 X", kind=_PROBLEM), False, id="half a problem"),
        pytest.param(answer(b"[1]", status="404 X", kind=_PROBLEM), False, id="a problem that is a list"),
        pytest.param(answer(b'{"code": 7}', status="404 X", kind=_PROBLEM), False, id="a code that is none"),
        pytest.param(answer(_DEEP, status="404 X", kind=_PROBLEM), False, id="a deep problem"),
        pytest.param(answer(gzip.compress(b"{}"), "Content-Encoding: gzip"), False, id="packed"),
        pytest.param(answer(b"", "Location: /x", status="301 X"), False, id="301"),
        pytest.param(answer(b"", "Location: /x", status="302 X"), False, id="302"),
        pytest.param(answer(b"", "Location: /x", status="307 X"), False, id="307"),
        pytest.param(answer(b"", "Location: /x", status="308 X"), False, id="308"),
        pytest.param(answer(b"", status="300 X"), False, id="300"),
        pytest.param(answer(b"", status="999 X"), False, id="no such status"),
        pytest.param(
            b"HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n", True, id="an upgrade"
        ),
    ],
)
async def test_what_is_no_answer_of_the_service_is_unreachable(data, transient):
    """Whatever a stranger or a broken service says is one error, which says whether to try again."""
    async with serving(data) as server, client_of(server) as client:
        with pytest.raises(Unreachable) as caught:
            await client.call("GET", "/v1/batch")
    assert caught.value.transient is transient
    assert "127.0.0.1" not in caught.value.reason
    assert caught.value.reason.isascii()
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{", b"\xff", _DEEP], ids=["", "html", "half", "bytes", "deep"]
)
async def test_a_body_that_is_no_json_is_unreachable(body):
    """An answer that has no JSON is a stranger's."""
    async with serving(answer(body)) as server, client_of(server) as client:
        with pytest.raises(Unreachable):
            (await client.call("GET", "/v1/batch")).json()


async def test_a_redirect_is_not_followed():
    """Where a redirect leads, nobody is called: the key is not for them."""
    async with serving(answer()) as other:
        location = f"Location: {other.url}/v1/batch"
        async with serving(answer(b"", location, status="307 X")) as server, client_of(server) as client:
            with pytest.raises(Unreachable, match="sends on to another address"):
                await client.call("GET", "/v1/batch")
            with pytest.raises(Unreachable, match="sends on to another address"):
                async with client.lines("/v1/batch/x/results"):
                    pass
    assert len(server.asked) == 2
    assert other.asked == []


async def _lines_of(client: Client) -> list:
    async with client.lines("/v1/batch/x/results") as lines:
        return [line async for line in lines]


async def test_a_large_answer_is_not_held(monkeypatch):
    """An answer that grows beyond any of the service's is given up, whether it names a length or not."""
    monkeypatch.setattr(calls, "BODY_LIMIT", 1_000)

    async def endless(stream: trio.SocketStream) -> None:
        await stream.send_all(chunked(b"{}", whole=False))
        while True:
            await stream.send_all(b"400\r\n" + b" " * 1024 + b"\r\n")

    for talk in (answer(b" " * 1_001), endless):
        async with serving(talk) as server, client_of(server) as client:
            with pytest.raises(Unreachable, match="larger"):
                await client.call("GET", "/v1/batch")
            with pytest.raises(Unreachable, match=r"larger|no sift-batch"):
                await _lines_of(client)


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\n", answer(b"{}")[:-1]], ids=["", "head", "body"])
async def test_an_answer_that_does_not_come_is_given_up(begin):
    """A service that is silent, or drips, is given up after the seconds of the call, and it is hung up on."""

    async def dripping(stream: trio.SocketStream) -> None:
        await stream.send_all(begin)
        while True:
            await trio.sleep(0.02)
            await stream.send_all(b"X" if begin.endswith(b"\n") else b"")
            with trio.move_on_after(0.02):
                if not await stream.receive_some():
                    raise trio.BrokenResourceError

    async with serving(dripping) as server, client_of(server) as client:
        with trio.fail_after(5):
            with pytest.raises(Unreachable, match="in time") as caught:
                await client.call("GET", "/v1/batch", seconds=0.15)
            await server.left.wait()
    assert caught.value.transient


async def test_a_call_that_is_cancelled_hangs_up():
    """Nothing of a cancelled call stays open, wherever it was."""

    async def silent(stream: trio.SocketStream) -> None:
        if not await stream.receive_some():
            raise trio.BrokenResourceError

    async with serving(silent) as server, client_of(server) as client:
        with trio.move_on_after(0.05) as scope:
            await client.call("GET", "/v1/batch")
        assert scope.cancelled_caught
        with trio.fail_after(5):
            await server.left.wait()


async def test_nobody_there_is_unreachable():
    """A port on which nobody listens is told at once."""
    async with serving(b"") as server:
        pass
    async with client_of(server) as client:
        with pytest.raises(Unreachable, match="nothing answers") as caught:
            await client.call("GET", "/v1/batch")
    assert caught.value.transient


async def test_a_name_that_is_none_is_unreachable():
    """A host that can't be looked up is told, without its name."""
    async with open_client("https://no-such-host.invalid", KEY) as client:
        with pytest.raises(Unreachable, match="nothing answers"):
            await client.call("GET", "/v1/batch", seconds=10)


async def test_the_environment_turns_nothing(monkeypatch):
    """No proxy of the environment is used."""
    async with serving(answer(b"1")) as proxy, serving(answer(b"2")) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        async with client_of(server) as client:
            assert (await client.call("GET", "/v1/batch")).json() == 2
    assert proxy.asked == []


@pytest.mark.parametrize("key", ["a\r\nX: y", "ü" * 20, "a b", "k" * 257])
async def test_a_key_that_would_forge_a_header_is_refused(key):
    """What can't stand in a header is no key, before anything is sent."""
    with pytest.raises(BadServer):
        async with open_client("http://127.0.0.1:1", key):
            raise AssertionError("it must not open")
    with pytest.raises(BadServer):
        Client(None, key)  # type: ignore[arg-type]


async def test_without_a_key_none_is_sent():
    """An empty key is no header."""
    async with serving(answer()) as server, open_client(server.url, "") as client:
        await client.call("GET", "/healthz")
    assert b"uthorization" not in server.asked[0]
