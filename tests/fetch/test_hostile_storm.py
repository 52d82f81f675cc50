"""Cancels at any moment, and the end of the whole application at any moment: nothing is left behind.

With `SIFT_HOSTILE=long` in the environment there are more storms and more killed applications.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import pytest
import trio
from fetcher_sites import open_sites, page, silence
from fetcher_stage import FLEET
from hostile import hostile_server
from reader_processes import ENTRY, children, exists, open_files, until
from test_hostile_job import JOB, LONG, MORE

from sift_batch import (
    Caller,
    Gate,
    JobState,
    Options,
    RetryLater,
    Target,
    open_reader,
    open_runner,
    open_store,
)
from sift_batch.fetch import FetchError
from sift_batch.fetch._client import Client
from sift_batch.fetch._fetcher import Fetcher
from sift_batch.fetch._guard import Guard
from sift_batch.fetch._pipeline import Pipeline
from sift_batch.fetch._pool import open_readers

pytestmark = [
    pytest.mark.real,
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks at processes in /proc"),
]

SEEDS = range(6) if LONG else [7]
KILLS = 40 if LONG else 3
CALLS = 1_000


@asynccontextmanager
async def open_standing(sites, gate):
    """Give a whole fetcher whose readers do what a document tells them, and the readers."""
    config = sites.config(
        robots=True, archive=sites.url("archive.org/{url}"), retry_after_limit=600.0, extract_timeout=60.0
    )
    guard = Guard(config)
    async with open_readers(config, _entry=ENTRY) as readers:
        fetch = Fetcher(Pipeline(config, gate, guard, Client(config, guard), readers))
        try:
            yield fetch, readers
        finally:
            fetch.close()


def furnish(sites) -> dict[str, Target]:
    """Give the sites their pages; return a target for each stage in which a fetch can be cancelled."""
    robots = page(body=b"User-agent: *\nDisallow: /no\n")
    for host in ("good", "head", "body", "flood", "read", "burn", "again", "held", "to", "dead"):
        sites.pages[f"{host}.org/robots.txt"] = robots

    async def half(stream: trio.SocketStream) -> None:
        await stream.send_all(page(body=b"half", content_length="5000"))
        await silence(stream)

    async def flood(stream: trio.SocketStream) -> None:
        await stream.send_all(page(body=b"", content_length=str(10**7)))
        while True:
            await stream.send_all(b"x" * 10_000)
            await trio.sleep(0.001)

    sites.pages["robots.org/robots.txt"] = silence
    sites.pages["good.org/"] = page(body=b"a good page")
    sites.pages["head.org/"] = silence
    sites.pages["body.org/"] = half
    sites.pages["flood.org/"] = flood
    sites.pages["read.org/"] = page(body=b"hang")
    sites.pages["burn.org/"] = page(body=b"burn 0.02")
    sites.pages["again.org/"] = page("500 Broken")
    sites.pages["held.org/"] = page("429 Busy", retry_after="600")
    sites.pages["to.org/"] = page("302 Found", location=sites.url("head.org/"))
    sites.pages[f"archive.org/{sites.url('dead.org/')}"] = silence
    found = {
        name: Target(sites.url(f"{name}.org/"))
        for name in ("good", "head", "body", "flood", "read", "burn", "again", "held", "to", "robots")
    }
    return {**found, "dead": Target(sites.url("dead.org/"), Options(recover=True))}


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_storm_of_cancels_leaves_nothing_behind(seed, tmp_path, monkeypatch):
    """After 1,000 cancels in any stage of a fetch no slot is held, no socket open and no reader busy."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    chance = random.Random(seed)
    before = children()
    gate = Gate(total=40, per_host=20)
    cancelled = dict.fromkeys(("waits", "ends"), 0)
    async with open_sites() as sites:
        targets = furnish(sites)
        files = open_files()
        async with open_standing(sites, gate) as (fetch, readers):
            limiter = trio.CapacityLimiter(60)

            async def call(name: str, batch: bool, seconds: float) -> None:
                async with limiter:
                    with trio.move_on_after(seconds) as scope:
                        try:
                            if batch:
                                await fetch(FLEET, targets[name])
                            else:
                                await fetch.interactive(FLEET, targets[name], patience=inf)
                        except (FetchError, RetryLater):
                            pass
                    cancelled["waits" if scope.cancelled_caught else "ends"] += 1

            async with trio.open_nursery() as nursery:
                for _ in range(CALLS):
                    name = chance.choice(sorted(targets))
                    # Readers start in tens of milliseconds: those who come for one stay longer.
                    seconds = chance.uniform(0, 0.6 if name in ("read", "burn", "again") else 0.15)
                    nursery.start_soon(call, name, chance.random() < 0.2, seconds)
            # However full the machine was: these are struck in a reader's work for certain.
            for _ in range(10):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(call, "read", False, inf)
                    await until(lambda: readers.statistics().busy == 1)
                    await trio.sleep(chance.uniform(0, 0.1))
                    nursery.cancel_scope.cancel()
            now, readers_now = gate.statistics(), readers.statistics()
            assert (now.in_use, now.waiting) == (0, 0)
            assert (readers_now.busy, readers_now.waiting) == (0, 0)
            assert not fetch._calls
            await until(lambda: not sites.open_now)
            assert readers_now.ended["cancelled"] >= 10
            assert cancelled["waits"] >= CALLS // 2
            with trio.fail_after(10):
                assert (await fetch(FLEET, targets["good"])).content == "a good page"
            assert len(children() - before) <= 2
        assert children() == before
        await until(lambda: open_files() == files)
    assert list(tmp_path.iterdir()) == []


def plan_of(port: int, store: Path, seconds: float) -> dict:
    """Give a plan of two jobs that end late: good targets between those that stall, and hang a reader."""
    hostile = [
        {"name": "bomb_in_members"},
        {"name": "jq_forever", "options": {"jq": "def f: f; f"}},
        {"name": "body_silence"},
        {"name": "jq_list", "options": {"jq": "[limit(1e9;repeat(1))]"}},
        {"name": "items_1000000"},
    ]
    targets = []
    for at in range(500):
        targets += [hostile[at % len(hostile)], {"name": f"good?{at}"}]
    limits = {"total_timeout": 0.5, "extract_timeout": seconds, "retries": 0}
    return {"port": port, "targets": targets, "fetch": limits, "jobs": 2, "store": str(store)}


class Application:
    """The program `hostile_job`, to be killed."""

    def __init__(self, plan: dict, temporary: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(JOB)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": str(temporary)},
        )
        self.process.stdin.write(json.dumps(plan).encode())
        self.process.stdin.close()
        self.workers: set[int] = set()

    def look(self) -> set[int]:
        """Note the workers that there are, and return them."""
        now = children(self.process.pid)
        self.workers |= now
        return now

    def kill(self) -> None:
        """Kill the application, and nobody else."""
        self.look()
        self.process.kill()
        self.process.wait()

    def clean_up(self) -> None:
        """Leave nothing of it, whatever went wrong."""
        self.kill()
        for worker in self.workers:
            if exists(worker):
                os.kill(worker, signal.SIGKILL)


async def _stored(store: Path) -> dict[tuple[str, int], str]:
    """Read beside the application what is done by now."""
    found = {}
    async with open_reader(store) as reader:
        for job in await reader.jobs():
            for target in (await reader.status(job.id)).targets:
                if target.status == "done":
                    found[job.id, target.idx] = target.result.content
    return found


async def test_a_killed_application_leaves_no_reader_and_keeps_what_was_stored(tmp_path):
    """After kill -9 at any moment no worker lives for long, and the store opens with what it had."""
    chance = random.Random(11)
    async with hostile_server(more=MORE) as server:
        for number in range(KILLS):
            here = tmp_path / str(number)
            await trio.Path(here / "temporary").mkdir(parents=True)
            # In every other one a reader hangs for certain when its application dies.
            plan = plan_of(server.port, here / "store.db", 0.5 if number % 2 else 30.0)
            app = Application(plan, here / "temporary")
            try:
                known = await _killed(app, here / "store.db", chance)
            finally:
                app.clean_up()
            await _opens_again(here / "store.db", known)
        await server.no_connection()


async def _killed(app: Application, store: Path, chance: random.Random) -> dict[tuple[str, int], str]:
    """Kill the application in the middle of its work; give what was stored shortly before."""
    await until(app.look)
    await until(store.exists)
    with trio.fail_after(60):
        while not await _stored(store):  # noqa: ASYNC110 - it is another process that stores
            await trio.sleep(0.05)
    await trio.sleep(chance.uniform(0, 1.0))
    app.look()
    known = await _stored(store)
    await trio.sleep(chance.uniform(0, 0.2))
    app.kill()
    # In a page or idle: a worker sees the end of its input, or the kernel tells it.
    await until(lambda: not any(map(exists, app.workers)), seconds=5)
    return known


async def _opens_again(path: Path, known: dict[tuple[str, int], str]) -> None:
    async def no_fetch(caller: Caller, target: Target):
        raise AssertionError("nothing is fetched again")

    after = {}
    async with open_store(path) as store, open_runner(store, no_fetch) as runner:
        for job in await runner.jobs():
            assert (job.status, job.error, job.settled) == (JobState.FAILED, "restart", True)
            for target in (await runner.status(job.id)).targets:
                assert target.status in ("done", "failed", "pending")
                if target.status == "done":
                    after[job.id, target.idx] = target.result.content
                    if "/good?" in target.url:
                        number = target.url.partition("?")[2]
                        assert target.result.content == f"# Good\n\nThis is neighbour number {number}."
    assert {key: after.get(key) for key in known} == known
