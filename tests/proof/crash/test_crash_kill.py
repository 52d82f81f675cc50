"""What is left of a process that is killed in the middle of its work?"""

import shutil
import subprocess
import sys
from pathlib import Path

import crash
import pytest
from crash_faults import FAULTS, KILL, plant
from real_audit import Books, Child, audit
from real_rows import check_rows, rows

pytestmark = pytest.mark.real

_PROGRAM = Path(crash.__file__)
# Each takes seconds; the others are for `test_crash_points.py`, or for a longer run by hand.
_PLANTED = ("one commit in six is dropped", "acknowledged one commit too early")


def test_twenty_killed_processes_lose_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """After `kill -9` at random moments of work, opening and closing, all that was acknowledged is there."""
    tally, faults = crash.run(20, seed=1)
    assert not faults, "\n".join([*faults, capsys.readouterr().out])
    assert tally.kills >= 20
    assert {"load", "removing", "opening"} <= set(tally.modes)
    # Far less than any machine does: what is killed must have been at work.
    assert tally.acknowledged.get("submit", 0) > 5
    assert tally.targets > 0


@pytest.mark.parametrize("name", _PLANTED)
def test_the_kills_see_a_fault(tmp_path: Path, name: str) -> None:
    """With a fault planted into the writer, the same program ends with 1 and says what is lost."""
    assert KILL in FAULTS[name].seen_by
    done = subprocess.run(
        [sys.executable, _PROGRAM, "--kills", "100", "--seed", "3"],
        env=plant(FAULTS[name], tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout[-2_000:]
    assert "VIOLATION" in done.stdout


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
