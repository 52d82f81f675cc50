"""Is there a test that notices, whichever line of the engine breaks?

    python tests/proof/mutants/mutants.py                  every listed change must be caught by a test
    python tests/proof/mutants/mutants.py --only NAME      one of them (or all whose name has NAME in it)
    python tests/proof/mutants/mutants.py --list           what there is
    python tests/proof/mutants/mutants.py --systematic _engine/busy.py --tests flow engine
                                                           mechanical changes of whole modules

A change that no test notices is a survivor, and the program ends with 1. So it does if a run was out of time,
unless the change is listed as one that hangs: a slow machine has noticed nothing. First the tests must pass
on an unchanged copy of the package, or nothing could be said of the others (2); how long that takes says
how long a trial may take here. It changes nothing in the checkout. A survivor of the mechanical kind is a
question and no verdict: it may change nothing that anybody could see.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from mutant_engine import ENGINE
from mutant_store import STORE
from mutant_sweep import sweep
from mutant_trial import (
    ROOT,
    Mutant,
    Trial,
    changed,
    copy_of_package,
    in_parallel,
    run_tests,
    snapshot,
    source_of,
    warm_up,
)

MUTANTS: Final = (*ENGINE, *STORE)
BROADER: Final = ("engine", "gate", "store", "flow", "testing", "observe")
"""Where a change is looked for that the expected tests have missed; those of real time are left out."""


_SLACK: Final = 5.0
"""A trial may take so many times as long as the same tests on the unchanged package."""
_UNCHANGED_LIMIT: Final = 1_800.0


def examine(base: Path, mutant: Mutant, limit: float, broader: Sequence[str]) -> tuple[Mutant, Trial]:
    """Run the expected tests on a copy with the change, and if all of them pass, the broader set."""
    with copy_of_package(base, mutant.file, changed(mutant, source_of(mutant.file, base))) as copy:
        trial = run_tests(copy, [f"tests/{path}" for path in mutant.tests], limit=limit)
        if trial.timed_out and mutant.hangs:
            return mutant, replace(trial, caught=True)
        if trial.caught or trial.timed_out or not broader:
            return mutant, trial
        second = run_tests(copy, [f"tests/{path}" for path in broader], limit=5 * limit)
        by = f"{second.by} (none of the expected)"
        return mutant, replace(second, by=by, seconds=trial.seconds + second.seconds)


def check_unchanged(base: Path, mutants: Sequence[Mutant]) -> Trial:
    """Run all the expected tests on an unchanged copy."""
    paths = dict.fromkeys(path for mutant in mutants for path in mutant.tests)
    # A file that stands in a folder that is run anyway is left out.
    files = [path for path in paths if not any(str(above) in paths for above in Path(path).parents)]
    with copy_of_package(base) as copy:
        return run_tests(copy, [f"tests/{path}" for path in files], limit=_UNCHANGED_LIMIT)


def gate(
    mutants: Sequence[Mutant],
    *,
    jobs: int,
    limit: float,
    slack: float = _SLACK,
    broader: Sequence[str] = BROADER,
) -> int:
    """Try every mutant; print each verdict; return the exit code.

    A trial has `limit` seconds, or more on a machine that is slow with the same tests unchanged.
    """
    with snapshot() as base:
        for mutant in mutants:
            changed(mutant, source_of(mutant.file, base))  # at once, and not in the middle of the run
        warm_up()
        began = time.monotonic()
        unchanged = check_unchanged(base, mutants)
        if unchanged.caught or unchanged.timed_out:
            print(f"The tests do not pass on the unchanged package: {unchanged.by}")
            return 2
        print(f"unchanged: {unchanged.tests} tests pass in {unchanged.seconds:.0f} s", flush=True)
        missed = []
        work = [
            (base, mutant, max(limit, slack * jobs * unchanged.seconds_of(mutant.tests)), broader)
            for mutant in mutants
        ]
        for mutant, trial in in_parallel(examine, work, jobs):
            if not trial.caught:
                missed.append((mutant, trial))
            print(f"{trial.seconds:5.1f} s  {mutant.name}: {_verdict(trial)}", flush=True)
    killed = len(mutants) - len(missed)
    print(f"{killed} of {len(mutants)} mutants caught in {time.monotonic() - began:.0f} s")
    for mutant, trial in missed:
        _show(mutant, trial)
    return 1 if missed else 0


def _verdict(trial: Trial) -> str:
    if trial.caught:
        return f"caught by {trial.by}"
    return f"TIMED OUT: {trial.by}" if trial.timed_out else "SURVIVED"


def _show(mutant: Mutant, trial: Trial) -> None:
    what = "TIMED OUT" if trial.timed_out else "SURVIVOR"
    print(f"{what}: {mutant.name} ({mutant.file}: {mutant.old!r} → {mutant.new!r})")
    if trial.timed_out:
        print("  no test failed in time: give it more (--limit), or say that it hangs if it always does")
    else:
        print(f"  nobody noticed that this no longer holds: {mutant.promise}")
    print(f"  again: python {Path(__file__).relative_to(ROOT)} --only {mutant.name!r}")


def main() -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="trials at the same time")
    parser.add_argument("--only", metavar="NAME", help="the mutants whose name has NAME in it")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument(
        "--limit",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for one run of tests, or more if it is slow unchanged",
    )
    parser.add_argument("--systematic", nargs="+", metavar="MODULE", help="such as _engine/busy.py")
    parser.add_argument("--tests", nargs="+", default=BROADER, help="with --systematic: paths below tests/")
    parser.add_argument(
        "--budget", type=float, default=60.0, help="with --systematic: seconds of tests a change"
    )
    given = parser.parse_args()
    if given.systematic is not None:
        return sweep(given.systematic, given.tests, jobs=given.jobs, limit=given.limit, budget=given.budget)
    chosen = [mutant for mutant in MUTANTS if given.only is None or given.only in mutant.name]
    if not chosen:
        parser.error(f"no mutant has {given.only!r} in its name; --list tells them all")
    if given.list:
        for mutant in chosen:
            print(f"{mutant.file}: {mutant.name}")
            print(f"    breaks: {mutant.promise}\n    tests: {', '.join(mutant.tests)}")
        return 0
    return gate(chosen, jobs=given.jobs, limit=given.limit)


if __name__ == "__main__":
    sys.exit(main())
