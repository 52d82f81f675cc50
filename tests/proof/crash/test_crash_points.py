"""What must be left after a death at each named point, and is there such a test for every point?"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_faults import FAULTS, POINTS, Fault, plant
from crash_parent import Lives
from crash_points import TABLE, die_at, points_in_source

import sift_batch
from sift_batch._model.crash import crash_point, on_crash_point

pytestmark = pytest.mark.real

# Where a fault that splits one step in two shows itself: past the commit that was put there.
_PLANTED = {
    "the new file is made in place": ("create: draft laid out", 1),
    "a submit is two transactions": ("submit: job without targets", 2),
    "a rerun is two transactions": ("rerun: nothing carried yet", 2),
    "a removal is two transactions": ("remove: targets gone", 2),
    "the last store is two transactions": ("record: last target stored", 2),
    "a cancel is two transactions": ("stop: job ended", 2),
    "a restart is two transactions": ("restart: targets put back", 4),
    "a restart leaves targets running": ("closing: begun", 1),
    "a restart leaves jobs unsettled": ("closing: begun", 1),
    "acknowledged one commit too early": ("cancel: not told yet", 1),
}
_DIE = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[4:]
from crash_parent import Lives
from crash_points import die_at
with Lives() as lives:
    _, wrong = die_at(lives, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
print("\\n".join(wrong))
sys.exit(bool(wrong))
"""


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    """Give the process that forks all the others."""
    with Lives() as opened:
        yield opened


def test_every_point_has_its_line_and_every_line_its_point() -> None:
    """The points that the source passes are those of the table, and each stands in the source once."""
    found = [name for name, _ in points_in_source()]
    assert sorted(found) == sorted(TABLE)


@pytest.mark.parametrize("passing", [1, 2])
@pytest.mark.parametrize("point", TABLE)
def test_a_death_at_a_point(lives: Lives, tmp_path: Path, point: str, passing: int) -> None:
    """After a death at the point the file holds what the table allows, opens, and has lost nothing."""
    died, wrong = die_at(lives, tmp_path, point, passing)
    assert died, "the point was not passed so often"
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("point", ["commit: not yet", "commit: done"])
def test_a_death_at_any_commit(lives: Lives, tmp_path: Path, point: str) -> None:
    """Before and after the commit of every kind of step: whole or absent, and what was told is there."""
    passing, died = 3, True
    while died:
        folder = tmp_path / str(passing)
        folder.mkdir()
        died, wrong = die_at(lives, folder, point, passing)
        assert not wrong, "\n".join(wrong)
        # A sample; `crash.py --points` takes every one.
        passing += 13
    assert passing > 3 + 13, "no process died"


@pytest.mark.parametrize("name", _PLANTED)
def test_the_points_see_a_fault(tmp_path: Path, name: str) -> None:
    """With a step split in two, or a restart that forgets something, a death at its point is not allowed."""
    assert POINTS in FAULTS[name].seen_by
    point, passing = _PLANTED[name]
    folder = tmp_path / "store"
    folder.mkdir()
    done = _die_in(plant(FAULTS[name], tmp_path / "package"), folder, point, passing)
    assert done.returncode == 1, done.stdout + done.stderr
    assert point in done.stdout


def test_every_fault_that_the_points_must_see_is_planted() -> None:
    """No fault of the list that is theirs is left out."""
    assert set(_PLANTED) == {name for name, fault in FAULTS.items() if POINTS in fault.seen_by}


def test_a_package_without_a_fault_passes_the_same_way(tmp_path: Path) -> None:
    """What the planted faults are found by finds nothing in a copy that has none."""
    folder = tmp_path / "store"
    folder.mkdir()
    done = _die_in(plant(Fault((), frozenset()), tmp_path / "package"), folder, "cancel: not told yet", 1)
    assert done.returncode == 0, done.stdout + done.stderr


def _die_in(
    environment: dict[str, str], folder: Path, point: str, passing: int
) -> subprocess.CompletedProcess[str]:
    here = Path(__file__).parent
    paths = [str(path) for path in (here, here.parent, here.parents[1] / "real")]
    command = [sys.executable, "-c", _DIE, str(folder), point, str(passing), *paths]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_a_point_does_nothing_unless_a_test_says_so() -> None:
    """A point calls what a test has set, and nothing once that is taken back."""
    passed: list[str] = []
    on_crash_point(passed.append)
    try:
        crash_point("here")
    finally:
        on_crash_point(None)
    crash_point("there")
    assert passed == ["here"]


def test_only_tests_set_a_hook_and_no_environment_is_read() -> None:
    """Nothing in the package sets the hook, and its module imports neither `os` nor `sys`."""
    package = Path(sift_batch.__file__).parent
    setters = [file.name for file in package.rglob("*.py") if "on_crash_point" in file.read_text()]
    assert setters == ["crash.py"]
    source = (package / "_model" / "crash.py").read_text()
    assert "import os" not in source
    assert "import sys" not in source
