"""What is the work that every peer does, and how is it timed? The child's side of `compare.py`.

N targets that cost nothing, in batches of 32, a result of 1 KB each; a result is stored before the next
target of its batch starts, and up to eight batches go on at once where the peer can do that. At the end
every result is read back and compared. An adapter is one file: a `PEER` that says what it is, and
`drain`, which does the work between `begin` and `finished`. It runs in the peer's own environment, so
this module uses the standard library alone.
"""

import json
import resource
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

BATCH = 32
AT_ONCE = 8
CONTENT = 1_000
LOOKS = 60


class Setting(NamedTuple):
    """One way to run a peer: whether a stored result survives a power cut, and what was set for that."""

    name: str
    durable: bool
    how: str
    workers: int = 1


class Peer(NamedTuple):
    """What an adapter adapts: how to install it, how it can be run, what it does not do."""

    name: str
    packages: tuple[str, ...]
    settings: tuple[Setting, ...]
    lacks: str
    most: int | None = None
    """The most targets that it is given, if it would take too long otherwise."""
    server: str = ""
    """The server that has to run for it: "redis" or none."""
    own_environment: bool = True


class Work:
    """One run: what is to be done, and the clocks."""

    def __init__(
        self,
        *,
        folder: str,
        setting: str,
        targets: int,
        workers: int,
        began: float,
        look: bool,
        server: str = "",
    ) -> None:
        self.folder = Path(folder)
        self.setting = setting
        self.targets = targets
        self.workers = workers
        self.look = look
        self.server = server
        self.batches = [list(range(start, min(start + BATCH, targets))) for start in range(0, targets, BATCH)]
        self._spawned = began
        self._submits: list[float] = []
        self._found: dict[str, float | None] = {}

    def url(self, number: int) -> str:
        """Return the URL of a target."""
        return f"http://host.example/{number}"

    def number(self, url: str) -> int:
        """Return the target with this URL."""
        return int(url.rpartition("/")[2])

    def fetch(self, number: int) -> str:
        """Return the result of a target: another one for each, so that none can stand for another."""
        return f"{number:08d}".ljust(CONTENT, "x")

    def begin(self) -> None:
        """All is imported and open: the work begins."""
        self._cpu = _cpu()
        self._began = time.perf_counter()

    @contextmanager
    def submitting(self) -> Iterator[None]:
        """Time the submit of one batch."""
        began = time.perf_counter()
        yield
        self._submits.append((time.perf_counter() - began) * 1_000)

    def finished(self) -> None:
        """All is stored."""
        self._found |= {
            "seconds": time.perf_counter() - self._began,
            "cpu": _cpu() - self._cpu,
            # The monotonic clock is one for all processes.
            "cold": time.monotonic() - self._spawned,
            "submit": _median(self._submits) if self._submits else None,
            # Here: what is read back and compared later is this harness's memory and not the peer's.
            "resident": _peak_resident(),
        }

    def time_look(self, poll: Callable[[], object]) -> None:
        """Time reading the status of the targets of the first batch."""
        taken = []
        for _ in range(LOOKS if self.look else 0):
            began = time.perf_counter()
            poll()
            taken.append((time.perf_counter() - began) * 1_000)
        self._found["look"] = _median(taken) if taken else None

    async def time_look_async(self, poll: Callable[[], Awaitable[object]]) -> None:
        """Do the same in a run loop."""
        taken = []
        for _ in range(LOOKS if self.look else 0):
            began = time.perf_counter()
            await poll()
            taken.append((time.perf_counter() - began) * 1_000)
        self._found["look"] = _median(taken) if taken else None

    def report(self, results: Mapping[int, str]) -> dict[str, object]:
        """Return what was measured, and how many results are right."""
        right = sum(results.get(number) == self.fetch(number) for number in range(self.targets))
        return {**self._found, "right": right}


def run(drain: Callable[[Work], Mapping[int, str]]) -> None:
    """Be an adapter's command line: do the work that the one argument describes and print the report."""
    work = Work(**json.loads(sys.argv[1]))
    # What a peer prints must not be taken for the report.
    stdout, sys.stdout = sys.stdout, sys.stderr
    results = drain(work)
    print(json.dumps(work.report(results)), file=stdout, flush=True)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _peak_resident() -> float | None:
    """Return the most memory that this program ever had, in MiB, where the system says it.

    Not `ru_maxrss`: that is never less than what the process had before it became this program.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmHWM"))
