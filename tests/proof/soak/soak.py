"""Does it hold for hours? A real process on a real file, mixed load, every kind of fault, many restarts.

    python tests/proof/soak/soak.py --seconds 600 --seed 1

One life after another is opened on the same file, loaded, and ended in one of three ways. When it is closed
the process is at rest: it is measured, and another process audits the stored rows and checks the history of
what was called (`soak_checker.py`). Exit code 1 says that something was found.
"""

import argparse
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import trio

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

from history import History  # noqa: E402
from soak_faults import CountingFilter, Fetching, FlakyStore, RaisingHooks  # noqa: E402
from soak_leaks import LEAKS, Leak  # noqa: E402
from soak_load import MAX_BYTES, SETTINGS, SLOTS, TTL, Load  # noqa: E402
from soak_measure import MIB, Rest, after_warm_up, own_threads, rest, theil_sen  # noqa: E402

from sift_batch import Gate, StoreError, open_runner, open_store  # noqa: E402

CHECKER: Final = Path(__file__).with_name("soak_checker.py")
RULES: Final = {
    "total": SLOTS,
    "ttl": TTL,
    "max_bytes": MAX_BYTES,
    "workers": SETTINGS.workers,
    "jobs_total": SETTINGS.jobs_total,
    "jobs_per_caller": SETTINGS.jobs_per_caller,
}
LIFE_SECONDS: Final = 1.6
WAL_LIMIT: Final = 64 * MIB
# The budget, as much again that can't be evicted yet, and the slack of free pages that a store keeps.
FILE_LIMIT: Final = 2 * MAX_BYTES + 5 * MIB
RSS_LIMIT: Final = 1.0 * MIB
# A slope needs some time to be one: a few pages in a few seconds are many a minute. So much is left of a run
# of two minutes after its warm-up.
RSS_SECONDS: Final = 70.0
LINES_PER_EVENT: Final = 2
LINES_PER_LIFE: Final = 200


def _steady(offset: float) -> float:
    return offset + time.monotonic()


def _no_leak() -> None:
    """Leak nothing."""


class Soak:
    """A soak on one file; `leak` is called once a life, to show that a leak is found."""

    def __init__(self, path: Path, seed: int, leak: Leak = _no_leak) -> None:
        self.random = Random(seed)
        self.rests: list[Rest] = []
        self.found: list[str] = []
        self.faults: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()
        self.highest: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        # After how many lives it is enough, however early that is.
        self.lives = 10**9
        self._path = path
        self._leak = leak
        # In a file alone: a history in memory, however short, would be most of what grows here.
        self._record = path.with_name("history.jsonl")
        # The engine, its readers and the history have one clock, that nobody sets.
        self._now = partial(_steady, time.time() - time.monotonic())
        self._history = History(self._record, self._now, remember=False)
        self._known: list[str] = []
        self._filter = CountingFilter(self.random, self.faults)
        self._began = time.monotonic()

    async def run(self, seconds: float) -> None:
        """Live again and again for about so long, and judge what was measured."""
        logger = logging.getLogger("sift_batch")
        logger.setLevel(logging.DEBUG)
        logger.addFilter(self._filter)
        try:
            while time.monotonic() - self._began < seconds and len(self.rests) < self.lives:
                await self._one_life()
                if self.found:
                    break
        finally:
            logger.removeFilter(self._filter)
            self._history.close()
        self._judge()

    async def _one_life(self) -> None:
        life = len(self.rests) + 1
        self._history.note("clock", jump=0)
        try:
            await self._live(life)
        except StoreError:
            # The restart step itself was refused: nothing has happened, and the next life tries again.
            self.ends["refused to open"] += 1
        self._history.note("closed", life=life)
        self._look_at_files()
        await self._rest(life)

    async def _live(self, life: int) -> None:
        gate = Gate(total=SLOTS, batch_wait=0.5)
        fetching = Fetching(self._history, gate, self.random, self.faults)
        hooks = RaisingHooks(self.random, self.faults)
        lines = sum(self._filter.lines.values())
        ending = self.random.choice(["left", "cancelled", "raised"])
        load = None
        try:
            with trio.CancelScope() as surrounding:
                async with open_store(self._path) as inner:
                    store: Any = FlakyStore(inner, self.random, self.faults)
                    async with open_runner(store, fetching, SETTINGS, hooks=hooks, now=self._now) as runner:
                        self._history.note("opened", life=life)
                        load = Load(runner, gate, self._history, self.random, self._known)
                        async with trio.open_nursery() as nursery:
                            load.start(nursery, self._path, self._now)
                            await self._sample_for(LIFE_SECONDS)
                            nursery.cancel_scope.cancel()
                        if ending == "cancelled":
                            surrounding.cancel()
                        elif ending == "raised":
                            raise _BodyError
        except _BodyError:
            pass
        self.ends[ending] += 1
        self._count(load, fetching, hooks, sum(self._filter.lines.values()) - lines)
        left = gate.statistics()
        if left.in_use or left.waiting:
            self.found.append(f"life {life} left something in the gate: {left}")

    async def _sample_for(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            while True:
                self._look_at_files()
                await trio.sleep(0.1)

    def _look_at_files(self) -> None:
        for name, path in (("file", self._path), ("wal", Path(f"{self._path}-wal"))):
            # Only looked at, never opened: a descriptor that is closed would take SQLite's locks with it.
            size = path.stat().st_size if path.exists() else 0
            self.highest[name] = max(self.highest[name], size)

    def _count(self, load: Load | None, fetching: Fetching, hooks: RaisingHooks, lines: int) -> None:
        self.sums["calls"] += load.calls if load is not None else 0
        self.sums["targets started"] += fetching.started
        for name in ("job", "target", "target_restricted", "busy", "swept", "evicted", "refused"):
            self.sums[f"hook {name}"] += hooks.calls[name]
        self.sums["log lines"] += lines
        asked = fetching.started + (load.calls if load is not None else 0)
        limit = LINES_PER_EVENT * asked + LINES_PER_LIFE
        if lines > limit:
            self.found.append(f"{lines} log lines in a life of {asked} calls and targets, over {limit}")

    async def _rest(self, life: int) -> None:
        """Audit, check and forget; then look at what the process still holds."""
        for name, limit in (("wal", WAL_LIMIT), ("file", FILE_LIMIT)):
            self._history.note("memory", name=name, value=self.highest[name], limit=limit)
        command = [sys.executable, *map(str, (CHECKER, self._record, self._path, life)), json.dumps(RULES)]
        # Nothing else runs now, so that nothing is held up by waiting for it.
        checked = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: ASYNC221
        self.sums["events checked"] += checked["events"]
        self.found.extend(checked["found"])
        self._known[:] = [job for job in self._known[-100:] if job in checked["stored"]]
        self._leak()
        self.rests.append(rest(time.monotonic() - self._began))

    def _judge(self) -> None:
        """Say what grew, and what a log line told that it must not."""
        self.found.extend(grown(after_warm_up(self.rests)))
        if self._filter.told:
            self.found.append(f"{self._filter.told} log lines tell of a target")
        if self._filter.longest > 500:
            self.found.append(f"a log line has {self._filter.longest} characters")


class _BodyError(Exception):
    """What a body raises that ends its runner."""


def grown(rests: Sequence[Rest]) -> list[str]:
    """Return what of a process grew from rest to rest."""
    found = []
    slope = rss_slope(rests)
    if slope >= RSS_LIMIT and _long(rests):
        found.append(f"RSS grows by {slope / MIB:.2f} MiB a minute, over {RSS_LIMIT / MIB:.0f}")
    for name in ("descriptors", "threads", "tasks", "loggers"):
        values = [getattr(look, name) for look in rests]
        if len(set(values)) > 1:
            found.append(f"{name} at rest are not constant: {values}")
    return found


def _long(rests: Sequence[Rest]) -> bool:
    return len(rests) > 1 and rests[-1].at - rests[0].at >= RSS_SECONDS


def rss_slope(rests: Sequence[Rest]) -> float:
    """Return by how many bytes a minute the resident memory grows."""
    return 60 * theil_sen([(look.at, float(look.rss)) for look in rests])


def table(soak: Soak) -> str:
    """Return what a soak has measured, as lines to read."""
    rests = after_warm_up(soak.rests)
    head = ("life", "at s", "RSS MiB", "fds", "threads", "tasks", "loggers", "objects")
    lines = ["{:>4} {:>7} {:>8} {:>4} {:>7} {:>5} {:>7} {:>8}".format(*head)]
    for number, look in enumerate(soak.rests, 1):
        lines.append(
            f"{number:>4} {look.at:>7.1f} {look.rss / MIB:>8.2f} {look.descriptors:>4} {look.threads:>7} "
            f"{look.tasks:>5} {look.loggers:>7} {look.objects:>8}"
        )
    objects = 60 * theil_sen([(look.at, float(look.objects)) for look in rests])
    lines += [
        f"RSS slope after warm-up: {rss_slope(rests) / MIB:+.3f} MiB a minute (limit {RSS_LIMIT / MIB:.0f})",
        "which is judged" if _long(rests) else "which is not judged: the run was shorter than two minutes",
        f"objects after warm-up: {objects:+.0f} a minute",
        f"largest WAL: {soak.highest['wal'] / MIB:.2f} MiB (limit {WAL_LIMIT / MIB:.0f})",
        f"largest file: {soak.highest['file'] / MIB:.2f} MiB (limit {FILE_LIMIT / MIB:.1f})",
        "lives: " + ", ".join(f"{n} {how}" for how, n in sorted(soak.ends.items())),
        "did: " + ", ".join(f"{n:,} {what}" for what, n in sorted(soak.sums.items())),
        "faults: " + ", ".join(f"{n} {what}" for what, n in sorted(soak.faults.items())),
        "threads at rest: " + ", ".join(sorted(thread.name for thread in own_threads())),
    ]
    return "\n".join(lines)


def main() -> int:
    """Soak as the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: %(default)s)")
    parser.add_argument(
        "--seed", type=int, help="of the load and its faults (default: a random one, printed)"
    )
    parser.add_argument("--leak", choices=sorted(LEAKS), help="plant a leak: the soak must find it")
    arguments = parser.parse_args()
    seed = arguments.seed if arguments.seed is not None else Random().randrange(10**6)
    leak = LEAKS[arguments.leak]()[0] if arguments.leak else _no_leak
    print(f"soak: {arguments.seconds:g} s, seed {seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder, "jobs.sift"), seed, leak)
        trio.run(soak.run, arguments.seconds)
    print(table(soak))
    for line in soak.found:
        print(f"FOUND: {line}")
    if soak.found:
        again = f"--seconds {arguments.seconds:g} --seed {seed}"
        again += f" --leak {arguments.leak}" if arguments.leak else ""
        print(f"again: python tests/proof/soak/soak.py {again}")
    return 1 if soak.found else 0


if __name__ == "__main__":
    sys.exit(main())
