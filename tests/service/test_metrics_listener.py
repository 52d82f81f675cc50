"""The page of the metrics: a listener of its own, which has nothing else."""

import pytest
import trio
from prometheus_client import CollectorRegistry
from serve_rig import Plain
from server_rig import running

from sift_batch import Gate
from sift_batch.service._addressed import Names
from sift_batch.service._metrics import ServiceMetrics
from sift_batch.service._metrics_listener import MetricsApp
from sift_batch.service._problems import server_answer

pytestmark = pytest.mark.real


async def test_the_page_of_the_metrics() -> None:
    """`GET /metrics` in both formats, for whoever asks by a name of ours; nothing else is there."""
    registry = CollectorRegistry()
    ServiceMetrics(registry, gate=Gate(), max_bytes=1_000)
    looked = 0

    async def look() -> None:
        nonlocal looked
        await trio.lowlevel.checkpoint()
        looked += 1

    app = MetricsApp(registry, Names(("metrics.example",)), look)
    async with running(app, lifespan=True, answers=server_answer) as server:
        client = Plain(server.port, None)
        plain = await client.get("/metrics", Host="metrics.example:9000")
        assert (plain.status, looked) == (200, 1)
        assert b"sift_batch_live_jobs 0.0" in plain.body
        accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
        open_metrics = await client.get("/metrics", Accept=accept)
        assert open_metrics.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
        assert open_metrics.body.endswith(b"# EOF\n")
        # When a series began is told by no series of its own.
        assert b"_created" not in plain.body + open_metrics.body
        odd = await client.get("/metrics", Accept="application/openmetrics-text;version=zephyr")
        assert (odd.status, odd.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        head = await client.send("HEAD", "/metrics")
        assert (head.status, head.body) == (200, b"")
        (await client.post("/metrics")).problem(405, "method_not_allowed")
        (await client.get("/metrics", Host="zephyr.example")).problem(421, "unknown_host")
        for path in ("/", "/metrics/", "/healthz", "/v1/batch", "/%6detrics"):
            (await client.get(path)).problem(404, "unknown_path")


async def test_a_few_readers_at_once_are_served() -> None:
    """Each gets the whole page, also while others wait for theirs."""
    registry = CollectorRegistry()
    ServiceMetrics(registry, gate=Gate(), max_bytes=1_000)
    app = MetricsApp(registry, Names(()), trio.lowlevel.checkpoint)
    async with running(app, lifespan=True, answers=server_answer) as server:
        pages: list[bytes] = []

        async def read() -> None:
            pages.append((await Plain(server.port, None).get("/metrics")).body)

        async with trio.open_nursery() as tasks:
            for _ in range(4):
                tasks.start_soon(read)
    assert len(pages) == 4
    assert len(set(pages)) == 1
