"""May two processes use one store? One owns it; the others may read, and come and go as they like."""

from pathlib import Path

import pytest
import trio
from real_audit import Books, Child, audit
from real_rows import rows

from sift_batch import JobState, open_reader

pytestmark = pytest.mark.real


def test_the_second_owner_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    """While one process owns a store, another one gets `StoreInUseError`, and no row changes."""
    path = tmp_path / "jobs.sift"
    with Child("leave_live", path, jobs=5) as owner:
        owner.read_until("ready")
        before = rows(path)
        with Child("own_briefly", path) as second:
            assert second.read() == ["StoreInUseError"]
            assert second.end() == (0, "")
        assert rows(path) == before


def test_the_lock_dies_with_its_process(tmp_path: Path) -> None:
    """After `kill -9` of the owner the next process owns the store at once."""
    path = tmp_path / "jobs.sift"
    with Child("leave_live", path, jobs=5) as owner:
        owner.read_until("ready")
        owner.kill()
    with Child("own_briefly", path) as second:
        assert second.read() == ["owned"]
        assert second.end() == (0, "")


def test_a_link_to_a_store_in_use_is_that_store(tmp_path: Path) -> None:
    """A process that comes by a symbolic link is refused like one that comes by the path itself."""
    path, link = tmp_path / "jobs.sift", tmp_path / "elsewhere" / "link.sift"
    link.parent.mkdir()
    with Child("leave_live", path, jobs=2) as owner:
        owner.read_until("ready")
        link.symlink_to(path)
        with Child("own_briefly", link) as second:
            assert second.read() == ["StoreInUseError"]


def test_readers_come_and_go_beside_a_working_owner(tmp_path: Path) -> None:
    """A reader in another process sees sound states of a working owner's jobs, and costs it nothing."""
    path = tmp_path / "jobs.sift"
    books = Books()

    async def read() -> int:
        async with open_reader(path) as reader:
            jobs = await reader.jobs(limit=50)
            for job in jobs[:5]:
                status = await reader.status(job.id)
                if status is None:
                    continue
                stored = [target for target in status.targets if target.status in ("done", "failed")]
                assert len(stored) == status.job.targets_done
                assert all(target.result for target in stored if target.status == "done")
                assert status.job.status is not JobState.QUEUED or not stored
            return len(jobs)

    with Child("work", path, seed=7, durability="normal") as owner:
        owner.read_until("stored")
        seen = [trio.run(read) for _ in range(15)]
        owner.kill()
    assert seen[-1] > 0
    books.enter(owner)
    audit(path, books)


def test_no_acknowledged_job_is_lost_to_a_second_look_at_the_file(tmp_path: Path) -> None:
    """Opened twice in one process while outside readers come and go, a store keeps each acknowledged job.

    A process that opens and closes a database file by hand drops its own locks on it; a reader that then
    leaves last deletes the log under the owner.
    """
    path = tmp_path / "jobs.sift"
    with Child("own_twice", path) as owner:
        owner.read_until("submitted")
        with Child("look", path, times=60) as reader:
            reader.read_until("ready")
            assert reader.end()[0] == 0
        for _ in range(5):
            owner.read()
        owner.kill()
    assert ["owned twice"] not in owner.lines
    books = Books()
    books.enter(owner)
    audit(path, books)
    assert len(books.submitted) > 5
