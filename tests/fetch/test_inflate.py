"""What a packed body gives, step by step."""

import gzip
import random
import time
import tracemalloc
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sift_batch.fetch._errors import FetchError
from sift_batch.fetch._inflate import MEMBERS_LIMIT, STEP, Inflater


def inflate(wire: bytes, size: int = 0) -> bytes:
    """Unpack `wire`, given in pieces of `size` bytes."""
    inflater, found = Inflater(), b""
    for at in range(0, len(wire), size or max(1, len(wire))):
        found += b"".join(inflater.feed(wire[at : at + (size or len(wire))]))
    inflater.close()
    return found


@given(
    st.lists(st.binary(max_size=200), max_size=4),
    st.integers(1, 50),
    st.binary(max_size=5).filter(lambda data: not data.startswith(b"\x1f")) | st.just(b"\x1f"),
)
@example([b"a", b"b"], 1, b"\x1f")
def test_members_are_unpacked_however_they_arrive(parts, size, padding):
    """A body of several members gives the same bytes in pieces of any size, whatever is behind them."""
    wire = b"".join(map(gzip.compress, parts)) + (padding if parts else b"")
    assert inflate(wire, size) == b"".join(parts)


@given(st.integers(0, 200), st.binary(min_size=50, max_size=200), st.booleans())
def test_a_cut_member_is_never_a_body(cut, data, second):
    """A packed body that ends inside a member, the first or a later one, is an error wherever it was cut."""
    member = gzip.compress(data)
    wire = (member if second else b"") + member[: max(2, len(member) - 1 - cut)]
    with pytest.raises(FetchError) as caught:
        inflate(wire)
    assert caught.value.code == "protocol"


@pytest.mark.parametrize("size", [STEP - 1, STEP, STEP + 1, 3 * STEP, 3 * STEP + 257])
@pytest.mark.parametrize("fill", [b"\0", None])
def test_a_body_whose_last_step_is_full_is_whole(size, fill):
    """What is left inside after all input was taken still comes, and the end is seen."""
    data = fill * size if fill else random.Random(1).randbytes(size)
    assert inflate(gzip.compress(data)) == data


@pytest.mark.parametrize(
    "wire",
    [
        b"plain text",
        zlib.compress(b"zlib and not gzip"),
        gzip.compress(b"x", mtime=0)[:-8] + bytes(8),
        gzip.compress(b"x", mtime=0) + b"\x1f\x8b garbage",
        b"\x1f\x8b\x07" + bytes(20),
    ],
)
def test_damaged_bytes_are_no_body(wire):
    """What is no gzip, or has the wrong checksum, is an error."""
    with pytest.raises(FetchError) as caught:
        inflate(wire)
    assert caught.value.code == "protocol"


def test_padding_stays_padding():
    """Once something else than a member follows, a member behind it is not unpacked."""
    for size in (0, 1):
        assert inflate(gzip.compress(b"a") + b"\0" + gzip.compress(b"b"), size) == b"a"


def test_nothing_is_a_whole_body():
    """A body without a byte is empty and not cut off."""
    assert inflate(b"") == b""


def test_a_bomb_unfolds_one_step_at_a_time():
    """Fifty megabytes out of fifty kilobytes cost no more memory than a step and the input."""
    bomb = gzip.compress(bytes(50_000_000))
    inflater = Inflater()
    tracemalloc.start()
    try:
        steps = inflater.feed(bomb)
        assert all(len(piece) <= STEP for piece, _ in zip(steps, range(100), strict=False))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 500_000


def test_members_are_counted():
    """A body may have 1,024 members and not one more, whatever is in them."""
    member = gzip.compress(b"")
    assert inflate(member * MEMBERS_LIMIT, 999) == b""
    for size in (1, 999, 0):
        with pytest.raises(FetchError) as caught:
            inflate(member * (MEMBERS_LIMIT + 1), size)
        assert caught.value.code == "too_large"


def test_ten_megabytes_of_empty_members_take_no_time():
    """What costs a member each twenty bytes is given up after little work."""
    began = time.process_time()
    with pytest.raises(FetchError):
        inflate(gzip.compress(b"") * 500_000, 16_384)
    assert time.process_time() - began < 0.5
