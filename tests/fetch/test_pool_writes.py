"""How a request goes into a worker's pipe."""

import pytest

from sift_batch._model.values import Options
from sift_batch.fetch import _frames, _process
from sift_batch.fetch._document import Document

MOST = _process._CHUNK


def document(*sizes: int) -> Document:
    """Return a document whose body comes in pieces of these sizes."""
    body = [bytes([number % 256]) * size for number, size in enumerate(sizes)]
    return Document(body=body, content_type="text/html", url="http://example.org/")


@pytest.mark.parametrize(
    ("sizes", "writes"),
    [
        ((), 1),
        ((10_000,), 1),
        ((1,) * 1_000, 1),
        ((0, 0), 1),
        ((64 * 1024,) * 3, 4),
        ((MOST + 1,), 3),
        ((100, MOST, 100), 3),
    ],
)
def test_a_small_request_is_one_write_and_a_large_one_is_never_joined(sizes, writes):
    """Each write wakes the worker: a usual page needs one. A large page is not copied together for it."""
    request = list(_frames.read_request(document(*sizes), Options()))
    found = [bytes(data) for data in _process._writes(request)]
    assert b"".join(found) == b"".join(request)
    assert len(found) == writes
    assert all(0 < len(data) <= MOST for data in found)
