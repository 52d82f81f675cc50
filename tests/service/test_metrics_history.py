"""The gauges of a service after a long random history: they are what its store says."""

import random
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from api_rig import Client, Fetch, until
from prometheus_client import CollectorRegistry

from sift_batch import JobState, TargetError, TargetState, open_reader
from sift_batch.service._open import STORE_FILE, open_service
from sift_batch.service._settings import load_settings
from sift_batch.testing import WallClock

pytestmark = pytest.mark.real

TTL = 600
STEPS = 36
FIRST = ("submit", "let_go", "lapse", "refused", "rerun", "cancel", "delete")


def opened(fetch: Fetch) -> Any:
    """Return what opens a scripted fetch in place of the pipeline."""

    @asynccontextmanager
    async def open_it(config: Any, *, gate: Any = None) -> Any:
        yield fetch

    return open_it


class History:
    """Does one thing after the other to a service, by chance, and remembers the jobs."""

    def __init__(self, chance: random.Random, folder: Path) -> None:
        self.chance, self.folder, self.now = chance, folder, WallClock()
        self.jobs: list[str] = []
        self.urls = 0
        self.held: list[str] = []
        self.fetch = Fetch()
        self.registry = CollectorRegistry()
        self.done: dict[str, int] = {}

    def settings(self) -> Any:
        """Return the settings: little room, so that jobs are evicted."""
        flags = {
            "service.data": str(self.folder),
            "service.port": 0,
            "service.metrics_port": 0,
            "engine.ttl": TTL,
            "engine.workers": 2,
            "engine.jobs_per_caller": 4,
            "engine.targets_per_job": 4,
            "engine.max_bytes": 6_000,
            "engine.sweep_every": 0.2,
            "engine.shutdown_grace": 0.05,
        }
        return load_settings(None, {}, flags)

    @asynccontextmanager
    async def serving(self) -> Any:
        """Run the service."""
        self.registry = CollectorRegistry()
        async with open_service(
            self.settings(), registry=self.registry, now=self.now, fetcher=opened(self.fetch)
        ) as service:
            self.client = Client(service.port, (self.folder / "key").read_text().strip())
            yield service

    def gauge(self, name: str) -> float:
        """Return a gauge."""
        value = self.registry.get_sample_value(f"sift_batch_{name}")
        assert value is not None
        return value

    async def step(self) -> None:
        """Do one thing: first each once, then by chance."""
        act = FIRST[sum(self.done.values())] if sum(self.done.values()) < len(FIRST) else self._any()
        self.done[act] = self.done.get(act, 0) + 1
        await getattr(self, f"_{act}")()

    def _any(self) -> str:
        return self.chance.choices(FIRST, (8, 4, 1, 2, 2, 2, 2))[0]

    async def _submit(self) -> None:
        targets = []
        for _ in range(self.chance.randint(1, 4)):
            self.urls += 1
            url = f"https://{self.chance.choice('abc')}.example/{self.urls}"
            kind = self.chance.random()
            if kind < 0.2:
                self.fetch.fail(url, TargetError("no such page", code="page_not_found", status=404))
            elif kind < 0.4:
                self.fetch.hang(url)
                self.held.append(url)
            else:
                self.fetch.answer(url, "x" * self.chance.randint(1, 900))
            targets.append(url)
        reply = await self.client.post("/v1/batch", {"targets": targets})
        assert reply.status in (202, 429), reply.body
        if reply.status == 202:
            self.jobs.append(reply.json["id"])

    async def _let_go(self) -> None:
        for url in self.held:
            self.fetch.release(url)
        self.held.clear()
        await until(lambda: self.gauge("live_jobs") == 0)

    async def _by_id(self, method: str, end: str = "") -> None:
        if self.jobs:
            reply = await self.client.send(method, f"/v1/batch/{self.chance.choice(self.jobs)}{end}")
            assert reply.status in (200, 202, 204, 404, 409, 410, 429), reply.body
            if reply.status == 202:
                self.jobs.append(reply.json["id"])

    async def _cancel(self) -> None:
        await self._by_id("POST", "/cancel")

    async def _delete(self) -> None:
        await self._by_id("DELETE")

    async def _rerun(self) -> None:
        await self._by_id("POST", "/rerun")

    async def _lapse(self) -> None:
        self.now.jump(TTL + 2)
        await trio.sleep(0.25)

    async def _refused(self) -> None:
        many = [f"https://a.example/{n}" for n in range(5)]
        (await self.client.post("/v1/batch", {"targets": many})).problem(422, "too_many_targets")

    async def in_store(self) -> tuple[int, int, int]:
        """Return live jobs, targets in flight and bytes, as another process would read them."""
        async with open_reader(self.folder / STORE_FILE) as reader:
            jobs = await reader.jobs(limit=1_000)
            live = sum(job.status in (JobState.QUEUED, JobState.RUNNING) for job in jobs)
            running = 0
            for job in jobs:
                if not job.settled:
                    found = await reader.status(job.id, results=False)
                    running += sum(item.status is TargetState.RUNNING for item in found.targets if found)
            return live, running, sum(job.nbytes for job in jobs)

    async def agree(self) -> None:
        """Return once gauges and store agree, in a moment in which nothing changes."""

        async def same() -> bool:
            names = ("live_jobs", "inflight_targets", "store_bytes")
            before = tuple(map(self.gauge, names))
            stored = await self.in_store()
            return before == stored == tuple(map(self.gauge, names))

        with trio.move_on_after(3):
            while not await same():  # noqa: ASYNC110 - the store tells nobody
                await trio.sleep(0.02)
            return
        names = [self.gauge(name) for name in ("live_jobs", "inflight_targets", "store_bytes")]
        raise AssertionError(f"gauges {names}, store {await self.in_store()}")


@pytest.mark.parametrize("seed", [1, 2])
async def test_gauges_are_what_the_store_says(tmp_path: Path, seed: int) -> None:
    """After each step of a history of submits, failures, cancels, deletes, reruns, lapses and restarts."""
    history = History(random.Random(seed), tmp_path / "data")
    totals: dict[str, float] = {}
    for _ in range(3):
        async with history.serving():
            await history.agree()
            for _ in range(STEPS // 3):
                await history.step()
                await history.agree()
            totals["swept"] = totals.get("swept", 0) + history.gauge("swept_jobs_total")
            refusals = history.registry.get_sample_value(
                "sift_batch_refused_total", {"reason": "too_many_targets"}
            )
            totals["too_many"] = totals.get("too_many", 0) + (refusals or 0)
            assert history.gauge("store_max_bytes") == 6_000
    history.fetch.release()
    assert totals["too_many"] == history.done["refused"]
    assert totals["swept"] >= 1
