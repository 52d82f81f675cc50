"""What a server's answer is taken for."""

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch._model.errors import TargetError
from sift_batch.fetch._reply import Body, retry_after


def test_a_bomb_is_not_unpacked_beyond_the_cap():
    """Fifty megabytes out of fifty kilobytes are refused before they are there."""
    bomb = gzip.compress(bytes(50_000_000))
    body = Body(b"gzip", 100_000)
    tracemalloc.start()
    try:
        with pytest.raises(TargetError) as caught:
            body.feed(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert caught.value.code == "too_large"
    assert peak < 2_000_000


@given(st.lists(st.binary(max_size=200), max_size=4), st.integers(1, 50), st.binary(max_size=5))
def test_members_are_unpacked_however_they_arrive(parts, size, padding):
    """A body of several members gives the same text in pieces of any size."""
    wire = b"".join(map(gzip.compress, parts)) + (b"\0" + padding if parts else b"")
    body = Body(b"gzip", 10_000)
    for at in range(0, len(wire), size):
        body.feed(wire[at : at + size])
    assert body.close() == b"".join(parts)


@given(st.integers(0, 200), st.binary(min_size=50, max_size=200))
def test_a_cut_member_is_never_a_body(cut, data):
    """A packed body that ends inside a member is an error, wherever it was cut."""
    wire = gzip.compress(data)
    body = Body(b"gzip", 10_000)
    body.feed(wire[: max(1, len(wire) - 1 - cut)])
    with pytest.raises(TargetError) as caught:
        body.close()
    assert caught.value.code == "protocol"


@given(st.binary(max_size=60), st.floats(0, 4e9))
def test_any_retry_after_is_a_bounded_time_or_none(value, now):
    """No header value raises, or asks for less than a second or more than ten minutes."""
    seconds = retry_after(value, now)
    assert seconds is None or 1 <= seconds <= 600
