"""Does the engine keep its promises in any story? Many of them, each made from a seed.

    python tests/proof/simulation/simulate.py --seeds 200            # seeds 0 to 199
    python tests/proof/simulation/simulate.py --seed 17 --trace      # the story of one seed
    python tests/proof/simulation/simulate.py --seed 17 --shrink     # the least of it that still fails

Prints what it did: seeds, virtual hours for each minute of CPU, and how much happened in them. A violation is
printed with its seed, its story and the command that brings it back; the exit code is 1 then.
"""

import argparse
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from sim_faults import FAULTS, planted  # noqa: E402
from sim_plan import Plan  # noqa: E402
from sim_run import Report, run_plan  # noqa: E402
from sim_shrink import Shrinker  # noqa: E402
from sim_story import make_plan  # noqa: E402

SHOWN = 60
"""How many lines of a story that failed are printed."""


def run_seed(seed: int, fault: str | None = None) -> Report:
    """Run the story of a seed; with a fault, on an engine that has it."""
    with planted(fault) if fault else contextlib.nullcontext():
        return run_plan(make_plan(seed))


def _run_quietly(seed: int, fault: str | None) -> Report:
    report = run_seed(seed, fault)
    if not report.violations:
        report.story = []  # it would only be carried from process to process
    return report


def run_seeds(seeds: Iterable[int], jobs: int, fault: str | None = None) -> Iterator[Report]:
    """Run many seeds, in several processes, and give each report as it comes, in order of the seeds."""
    if jobs <= 1:
        yield from (_run_quietly(seed, fault) for seed in seeds)
        return
    seeds = list(seeds)
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(_run_quietly, seeds, [fault] * len(seeds), chunksize=4)


def main() -> int:
    """Run what the command line asks for; return the exit code."""
    options = _options()
    if options.plan is not None:
        return _one(Plan.from_json(options.plan.read_text()), options)
    if options.seed is not None:
        return _one(make_plan(options.seed), options)
    began = time.monotonic()
    reports, failed = [], []
    for report in run_seeds(range(options.first, options.first + options.seeds), options.jobs, options.plant):
        reports.append(report)
        if report.violations:
            failed.append(report)
            _show(report, options)
    _summary(reports, time.monotonic() - began)
    return 1 if failed else 0


def _one(plan: Plan, options: argparse.Namespace) -> int:
    with planted(options.plant) if options.plant else contextlib.nullcontext():
        report = run_plan(plan)
        if report.violations and options.shrink:
            shrinker = Shrinker(plan, report)
            plan, report = shrinker.shrink(), shrinker.report
            file = Path(options.save or f"simulation-{plan.seed}.json")
            file.write_text(plan.to_json())
            print(f"seed {plan.seed}, shrunk to {len(plan.actions)} actions: {report.violations[0].rule}")
            print(_setting(plan))
            print("\n".join(report.story))
            print(f"again: python {_script()} --plan {file}{_planted(options)}")
            return 1
    if options.trace:
        print("\n".join(report.story))
    print(f"seed {report.seed} ({report.tempo}): {report.hours:.2f} virtual hours, trace {report.digest}")
    if report.violations:
        _show(report, options)
    return 1 if report.violations else 0


def _show(report: Report, options: argparse.Namespace) -> None:
    print(f"\nVIOLATION in seed {report.seed} ({report.tempo}): {report.violations[0].rule}")
    if not options.trace:
        print("\n".join(report.story[-SHOWN:]))
    print(f"{report.violations[0].text}")
    print(f"again:  python {_script()} --seed {report.seed} --trace{_planted(options)}")
    print(f"shrink: python {_script()} --seed {report.seed} --shrink{_planted(options)}\n", flush=True)


def _setting(plan: Plan) -> str:
    config = ", ".join(f"{name}={value}" for name, value in plan.config.items())
    pages = "\n".join(f"  {url}: {answers}" for url, answers in plan.pages.items())
    return f"config: {config}\ngate: {plan.gate}\npages:\n{pages}\nrefusals: {plan.refusals}\n"


def _planted(options: argparse.Namespace) -> str:
    return f" --plant {options.plant}" if options.plant else ""


def _script() -> str:
    return os.path.relpath(Path(__file__).resolve())


def _summary(reports: list[Report], seconds: float) -> None:
    cpu = sum(report.cpu for report in reports)
    hours = sum(report.hours for report in reports)
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report.counts)
    failed = [report.seed for report in reports if report.violations]
    print(f"{len(reports):,} seeds, {len(failed)} with a violation{': ' if failed else ''}{failed or ''}")
    rate = 60 * hours / cpu
    print(
        f"{hours:,.0f} virtual hours in {cpu:,.1f} s of CPU ({seconds:,.1f} s): {rate:,.0f} a minute of CPU"
    )
    median = sorted(60 * report.hours / report.cpu for report in reports)[len(reports) // 2]
    print(f"half of the seeds are above {median:,.0f} virtual hours a minute of CPU")
    names = ("actions", "visits", "fetches", "store steps", "refusals", "restarts", "rests", "turns")
    print("each second of CPU: " + ", ".join(f"{counts[name] / cpu:,.1f} {name}" for name in names))
    totals = ", ".join(f"{counts[name]:,} {name}" for name in names)
    print(f"in all: {int(hours):,} virtual hours, {totals}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1, help="how many processes to use")
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--plan", type=Path, help="run the story in this file alone")
    parser.add_argument("--trace", action="store_true", help="print the whole story")
    parser.add_argument("--shrink", action="store_true", help="make a story that fails as small as may be")
    parser.add_argument("--save", type=Path, help="where to keep the shrunk story")
    parser.add_argument("--plant", choices=sorted(FAULTS), help="put this fault into the engine first")
    options = parser.parse_args()
    if options.seeds < 1:
        parser.error("--seeds must be at least 1")
    return options


if __name__ == "__main__":
    # Hash randomisation must not matter, and it does not; the test of that runs this program.
    sys.exit(main())
