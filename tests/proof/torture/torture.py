"""Torture the engine: `python torture.py`, for minutes or for hours. See `--help`.

Without arguments every series is played whole, in memory and in a file, and some compound rounds with a
seed that is printed. Whatever does not hold is told with the round's plan, its history and the command
that plays it again; the exit code is 1 then.
"""

import argparse
import os
import random
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

_HERE = Path(__file__).resolve().parent
for _folder in (_HERE, _HERE.parent, _HERE.parents[1] / "flow", _HERE.parents[1] / "testing"):
    sys.path.insert(0, str(_folder))

from history import explain  # noqa: E402
from torture_plan import Plan  # noqa: E402
from torture_round import Round  # noqa: E402
from torture_sweep import WHATS, Player, Series, all_series, serious  # noqa: E402

_HANGS_AFTER = 300.0
_CHUNK = 50


class Task(NamedTuple):
    """What one process plays at a time. `series` None: that many compound rounds."""

    series: Series | None
    where: str
    shallow: int | None
    seed: int


class Report(NamedTuple):
    """What came of a task. `left`: rounds in which a store that breaks its word left somebody waiting."""

    label: str
    rounds: int
    fired: int
    left: int
    failures: list[str]
    seconds: float


def play(task: Task) -> Report:
    """Play a task."""
    rng, began = random.Random(task.seed), time.monotonic()
    label = f"compound ({task.where}, seed {task.seed})" if task.series is None else str(task.series)
    rounds = fired = left = 0
    failures: list[str] = []
    with TemporaryDirectory(dir=_memory_disk()) as folder:
        player = Player(Path(folder))
        for played in _watched(_rounds(player, task, rng), label):
            rounds += 1
            fired += played.fired
            left += bool(played.findings) and not serious(played)
            if serious(played):
                failures.append(tell(played))
    return Report(label, rounds, fired, left, failures, time.monotonic() - began)


def _rounds(player: Player, task: Task, rng: random.Random) -> Iterator[Round]:
    if task.series is None:
        return player.compound(task.shallow or _CHUNK, rng, where=task.where)
    if task.shallow is None:
        return player.whole(task.series)
    return player.shallow(task.series, task.shallow, rng)


def _watched(rounds: Iterable[Round], label: str) -> Iterator[Round]:
    """Yield the rounds; a round that never ends ends the process, and says where it was."""

    def give_up(count: int) -> None:
        print(f"{label}: round {count} after the first hangs", file=sys.stderr, flush=True)
        os._exit(2)

    source = iter(rounds)
    for count in range(sys.maxsize):
        alarm = threading.Timer(_HANGS_AFTER, give_up, [count])
        alarm.start()
        try:
            played = next(source, None)
        finally:
            alarm.cancel()
            alarm.join()
        if played is None:
            return
        yield played


def tell(played: Round) -> str:
    """Return all there is to know about a round."""
    lines = [f"plan: {played.plan}", f"struck: {played.struck}", f"ended with: {played.error!r}"]
    lines += [f"  does not hold: {finding}" for finding in played.findings]
    lines.append(explain(played.book.history.events))
    lines.append(f"again: python tests/proof/torture/{Path(__file__).name} --only '{played.plan}'")
    return "\n".join(lines)


def _memory_disk() -> str | None:
    # Thousands of commits: what a disk does to them is not the question here.
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def _tasks(options: argparse.Namespace) -> list[Task]:
    tasks: list[Task] = []
    for where in options.where:
        for what in options.what:
            if what == "compound":
                chunks = range(0, options.compound, _CHUNK)
                tasks += [
                    Task(None, where, min(_CHUNK, options.compound - at), options.seed + at) for at in chunks
                ]
                continue
            for grace in options.grace:
                for schedule in range(options.schedules):
                    series = all_series(what, where=where, grace=grace, seed=schedule)
                    tasks += [Task(one, where, options.shallow, options.seed) for one in series]
    return tasks


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    add = parser.add_argument
    add("--what", nargs="+", choices=WHATS, default=WHATS, help="which kinds of torture (all)")
    add("--where", nargs="+", choices=("memory", "file"), default=("memory", "file"), help="stores (both)")
    add("--grace", nargs="+", type=float, default=[30.0], help="shutdown graces to play with (30)")
    add("--schedules", type=int, default=1, help="play everything with so many task schedules (1)")
    add(
        "--shallow",
        type=int,
        help="play a sample of so many rounds of each series, not all (but see --compound)",
    )
    add("--compound", type=int, default=1_000, help="how many compound rounds for each store (1000)")
    add("--seed", type=int, help="seed of samples and compound rounds (random, printed)")
    add("--jobs", type=int, default=1, help="processes at a time (1)")
    add("--only", metavar="PLAN", help="play one round again and show it")
    options = parser.parse_args(arguments)
    if options.seed is None:
        options.seed = random.randrange(10**6)
    return options


def main(arguments: list[str] | None = None) -> int:
    """Play what was asked for; return the exit code."""
    options = _parse(arguments)
    if options.only is not None:
        with TemporaryDirectory(dir=_memory_disk()) as folder:
            played = Player(Path(folder)).play(Plan.parse(options.only))
        print(tell(played))
        return 1 if serious(played) else 0
    print(f"seed {options.seed}")
    began, tasks = time.monotonic(), _tasks(options)
    rounds = fired = left = bad = 0
    with ExitStack() as stack:
        if options.jobs > 1:
            pool = stack.enter_context(ProcessPoolExecutor(options.jobs))
            reports = pool.map(play, tasks)
        else:
            reports = map(play, tasks)
        for report in reports:
            rounds, fired, left = rounds + report.rounds, fired + report.fired, left + report.left
            bad += len(report.failures)
            print(
                f"{report.label}: {report.rounds} rounds, {report.fired} struck, {len(report.failures)} bad, "
                f"{report.seconds:.1f} s",
                flush=True,
            )
            for failure in report.failures[:3]:
                print(failure, flush=True)
    print(
        f"{rounds} rounds in {time.monotonic() - began:.0f} s: {fired} came to their fault, {bad} bad; "
        f"in {left} a store that loses answers left somebody waiting"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
