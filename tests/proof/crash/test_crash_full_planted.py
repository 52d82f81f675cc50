"""Would the tests of full disks say so if the store had no answer to one?"""

import subprocess
import sys
from pathlib import Path

import pytest
import trio
from crash_faults import FAULTS, FULL, Fault, plant
from crash_room import small_disk
from real_rows import check_rows

from sift_batch import Caller, Config, Target, open_runner, open_store
from sift_batch.testing import ScriptedFetch, ThreadAutojumpClock

pytestmark = pytest.mark.real

_HERE = Path(__file__).parent
_PLANTED = {
    "half a new file goes into place": (
        "test_crash_refused.py::test_a_disk_that_fails_as_a_file_is_made_leaves_nothing"
    ),
    "a log that fills the disk stays": (
        "test_crash_full_planted.py::test_a_log_that_fills_the_disk_is_moved_and_nobody_is_refused"
    ),
}


def test_a_log_that_fills_the_disk_is_moved_and_nobody_is_refused(tmp_path: Path) -> None:
    """Far more than a disk holds may be written to it, one small job after another, without an error."""
    path = tmp_path / "jobs.sift"

    async def life(rounds: int, size: int) -> None:
        fetch = ScriptedFetch(results=dict.fromkeys(range(rounds), "x" * size))
        async with open_store(path) as store, open_runner(store, fetch, Config(shutdown_grace=1)) as runner:
            for number in range(rounds):
                job_id, _ = await runner.submit(Caller("tester"), [Target(f"http://host/{number}")])
                with trio.fail_after(600):
                    await runner.wait(job_id)
                assert await runner.delete(job_id)

    def live(rounds: int, size: int) -> None:
        trio.run(life, rounds, size, clock=ThreadAutojumpClock())

    with small_disk(tmp_path):
        # What the log holds later has its place in the file: the first life has made it, and moved its log.
        live(1, 30_000)
        live(40, 10_000)
        check_rows(path)


def _run(fault: Fault, test: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run one test with a copy of the package."""
    command = [sys.executable, "-m", "pytest", "-q", "-rsf", "-p", "no:cacheprovider", str(_HERE / test)]
    return subprocess.run(
        [*command, "--basetemp", str(folder / "temp")],
        env=plant(fault, folder / "package"),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("name", _PLANTED)
def test_the_full_disks_see_a_fault(tmp_path: Path, name: str) -> None:
    """With an answer to a full disk left out, the test that is named for it fails."""
    assert FULL in FAULTS[name].seen_by
    done = _run(FAULTS[name], _PLANTED[name], tmp_path)
    if "SKIPPED" in done.stdout:
        pytest.skip("the test that sees it is skipped here")
    assert done.returncode == 1, done.stdout
    assert "FAILED" in done.stdout


def test_every_fault_that_full_disks_must_see_is_planted() -> None:
    """No fault of the list that is theirs is left out."""
    assert set(_PLANTED) == {name for name, fault in FAULTS.items() if FULL in fault.seen_by}
