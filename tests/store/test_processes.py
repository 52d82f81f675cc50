"""What do several processes, and several openings in one, do to one store?"""

import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from sift_batch import StoreInUseError, open_store
from sift_batch.testing._ledger import OWNER, T0, Ledger

pytestmark = pytest.mark.real

# What other processes run. Each prints lines that the test reads.

_OUTSIDE_READER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
print(connection.execute("SELECT count(*) FROM batch_job").fetchone()[0])
connection.close()
"""

_OPENER = """
import sys, trio
from sift_batch import StoreError, open_store

async def main():
    try:
        async with open_store(sys.argv[1]) as store:
            await store.acquire("owner", now=1)
            print("owned", flush=True)
            if sys.argv[2:] == ["stay"]:
                await trio.sleep_forever()
            await store.release("owner")
    except StoreError as exc:
        print(type(exc).__name__, exc, flush=True)

trio.run(main)
"""


async def _run(code: str, *args: object) -> str:
    completed = await trio.run_process(
        [sys.executable, "-I", "-c", code, *map(str, args)], capture_stdout=True
    )
    return completed.stdout.decode().strip()


async def test_no_job_is_lost_while_an_outside_reader_comes_and_goes(tmp_path: Path) -> None:
    """A store opened a second time in its owner's process keeps the log safe from outside readers."""
    path, log = tmp_path / "jobs.sift", tmp_path / "jobs.sift-wal"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        for n in range(4):
            await ledger.ended(f"u{n}")
            # Closing any descriptor of the file by hand would drop this process's locks here, and
            # the reader, as the last one to close, would delete the log with the next job in it.
            async with open_store(path) as again:
                with pytest.raises(StoreInUseError):
                    await again.acquire("owner-2", now=T0)
            assert await _run(_OUTSIDE_READER, path) == str(n + 1)
            assert log.stat().st_size > 0
        # What a power cut or a kill would leave now: the file and its log, as they stand.
        for name in ("jobs.sift", "jobs.sift-wal"):
            (tmp_path / f"copy-{name}").write_bytes(
                await trio.to_thread.run_sync(_read_by_another_process, tmp_path / name)
            )
    connection = sqlite3.connect(tmp_path / "copy-jobs.sift")
    assert connection.execute("SELECT count(*) FROM batch_job WHERE settled = 1").fetchone()[0] == 4
    connection.close()


def _read_by_another_process(path: Path) -> bytes:
    # Opened by this process, the file would lose this process's locks as it is closed.
    return subprocess.run(["cat", path], check=True, capture_output=True).stdout


async def test_the_owner_in_another_process_keeps_the_store(tmp_path: Path) -> None:
    """While another process owns the store it can be read but not acquired; killed, it lets go."""
    path = tmp_path / "jobs.sift"
    async with trio.open_nursery() as nursery:
        process = await nursery.start(_start, path)
        async with open_store(path) as store:
            with pytest.raises(StoreInUseError):
                await store.acquire(OWNER, now=T0)
            assert await Ledger(store).jobs() == []
            process.send_signal(signal.SIGKILL)
            await process.wait()
            await store.acquire(OWNER, now=T0)
            await Ledger(store).ended("u")


async def _start(path: Path, task_status: trio.TaskStatus[trio.Process]) -> None:
    command = [sys.executable, "-I", "-c", _OPENER, str(path), "stay"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    async with process.stdout:
        assert await process.stdout.receive_some(100) == b"owned\n"
        task_status.started(process)
        await process.wait()


async def test_two_processes_make_one_store(tmp_path: Path) -> None:
    """Processes that make the same store at once each own it or are told that it is in use."""
    path = tmp_path / "jobs.sift"
    said: list[str] = []

    async def run() -> None:
        said.append((await _run(_OPENER, path)).split()[0])

    for _ in range(2):
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(run)
    assert set(said) <= {"owned", "StoreInUseError"}
    assert "owned" in said
    async with open_store(path) as store:
        assert await Ledger(store).jobs() == []
