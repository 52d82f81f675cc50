"""How slow a site may be, on a clock of the tests' own."""

import gzip
import itertools

import httpcore2
import pytest
import trio
import trio.testing
from test_client_hostile import make

from sift_batch.fetch._client import Answer, Client
from sift_batch.fetch._errors import FetchError

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"


class Stream(httpcore2.AsyncNetworkStream):
    """One end of a pair in memory."""

    def __init__(self, end: trio.abc.Stream) -> None:
        self._end = end

    async def read(self, max_bytes, timeout=None):  # noqa: ASYNC109 - the library's signature
        """Receive."""
        return bytes(await self._end.receive_some(max_bytes))

    async def write(self, buffer, timeout=None):  # noqa: ASYNC109
        """Send."""
        await self._end.send_all(buffer)

    async def aclose(self):
        """Close."""
        await self._end.aclose()

    def get_extra_info(self, info):
        """Know nothing."""


class Backend(httpcore2.AsyncNetworkBackend):
    """Connects to a function that plays the site, after `wait` seconds."""

    def __init__(self, nursery, site, wait=0.0) -> None:
        self.nursery, self.site, self.wait = nursery, site, wait
        self.ended = False

    async def connect_tcp(self, host, port, timeout=None, **_more):  # noqa: ASYNC109
        """Connect."""
        await trio.sleep(self.wait)
        ours, theirs = trio.testing.memory_stream_pair()
        self.nursery.start_soon(self._play, theirs)
        return Stream(ours)

    async def _play(self, end):
        try:
            await end.receive_some()
            await self.site(end)
            await end.send_eof()
        except trio.BrokenResourceError:
            self.ended = True

    def close(self):
        """Leave nothing open."""


@pytest.fixture
def get(nursery, monkeypatch):
    """Make an exchange with a function that plays the site; give what came of it, and how long it took."""

    async def get(site, *, wait=0.0, **settings) -> tuple[Answer | FetchError, float]:
        backend = Backend(nursery, site, wait)
        monkeypatch.setattr(Client, "_backend", lambda _self, _address: backend)
        client, guard = make(**settings)
        began = trio.current_time()
        try:
            found = await client.get(guard.parse("http://127.0.0.1/"))
        except FetchError as error:
            found = error
        return found, trio.current_time() - began

    return get


def site(*steps):
    """Return a site that sends bytes and sleeps seconds, in turn."""

    async def play(end):
        for step in steps:
            if isinstance(step, bytes):
                await end.send_all(step)
            else:
                await trio.sleep(step)

    return play


def drip(piece: bytes, every: float, head: bytes = HEAD):
    """Return a site that sends a head and then the same piece for ever."""
    return site(head, *itertools.chain.from_iterable(itertools.repeat((every, piece), 1_000)))


@pytest.mark.parametrize(
    ("name", "play", "seconds"),
    [
        ("a status line after half a minute", site(30.0, b"HTTP/1.1 200 OK\r\n", 100.0), 40),
        ("a status line", site(b"HTTP/1.1 200 OK\r\n", 100.0), 10),
        ("a head", site(HEAD, 100.0), 10),
        ("a good start", site(HEAD + b"x" * 50_000, 100.0), 10),
        ("a byte a second", drip(b"x", 1.0), 10),
        ("200 bytes a second", drip(b"x" * 200, 1.0), 10),
        ("a head byte by byte", drip(b"x", 0.5, b"HTTP/1.1 200 OK\r\nX: "), 10),
        ("good for 20 seconds", site(HEAD, *([1.0, b"x" * 2_560] * 20), 100.0), 30),
    ],
)
async def test_a_slow_site_ends_ten_seconds_after_it_became_slow(autojump_clock, get, name, play, seconds):
    """Ten seconds in which too little came end the exchange, in the head and in the body alike."""
    found, took = await get(play)
    assert found.code == "timeout"
    assert took == pytest.approx(seconds)
    assert "256 bytes" in found.message


async def test_interim_answers_are_no_progress(autojump_clock, get):
    """Interim answers that drip in end the exchange, by their number or by the pace."""
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    found, took = await get(drip(interim, 1.0, interim))
    assert found.code == "timeout"
    assert took == pytest.approx(10)
    found, took = await get(drip(interim, 0.1, interim))
    assert found.code == "protocol"
    assert took < 2


@pytest.mark.parametrize(
    "play",
    [
        site(59.0, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"),
        site(HEAD, *([2.0, b"x" * 800] * 125)),
        site(HEAD, 9.9, b"x" * 99_000, 9.9, b"x" * 1_000),
    ],
)
async def test_a_site_that_keeps_the_pace_is_waited_for(autojump_clock, get, play):
    """A site that is slow within the limits is read to its end, however long that takes."""
    found, _ = await get(play)
    assert isinstance(found, Answer)


async def test_the_pace_can_be_lower_or_off(autojump_clock, get):
    """The pace is the configured one; at 0 only the caller's own deadline ends an exchange."""
    found, took = await get(drip(b"x" * 200, 1.0), min_bytes_per_second=100)
    assert isinstance(found, Answer) or took > 400
    with trio.move_on_after(1_000) as scope:
        await get(site(b"HTTP/1.1", 2_000.0), min_bytes_per_second=0)
    assert scope.cancelled_caught


async def test_a_site_may_think_before_it_answers(autojump_clock, get):
    """Before the first byte only the caller's own deadline ends an exchange; ten seconds begin with it."""
    with trio.move_on_after(1_000) as scope:
        await get(site(2_000.0), wait=9.0)
    assert scope.cancelled_caught
    found, took = await get(site(20.0, b"H", 100.0), wait=9.0)
    assert (found.code, took) == ("timeout", pytest.approx(39))


async def test_the_text_says_what_was_announced(autojump_clock, get):
    """A site that announced more than it sent, and then waits, is told so."""
    found, _ = await get(site(b"HTTP/1.1 200 OK\r\nContent-Length: 16775\r\n\r\n" + b"x" * 4_838, 100.0))
    assert "16,775" in found.message
    assert "4,838" in found.message


async def test_others_run_while_a_body_is_unpacked(autojump_clock, nursery, get):
    """Megabytes out of one packet, or thousands of chunks in one, never hold up the loop for long."""
    zeros = gzip.compress(bytes(8 * 2**20))
    packed = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s"
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n"
    turns = 0

    async def count():
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    nursery.start_soon(count)
    for data in (packed % (len(zeros), zeros), chunked % (b"1\r\nx\r\n" * 10_000)):
        turns = 0
        found, _ = await get(site(data))
        assert isinstance(found, Answer)
        assert turns > 100
