"""Does the engine hold under load and faults, and would the soak say so if it did not?"""

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import soak
import trio
from soak import Soak, rss_slope
from soak_leaks import LEAKS
from soak_measure import MIB, Rest, theil_sen

from sift_batch._engine.attempt import attempt as once

pytestmark = [pytest.mark.real, pytest.mark.slow]
LIVES = 4
_NEEDS_PROC = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="no /proc: what a process holds can't be counted"
)


def short_soak(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    leak: Callable[[], object] | None = None,
    lives: int = LIVES,
) -> Soak:
    """Soak for a few short lives, in this process."""
    monkeypatch.setattr(soak, "LIFE_SECONDS", 0.2)
    soaked = Soak(path / "jobs.sift", 1, leak or (lambda: None))
    soaked.lives = lives
    trio.run(soaked.run, 60.0)
    return soaked


@_NEEDS_PROC
def test_a_minute_of_load_and_faults_leaves_everything_as_it_was() -> None:
    """After a minute of load, faults and restarts no count at rest has grown, and no invariant was broken.

    The slope of the memory is printed and not judged: in a minute on a slow machine it may be noise. The
    program judges it in a run of two minutes or more; `--seconds 120 --leak list` shows that it sees one.
    """
    command = [sys.executable, soak.__file__, "--seconds", "60", "--seed", "1"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    print(ended.stdout)
    assert ended.returncode == 0, ended.stdout


@_NEEDS_PROC
def test_planted_leaks_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left over once a life is found at rest, each kind by its name, and nothing else is."""
    planted = [LEAKS[name]() for name in ("descriptor", "thread", "logger", "task")]
    try:
        soaked = short_soak(tmp_path, monkeypatch, lambda: [plant() for plant, _uproot in planted])
    finally:
        for _plant, uproot in planted:
            uproot()
    names = [line.partition(" at rest are not constant")[0] for line in soaked.found]
    assert names == ["descriptors", "threads", "tasks", "loggers"], soaked.found


@pytest.mark.parametrize("grows", [0.0, 1.5])
def test_memory_that_grows_is_told_from_memory_that_jumps(grows: float) -> None:
    """A slope of 1.5 MiB a minute is found under noise and jumps, and none is found in noise and jumps."""
    dice = random.Random(7)
    rests = []
    for number in range(30):
        noise = dice.gauss(0, 0.15) + (8 if number in (4, 11, 12, 25) else 0)
        rests.append(Rest(3.0 * number, int((40 + grows * number / 20 + noise) * MIB), 10, 1, 3, 6, 30_000))
    found = soak.grown(rests)
    assert bool(found) == bool(grows), found
    assert abs(rss_slope(rests) / MIB - grows) < 0.5


def test_a_slope_is_the_median_of_all_pairs() -> None:
    """One point that is far out does not turn the line."""
    points = [(float(x), 2.0 * x) for x in range(10)]
    points[3] = (3.0, 1_000.0)
    assert theil_sen(points) == 2.0
    assert theil_sen(points[:1]) == 0.0


@_NEEDS_PROC
def test_the_history_of_a_soak_is_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that calls a fetch twice is found by the history of its lives."""

    async def twice(*args: Any, **options: Any) -> Any:
        await once(*args, **options)
        return await once(*args, **options)

    monkeypatch.setattr("sift_batch._engine.drain.attempt", twice)
    # It ends once something is found; a first life may be too short for a fetch to end.
    soaked = short_soak(tmp_path, monkeypatch, lives=30)
    assert any(line.startswith("I3 fetched again, job ") for line in soaked.found), soaked.found
