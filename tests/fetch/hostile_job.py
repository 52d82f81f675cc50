"""A program: an application that runs one batch job over hostile targets, and looks at itself meanwhile.

    python hostile_job.py < plan

The plan is one JSON object: `port` of a hostile server, `targets` (`name`, and `options` if any; every
target gets a host of its own), `fetch` (settings of the `FetchConfig`), `config` (of the `Config`),
`jobs` (over how many jobs the targets are spread, two by two, all of them at once) and `store` (a path, or
":memory:"). It prints one JSON object: what became of each target in `targets`, and of the application
in `left` (what is still there at the end), `rise` (by how many bytes its memory rose at most above what
a first, harmless target left) and `status` (of each job).
"""

import contextlib
import gc
import json
import os
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import trio
from reader_processes import children, open_files

from sift_batch import Caller, Config, Gate, Options, Target, open_runner, open_store
from sift_batch.fetch import FetchConfig, open_fetcher


def memory(field: str) -> int:
    """Read how much memory this process has (VmRSS) or had at most (VmHWM), in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def forget_the_highest() -> None:
    """Let the highest mark of memory start again from here, where the system lets a process do so."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


async def resolve(host: str) -> list[str]:
    """Give the address of every host."""
    await trio.lowlevel.checkpoint()
    return ["127.0.0.1"]


class Meter:
    """Calls a fetch and measures each call. With several jobs at once a rise is that of all of them."""

    def __init__(self, fetch) -> None:
        self._fetch = fetch
        self.before = memory("VmRSS")
        self.highest = 0
        self.seen: dict[str, dict[str, float]] = {}

    async def __call__(self, caller, target):
        """Fetch."""
        forget_the_highest()
        began = time.monotonic()
        try:
            return await self._fetch(caller, target)
        finally:
            rise = memory("VmHWM") - self.before
            self.highest = max(self.highest, rise)
            self.seen[target.url] = {"seconds": time.monotonic() - began, "rise": rise}


async def run(plan: dict) -> dict:
    """Run the jobs and return what there is to say."""
    places = [f"http://t{at}.org:{plan['port']}/{item['name']}" for at, item in enumerate(plan["targets"])]
    targets = [
        Target(url, Options(**item.get("options", {})))
        for url, item in zip(places, plan["targets"], strict=True)
    ]
    jobs = plan.get("jobs", 1)
    settings = FetchConfig(
        allow=["127.0.0.0/8"], ports=frozenset({plan["port"]}), resolve=resolve, **plan["fetch"]
    )
    many = len(targets)
    limits = {"workers": jobs, "workers_limit": jobs, "jobs_per_caller": jobs + 1, "jobs_total": jobs + 1}
    config = Config(**{**limits, "targets_per_job": many, **plan.get("config", {})})
    gate = Gate()
    caller = Caller("somebody")
    found: dict = {"targets": [{}] * many, "status": []}
    async with open_store(plan["store"]) as store, open_fetcher(settings, gate=gate) as fetch:
        warm = Target(f"http://warm.org:{plan['port']}/page")
        await fetch(caller, warm)
        gc.collect()
        meter = Meter(fetch)
        async with open_runner(store, meter, config) as runner:
            shares = [[at for at in range(many) if at // 2 % jobs == job] for job in range(jobs)]
            ids = [(await runner.submit(caller, [targets[at] for at in share])).id for share in shares]
            for share, job_id in zip(shares, ids, strict=True):
                job = await runner.wait(job_id)
                found["status"].append(str(job.status))
                for at, target in zip(share, (await runner.status(job_id)).targets, strict=True):
                    found["targets"][at] = {
                        "code": target.code,
                        "state": str(target.status),
                        "text": (target.result.content if target.result else "")[:2_000],
                        "chars": target.chars,
                        "error": target.error,
                        "hint": target.hint,
                        "meta": dict(target.result.meta) if target.result else {},
                        **meter.seen.get(target.url, {"seconds": 0.0, "rise": 0}),
                    }
        workers = fetch._pipeline._readers.statistics()
        slots = gate.statistics()
        found["busy"] = {"workers": workers.busy + workers.waiting, "slots": slots.in_use + slots.waiting}
        found["ended"] = dict(workers.ended)
    found["rise"] = meter.highest
    return found


def look() -> dict:
    """Return what this process has open, started or written."""
    return {
        "children": sorted(children()),
        "files": open_files(),
        "temporary": sorted(os.listdir(tempfile.gettempdir())),  # noqa: PTH208 - names alone
        "threads": sorted(thread.name for thread in threading.enumerate()),
    }


def main() -> None:
    """Run the plan that stands on standard input."""
    plan = json.load(sys.stdin)
    before = look()
    found = trio.run(partial(run, plan))
    gc.collect()
    after = look()
    found["left"] = {
        name: [item for item in after[name] if item not in before[name]]
        for name in ("children", "files", "temporary")
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
