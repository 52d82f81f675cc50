"""How do the numbers stand, all of them? Runs each benchmark beside this file and prints one table.

Every benchmark also runs alone: `python benchmarks/overhead.py`. With `--write` the table goes into
README.md too; that of the fetch pipeline alone (`reading hostile_stall fetch_map`) has a section of its
own, and so has that of the service (`service`, short for all of its benchmarks). What needs other people's
software is not among them: `politeness.py`, `peers/compare.py` and `quality/rate.py`; `everything.py` runs
those as well. On a machine that does other work at the same time, ratios hold better than times, and the
median better than either end of the spread.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import measure
import readme
from measure import Number

BENCHMARKS = [
    "overhead",
    "submit",
    "fsyncs",
    "contended_host",
    "summary_poll",
    "start",
    "memory",
    "loop_stall",
    "growth",
    "cost_map",
]
FETCHING = ["reading", "hostile_stall", "fetch_map"]
"""Those of the fetch pipeline: they need the extra `fetch`."""
SERVICE = ["service_load", "service_poll", "service_streams", "service_timing"]
"""Those of the HTTP service: they need the extra `service`, and Linux to look at a process's memory."""


def main() -> None:
    arguments = sys.argv[1:]
    write = "--write" in arguments
    names = [name for name in arguments if name != "--write"] or [*BENCHMARKS, *FETCHING, *SERVICE]
    if names == ["service"]:
        names = SERVICE
    print(measure.machine(), f"command: {measure.command()}", "", sep="\n")
    lines = ["| what | result | unit | to reach | | spread |", "|---|---|---|---|---|---|"]
    print("\n".join(lines), flush=True)
    began = time.monotonic()
    for name in names:
        for number in _numbers_of(name):
            lines.append(_row(number))
            print(lines[-1], flush=True)
    taken = f"{time.monotonic() - began:.0f} s in all"
    print(f"\n{taken}")
    if write:
        section = "numbers"
        for own, members in (("fetching", FETCHING), ("service", SERVICE)):
            section = own if set(names) <= set(members) else section
        readme.write(section, "\n".join([readme.heading(), f"- {taken}", "", *lines]))


def _numbers_of(name: str) -> Iterator[Number]:
    file = Path(__file__).with_name(f"{name}.py")
    with subprocess.Popen([sys.executable, file, "--json"], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            yield Number(**json.loads(line))
    if child.returncode:
        sys.exit(f"{name} failed")


def _row(number: Number) -> str:
    verdict = "" if not number.goal else "yes" if number.reached else "**no**"
    cells = [number.name, f"{number.median:.3g}", number.unit, number.goal, verdict, number.spread]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
