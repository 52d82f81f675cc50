"""Who kills, and what is asked afterwards? The side of the tests that survives.

`Lives` starts one process after another and ends them; `Story` is one store's file through all of them: it
keeps the history, looks at the file after each death, opens it as the next process would, and has the
history judged. When a process dies is decided by whoever uses them.
"""

import json
import os
import selectors
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import trio
from crash_load import fast_clock
from history import History, HistoryRules, check_history, explain
from real_rows import check_rows_of, looking, rows, rows_of

from sift_batch import Caller, Config, Result, StoreError, Target, open_runner, open_store

_PATIENCE: Final = 30.0
_KEEP_ALL: Final[dict[str, Any]] = {"ttl": float("inf"), "max_bytes": 2**60, "sweep_every": 3_600.0}


class LifeFailed(Exception):
    """A process hangs, or failed by itself; then the text has its traceback."""


class Lives:
    """One life after another, each in a process of its own (`crash_child.py`)."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        program = Path(__file__).with_name("crash_child.py")
        self._process = subprocess.Popen(
            [sys.executable, program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
        )
        self._selector = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._selector.register(self._process.stdout, selectors.EVENT_READ)
        self._buffer = b""
        # The process that lives now; None between two lives.
        self._pid: int | None = None

    def __enter__(self) -> "Lives":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pid is not None:
            self.kill()
        self._selector.close()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(_PATIENCE)
        self._process.stdout.close()
        self._errors.close()

    def begin(self, role: str, **arguments: Any) -> None:
        """Begin a life that plays one role."""
        if self._pid is not None:
            self.kill()
        self._write(json.dumps([role, arguments]).encode() + b"\n")
        self._pid = self.until("born")[1]

    def until(self, word: str) -> list[Any]:
        """Return the line that begins with `word`, or the one with which the life came to its end."""
        while (said := self._line())[0] not in (word, "over"):
            pass
        return said

    def kill(self) -> bool:
        """Kill as `kill -9` does; say whether it was that which ended the life."""
        assert self._pid is not None
        os.kill(self._pid, signal.SIGKILL)
        return self.end() == -signal.SIGKILL

    def end(self) -> int:
        """Wait for the end of the life; return its exit status."""
        self._write(b"\n")
        while (said := self._line())[0] != "dead":
            pass
        self._pid = None
        status = int(said[1])
        if status > 0:
            self._errors.seek(0)
            raise LifeFailed(f"a process failed: {self._errors.read().decode()}")
        return status

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)

    def _line(self) -> list[Any]:
        while b"\n" not in self._buffer:
            assert self._process.stdout is not None
            if not self._selector.select(_PATIENCE):
                raise LifeFailed("a process hangs")
            self._buffer += self._process.stdout.read(65_536)
        line, _, self._buffer = self._buffer.partition(b"\n")
        return list(json.loads(line))


@dataclass
class Tally:
    """What was done and looked at, for the report."""

    kills: int = 0
    checks: int = 0
    modes: dict[str, int] = field(default_factory=dict)
    acknowledged: dict[str, int] = field(default_factory=dict)
    jobs: int = 0
    targets: int = 0

    def add(self, other: "Tally") -> None:
        """Add what another one has counted."""
        for name in ("kills", "checks", "jobs", "targets"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for mine, theirs in ((self.modes, other.modes), (self.acknowledged, other.acknowledged)):
            for word, count in theirs.items():
                mine[word] = mine.get(word, 0) + count


class Story:
    """One store's file through many lives, and the history of all of them."""

    def __init__(self, path: Path, *, rules: HistoryRules, clock: Any = fast_clock) -> None:
        self.path = path
        self.told = path.with_name(f"{path.name}.history")
        self.tally = Tally()
        self.faults: list[str] = []
        self._rules = rules
        self._clock = clock
        self._seen = path.with_name(f"{path.name}.audits")
        self._record = History(self._seen, clock)
        self._life = 0

    def __enter__(self) -> "Story":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._record.close()

    def next_life(self) -> int:
        """Return the number of the life that is about to begin."""
        self._life += 1
        return self._life

    def died(self, how: str, *, killed: bool) -> None:
        """Note that a life is over, and look at what it left."""
        if killed:
            self._record.note("killed", life=self._life)
            self.tally.kills += 1
            self.tally.modes[how] = self.tally.modes.get(how, 0) + 1
        self.look()

    def look(self) -> None:
        """Look at the file as it lies there: sound, and every row on record."""
        if not self.path.exists():
            return
        self.tally.checks += 1
        try:
            with looking(self.path) as connection:
                check_rows_of(connection)
                self._record.audit(connection, self._life)
        except (AssertionError, sqlite3.Error) as exc:
            self.faults.append(f"I4 after life {self._life}: {exc}")

    def reopen(self, *, twice: bool = False) -> None:
        """Open the store as the next process would, removing nothing; with `twice`, once more."""
        life = self.next_life()
        try:
            trio.run(self._reopened, life)
        except StoreError as exc:
            self.faults.append(f"I1 life {life}: the store can't be opened: {exc}")
            return
        self.look()
        if self.faults:
            return
        self._check_settled(life)
        if twice:
            before = rows(self.path)
            trio.run(self._reopened, self.next_life())
            if rows(self.path) != before:
                self.faults.append(f"I2 life {life}: a second restart changed something")

    def judge(self) -> list[str]:
        """Have the whole history judged; return everything that was wrong."""
        events = History.read(*(file for file in (self.told, self._seen) if file.exists()))
        self._count(events)
        return self.faults + check_history(events, self._rules)

    def history(self, job: str | None = None) -> str:
        """Return the history to read."""
        return explain(History.read(*(file for file in (self.told, self._seen) if file.exists())), job)

    async def _reopened(self, life: int) -> None:
        async with open_store(self.path) as store:
            config = Config(**_KEEP_ALL)
            async with open_runner(store, _no_fetch, config, now=self._clock) as runner:
                self._record.note("clock", wall=self._clock(), jump=0)
                self._record.note("opened", life=life)
                await runner.check()
                self._record.note("closing", life=life)
            self._record.note("closed", life=life)

    def _check_settled(self, life: int) -> None:
        with looking(self.path) as connection:
            (left,) = connection.execute(
                "SELECT count(*) FROM batch_job WHERE settled = 0 OR status IN ('queued', 'running')"
            ).fetchone()
            (running,) = connection.execute(
                "SELECT count(*) FROM batch_target WHERE status = 'running'"
            ).fetchone()
        if left or running:
            self.faults.append(f"I2 life {life}: after a restart {left} jobs are live, {running} targets run")

    def _count(self, events: list[dict[str, Any]]) -> None:
        acknowledged: dict[str, int] = {}
        jobs: set[str] = set()
        targets: set[tuple[str, int]] = set()
        for event in events:
            if event["kind"] == "ok" and event["op"] != "fetch":
                acknowledged[event["op"]] = acknowledged.get(event["op"], 0) + 1
            elif event["kind"] == "row":
                jobs.add(event["job"])
                targets.update((event["job"], target[0]) for target in event["targets"] if target[2])
        self.tally.acknowledged = acknowledged
        self.tally.jobs, self.tally.targets = len(jobs), len(targets)


async def _no_fetch(caller: Caller, target: Target) -> Result:
    raise AssertionError("a job was resumed")


def dump(path: Path) -> list[tuple[Any, ...]]:
    """Return every row of a store's file that nobody else has open; check that it is sound."""
    with looking(path) as connection:
        check_rows_of(connection)
        return rows_of(connection)


def wait(seconds: float) -> None:
    """Let real time pass: a process is killed in the middle of what it does, and not at a step of ours."""
    time.sleep(seconds)
