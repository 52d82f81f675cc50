"""The benchmarks that take long run at all: each with little to do, in its own process."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import compare
import growth
import growth_axes
import pytest
import roster
from counting_server import Counts
from growth_store import Filling, fill
from work import BATCH, Work

BENCHMARKS = Path(growth.__file__).parent

pytestmark = [pytest.mark.real, pytest.mark.slow]


def no_other_address() -> bool:
    """Whether this machine has no address of its own but one: then no server can stand for many hosts."""
    try:
        socket.create_server(("127.0.0.2", 0)).close()
    except OSError:
        return True
    return False


def run(*command: str) -> str:
    """Run a benchmark and return what it printed."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=BENCHMARKS,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bench_growth_measures_and_draws(tmp_path: Path) -> None:
    """The growth of every operation of an axis is measured, shown, and drawn."""
    shown = run("growth.py", "--quick", "jobs", "live", "--plots", str(tmp_path))
    for operation in ("submit", "poll, results", "evict a job", "open", "cancel"):
        assert f"| {operation} |" in shown
    assert {file.name for file in tmp_path.iterdir()} == {"growth_jobs.svg", "growth_live.svg"}


def test_bench_a_store_is_filled_as_told(tmp_path: Path) -> None:
    """A filled store holds as many jobs as were asked for, with ids and callers that are in it."""
    known = fill(tmp_path / "store", Filling(jobs=20, targets=3, result=100))
    assert len(known) == len(set(known)) == 20


def test_bench_every_axis_fills_as_many_as_it_says() -> None:
    """The stores of an axis differ in what the axis says, by as much as it says."""
    held = {
        "jobs": lambda filling: filling.jobs,
        "targets": lambda filling: filling.jobs * filling.targets,
        "result": lambda filling: filling.result,
        "bytes": lambda filling: filling.jobs * filling.targets * filling.result,
        "series": lambda filling: filling.targets,
        "fetched": lambda filling: filling.jobs / filling.series,
    }
    for axis in growth_axes.AXES:
        if axis.name in held:
            assert [held[axis.name](axis.filling(size)) for size in axis.sizes] == list(axis.sizes)


def test_bench_the_engine_does_the_peers_work() -> None:
    """The engine and the floor do the work that peers are measured by, and all of it is right."""
    rows = list(compare.entries([roster.ENGINE, roster.FLOOR], Path()))
    for row in rows[:1] + rows[-1:]:
        found = compare.run(row, targets=BATCH + 1, tmpfs=True)
        assert found["right"] == found["targets"] == BATCH + 1


def test_bench_a_wrong_result_is_seen(tmp_path: Path) -> None:
    """A result that belongs to another target, or to none, does not count as right."""
    work = Work(folder=str(tmp_path), setting="", targets=3, workers=1, began=0.0, look=False)
    right = {number: work.fetch(number) for number in range(3)}
    assert work.report(right)["right"] == 3
    assert work.report(right | {1: work.fetch(2)})["right"] == 2
    assert work.report({0: work.fetch(0)})["right"] == 1


def test_bench_a_peer_with_wrong_results_gives_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose results are not all what was stored is an error, not a fast run."""
    (row, *_) = compare.entries([roster.FLOOR], Path())
    monkeypatch.setattr(compare, "_child", lambda *_: {"right": BATCH - 1, "seconds": 1.0, "cpu": 1.0})
    with pytest.raises(RuntimeError, match="31 of 32"):
        compare.run(row, targets=BATCH)


@pytest.mark.parametrize(
    ("hosts", "over_total", "over_host"),
    [("aabbccdd", 0, 0), ("aaa", 0, 1), ("aabbccdde", 1, 0), ("aabbccddd", 1, 1)],
)
def test_bench_the_server_sees_who_breaks_a_limit(hosts: str, over_total: int, over_host: int) -> None:
    """A request that comes in when there is no room, in all or of its host, is counted."""
    counts = Counts()
    for host in hosts:
        counts.begin(host, 1.0)
    for host in hosts:
        counts.end(host, 2.0)
    seen = counts.report()
    assert (seen["over_total"], seen["over_host"]) == (over_total, over_host)
    assert seen["peak"] == seen["requests"] == len(hosts)


@pytest.mark.skipif(no_other_address(), reason="127.0.0.2 can't be listened on: one address, one host")
def test_bench_politeness_has_a_witness() -> None:
    """The engine fetches everything within the limits, and the server says so."""
    shown = run("politeness.py", "--quick")
    rows = [line.split(" | ") for line in shown.splitlines() if line.startswith("| sift-batch")]
    assert len(rows) == 4
    for row in rows:
        assert row[5:7] == ["0", "0"], row


def test_bench_peers_that_are_not_installed_are_skipped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A peer without an environment is left out, and said to be."""
    rows = list(compare.entries(roster.MODULES, tmp_path))
    assert {row.module for row in rows} == {"sift", "floor_sync", "floor_trio"}
    assert "skipped, not installed" in capfd.readouterr().err
