"""What if the disk refuses a single call, as a full or a broken one does?"""

from functools import cache
from pathlib import Path
from typing import Any

import crash_full
import pytest
import trio
from crash_room import no_file_over, open_once
from crash_trace import NO_STRACE, strace
from real_rows import check_rows

from sift_batch import StoreError
from sift_batch._model.crash import on_crash_point

pytestmark = pytest.mark.real


_NEEDS_STRACE = pytest.mark.skipif(strace() is None, reason=NO_STRACE)


@cache
def _calls(call: str) -> int:
    """Count how often the busiest thread makes a call while nothing is refused."""
    count, wrong = crash_full.refuse(None, 0, call)
    assert not wrong, "\n".join(wrong)
    return count


@_NEEDS_STRACE
@pytest.mark.parametrize(
    ("refusal", "place"),
    [
        (crash_full.Refusal("pwrite64", "ENOSPC", 25), 0.6),
        (crash_full.Refusal("pwrite64", "EIO"), 0.4),
        (crash_full.Refusal("fdatasync", "EIO"), 0.4),
        (crash_full.Refusal("openat", "ENOSPC"), 0.4),
        (crash_full.Refusal("pread64", "EIO"), 0.4),
    ],
)
def test_a_disk_that_refuses_a_call_loses_nothing(refusal: crash_full.Refusal, place: float) -> None:
    """Whatever call the system refuses, work goes on without a restart, and what was told is there."""
    # One place of each kind, so far into the work; `crash_full.py` takes every one.
    number = max(1, int(place * _calls(refusal.call)))
    refused, wrong = crash_full.refuse(refusal, number, refusal.call)
    assert not wrong, "\n".join(wrong)
    assert refused


def test_a_disk_that_fails_as_a_file_is_made_leaves_nothing(tmp_path: Path) -> None:
    """A new file that can't be finished is no file: a `StoreError`, and the next opening makes it."""
    path = tmp_path / "jobs.sift"
    limits: list[Any] = []

    def no_more(point: str) -> None:
        # All is in the log by now; the file itself may not become as big as it must.
        if point == "create: draft laid out":
            limits.append(no_file_over(16_384))
            limits[0].__enter__()

    on_crash_point(no_more)
    try:
        with pytest.raises(StoreError):
            trio.run(open_once, path)
    finally:
        on_crash_point(None)
        for limit in limits:
            limit.__exit__(None, None, None)
    assert limits
    trio.run(open_once, path)
    check_rows(path)
