"""Is what a restricted caller stored really gone when its jobs are removed?"""

import random
import sqlite3
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from sift_batch import Caller, CallerClass, Options, Target, open_store
from sift_batch._model.lifecycle import TargetState
from sift_batch._model.store import Outcome
from sift_batch.testing._ledger import ALICE, CAPS, OWNER, SECRET, T0, TTL, Ledger, created, done

pytestmark = pytest.mark.real

MARK = "sixteen-secret-marks"


@asynccontextmanager
async def _owned(path: Path) -> AsyncIterator[Any]:
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        yield store


def _traces(folder: Path) -> int:
    """Return how often the mark stands in any file of a folder, read by another process."""
    # Opened by this process, the file would lose this process's locks as it is closed.
    read = subprocess.run(["cat", *folder.iterdir()], check=True, capture_output=True)
    return read.stdout.count(MARK.encode())


async def _secret_job(ledger: Ledger, n: int, chaos: random.Random) -> str:
    targets = [
        Target(f"https://host/{MARK}/{n}/{idx}/" + "u" * chaos.randrange(300), Options(question=MARK))
        for idx in range(chaos.randrange(1, 6))
    ]
    job = created(await ledger.submit(targets=targets, caller=SECRET))
    await ledger.begin()
    for idx in range(len(targets)):
        failure = Outcome(status=TargetState.FAILED, error=MARK * 3, hint=MARK, code="x")
        outcome = done(f"{MARK} " * chaos.randrange(1, 2_000)) if chaos.random() < 0.7 else failure
        await ledger.record(job.id, idx, outcome)
    return job.id


@pytest.mark.parametrize("seed", range(4))
async def test_no_byte_of_a_restricted_job_is_left(tmp_path: Path, seed: int) -> None:
    """Once a restricted caller's jobs are deleted and erased, nothing of them stands in any file."""
    chaos = random.Random(seed)
    async with _owned(tmp_path / "jobs.sift") as store:
        ledger = Ledger(store)
        secret: list[str] = []
        # Others' jobs come and go between, so that pages are split, moved and used again.
        for n in range(60):
            if chaos.random() < 0.5:
                secret.append(await _secret_job(ledger, n, chaos))
            else:
                await ledger.ended(f"open{n}", outcomes=[done("o" * chaos.randrange(6_000))])
        for status in await ledger.everything():
            if status.job.caller == ALICE.name and chaos.random() < 0.4:
                await store.delete(OWNER, status.job.id, caller=None, now=T0, ttl=TTL)
        assert _traces(tmp_path) > 0
        for job_id in secret:
            removed = await store.delete(OWNER, job_id, caller=None, now=T0, ttl=TTL)
            assert removed is not None
            assert removed.restricted
        assert await store.erase(OWNER) is True
        assert _traces(tmp_path) == 0
        await ledger.ended("after", outcomes=[done("z" * 5_000)])
    assert _traces(tmp_path) == 0


async def test_an_open_reader_puts_erasure_off(tmp_path: Path) -> None:
    """While a reader looks at what the log holds, erase is False; after that a next try erases."""
    path = tmp_path / "jobs.sift"
    async with _owned(path) as store:
        ledger = Ledger(store)
        job_id = await _secret_job(ledger, 1, random.Random(1))
        reader = sqlite3.connect(path, isolation_level=None)
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM batch_target").fetchone()[0] > 0
        await store.delete(OWNER, job_id, caller=None, now=T0, ttl=TTL)
        assert await store.erase(OWNER) is False
        assert _traces(tmp_path) > 0
        reader.execute("COMMIT")
        reader.close()
        assert await store.erase(OWNER) is True
        assert _traces(tmp_path) == 0


async def test_nothing_is_left_of_the_caller(tmp_path: Path) -> None:
    """The name of a restricted caller and the ids of its jobs go with its last job."""
    name = f"{MARK}-caller"
    caller = Caller(name, caller_class=CallerClass.RESTRICTED)
    async with _owned(tmp_path / "jobs.sift") as store:
        ledger = Ledger(store)
        for n in range(20):
            await ledger.ended(f"u{n}", caller=caller)
            await ledger.ended(f"v{n}")
        for status in await ledger.everything():
            if status.job.caller == name:
                await store.delete(OWNER, status.job.id, caller=None, now=T0, ttl=TTL)
        assert await store.erase(OWNER) is True
        assert _traces(tmp_path) == 0


async def test_a_rerun_and_a_sweep_leave_nothing_either(tmp_path: Path) -> None:
    """Results that were carried over are erased too, whichever way the jobs leave."""
    async with _owned(tmp_path / "jobs.sift") as store:
        ledger = Ledger(store)
        ids = [await _secret_job(ledger, n, random.Random(n)) for n in range(6)]
        for job_id in ids[:4]:
            outcome = await store.rerun(
                OWNER, ledger.new_id(), job_id, caller=SECRET, now=T0, ttl=TTL, caps=CAPS
            )
            ids.append(created(outcome).id)
        while (work := await store.begin(OWNER, now=T0)) is not None:
            await ledger.stop(work.job.id)
        await ledger.ended("newest", now=T0 + 1)
        while await store.evict(OWNER, max_bytes=40_000, now=T0 + 1, ttl=TTL):
            pass
        for job_id in ids:
            await store.sweep(OWNER, job_id, now=T0 + 10_000, ttl=TTL)
        assert await store.erase(OWNER) is True
        assert _traces(tmp_path) == 0


async def test_only_restricted_rows_pay_for_it(tmp_path: Path) -> None:
    """What goes is overwritten while there are restricted rows, after a restart too, and else not."""
    path = tmp_path / "jobs.sift"

    async def overwrites() -> bool:
        return await store._writes.run(
            lambda connection: connection.execute("PRAGMA secure_delete").fetchone()[0] == 1
        )

    async with _owned(path) as store:
        ledger = Ledger(store)
        await ledger.ended("u")
        assert not await overwrites()
        job = await ledger.ended("v", caller=SECRET)
        assert await overwrites()
    async with _owned(path) as store:
        assert await overwrites()
        await store.delete(OWNER, job.id, caller=None, now=T0, ttl=TTL)
        assert await overwrites()
        assert await store.erase(OWNER) is True
        assert not await overwrites()
