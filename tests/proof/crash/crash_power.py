"""Cut the power while a process works, and ask what is left: `crash_power.py --cuts 2000`.

One process works on a file under `strace`, through two lives, so that the file's making, the log's moving
into the file and a restart are in it. From the trace any moment can be made again: the files as of what had
been synced, and of what had not as much as a disk may happen to have kept (`crash_medium.py`). Each such
disk must hold a state that the store really had, whole: with "full" none older than what had been
acknowledged, with "normal" any earlier one. Then the engine opens it, and the history must hold.
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random, SystemRandom
from typing import Final

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent), str(_HERE.parents[1] / "real")]

import sqlite3  # noqa: E402 - found by the path above

from crash_load import RULES  # noqa: E402
from crash_medium import EVERYTHING, FATES, Fate, Medium  # noqa: E402
from crash_parent import Story, dump  # noqa: E402
from crash_trace import NO_STRACE, Act, acts, record, strace  # noqa: E402

# A folder in memory, where there is one: nothing that is laid out here needs to last.
_MEMORY: Final = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_STORE: Final = "jobs.sift"
_TOLD: Final = "jobs.sift.history"
_SYNCS: Final = frozenset({"fsync", "fdatasync"})


@dataclass(slots=True)
class Work:
    """A traced piece of work: what was done, and which state each moment had."""

    folder: Path
    durability: str
    acts: list[Act]
    # The states that the store had, in order, and the number of the one that it had after each act.
    states: list[str] = field(default_factory=list)
    state_at: list[int] = field(default_factory=list)
    # What callers had been told by then, and the newest state that they could know of. One writer commits one
    # transaction after another: whatever is being made last at that moment, the one before it was.
    told_at: list[bytes] = field(default_factory=list)
    owed_at: list[int] = field(default_factory=list)
    # What a kill would have left that is no store, though nothing of it was lost.
    faults: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Cuts:
    """What was tried, for the report."""

    cuts: int = 0
    moments: int = 0
    opened: int = 0
    by_fate: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


def trace_work(folder: Path, *, seed: int, durability: str, calls: int) -> Work:
    """Let a process work under strace; return what it did."""
    place = folder / "work"
    place.mkdir()
    arguments = {
        "path": str(place / _STORE),
        "history": str(place / _TOLD),
        "life": 1,
        "lives": 2,
        "seed": seed,
        "calls": calls,
        "durability": durability,
    }
    program = _HERE / "crash_child.py"
    record([sys.executable, program, "load", json.dumps(arguments)], folder / "trace")
    done = [act for act in acts(folder / "trace", place) if not act.path.endswith("-shm")]
    work = Work(place, durability, done)
    _know_states(work, folder)
    return work


def _know_states(work: Work, folder: Path) -> None:
    """Find out which states the store had: those that a process sees that opens all that was written."""
    medium, told, owed, synced = Medium(), b"", 0, True
    disk = _Disk(folder / "states")
    work.states.append("")
    commits = False
    for act in work.acts:
        medium.do(act)
        if act.path.endswith(_TOLD):
            told += act.data
            if b'"kind": "ok"' in act.data and b'"op": "fetch"' not in act.data:
                owed = max(owed, len(work.states) - (1 if synced else 2))
        elif act.call in _SYNCS:
            synced = True
        elif act.call in ("create", "rename", "unlink", "ftruncate") or commits:
            try:
                state = disk.state(medium.after_cut(EVERYTHING, Random(0)))
            except (AssertionError, sqlite3.Error) as exc:
                work.faults.append(f"after act {len(work.state_at)}, with nothing lost: {exc}")
                state = work.states[-1]
            if state != work.states[-1]:
                work.states.append(state)
                synced = False
        if act.call == "pwrite64" and act.path.endswith("-wal"):
            # A frame's header, and in it the size of the database: given only where a transaction ends. The
            # page itself comes next.
            commits = len(act.data) == 24 and act.data[4:8] != bytes(4)
        work.state_at.append(len(work.states) - 1)
        work.told_at.append(told)
        work.owed_at.append(owed)


class _Disk:
    """A folder in which a disk is laid out, one after another."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    @property
    def store(self) -> Path:
        """The store's file."""
        return self._folder / _STORE

    def lay_out(self, files: dict[str, bytes]) -> None:
        """Put the files there, and nothing else."""
        for old in self._folder.iterdir():
            old.unlink()
        for path, data in files.items():
            if not path.endswith(_TOLD):
                (self._folder / Path(path).name).write_bytes(data)

    def tell(self, told: bytes) -> None:
        """Put the history there, as far as it was told."""
        (self._folder / _TOLD).write_bytes(told)

    def state(self, files: dict[str, bytes]) -> str:
        """Lay the files out; return what stands for the state in them, "" where there is no store."""
        self.lay_out(files)
        if not self.store.exists():
            return ""
        return hashlib.sha256(repr(dump(self.store)).encode()).hexdigest()


def cut(work: Work, medium: Medium, place: int, fate: Fate, random: Random, disk: _Disk) -> str | None:
    """Cut the power after `place` acts; return what is wrong with what is left."""
    # A store that somebody has opened is there, whatever else a power cut may take from it.
    oldest = int(b'"opened"' in work.told_at[place - 1])
    if work.durability == "full":
        oldest = max(oldest, work.owed_at[place - 1])
    newest = work.state_at[place - 1]
    try:
        state = disk.state(medium.after_cut(fate, random))
    except (AssertionError, sqlite3.Error) as exc:
        return f"the store is damaged: {exc}"
    if state in work.states[oldest : newest + 1]:
        return None
    if state not in work.states:
        return "the store is in a state that it never had"
    return f"state {work.states.index(state)} is there, {oldest} was acknowledged"


def open_after_cut(work: Work, place: int, disk: _Disk) -> list[str]:
    """Open what is left, as the next process does; have the history judged as far as it was told."""
    full = work.durability == "full"
    if full:
        disk.tell(work.told_at[place - 1])
    with Story(disk.store, rules=RULES) as story:
        story.next_life()
        story.died("cut", killed=full)
        story.reopen(twice=True)
        # With "normal", callers know more than the disk does; that the state is one that was is certain.
        return story.judge() if full else story.faults


def moments_of(work: Work, count: int, random: Random) -> set[int]:
    """Choose about so many moments, half of them round syncs; and every sync of the file's making."""
    syncs = [place for place, act in enumerate(work.acts) if act.call in _SYNCS]
    chosen = random.sample(syncs, min(len(syncs), count // 4))
    # The making of the file is in each trace once, and ends with the first answer to a caller.
    first = next(place for place, told in enumerate(work.told_at) if b'"ok"' in told)
    chosen += [place for place in syncs if place < first] + [first]
    moments = {place for sync in chosen for place in (sync, sync + 1) if place}
    between = range(1, len(work.acts) + 1)
    others = max(count // 2, count - len(moments))
    return moments | set(random.sample(between, min(others, len(between))))


def check_cuts(work: Work, folder: Path, *, cuts: int, seed: int, opened: int) -> Cuts:
    """Cut so often or a little more, with each fate at each moment; open every `opened`-th disk."""
    random, found, disk, medium = Random(seed), Cuts(), _Disk(folder / "disk"), Medium()
    moments = moments_of(work, cuts // len(FATES), random)
    for place, act in enumerate(work.acts, 1):
        medium.do(act)
        if place not in moments:
            continue
        found.moments += 1
        for fate in FATES:
            fault = cut(work, medium, place, fate, random, disk)
            found.cuts += 1
            found.by_fate[str(fate)] = found.by_fate.get(str(fate), 0) + 1
            wrong = [fault] if fault else []
            if not wrong and found.cuts % opened == 0:
                wrong = open_after_cut(work, place, disk)
                found.opened += 1
            found.faults += [
                f"{work.durability}, after act {place} ({act.call} {Path(act.path).name}), {fate}: {line}"
                for line in wrong
            ]
    return found


def run(cuts: int, seed: int, *, calls: int = 150, opened: int = 5, durability: str | None = None) -> Cuts:
    """Trace one piece of work of each durability and cut it; print what was done."""
    total = Cuts()
    wanted = ("full", "normal") if durability is None else (durability,)
    for each in wanted:
        with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
            folder, began = Path(name), time.monotonic()
            work = trace_work(folder, seed=seed, durability=each, calls=calls)
            found = check_cuts(work, folder, cuts=cuts // len(wanted), seed=seed, opened=opened)
            found.faults += work.faults
        syncs = sum(act.call in _SYNCS for act in work.acts)
        print(
            f"{each}: {len(work.acts)} acts, {syncs} syncs, {len(work.states)} states, "
            f"{work.told_at[-1].count(b'ok')} answers; {found.cuts} cuts at {found.moments} moments, "
            f"{found.opened} opened, {len(found.faults)} wrong, {time.monotonic() - began:.1f} s",
            flush=True,
        )
        _add(total, found)
    return total


def _add(total: Cuts, found: Cuts) -> None:
    for name in ("cuts", "moments", "opened", "faults"):
        setattr(total, name, getattr(total, name) + getattr(found, name))
    for fate, count in found.by_fate.items():
        total.by_fate[fate] = total.by_fate.get(fate, 0) + count


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--cuts", type=int, default=10_000, help="about so many; never fewer than each sync, seven times"
    )
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--calls", type=int, default=150, help="acknowledged calls in each of the two lives")
    parser.add_argument("--durability", choices=("full", "normal"), default=None)
    arguments = parser.parse_args()
    if strace() is None:
        print(f"crash_power: {NO_STRACE}")
        return 2
    seed = SystemRandom().randrange(10**6) if arguments.seed is None else arguments.seed
    print(f"power: {arguments.cuts} cuts, seed {seed}", flush=True)
    found = run(arguments.cuts, seed, calls=arguments.calls, durability=arguments.durability)
    for fate, count in found.by_fate.items():
        print(f"{count:>6} disks that kept {fate}")
    for fault in found.faults[:50]:
        print(f"VIOLATION {fault}")
    if found.faults:
        again = f"--cuts {arguments.cuts} --seed {seed} --calls {arguments.calls}"
        again += f" --durability {arguments.durability}" if arguments.durability else ""
        print(f"again (another trace, the same plan): python tests/proof/crash/crash_power.py {again}")
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main())
