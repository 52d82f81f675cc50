"""What holds when the disk is full, and how much of it does a store take?"""

import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from sift_batch import StoreError, open_store
from sift_batch.testing._ledger import OWNER, T0, TTL, Ledger, done

pytestmark = pytest.mark.real

MEGABYTE = 2**20


@asynccontextmanager
async def _owned(path: Path, **settings: Any) -> AsyncIterator[Any]:
    async with open_store(path, **settings) as store:
        await store.acquire(OWNER, now=T0)
        yield store


async def _pragma(store: Any, text: str) -> None:
    await store._writes.run(lambda connection: connection.execute(f"PRAGMA {text}").fetchall(), bare=True)


async def _fill(ledger: Ledger) -> tuple[list[str], str]:
    """Submit jobs and store results until the disk is full; return what was acknowledged."""
    acknowledged: list[str] = []
    try:
        for n in range(10_000):
            job = await ledger.queued(f"https://host/{n}/" + "x" * 5_000)
            acknowledged.append(job.id)
            await ledger.begin()
            await ledger.record(job.id, 0, done("y" * 20_000))
    except StoreError as exc:
        return acknowledged, str(exc)
    raise AssertionError("the disk was never full")


async def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    """With no room left a step is a StoreError, what was acknowledged stays, and room mends it."""
    path = tmp_path / "jobs.sift"
    async with _owned(path) as store:
        await _pragma(store, "max_page_count = 100")
        ledger = Ledger(store)
        acknowledged, error = await _fill(ledger)
        assert "FULL" in error
        before = await ledger.everything()
        assert [status.job.id for status in before] == acknowledged[::-1]
        for _ in range(3):
            with pytest.raises(StoreError):
                await ledger.queued("https://host/" + "z" * 50_000)
        assert await ledger.everything() == before
        await _pragma(store, "max_page_count = 10000")
        last = await ledger.queued("https://host/" + "z" * 50_000)
        await store.check(OWNER, now=T0)
    async with _owned(path) as store:
        assert await Ledger(store).jobs() == [last.id, *acknowledged[::-1]]


async def test_room_can_be_made_on_a_full_disk(tmp_path: Path) -> None:
    """With no room left jobs can still be deleted, and that makes room."""
    async with _owned(tmp_path / "jobs.sift") as store:
        await _pragma(store, "max_page_count = 200")
        ledger = Ledger(store)
        acknowledged, _ = await _fill(ledger)
        removed = 0
        for job_id in acknowledged[:-1]:
            if await store.delete(OWNER, job_id, caller=None, now=T0, ttl=TTL):
                removed += 1
        assert removed > 5
        await ledger.queued("https://host/" + "z" * 50_000)


_FULL_BY_LIMIT = """
import resource, sys, trio
from sift_batch import StoreError, open_store
from sift_batch.testing._ledger import OWNER, T0, Ledger, done

async def main():
    limit = int(sys.argv[2])
    if sys.argv[3] == "from the start":
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        async with open_store(sys.argv[1]) as store:
            await store.acquire(OWNER, now=T0)
            ledger = Ledger(store)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
            try:
                for n in range(10_000):
                    job = await ledger.queued(f"https://host/{n}/" + "x" * 5_000)
                    print(job.id, flush=True)
                    await ledger.begin()
                    await ledger.record(job.id, 0, done("y" * 20_000))
            except StoreError:
                print("full", flush=True)
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            job = await ledger.queued("https://host/after")
            print(job.id, flush=True)
    except StoreError as exc:
        print("full", exc, flush=True)

trio.run(main)
"""


async def _limited(path: Path, limit: int, when: str) -> list[str]:
    completed = await trio.run_process(
        [sys.executable, "-c", _FULL_BY_LIMIT, str(path), str(limit), when], capture_stdout=True
    )
    return completed.stdout.decode().splitlines()


@pytest.mark.parametrize("limit", [200_000, 1_000_000])
async def test_files_that_may_not_grow(tmp_path: Path, limit: int) -> None:
    """When the system refuses to let a file grow: a StoreError, nothing lost, and it works again after."""
    path = tmp_path / "jobs.sift"
    said = await _limited(path, limit, "later")
    assert said[-2] == "full"
    acknowledged = [line for line in said if line != "full"]
    assert len(acknowledged) > 2
    async with _owned(path) as store:
        assert await Ledger(store).jobs(limit=10_000) == acknowledged[::-1]


@pytest.mark.parametrize("limit", [0, 1_000, 10_000, 30_000])
async def test_no_room_for_a_new_store(tmp_path: Path, limit: int) -> None:
    """Without room for a new file: a StoreError that leaves nothing in the way of the next try."""
    path = tmp_path / "jobs.sift"
    said = await _limited(path, limit, "from the start")
    assert said[-1].startswith("full")
    assert str(path) not in said[-1]
    async with _owned(path) as store:
        await Ledger(store).ended("u")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=False, capture_output=True
    )
    if mount.returncode:
        pytest.skip("a small disk can't be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


async def test_a_small_disk(small_disk: Path) -> None:
    """On a disk that is really full: a StoreError, nothing lost, and room mends it."""
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(300_000))
    path = small_disk / "jobs.sift"
    async with _owned(path) as store:
        acknowledged, _ = await _fill(Ledger(store))
        ballast.unlink()
        later = Ledger(store)
        later._ids = 10**6
        last = await later.queued("after")
        assert await later.jobs() == [last.id, *acknowledged[::-1]]
    async with _owned(path) as store:
        assert await Ledger(store).jobs() == [last.id, *acknowledged[::-1]]


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


async def test_a_disk_that_may_not_be_written(small_disk: Path) -> None:
    """On a disk that was mounted read-only a store, old or new, is a StoreError that names no path."""
    path = small_disk / "jobs.sift"
    async with _owned(path) as store:
        job = await Ledger(store).ended("u")
    await trio.run_process(["mount", "-o", "remount,ro", str(small_disk)])
    for place in (path, small_disk / "new.sift"):
        with pytest.raises(StoreError) as caught:
            async with _owned(place):
                pass
        assert str(small_disk) not in str(caught.value)
    await trio.run_process(["mount", "-o", "remount,rw", str(small_disk)])
    async with _owned(path) as store:
        assert await Ledger(store).jobs() == [job.id]


async def test_the_log_stays_small(tmp_path: Path) -> None:
    """However much is stored, the log is moved into the file as it goes and never grows without end."""
    path = tmp_path / "jobs.sift"
    log = path.with_name("jobs.sift-wal")
    largest = 0
    async with _owned(path, durability="normal") as store:
        ledger = Ledger(store)
        for n in range(300):
            await ledger.ended(f"u{n}", outcomes=[done("x" * 100_000)])
            await ledger.jobs()
            largest = max(largest, _size(log))
    assert largest < 17 * MEGABYTE
    assert _size(log) == 0


async def test_the_file_shrinks_back(tmp_path: Path) -> None:
    """What removed jobs took goes back to the disk, but for a few megabytes kept for the next ones."""
    path = tmp_path / "jobs.sift"
    async with _owned(path, durability="normal") as store:
        ledger = Ledger(store)
        jobs = [await ledger.ended(f"u{n}", outcomes=[done("x" * 200_000)]) for n in range(100)]
        await store.erase(OWNER)
        full = path.stat().st_size
        for job in jobs[:-1]:
            await store.delete(OWNER, job.id, caller=None, now=T0, ttl=TTL)
        await store.erase(OWNER)
        assert full > 19 * MEGABYTE
        assert path.stat().st_size < 6 * MEGABYTE
