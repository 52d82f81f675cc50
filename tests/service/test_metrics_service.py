"""The metrics of a service: all of them, with closed labels, from the start."""

import re
from pathlib import Path
from typing import Any

import pytest
from api_rig import ANN, Client, Fetch, until
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from serve_rig import Plain
from test_metrics_history import opened

from sift_batch import Caller, Config, Gate, StoreError, Target, open_runner, open_store
from sift_batch.logs import held_back
from sift_batch.metrics import METRICS
from sift_batch.service._counted_store import counted
from sift_batch.service._metrics import (
    CODES,
    KILLS,
    METHODS,
    PATTERNS,
    SERVICE_METRICS,
    ServiceMetrics,
    exported_names,
    route_of,
)
from sift_batch.service._open import open_service
from sift_batch.service._settings import load_settings
from sift_batch.testing import FaultyStore

pytestmark = pytest.mark.real

A = "https://a.example/"


def made() -> tuple[CollectorRegistry, ServiceMetrics]:
    """Return metrics on a registry of their own."""
    registry = CollectorRegistry()
    return registry, ServiceMetrics(registry, gate=Gate(), max_bytes=1_000)


def scope(method: str = "GET", path: str = "/v1/batch") -> Any:
    """Return what the server tells of a request."""
    return {"method": method, "raw_path": path.encode()}


def series(registry: CollectorRegistry) -> dict[str, float]:
    """Return every series with its value."""
    lines = generate_latest(registry).decode().splitlines()
    parts = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in parts}


def test_every_metric_is_there_from_the_start() -> None:
    """Under each name that is listed, and no other, before anything has happened."""
    registry, _ = made()
    families = text_string_to_metric_families(generate_latest(registry).decode())
    names = {sample.name for family in families for sample in family.samples}
    assert {name for name in names if not name.endswith("_created")} == exported_names()


def test_every_label_value_is_listed() -> None:
    """Whatever a client sends, and however it is answered."""
    registry, metrics = made()
    methods = ("GET", "HEAD", "POST", "DELETE", "PUT", "zephyr")
    paths = (
        "/",
        "/v1/batch",
        "/v1/batch/zephyr",
        "/v1/batch/a/targets/zephyr",
        "/zephyr",
        "",
        "/v1//",
        "/v1/batch/",
    )
    for method in methods:
        for path in paths:
            for status in (None, 200, 404, 418, 999):
                metrics.answered(scope(method, path), status, 0.1, restricted=False)
    for code in ("no_targets", "too_many_targets", "bad_json", "zephyr"):
        metrics.refused(code)
    labels: dict[tuple[str, str], set[str]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            base = re.sub("_(bucket|count|sum|created)$", "", sample.name)
            for label, value in sample.labels.items():
                if label != "le":
                    labels.setdefault((base, label), set()).add(value)
    for (base, label), values in labels.items():
        if base in SERVICE_METRICS:
            assert values <= set(SERVICE_METRICS[base].labels[label]), base
        elif base in METRICS:
            assert values <= set(METRICS[base].values), base
    assert "zephyr" not in generate_latest(registry).decode()
    assert labels["sift_batch_worker_kills_total", "reason"] == set(KILLS)
    assert labels["sift_batch_http_seconds", "method"] == set(METHODS)
    assert {"other", "gone", "404"} <= labels["sift_batch_http_seconds", "code"] <= set(CODES)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        ("/v1/batch/0f/targets/3", "/v1/batch/{id}/targets/{idx}"),
        ("/v1/batch/0f/events", "/v1/batch/{id}/events"),
        ("/v1/fetch", "/v1/fetch"),
        ("/docs", "/docs"),
        ("/readyz", "/readyz"),
        ("/v1/batch/", "other"),
        ("/v1/batch/0f/targets/3/4", "other"),
        ("//v1/batch", "other"),
        ("*", "other"),
    ],
)
def test_a_route_is_told_by_its_pattern(path: str, route: str) -> None:
    """With the names of its variable parts, never with what stood there."""
    assert route_of(path.encode()) == route
    assert route in PATTERNS


def test_a_restricted_callers_request_adds_nothing() -> None:
    """Not even a count: which statuses it got would tell how its targets did."""
    registry, metrics = made()
    before = series(registry)
    metrics.answered(scope("POST", "/v1/fetch"), 502, 1.0, restricted=True)
    assert series(registry) == before
    metrics.answered(scope("POST", "/v1/fetch"), 502, 1.0, restricted=False)
    name = 'sift_batch_http_seconds_count{code="502",method="POST",route="/v1/fetch"}'
    assert series(registry)[name] == 1


def test_one_registry_takes_one_service() -> None:
    """A second one is a ValueError, as for any name that is taken."""
    registry, _ = made()
    with pytest.raises(ValueError, match="Duplicated"):
        ServiceMetrics(registry, gate=Gate(), max_bytes=1)


async def test_what_a_store_refuses_is_counted_by_step() -> None:
    """And comes out as before; a step that works is not counted."""
    failed: list[str] = []
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner, fail_at=1, operations={"submit"})
        async with open_runner(counted(store, failed.append), Fetch()) as runner:
            with pytest.raises(StoreError):
                await runner.submit(Caller("ann"), [Target(A)])
            job = await runner.submit(Caller("ann"), [Target(A)])
            await runner.wait(job.id)
    assert failed == ["submit"]


async def test_the_service_counts_its_requests(tmp_path: Path) -> None:
    """Refusals that the engine never sees, wrong keys, routes with their statuses; and it is ready."""
    registry = CollectorRegistry()
    flags = {"service.data": str(tmp_path / "data"), "service.port": 0, "service.metrics_port": 0}
    async with open_service(
        load_settings(None, {}, flags), registry=registry, fetcher=opened(Fetch())
    ) as service:
        assert service.metrics_address is not None
        client = Client(service.port, (tmp_path / "data" / "key").read_text().strip())
        scraper = Plain(service.metrics_address[1], None)
        job_id = (await client.post("/v1/batch", {"targets": [A]})).json["id"]
        assert (await client.get(f"/v1/batch/{job_id}?wait=5")).json["status"] == "done"
        await client.get("/v1/batch/unknown")
        for body in ({"targets": []}, {"targets": [f"{A}{n}" for n in range(33)]}, {"targets": 5}, b"{"):
            assert (await client.post("/v1/batch", body)).status >= 400
        await client.post("/v1/batch", b"x", Content_Length=str(2**30))
        await Client(service.port, ANN).get("/v1/batch")
        await Client(service.port, None).get("/favicon.ico")
        reply = await scraper.get("/metrics")
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert b"sift_batch_ready 1.0" in reply.body
        expected = {
            "ready": 1,
            "callers_reload_ok": 1,
            "log_tripwire_total": held_back(),
            "auth_failures_total": 2,
            "store_max_bytes": Config().max_bytes,
            'refused_total{reason="no_targets"}': 1,
            'refused_total{reason="too_many_targets"}': 1,
            'refused_total{reason="other"}': 3,
            'http_seconds_count{code="202",method="POST",route="/v1/batch"}': 1,
            'http_seconds_count{code="200",method="GET",route="/v1/batch/{id}"}': 1,
            'http_seconds_count{code="404",method="GET",route="/v1/batch/{id}"}': 1,
            'http_seconds_count{code="401",method="GET",route="/v1/batch"}': 1,
            'http_seconds_count{code="401",method="GET",route="other"}': 1,
            'http_seconds_count{code="413",method="POST",route="/v1/batch"}': 1,
            'targets_total{outcome="done"}': 1,
        }

        def counted_now() -> dict[str, float]:
            found = series(registry)
            return {name: found.get(f"sift_batch_{name}", 0.0) for name in expected}

        # A request is counted once its answer is out: the client may have it a moment before.
        await until(lambda: counted_now() == expected)
        (key,) = (tmp_path / "data").glob("key")
        key.write_text("no key\n")
        assert not await service.callers.reloaded()
        assert series(registry)["sift_batch_callers_reload_ok"] == 0
