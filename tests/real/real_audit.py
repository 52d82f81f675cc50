"""Is everything there that was acknowledged, and does it add up? What the real tests ask afterwards."""

import json
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import trio
from real_rows import check_rows, rows
from real_workload import checksum

from sift_batch import Caller, JobState, Result, Target, TargetState, open_runner, open_store

PATIENCE = 60.0


class Child:
    """A process that plays one role of `real_child.py`; it is gone when the block ends."""

    def __init__(self, role: str, path: Path, **arguments: Any) -> None:
        program = Path(__file__).with_name("real_child.py")
        command = [sys.executable, "-X", "dev", program, role, path, json.dumps(arguments)]
        # No pipe: a process that says much there must not wait for a reader.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._errors)
        # A process that hangs must fail its test and not the whole suite.
        self._alarm = threading.Timer(PATIENCE, self._process.kill)
        self._alarm.start()
        self.lines: list[list[Any]] = []

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self.end()
        self._errors.close()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def read(self) -> list[Any] | None:
        """Return the next line, or None at the end."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        # A line that the kill has cut in two was never said.
        if not line.endswith(b"\n"):
            return None
        self.lines.append(json.loads(line))
        return self.lines[-1]

    def read_until(self, word: str) -> list[Any]:
        """Read up to a line that begins with `word` and return it."""
        while (line := self.read()) is not None:
            if line[0] == word:
                return line
        raise AssertionError(f"the process ended before it said {word!r}: {self.end()[1]}")

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill it as `kill -9` does, and read what it had said until then."""
        self._process.kill()
        self.end()

    def end(self) -> tuple[int, str]:
        """Wait for its end; return its exit status and what it wrote to standard error."""
        while self.read() is not None:
            pass
        status = self._process.wait()
        self._alarm.cancel()
        self._alarm.join()
        self._errors.seek(0)
        return status, self._errors.read().decode()


class Books:
    """What a store has acknowledged: the audit holds it to that."""

    def __init__(self) -> None:
        self.submitted: dict[str, int] = {}
        self.stored: dict[tuple[str, int], tuple[str, int]] = {}
        self.cancelled: set[str] = set()
        self.deleting: set[str] = set()

    def enter(self, child: Child) -> None:
        """Take over what a process has said."""
        for word, *values in child.lines:
            if word == "submitted":
                self.submitted[values[0]] = values[1]
            elif word == "stored":
                self.stored[values[0], values[1]] = (values[2], values[3])
            elif word == "cancelled":
                self.cancelled.add(values[0])
            elif word == "deleting":
                self.deleting.add(values[0])


async def _no_fetch(caller: Caller, target: Target) -> Result:
    raise AssertionError("a job was resumed")


def audit(path: Path, books: Books) -> None:
    """Open the store as the next process would; check it against the books; open it once more."""
    check_rows(path)
    trio.run(_audit_jobs, path, books)
    check_rows(path)
    after_one = rows(path)
    trio.run(_open_and_close, path)
    assert rows(path) == after_one, "a second restart changed something"


async def _open_and_close(path: Path) -> None:
    async with open_store(path) as store, open_runner(store, _no_fetch):
        pass


async def _audit_jobs(path: Path, books: Books) -> None:
    async with open_store(path) as store, open_runner(store, _no_fetch) as runner:
        for job_id, count in books.submitted.items():
            status = await runner.status(job_id)
            if status is None:
                assert job_id in books.deleting, "an acknowledged submit is gone"
                continue
            job, targets = status
            assert len(targets) == job.targets_total == count
            assert job.status.terminal
            assert job.settled
            assert job.finished_at is not None
            if job_id in books.cancelled:
                assert job.status is JobState.CANCELLED, "an acknowledged cancel is gone"
            for target in targets:
                assert target.status is not TargetState.RUNNING
                reported = books.stored.get((job_id, target.idx))
                if target.result is not None:
                    content = target.result.content
                    assert content.startswith(f"{job_id}/{target.idx}/")
                    assert len(content) == target.chars
                    assert reported in (None, ("done", checksum(content))), "a result has changed"
                elif reported is not None:
                    assert target.status is TargetState.FAILED
                    assert reported[0] == "failed", "a result that was reported stored is gone"
        assert runner.statistics().stored_bytes == sum(job.nbytes for job in await runner.jobs(limit=10**6))
