"""Run the state machine on examples of a seed, as many as there is time for.

    python tests/proof/machine/machine_run.py --examples 1000 --steps 50
    python tests/proof/machine/machine_run.py --seed 7
    python tests/proof/machine/machine_run.py --faults

A violation is shrunk and printed as the steps that lead to it, with the command that repeats it.
"""

import argparse
import logging
import secrets
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from hypothesis import HealthCheck, Phase, seed, settings  # noqa: E402
from hypothesis.errors import FlakyFailure  # noqa: E402
from hypothesis.stateful import run_state_machine_as_test  # noqa: E402
from machine_faults import CONFIGS, STORES, Altered  # noqa: E402
from machine_host import StalledError  # noqa: E402
from machine_rules import Machine  # noqa: E402
from machine_words import rules  # noqa: E402


def faulty_machines() -> dict[str, type[Machine]]:
    """Return a machine for each planted fault."""
    changes: dict[str, dict[str, Any]] = {name: {"config": config} for name, config in CONFIGS.items()}
    for name, (operation, alter) in STORES.items():

        def wrap(store: Any, operation: str = operation, alter: Any = alter) -> Altered:
            return Altered(store, operation, alter)

        changes[name] = {"wrap": staticmethod(wrap)}
    return {name: type("FaultyMachine", (Machine,), change) for name, change in changes.items()}


def run(machine: type[Machine], number: int, examples: int, steps: int, *, shrink: bool = True) -> str:
    """Run one machine; return what was violated, "" if nothing was."""
    phases = [Phase.generate, Phase.shrink] if shrink else [Phase.generate]
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(seed(number)(machine), settings=chosen)
    except (AssertionError, StalledError, FlakyFailure):
        return traceback.format_exc()
    return ""


def main() -> int:
    """Run, and return the exit code: 1 for a violation, or a planted fault that was not seen."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=200, help="how many examples (default 200)")
    parser.add_argument("--steps", type=int, default=40, help="at most so many steps in each (default 40)")
    parser.add_argument("--seed", type=int, default=None, help="default: a random one, which is printed")
    parser.add_argument("--faults", action="store_true", help="plant each fault in turn, and look for it")
    asked = parser.parse_args()
    number = secrets.randbelow(2**32) if asked.seed is None else asked.seed
    logging.disable()  # refusals of the store are on purpose here
    print(f"seed {number}, {asked.examples} examples of at most {asked.steps} steps")
    rules()  # what goes wrong here is no planted fault that is seen
    began = time.monotonic()
    if not asked.faults:
        violated = run(Machine, number, asked.examples, asked.steps)
        print(f"{violated or 'no violation'}\n{time.monotonic() - began:.0f} s")
        if violated:
            command = (
                f"{Path(__file__).name} --seed {number} --examples {asked.examples} --steps {asked.steps}"
            )
            print(f"again: python tests/proof/machine/{command}")
        return 1 if violated else 0
    missed = 0
    for name, machine in faulty_machines().items():
        seen = run(machine, number, asked.examples, asked.steps, shrink=False)
        missed += not seen
        print(f"{'seen' if seen else 'MISSED':7} {name}", flush=True)
    print(f"{missed} missed, {time.monotonic() - began:.0f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
