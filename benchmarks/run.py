"""How do the numbers stand, all of them? Runs each benchmark beside this file and prints one table.

Every benchmark also runs alone: `python benchmarks/overhead.py`. On a machine that does other work at the
same time, ratios hold better than times, and the median better than either end of the spread.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

from measure import Number, machine

BENCHMARKS = [
    "overhead",
    "submit",
    "fsyncs",
    "contended_host",
    "summary_poll",
    "start",
    "memory",
    "loop_stall",
]


def main() -> None:
    print(machine(), f"command: {' '.join([Path(sys.executable).name, *sys.argv])}", "", sep="\n")
    print("| what | result | unit | to reach | | spread |\n|---|---|---|---|---|---|", flush=True)
    began = time.monotonic()
    for name in sys.argv[1:] or BENCHMARKS:
        file = Path(__file__).with_name(f"{name}.py")
        with subprocess.Popen([sys.executable, file, "--json"], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                print(_row(Number(**json.loads(line))), flush=True)
        if child.returncode:
            sys.exit(f"{name} failed")
    print(f"\n{time.monotonic() - began:.0f} s in all")


def _row(number: Number) -> str:
    verdict = "" if not number.goal else "yes" if number.reached else "**no**"
    cells = [number.name, f"{number.median:.3g}", number.unit, number.goal, verdict, number.spread]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
