"""What is left on the disk when the power goes?"""

import subprocess
import sys
from pathlib import Path
from random import Random

import crash_power
import pytest
from crash_faults import FAULTS, POWER, plant
from crash_medium import EVERYTHING, NOTHING, Fate, Medium
from crash_trace import NO_STRACE, Act, strace

pytestmark = pytest.mark.real

_NEEDS_STRACE = pytest.mark.skipif(strace() is None, reason=NO_STRACE)
# With which durability each shows itself: the log's own first sync makes the folder last as well, so that
# where the log is synced at each commit, one forgotten sync of the folder does no harm.
_PLANTED = {
    "nothing is ever synced": "full",
    "full is as normal": "full",
    "the folder is not synced": "normal",
    "the new file is not synced": "normal",
}


@_NEEDS_STRACE
@pytest.mark.parametrize("durability", ["full", "normal"])
def test_a_power_cut_leaves_a_state_that_was(durability: str) -> None:
    """Whatever the disk kept of what was not synced, there is a state that was; with "full" no older one."""
    found = crash_power.run(150, seed=1, calls=40, opened=10, durability=durability)
    assert not found.faults, "\n".join(found.faults)
    assert found.cuts >= 150
    assert found.opened >= 10


@_NEEDS_STRACE
@pytest.mark.parametrize("name", _PLANTED)
def test_the_cuts_see_a_fault(tmp_path: Path, name: str) -> None:
    """With a sync left out, the same program ends with 1 and says what is not there."""
    assert POWER in FAULTS[name].seen_by
    command = [sys.executable, crash_power.__file__, "--cuts", "100", "--seed", "1", "--calls", "20"]
    done = subprocess.run(
        [*command, "--durability", _PLANTED[name]],
        env=plant(FAULTS[name], tmp_path),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 1, done.stdout[-2_000:] + done.stderr
    assert "VIOLATION" in done.stdout


def test_every_fault_that_the_cuts_must_see_is_planted() -> None:
    """No fault of the list that is theirs is left out."""
    assert set(_PLANTED) == {name for name, fault in FAULTS.items() if POWER in fault.seen_by}


def _medium(*acts: tuple[str, str, bytes, int]) -> Medium:
    """Return a disk to which so much was done; each act is over before the next one begins."""
    medium, files = Medium(), {"/d": 1}
    for began, (call, path, data, offset) in enumerate(acts):
        other = data.decode() if call == "rename" else ""
        file = files.setdefault(path, len(files) + 1)
        if other:
            files[other] = file
        medium.do(Act(call, began, path, file, b"" if other else data, offset, other))
    return medium


_MADE = (("create", "/d/a", b"", 0), ("pwrite64", "/d/a", b"old", 0), ("fsync", "/d/a", b"", 0))


def test_what_was_synced_lasts_and_what_was_not_may_not() -> None:
    """A synced file whose folder was not synced may be gone; one written over since may be either."""
    medium = _medium(*_MADE)
    assert medium.after_cut(NOTHING, Random(1)) == {}
    medium = _medium(*_MADE, ("fsync", "/d", b"", 0), ("pwrite64", "/d/a", b"new", 0))
    assert medium.after_cut(NOTHING, Random(1)) == {"/d/a": b"old"}
    assert medium.after_cut(EVERYTHING, Random(1)) == {"/d/a": b"new"}
    assert medium.unsynced == 1


def test_a_sync_covers_only_what_was_over_when_it_began() -> None:
    """A write that had not returned when the sync began does not last by it."""
    medium = _medium(("create", "/d/a", b"", 0), ("fsync", "/d", b"", 0), ("pwrite64", "/d/a", b"x", 0))
    medium.do(Act("fsync", 2, "/d/a", 2))
    assert medium.after_cut(NOTHING, Random(1)) == {"/d/a": b""}
    medium.do(Act("fsync", 4, "/d/a", 2))
    assert medium.after_cut(NOTHING, Random(1)) == {"/d/a": b"x"}


def test_a_name_lasts_once_its_folder_is_synced() -> None:
    """A rename that is not synced may leave the old name, and never both names or none."""
    acts = (*_MADE, ("fsync", "/d", b"", 0), ("rename", "/d/a", b"/d/b", 0))
    assert _medium(*acts).after_cut(NOTHING, Random(1)) == {"/d/a": b"old"}
    assert _medium(*acts).after_cut(EVERYTHING, Random(1)) == {"/d/b": b"old"}
    assert _medium(*acts, ("fsync", "/d", b"", 0)).after_cut(NOTHING, Random(1)) == {"/d/b": b"old"}


def test_a_write_may_be_torn_where_a_sector_ends_and_nowhere_else() -> None:
    """Of a page that was not synced each sector is old or new, whole."""
    page = b"o" * 4_096
    acts = (("create", "/d/a", b"", 0), ("pwrite64", "/d/a", page, 0), ("fsync", "/d/a", b"", 0))
    medium = _medium(*acts, ("fsync", "/d", b"", 0), ("pwrite64", "/d/a", b"n" * 4_096, 0))
    seen = set()
    for seed in range(50):
        image = medium.after_cut(Fate("some", "all"), Random(seed))["/d/a"]
        assert all(len(set(image[at : at + 512])) == 1 for at in range(0, 4_096, 512))
        seen.add(image)
    assert len(seen) > 10
