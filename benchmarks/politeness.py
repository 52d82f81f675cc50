"""Who keeps hosts busy without ever being too much for one? Against what else people use.

    python benchmarks/peers/setup.py --into DIR      # once; clients without an environment are skipped
    python benchmarks/politeness.py --into DIR
    python benchmarks/politeness.py --into DIR --write      # also into benchmarks/README.md

320 URLs on eight loopback hosts, 20 ms each, through real sockets, at most 8 at once and 2 of one host: 0.8 s
if no slot is ever idle. The counting server is the witness: what it saw at once, and every request that came
in when there was no room for it. The engine stores its results durably, and its time runs from the first
submit until all is stored; the others store nothing. Clients in turn, round by round, URLs host after host
(grouped) and in turn (mixed).
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PEERS = Path(__file__).with_name("peers")
sys.path.append(str(PEERS))

import contended_host  # noqa: E402 - found only now
import measure  # noqa: E402 - found only now
import readme  # noqa: E402 - found only now
import roster  # noqa: E402 - found only now
from counting_server import DELAY, PER_HOST, TOTAL, CountingServer  # noqa: E402 - found only now

TARGETS = 320
_PATIENCE = 120.0


def engine_raw(path: str, urls: Sequence[str]) -> float:
    """Run a job for each URL, `workers=320`, with the raw h11 fetch, connections kept."""
    return contended_host.engine(path, urls)


def engine_jobs(path: str, urls: Sequence[str]) -> float:
    """Run jobs of 32 targets, all at once: one fetch of a job at a time, so ten at most want a slot."""
    import trio

    import sift_batch

    client = contended_host.KeptConnections()

    async def fetch(_: sift_batch.Caller, target: sift_batch.Target) -> sift_batch.Result:
        return sift_batch.Result(await client.get(target.url))

    async def main() -> float:
        jobs = [urls[start : start + 32] for start in range(0, len(urls), 32)]
        async with sift_batch.open_store(path) as store:
            return await contended_host.drain(store, fetch, jobs, len(jobs))

    return trio.run(main)


def engine_full(path: str, urls: Sequence[str]) -> float:
    """Run a job for each URL, `workers=320`, through the whole pipeline: a new connection for each page.

    Pages are read in two worker processes, which have started before, like the imports of all others.
    """
    return _pipeline(path, urls, "")


def engine_unread(path: str, urls: Sequence[str]) -> float:
    """Run the same jobs in mode raw: a worker gives each page as it was served, and extracts nothing."""
    return _pipeline(path, urls, "raw")


def _pipeline(path: str, urls: Sequence[str], mode: str) -> float:
    import trio

    import sift_batch
    from sift_batch.fetch import FetchConfig, open_fetcher

    async def main() -> float:
        config = FetchConfig(allow=["127.0.0.0/8"], ports=None)
        gate = sift_batch.Gate(total=TOTAL, per_host=PER_HOST)
        jobs = [[url] for url in urls]
        async with sift_batch.open_store(path) as store, open_fetcher(config, gate=gate) as fetch:
            # Asks each worker something and calls nobody, so that the server sees nothing of it.
            target = sift_batch.Target(urls[0], sift_batch.Options(jq="."))
            async with trio.open_nursery() as nursery:
                for _ in range(config.extract_workers):
                    nursery.start_soon(fetch.check, target)
            return await contended_host.drain(store, fetch, jobs, len(urls), gated=False, mode=mode)

    return trio.run(main)


def bare_loop(path: str, urls: Sequence[str]) -> float:
    """Run a bare Trio loop with two limiters and the raw fetch; it stores nothing."""
    return contended_host.bare_loop(path, urls)


OWN: dict[str, Callable[[str, Sequence[str]], float]] = {
    "engine_raw": engine_raw,
    "engine_jobs": engine_jobs,
    "engine_full": engine_full,
    "engine_unread": engine_unread,
    "bare_loop": bare_loop,
}


class Client(NamedTuple):
    """One row. `module` is a function of `OWN`, or a file in `peers/` that runs in `environment`."""

    name: str
    module: str
    environment: str = ""


CLIENTS = (
    Client("sift-batch, raw h11 fetch, 320 jobs of one", "engine_raw"),
    Client("sift-batch, raw h11 fetch, 10 jobs of 32", "engine_jobs"),
    Client("sift-batch, the full pipeline, 320 jobs of one", "engine_full"),
    Client("sift-batch, the same, mode raw", "engine_unread"),
    Client("bare Trio loop, raw h11 fetch, limiters", "bare_loop"),
    Client("httpx on Trio, limiters by hand", "httpx_limiters", "httpx_limiters"),
    Client("Scrapy, 8 and 2", "scrapy_polite", "scrapy_jobdir"),
    Client("Crawlee, 8; no limit a host", "crawlee_polite", "crawlee_files"),
)


def own(client: str, path: str, urls: Sequence[str]) -> dict[str, float]:
    """Be one of our own clients, in a process of its own; imports are not counted, as for the others.

    The CPU of worker processes is, with their starts.
    """
    import h11
    import httpcore2
    import trio

    from sift_batch import Gate, open_runner, open_store
    from sift_batch.fetch import open_fetcher

    del h11, httpcore2, trio, Gate, open_runner, open_store, open_fetcher
    before = _cpu()
    seconds = OWN[client](path, urls)
    return {"seconds": seconds, "cpu": _cpu() - before, "whole": len(urls)}


def _cpu() -> float:
    """Return the seconds of CPU of this process and of the processes that it started and reaped."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


def available(folder: Path) -> Iterator[tuple[Client, Path | None]]:
    """Return the clients that can run here, with their Pythons; say which can't."""
    for client in CLIENTS:
        python = roster.python_of(client.environment, folder) if client.environment else None
        if client.environment and python is None:
            print(f"skipped, not installed in {folder}: {client.name}", file=sys.stderr)
        else:
            yield client, python


def run(client: Client, python: Path | None, urls: Sequence[str]) -> dict[str, Any]:
    """Fetch all URLs once, in a process of its own."""
    with measure.folder() as where:
        if python is None:
            found = measure.in_child(
                __file__, "own", client=client.module, path=str(where / "jobs"), urls=urls
            )
        else:
            file = PEERS / f"{client.module}.py"
            done = subprocess.run(
                [python, file, json.dumps(urls)],
                cwd=where,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_PATIENCE,
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"{client.name}: {done.stderr.decode()[-2_000:]}")
            found = json.loads(done.stdout)
    if found["whole"] != len(urls):
        raise RuntimeError(f"{client.name}: {found['whole']} of {len(urls)} pages came back whole")
    return dict(found)


def measure_order(
    order: str, clients: Sequence[tuple[Client, Path | None]], *, targets: int, rounds: int
) -> dict[str, list[dict[str, Any]]]:
    """Let the clients fetch in turn; return for each what it and the server say of every round."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    with CountingServer() as server:
        urls = server.urls(targets, order)
        for number in range(rounds):
            turn = number % len(clients)
            for client, python in [*clients[turn:], *clients[:turn]]:
                server.counts()
                try:
                    one = run(client, python, urls)
                except (RuntimeError, subprocess.SubprocessError) as exc:
                    print(f"left out of this round: {exc}", file=sys.stderr, flush=True)
                else:
                    found[client.name].append(one | server.counts())
    return {client.name: found[client.name] for client, _ in clients if client.name in found}


def table(found: dict[str, list[dict[str, Any]]], targets: int) -> str:
    """Return the clients as a table: medians of times, the worst of what the server saw."""
    ideal = targets * DELAY / TOTAL
    head = (
        "| client | wall x ideal | server's span x ideal | most at once | most of a host "
        "| requests over 8 | requests over 2 a host | connections | CPU ms a fetch |"
    )
    lines = [head, "|" + "---|" * 9]
    for name, rounds in found.items():
        walls = [one["seconds"] / ideal for one in rounds]
        spans = statistics.median(one["span"] / ideal for one in rounds)
        cpu = statistics.median(one["cpu"] for one in rounds) * 1_000 / targets
        worst = {
            key: max(one[key] for one in rounds)
            for key in ("peak", "peak_of_a_host", "over_total", "over_host")
        }
        connections = statistics.median(one["connections"] for one in rounds)
        cells = [
            name,
            f"{statistics.median(walls):.2f} ({min(walls):.2f} to {max(walls):.2f})",
            f"{spans:.2f}",
            *(str(worst[key]) for key in ("peak", "peak_of_a_host")),
            *(f"**{worst[key]}**" if worst[key] else "0" for key in ("over_total", "over_host")),
            f"{connections:g}",
            f"{cpu:.2f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--into", type=Path, default=roster.default_folder(), help="where setup.py made them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="40 URLs, grouped, one round, our own clients")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/README.md")
    return parser.parse_args()


def main() -> None:
    arguments = _arguments()
    targets, rounds = (40, 1) if arguments.quick else (TARGETS, arguments.rounds)
    clients = list(available(arguments.into))
    if arguments.quick:
        clients = [one for one in clients if one[1] is None]
    print(measure.machine(), f"command: {measure.command()}", sep="\n", flush=True)
    began = time.monotonic()
    parts = []
    for order in ("grouped",) if arguments.quick else ("grouped", "mixed"):
        found = measure_order(order, clients, targets=targets, rounds=rounds)
        what = "host after host" if order == "grouped" else "hosts in turn"
        parts.append(f"**URLs {order}**: {what}; rounds: {rounds}.\n\n{table(found, targets)}")
        print(f"\n{parts[-1]}", flush=True)
    print(f"\n{time.monotonic() - began:.0f} s in all")
    if arguments.write:
        readme.write("politeness", "\n\n".join([readme.heading(), *parts]))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--once"]:
        measure.run(lambda: iter(()), {"own": own})
    else:
        main()
