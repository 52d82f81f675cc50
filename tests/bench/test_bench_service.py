"""The benchmarks of the service run at all, each with little to do, in processes of their own."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import service_timing

BENCHMARKS = Path(service_timing.__file__).parent


def run(name: str) -> str:
    """Run a benchmark with little to do and return what it printed."""
    done = subprocess.run(
        [sys.executable, f"{name}.py", "--quick"],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "service_load",
            ["poll, 8 at once, tmpfs", "submit of 32 targets, 1 at once, disk", "event, 1 at once"],
        ),
        ("service_poll", ["a poll, and the same JSON from a file", "99th percentile"]),
        ("service_streams", ["memory of an open event stream", "files and sockets left"]),
        ("service_timing", ["a look at a job: unknown or malformed?", "its results: the medians"]),
    ],
)
def test_bench_service_measures(name: str, lines: list[str]) -> None:
    """Every benchmark of the service gives its numbers, and every answer in it is the right one."""
    shown = run(name)
    for line in lines:
        assert line in shown


def test_bench_service_two_samples_of_one_kind_are_told_apart_once_in_a_hundred() -> None:
    """The test finds nothing in most pairs of samples of one distribution, and a shift of one deviation."""
    numbers = random.Random(7)
    pairs = [
        ([numbers.gauss() for _ in range(200)], [numbers.gauss() for _ in range(200)]) for _ in range(300)
    ]
    found = [service_timing.p_value(*pair) for pair in pairs]
    assert sum(p < 0.01 for p in found) <= 9
    assert 0.35 < sum(found) / len(found) < 0.65
    assert service_timing.p_value(pairs[0][0], [value + 1 for value in pairs[0][1]]) < 1e-6


def test_bench_service_a_sample_agrees_with_a_known_value() -> None:
    """Ties share their rank: five and five whole numbers give the p of the books' approximation."""
    assert service_timing.p_value([1.0] * 5, [1.0] * 5) == 1.0
    first, second = [19, 22, 16, 29, 24], [20, 11, 17, 12]
    # U = 17 of 20, mean 10, deviation sqrt(20 * 10 / 12) without ties, half a step less.
    assert service_timing.p_value(first, second) == pytest.approx(0.1113, abs=5e-4)
