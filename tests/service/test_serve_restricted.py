"""What the operator sees of a restricted caller's targets: that they were stored, and nothing else."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from api_rig import ANN, EVE
from serve_rig import PROGRAM, Served, Site, entry, eventually, served, site, write_callers

pytestmark = [pytest.mark.real, pytest.mark.slow]

TIMES = re.compile(r"_(bucket|sum|created)\b")
"""A histogram of seconds: its count is compared, its buckets and sums are times."""

STORED = "sift_batch_store_bytes"
"""Of all jobs together, as the store has them: an error's text is stored for the caller it belongs to."""

QUICK = {
    "SERVE_DEBUG": "1",
    "SERVE_NAMES": "1",
    "SIFT_BATCH_FETCH_TOTAL_TIMEOUT": "5s",
    "SIFT_BATCH_FETCH_EXTRACT_TIMEOUT": "1s",
    "SIFT_BATCH_FETCH_RETRIES": "0",
}


def said(service: Served, *job_ids: str) -> list[dict[str, Any]]:
    """Return the log without its times, with names in place of ids and ports."""
    text = service.stderr
    for number, job_id in enumerate(job_ids):
        text = text.replace(job_id, f"{number:032x}")
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        for name in ("timestamp", "seconds", "port", "metrics_port"):
            line.pop(name, None)
    return lines


async def counted(service: Served) -> dict[str, float]:
    """Return the metrics without times."""
    found = await service.metrics()
    return {name: value for name, value in found.items() if not TIMES.search(name) and name != STORED}


def make_folder(folder: Path) -> None:
    """Make a folder."""
    folder.mkdir()


async def run(
    folder: Path, targets: list[Any], caller_class: str
) -> tuple[list[dict[str, Any]], dict[str, float], Any]:
    """Run a job and an interactive fetch of each target; return log, metrics, and the codes for the owner."""
    make_folder(folder)
    write_callers(folder / "callers.toml", entry("eve", EVE, caller_class), entry("ann", ANN))
    async with served(folder, "--callers", "callers.toml", command=PROGRAM, env=QUICK) as service:
        client = service.client(EVE)
        reply = await client.post("/v1/batch", {"targets": targets})
        assert reply.status == 202, reply.body
        job_id = reply.json["id"]
        await eventually(lambda: service.named("job.settled"), 30)
        orders = [target if isinstance(target, dict) else {"url": target} for target in targets]
        replies = [await client.post("/v1/fetch", order) for order in orders]
        view = (await client.get(f"/v1/batch/{job_id}")).json
        items = (await client.get(f"/v1/batch/{job_id}/results")).json["items"]
        assert view["status"] == "failed"
        metrics = await counted(service)
        assert await service.stop() == 0
        codes = [item["code"] for item in items]
        assert [item.json["code"] for item in replies] == codes
        return said(service, job_id), metrics, codes


def failing(pages: Site) -> tuple[list[Any], list[Any]]:
    """Return two lists of targets, which differ in host and in how each target fails."""
    endless = {"url": pages.url("/json/kestrel", "127.4.5.6"), "options": {"jq": "def f: f; f"}}
    return (
        [
            pages.url("/404/zephyr", "127.8.9.1"),
            pages.url("/reset/zephyr", "127.8.9.2"),
            "http://nowhere.zephyr.org/",
        ],
        [endless, pages.url("/500/kestrel", "a.kestrel.org"), pages.url("/redirect/kestrel")],
    )


def of_job(lines: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    """Return the lines of one event."""
    return [line for line in lines if line["event"] == event]


async def test_two_runs_that_differ_in_host_and_failure_look_the_same(tmp_path: Path) -> None:
    """Logs at DEBUG and metrics of two restricted runs are equal, and there is nothing of a target in them.

    The same run of a fleet caller shows that there would be something to see: its targets by job and index,
    and by code.
    """
    async with site() as pages:
        one, other = failing(pages)
        logs, metrics, codes = await run(tmp_path / "one", one, "restricted")
        again = await run(tmp_path / "other", other, "restricted")
        fleet = await run(tmp_path / "fleet", one, "fleet")
    assert not set(codes) & set(again[2]), (codes, again[2])
    assert logs == again[0]
    assert metrics == again[1]
    assert not [line for line in logs if "idx" in line or line["event"].startswith("target.")]
    (ended,) = of_job(logs, "job.ended")
    assert set(ended) == {"level", "event", "job_id", "outcome", "targets"}
    assert metrics['sift_batch_targets_total{outcome="failed"}'] == 3
    for name in ("http_seconds_count", "target_errors_total", "worker_kills_total", "busy_seconds_count"):
        assert not [series for series, value in metrics.items() if value and name in series]
    for name in ("target_seconds_count", "job_seconds_count", "queue_seconds_count", "result_bytes_count"):
        assert metrics[f"sift_batch_{name}"] == 0

    logs, metrics, _ = fleet
    stored = of_job(logs, "target.stored")
    assert [(line["idx"], line["code"]) for line in stored] == list(enumerate(codes))
    known = {"level", "event", "job_id", "idx", "attempt", "outcome", "code"}
    assert {name for line in logs if line["event"].startswith("target.") for name in line} == known
    assert metrics['sift_batch_target_errors_total{code="protocol"}'] == 1
    assert metrics['sift_batch_http_seconds_count{code="404",method="POST",route="/v1/fetch"}'] == 1
