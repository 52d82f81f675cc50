"""What is left of a process that is killed in the middle of its work?"""

import shutil
import time
from pathlib import Path
from random import Random

import pytest
from real_audit import Books, Child, audit, check_rows, rows

pytestmark = pytest.mark.real


@pytest.mark.parametrize("durability", ["full", "normal"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_killed_process_loses_nothing_that_it_had_acknowledged(
    tmp_path: Path, seed: int, durability: str
) -> None:
    """After `kill -9` at a random moment every acknowledged submit, cancel and result is there, whole."""
    path = tmp_path / "jobs.sift"
    random, books = Random(seed), Books()
    for kill in range(5):
        with Child("work", path, seed=100 * seed + kill, durability=durability) as child:
            child.read_until("ready")
            for _ in range(random.randrange(120)):
                child.read()
            time.sleep(random.random() / 100)
            child.kill()
        books.enter(child)
        audit(path, books)
    assert books.submitted
    assert books.stored


def test_a_submit_is_there_if_the_process_is_killed_right_after(tmp_path: Path) -> None:
    """A job whose id was returned is there after the next start, however soon the process died."""
    path = tmp_path / "jobs.sift"
    books = Books()
    for kill in range(3):
        with Child("work", path, seed=kill, durability="full") as child:
            child.read_until("submitted")
            child.kill()
        books.enter(child)
        audit(path, books)
    assert len(books.submitted) >= 3


def test_a_recovery_that_is_killed_five_times_ends_like_one_that_is_not(tmp_path: Path) -> None:
    """Killed at five points of the restart step, the sixth start leaves the rows of an undisturbed one."""
    path, undisturbed = tmp_path / "jobs.sift", tmp_path / "undisturbed.sift"
    with Child("leave_live", path, jobs=60) as child:
        child.read_until("ready")
        child.kill()
    books = Books()
    books.enter(child)
    # Nobody has the file open: it may be copied, with its log.
    for file in tmp_path.glob("jobs.sift*"):
        shutil.copy(file, undisturbed.with_name(file.name.replace("jobs", "undisturbed")))
    with Child("recover", undisturbed, die_at=None) as child:
        (_, steps) = child.read_until("recovered")
        assert child.end() == (0, "")
    before = rows(path)
    for fraction in (0.05, 0.3, 0.5, 0.7, 0.9):
        with Child("recover", path, die_at=int(steps * fraction)) as child:
            status, _ = child.end()
        assert status == -9
        assert child.lines == [], "the process was to die before it had recovered"
        assert rows(path) == before, "a restart step that was cut off has left something"
    with Child("recover", path, die_at=None) as child:
        child.read_until("recovered")
        assert child.end() == (0, "")
    assert rows(path) == rows(undisturbed)
    check_rows(path)
    audit(path, books)
