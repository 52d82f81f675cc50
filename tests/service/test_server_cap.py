"""How many clients at a time, and what is left of them? Real sockets in numbers; limits and listeners."""

import sys
from pathlib import Path

import pytest
import trio
import trio.testing
from server_rig import HEALTHY, MemoryListener, answer, echo, read_all, read_until, running, status_of

from sift_batch.service._limits import ServerLimits
from sift_batch.service._listener import address_of, open_listeners

H = b" HTTP/1.1\r\nHost: x\r\n"


def open_files() -> int:
    """Open file descriptors of this process."""
    return len(list(Path("/proc/self/fd" if sys.platform == "linux" else "/dev/fd").iterdir()))


@pytest.mark.real
@pytest.mark.slow
async def test_a_thousand_connections_in_turn_leave_nothing() -> None:
    """After 1,000 clients of every manner there are as many descriptors and tasks as before."""
    manners = [
        HEALTHY,
        b"GET /" + H + b"\r\n",
        b"POST /" + H + b"Content-Length: 9999999\r\n\r\n",
        b"POST /" + H + b"Content-Length: 10\r\n\r\nabc",
        b"\x00",
        b"GET / HT",
        b"",
        b"POST /" + H + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    ]
    async with running(echo) as server:
        await server.talk(HEALTHY)
        await trio.testing.wait_all_tasks_blocked()
        files = open_files()
        tasks = trio.lowlevel.current_statistics().tasks_living
        for number in range(1000):
            async with await server.connect() as stream:
                await stream.send_all(manners[number % len(manners)])
                if number % 3:
                    await stream.send_eof()
                    await read_all(stream)
        await server.wait_for("connection_closed", 1001)
        await trio.testing.wait_all_tasks_blocked()
        assert open_files() == files
        assert trio.lowlevel.current_statistics().tasks_living == tasks
        assert server.events["connection_failed"] == 0


@pytest.mark.real
@pytest.mark.parametrize("said", [b"", b"GET / HT"])
async def test_waiting_connections_at_the_cap_make_room(said: bytes) -> None:
    """300 clients without a whole request at a cap of 300: the next is answered, the oldest is closed."""
    async with running(echo, limits=ServerLimits(connections=300)) as server:
        async with trio.open_nursery() as tasks:
            idle = [await server.connect() for _ in range(300)]
            for stream in idle:
                await stream.send_all(said)
            await server.wait_for("connection_opened", 300)
            await trio.testing.wait_all_tasks_blocked()
            with trio.fail_after(3):
                assert (await server.talk(HEALTHY)).endswith(b"GET /healthy ")
                assert await read_all(idle[0]) == b""
            assert server.events["evicted"] == 1
            assert server.events["refused_full"] == 0
            tasks.cancel_scope.cancel()
        for stream in idle:
            await stream.aclose()


async def test_busy_connections_at_the_cap_stay(autojump_clock) -> None:
    """With every place taken by a running request the next client gets a 503; then there is room again."""
    listener, go_on = MemoryListener(), trio.Event()

    async def app(scope, receive, send):
        await go_on.wait()
        await answer(send)

    async with running(app, [listener], limits=ServerLimits(connections=2)) as server:
        busy = [listener.connect(), listener.connect()]
        for client in busy:
            await client.send_all(b"GET /" + H + b"\r\n")
        await trio.sleep(1)
        reply = await read_all(listener.connect())
        assert status_of(reply) == 503
        assert b"retry-after: 1" in reply
        assert server.events["refused_full"] == 1
        go_on.set()
        for client in busy:
            await read_until(client, b"ok")
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        await read_until(client, b"ok")


async def test_a_flood_at_the_cap_takes_bounded_memory(autojump_clock) -> None:
    """500 clients more than there is room for: 32 at most are told so at a time, the others are closed."""
    listener = MemoryListener()

    async def app(scope, receive, send):
        await trio.sleep(10)
        await answer(send)

    async with running(app, [listener], limits=ServerLimits(connections=1)) as server:
        busy = listener.connect()
        await busy.send_all(b"GET /" + H + b"\r\n")
        await trio.sleep(1)
        before = trio.lowlevel.current_statistics().tasks_living
        flood = [listener.connect() for _ in range(500)]
        await trio.sleep(0.1)
        assert trio.lowlevel.current_statistics().tasks_living - before <= 32
        await trio.sleep(5)
        assert server.events["refused_full"] == 500
        assert status_of(await read_all(flood[0])) == 503
        await read_until(busy, b"ok")


class _Broken:
    """A stream with a fault of its own in every call."""

    async def _fail(self, *_args):
        raise ZeroDivisionError

    send_all = receive_some = _fail

    async def aclose(self):
        """Close."""
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("room", [True, False])
async def test_a_fault_outside_of_every_rule_ends_one_connection_only(autojump_clock, room: bool) -> None:
    """A stream that raises what no stream should is counted and closed, with room for it and without."""
    listener, go_on = MemoryListener(), trio.Event()

    async def app(scope, receive, send):
        await go_on.wait()
        await answer(send)

    async with running(app, [listener], limits=ServerLimits(connections=2 if room else 1)) as server:
        client = listener.connect()
        await client.send_all(b"GET /" + H + b"\r\n")
        await trio.sleep(1)
        listener.take(_Broken())
        await trio.sleep(1)
        assert server.events["connection_failed"] == 1
        go_on.set()
        await read_until(client, b"ok")


class _Tired(MemoryListener):
    """Fails at first, as a listener does when the process has no descriptors left."""

    failures = 3

    async def accept(self):
        if self.failures:
            self.failures -= 1
            raise OSError(24, "sesame")
        return await super().accept()


async def test_a_listener_that_fails_for_a_while_is_tried_again(autojump_clock) -> None:
    """Running out of descriptors ends nothing: the server pauses and accepts again."""
    listener = _Tired()
    async with running(echo, [listener], limits=ServerLimits()) as server:
        client = listener.connect()
        await client.send_all(HEALTHY)
        await read_until(client, b"GET /healthy ")
        assert server.events["accept_failed"] == 3


@pytest.mark.real
async def test_two_servers_run_side_by_side_on_one_stop() -> None:
    """The same function serves two applications beside each other; the stop of one is not the other's."""

    async def other(scope, receive, send):
        await answer(send, 200, b"other")

    async with running(echo) as one, running(other, limits=ServerLimits(connections=1)) as two:
        assert (await one.talk(HEALTHY)).endswith(b"GET /healthy ")
        assert (await two.talk(HEALTHY)).endswith(b"other")
        one.stop.set()
        await one.ended.wait()
        assert (await two.talk(HEALTHY)).endswith(b"other")


@pytest.mark.real
async def test_one_server_takes_connections_from_several_listeners() -> None:
    """Two listeners of one server answer both."""
    listeners = [*await open_listeners("127.0.0.1", 0), *await open_listeners("127.0.0.1", 0)]
    async with running(echo, listeners):
        for listener in listeners:
            host, port = address_of(listener)
            async with await trio.open_tcp_stream(host, port) as stream:
                await stream.send_all(HEALTHY)
                assert status_of(await read_all(stream)) == 200


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="needs a second loopback address")
@pytest.mark.parametrize("taken", [0, 2])
async def test_a_host_with_two_addresses_has_one_port(monkeypatch, taken: int) -> None:
    """Port 0 is the same free port on each address of a host, also when a first choice is taken on one."""
    real, refusals, opened = trio.open_tcp_listeners, [OSError()] * taken, []

    async def both(port, *, host, backlog):
        if host == "127.0.0.2" and refusals:
            raise refusals.pop()
        hosts = ["127.0.0.1", "127.0.0.2"] if host == "two.test" else [host]
        listeners = [listener for name in hosts for listener in await real(port, host=name, backlog=backlog)]
        opened.extend(listeners)
        return listeners

    monkeypatch.setattr(trio, "open_tcp_listeners", both)
    listeners = await open_listeners("two.test", 0)
    assert [address_of(listener)[0] for listener in listeners] == ["127.0.0.1", "127.0.0.2"]
    assert len({address_of(listener)[1] for listener in listeners}) == 1
    for listener in listeners:
        await listener.aclose()
    assert {listener.socket.fileno() for listener in opened} == {-1}


@pytest.mark.real
@pytest.mark.parametrize(
    ("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "0.0.0.0"), ("::1", "[::1]")]
)
async def test_a_listener_names_its_address_as_a_url_does(host: str, shown: str) -> None:
    """IPv6 in brackets, and the port that was taken."""
    try:
        (listener,) = await open_listeners(host, 0)
    except OSError:
        assert host == "::1"
        pytest.skip("no IPv6 here")
    async with listener:
        name, port = address_of(listener)
        assert name == shown
        assert port > 0
        with pytest.raises(OSError):  # noqa: PT011
            await open_listeners(host, port)


@pytest.mark.parametrize(
    "bad",
    [
        {"connections": 0},
        {"connections": 1.5},
        {"connections": True},
        {"head_seconds": 0},
        {"idle_seconds": -1},
        {"send_seconds": float("inf")},
        {"body_seconds": float("nan")},
        {"linger_seconds": 0},
        {"body_bytes": "1"},
    ],
)
def test_a_bad_limit_is_refused_by_name(bad) -> None:
    """A limit that makes no sense is refused when it is made, and the error names it."""
    with pytest.raises(ValueError, match=next(iter(bad))):
        ServerLimits(**bad)
