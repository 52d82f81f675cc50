"""What comes from a server before a parser sees it."""

import time

import h11
import pytest
from hostile import SWITCHES, Talk
from hypothesis import example, given
from hypothesis import strategies as st

from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._framing import HEAD_LIMIT, Framing

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def frame(data: bytes, size: int) -> bool:
    """Feed `data` in pieces of `size` bytes; return whether it passed."""
    framing = Framing()
    try:
        for at in range(0, len(data), size):
            framing.feed(data[at : at + size])
    except FetchError:
        return False
    return True


def parse(data: bytes) -> bool:
    """Give `data` to the parser; return whether it took all of it."""
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method="GET", target="/", headers=[("Host", "a")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(data)
    try:
        while parser.next_event() not in (h11.NEED_DATA, h11.PAUSED, h11.EndOfMessage()):
            pass
    except h11.RemoteProtocolError:
        return False
    return True


CHUNKS = st.lists(
    st.tuples(st.binary(min_size=1, max_size=40), st.sampled_from([b"", b";a=b", b';c="d"  ', b"\t"])),
    max_size=5,
)
TRAILERS = st.lists(st.sampled_from([b"A: b\r\n", b"C:\r\n", b"D: e\n"]), max_size=3)


@given(CHUNKS, TRAILERS, st.integers(1, 40), st.booleans())
def test_what_the_parser_takes_passes_in_pieces_of_any_size(chunks, trailers, size, interim):
    """A whole chunked answer passes, however it is cut into packets."""
    data = (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" if interim else b"") + HEAD
    data += b"".join(b"%x%s\r\n%s\r\n" % (len(chunk), more, chunk) for chunk, more in chunks)
    data += b"0\r\n" + b"".join(trailers) + b"\r\n"
    assert parse(data)
    assert frame(data, size)


@given(st.binary(max_size=300), st.integers(1, 50))
@example(b"HTTP/1.1 200 OK\r\n\r\n", 1)
def test_pieces_make_no_difference(data, size):
    """Bytes are taken or refused whole or piece by piece alike."""
    assert frame(data, size) == frame(data, len(data) or 1)
    assert frame(HEAD + data, size) == frame(HEAD + data, len(HEAD + data))


@pytest.mark.parametrize("size", [1_000, 65_536, 10**6])
def test_a_head_is_bounded_to_the_byte(size):
    """A head or a trailer section of the limit passes in pieces of any size; a byte more does not."""
    start = b"HTTP/1.1 200 OK\r\nX: "
    room = HEAD_LIMIT - len(start) - 4
    assert frame(start + b"y" * room + b"\r\n\r\n", size)
    assert not frame(start + b"y" * (room + 1) + b"\r\n\r\n", size)
    trailer = HEAD + b"0\r\nX: "
    assert frame(trailer + b"y" * (HEAD_LIMIT - 7) + b"\r\n\r\n", size)
    assert not frame(trailer + b"y" * (HEAD_LIMIT - 6) + b"\r\n\r\n", size)


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n", HEAD + b"0\r\n"])
def test_fields_are_counted(start):
    """A head or trailer section may have 256 fields and not one more."""
    assert frame(start + b"a: b\r\n" * 256 + b"\r\n", 999)
    assert not frame(start + b"a: b\r\n" * 257 + b"\r\n", 999)


class Tape:
    """A stream that only remembers what was sent on it."""

    def __init__(self) -> None:
        self.sent = b""

    async def send_all(self, data: bytes) -> None:
        """Remember."""
        self.sent += data


@pytest.mark.parametrize(
    "name",
    [
        "head_blanks_nul",
        "head_blanks_vt",
        "head_blanks_cr",
        "body_blanks_in_trailer",
        "body_blanks_in_extension",
    ],
)
async def test_no_line_makes_the_parser_search_for_long(name):
    """A line made to send a backtracking pattern back is refused before it gets there, in no time.

    The parser itself is busy with each of these for half a minute.
    """
    tape = Tape()
    await SWITCHES[name].act(Talk(tape, None))
    began = time.process_time()
    assert not frame(tape.sent, 16_384)
    assert time.process_time() - began < 1


@pytest.mark.parametrize("start", [b"HTTP/1.1 200 OK\r\n", HEAD + b"0\r\n"], ids=["head", "trailer"])
def test_bytes_that_come_one_by_one_are_looked_at_once(start):
    """A head or a trailer section of the limit costs hardly more byte by byte than in a few packets."""
    fields = b"".join(b"x-%03d: %s\r\n" % (number, b"a" * 390) for number in range(250))
    whole = start + fields + b"\r\n"
    assert _seconds(whole, 1) < 2  # half a second; twenty, where all is looked at anew each time


def _seconds(data: bytes, size: int) -> float:
    began = time.process_time()
    assert frame(data, size)
    return time.process_time() - began
