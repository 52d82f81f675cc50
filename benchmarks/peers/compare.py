"""How does the engine stand beside what else there is? The same work on each, in turn, round by round.

    python benchmarks/peers/setup.py --into DIR      # once: an environment for each peer
    python benchmarks/peers/compare.py --into DIR
    python benchmarks/peers/compare.py --into DIR --write      # also into benchmarks/README.md
    python benchmarks/peers/compare.py sift huey_sqlite --rounds 3
    python benchmarks/peers/compare.py --into DIR --seconds 360      # slow peers run less often

2,000 targets (fewer where a peer is slow) that cost nothing, in batches of 32, results of 1 KB. Three tables:
results that survive a power cut, results that survive a killed process, and both costs of CPU on tmpfs. Each
run is a process of its own; its ratio is to the median of the floor's runs of the same round. What was
stored is read back and compared. What the work is, is in `work.py`; each peer is one file.
"""

import argparse
import json
import math
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.append(str(Path(__file__).resolve().parent.parent))

import measure
import readme
import redis_server
import roster
import tables
from work import BATCH, Peer, Setting

TARGETS = 2_000
FLOOR_RUNS = 3
"""How often the floor runs in a round: it is short, and all is measured by it."""
LEAST_RUNS = 2
"""How often a row runs however long it takes, so that it has a spread."""
_FOR_TABLES = 0.6
"""The part of `--seconds` that the three tables get; counting syncs and cold starts take the rest."""
_PATIENCE = 240.0


class Entry(NamedTuple):
    """One row: a peer with a setting, and the Python that runs it."""

    module: str
    peer: Peer
    setting: Setting
    python: Path


class Table(NamedTuple):
    """One comparison: which of the settings, against which of the floor's, and where the data lies."""

    name: str
    title: str
    durable: bool | None
    floor: str
    tmpfs: bool


TABLES = (
    Table("durable", "A stored result survives a power cut", True, "synchronous=FULL", False),
    Table("loose", "A stored result survives a killed process", False, "synchronous=NORMAL", False),
    Table("cpu", "On tmpfs, where a sync costs nothing: CPU alone", None, "synchronous=NORMAL", True),
)


def entries(modules: Sequence[str], folder: Path) -> Iterator[Entry]:
    """Return the rows that can be measured here; say which can't."""
    for module in modules:
        peer = roster.peer(module)
        python = roster.python_of(module, folder, own_environment=peer.own_environment)
        if python is None:
            print(f"skipped, not installed in {folder}: {peer.name}", file=sys.stderr)
        elif peer.server and not redis_server.available():
            print(f"skipped, there is no {redis_server.PROGRAM}: {peer.name}", file=sys.stderr)
        else:
            yield from (Entry(module, peer, setting, python) for setting in peer.settings)


def chosen(table: Table, rows: Sequence[Entry]) -> list[Entry]:
    """Return the rows of one table: those that promise the same; for CPU, what syncs least."""
    if table.durable is not None:
        return [row for row in rows if row.setting.durable is table.durable]
    least: dict[str, list[Entry]] = defaultdict(list)
    for row in rows:
        least[row.module].append(row)
    picked = []
    for of_peer in least.values():
        loose = [row for row in of_peer if not row.setting.durable]
        log = [row for row in of_peer if row.setting.name == "WAL"]
        picked += loose or log or [row for row in of_peer if row.setting.name.startswith("as shipped")]
    return picked


def run(
    row: Entry, *, targets: int, tmpfs: bool = False, look: bool = True, trace: bool = False
) -> tables.Run:
    """Do the work once, in a process of its own. With `trace`, count syncs: `syncs` of the whole run."""
    count = min(targets, row.peer.most or targets)
    with measure.folder(tmpfs=tmpfs) as where:
        log = where / "trace"
        strace = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(log)] if trace else []
        work = {"folder": str(where), "setting": row.setting.name, "targets": count, "look": look}
        work["workers"] = row.setting.workers
        if not row.peer.server:
            found = _child(row, work, strace)
        else:
            # The server does the writing, so it is the server that is traced.
            with redis_server.running(where, setting=row.setting.name, before=strace) as server:
                cpu = server.cpu()
                found = _child(row, work | {"server": server.url}, [])
                found["cpu"] += server.cpu() - cpu
                found["server"] = server.resident()
        if trace:
            lines = log.read_text().splitlines()
            found["syncs"] = sum("fsync(" in line or "fdatasync(" in line for line in lines)
    if found["right"] != count:
        raise RuntimeError(f"{row.peer.name}: {found['right']} of {count} results are what was stored")
    return {**found, "targets": count, "rate": count / found["seconds"], "cpu": found["cpu"] / count}


def _child(row: Entry, work: dict[str, Any], before: Sequence[str]) -> dict[str, Any]:
    file = Path(__file__).with_name(f"{row.module}.py")
    argument = json.dumps(work | {"began": time.monotonic()})
    done = subprocess.run(
        [*before, row.python, file, argument],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{row.peer.name}: {done.stderr.decode()[-2_000:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(
    table: Table, rows: Sequence[Entry], *, targets: int, rounds: int, share: float = math.inf
) -> list[tables.Row]:
    """Measure one table: in each round the floor, a third of the others, the floor, and so on.

    `share` is how many seconds each row may use: one that has used them runs no more after its second run.
    """
    floor = next(row for row in entries([roster.FLOOR], Path()) if row.setting.name == table.floor)
    others = [row for row in chosen(table, rows) if row.setting != floor.setting]
    found: dict[Entry, list[tables.Run]] = defaultdict(list)
    used: dict[Entry, float] = defaultdict(float)
    for number in range(rounds):
        if number >= LEAST_RUNS:
            others = [row for row in others if used[row] < share]
            if not others:
                break
        # Another order in each round, so that nobody always runs after the same neighbour.
        turn = number * 3 % max(len(others), 1)
        order = others[turn:] + others[:turn]
        third = max(1, -(-len(order) // FLOOR_RUNS))
        for start in range(0, max(len(order), 1), third):
            for row in [floor, *order[start : start + third]]:
                began = time.monotonic()
                try:
                    one = run(row, targets=targets, tmpfs=table.tmpfs)
                except (RuntimeError, subprocess.TimeoutExpired) as exc:
                    print(f"left out of this round: {exc}", file=sys.stderr, flush=True)
                else:
                    found[row].append(one | {"round": number})
                used[row] += time.monotonic() - began
        print(f"{table.title}: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    _add_ratios(found, floor)
    return [tables.Row(row.peer.name, row.setting.name, runs) for row, runs in found.items()]


def _add_ratios(found: dict[Entry, list[tables.Run]], floor: Entry) -> None:
    """Give every run its ratio to the median of the floor's runs of the same round."""
    for key in ("rate", "cpu"):
        of_round: dict[int, list[float]] = defaultdict(list)
        for one in found[floor]:
            of_round[one["round"]].append(one[key])
        base = {number: statistics.median(values) for number, values in of_round.items()}
        for runs in found.values():
            for one in runs:
                one[f"{key} ratio"] = one[key] / base[one["round"]]


def syncs(rows: Sequence[Entry], measured: Sequence[tables.Row]) -> None:
    """Count the syncs of a target: how many more eight batches more take. By `strace`, if it is there."""
    if shutil.which("strace") is None:
        print("syncs are not counted: there is no strace", file=sys.stderr)
        return
    by_name = {(row.peer.name, row.setting.name): row for row in rows}
    for one in measured:
        row = by_name[one.peer, one.setting]
        few, many = (run(row, targets=count, look=False, trace=True) for count in (BATCH, 9 * BATCH))
        for taken in one.runs:
            taken["syncs"] = (many["syncs"] - few["syncs"]) / (many["targets"] - few["targets"])


def cold(rows: Sequence[Entry], rounds: int) -> list[tables.Row]:
    """Time the way from an empty process to the first stored result: each peer's first setting."""
    first = list({row.module: row for row in reversed(rows)}.values())[::-1]
    found: dict[Entry, list[tables.Run]] = defaultdict(list)
    for _ in range(rounds):
        for row in first:
            found[row].append(run(row, targets=1, look=False))
    return [tables.Row(row.peer.name, row.setting.name, runs) for row, runs in found.items()]


def _rules(targets: int, rounds: int, seconds: float) -> str:
    """Return how often what was run, as the caption of the tables."""
    count = f"Targets: {targets:,}."
    if math.isinf(seconds):
        return f"{count} Each row ran in each of {rounds} rounds, the floor {FLOOR_RUNS} times in each."
    return (
        f"{count} All of it was given about {seconds:.0f} s, so runs are few: up to {rounds} rounds for "
        f"each row, but only {LEAST_RUNS} for one that had used up its share. The column of runs says "
        "how many there were, and medians of two or three are worth as much as that. The floor's runs, up "
        f"to {FLOOR_RUNS} in each round, are in its row. Syncs were counted once."
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("peers", nargs="*", help=f"some of: {', '.join(roster.MODULES)}")
    parser.add_argument("--into", type=Path, default=roster.default_folder(), help="where setup.py made them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=math.inf, help="about how long all of it may take")
    parser.add_argument("--targets", type=int, default=TARGETS)
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/README.md")
    parser.add_argument("--quick", action="store_true", help="64 targets, one round, syncs not counted")
    return parser.parse_args()


def main() -> None:
    arguments = _arguments()
    targets, rounds = (2 * BATCH, 1) if arguments.quick else (arguments.targets, arguments.rounds)
    modules = arguments.peers or roster.MODULES
    rows = list(entries(modules, arguments.into))
    print(measure.machine(), f"command: {measure.command()}", sep="\n", flush=True)
    began = time.monotonic()
    parts = [_rules(targets, rounds, arguments.seconds)]
    share = arguments.seconds * _FOR_TABLES / max(sum(len(chosen(table, rows)) for table in TABLES), 1)
    for table in TABLES:
        found = compare(table, rows, targets=targets, rounds=rounds, share=share)
        if not table.tmpfs and not arguments.quick:
            syncs([*rows, *entries([roster.FLOOR], Path())], found)
        parts.append(
            f"**{table.title}.** The floor: a synchronous loop, {table.floor}.\n\n{tables.work(found)}"
        )
        print(f"\n{parts[-1]}", flush=True)
    starts = rounds if math.isinf(arguments.seconds) else min(rounds, LEAST_RUNS)
    parts.append(
        f"**Cold start**: an empty process to the first stored result, {starts} times.\n\n"
        f"{tables.cold(cold(rows, starts))}"
    )
    parts.append(f"**What each is**\n\n{tables.peers({row.peer: None for row in rows})}")
    print(f"\n{parts[-2]}\n\n{parts[-1]}\n\n{time.monotonic() - began:.0f} s in all", flush=True)
    if arguments.write:
        readme.write("peers", "\n\n".join([readme.heading(), *parts]))


if __name__ == "__main__":
    main()
