"""What does Ctrl-C do to a program with a runner in it, once, twice, and at any moment?"""

import signal
import time
from pathlib import Path

import pytest
import trio
from real_audit import Books, Child, audit
from real_rows import check_rows

from sift_batch import JobStatus, TargetState, open_reader

pytestmark = pytest.mark.real


def status_of(path: Path, job_id: str) -> JobStatus:
    """Return what a reader sees of a job."""

    async def read() -> JobStatus | None:
        async with open_reader(path) as reader:
            return await reader.status(job_id)

    status = trio.run(read)
    assert status is not None
    return status


@pytest.mark.parametrize(
    ("role", "number", "ends_with"),
    [("fetch_slowly", signal.SIGINT, -signal.SIGINT), ("stop_on_sigterm", signal.SIGTERM, 0)],
)
def test_a_signal_lets_the_fetch_in_flight_finish_and_stores_it(
    tmp_path: Path, role: str, number: signal.Signals, ends_with: int
) -> None:
    """After one Ctrl-C, or a SIGTERM, the fetch in flight finishes and is stored, and no other begins."""
    path = tmp_path / "jobs.sift"
    with Child(role, path, seconds=1) as child:
        child.read_until("fetching")
        # Until it sleeps: a Ctrl-C that strikes in the fetch's own code ends the runner without a grace.
        time.sleep(0.2)
        child.send(number)
        status, said = child.end()
    assert status == ends_with
    assert "ResourceWarning" not in said
    (job_id,) = (line[1] for line in child.lines if line[0] == "submitted")
    assert [line for line in child.lines if line[0] == "fetching"] == [["fetching", 0]]
    job, targets = status_of(path, job_id)
    assert targets[0].status is TargetState.DONE
    assert job.targets_done == 1
    check_rows(path)


def test_a_second_ctrl_c_ends_the_grace(tmp_path: Path) -> None:
    """The second Ctrl-C ends the program at once, whatever is in flight; the store is sound."""
    path = tmp_path / "jobs.sift"
    with Child("fetch_slowly", path, seconds=25) as child:
        child.read_until("fetching")
        time.sleep(0.2)
        child.send(signal.SIGINT)
        time.sleep(0.2)
        began = time.monotonic()
        child.send(signal.SIGINT)
        status, _ = child.end()
        assert time.monotonic() - began < 10
    assert status == -signal.SIGINT
    books = Books()
    books.enter(child)
    audit(path, books)
    ((job_id, _),) = books.submitted.items()
    job, targets = status_of(path, job_id)
    assert (job.status, job.error) == ("failed", "restart")
    assert [target.status for target in targets] == [TargetState.PENDING, TargetState.PENDING]


def test_ctrl_c_at_any_moment_leaves_a_sound_store(tmp_path: Path) -> None:
    """Whenever a Ctrl-C strikes a busy program, the store is sound and nothing acknowledged is lost."""
    path = tmp_path / "jobs.sift"
    with Child("interrupts", path, seed=1, rounds=40) as child:
        status, said = child.end()
    assert status == 0, said
    assert "Traceback" not in said
    assert child.lines[-1] == ["threads", 0]
    assert sum(line[0] == "interrupted" for line in child.lines) == 40
    books = Books()
    books.enter(child)
    audit(path, books)


def test_ctrl_c_in_any_line_comes_out_bare_and_leaves_a_sound_store(tmp_path: Path) -> None:
    """Whichever line of the package a Ctrl-C strikes, the block ends with a bare KeyboardInterrupt."""
    path = tmp_path / "jobs.sift"
    with Child("interrupt_each_line", path, stride=31) as child:
        status, said = child.end()
    assert status == 0, said
    assert "Traceback" not in said
    assert child.lines[-1] == ["threads", 0]
    assert sum(line[0] == "interrupted" for line in child.lines) > 50
    books = Books()
    books.enter(child)
    audit(path, books)
