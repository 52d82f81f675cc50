"""Which rounds are there? All of a series, one after another, or a sample of them.

A series is one thing that goes wrong, at the first call or step, the second, … until a round ends before
it came to that. `shallow` plays a seeded sample in place of all of them: of a store's calls at least
one of each operation. Next: `torture.py`, the program, and the tests.
"""

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from torture_plan import Plan
from torture_round import Round, run_round
from torture_store import KINDS
from torture_strike import TARGETS
from torture_ways import WAYS

_NEVER: Final = 10**9
_MOST: Final = 20_000
WHATS: Final = ("store", "fetch", "cancel", "compound")


@dataclass(frozen=True, slots=True)
class Series:
    """One thing that goes wrong. `what`: "store", "fetch" or "cancel"; `name`: the kind, way or target."""

    what: str
    name: str
    where: str = "memory"
    grace: float = 30
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.what} {self.name} ({self.where}, grace {self.grace:g})"

    def at(self, number: int) -> Plan:
        """Return the plan of one round."""
        plan = Plan(where=self.where, grace=self.grace, seed=self.seed)
        if self.what == "store":
            return replace(plan, store=((number, self.name),))
        if self.what == "fetch":
            return replace(plan, fetch=((number, self.name),))
        return replace(plan, strikes=((self.name, number),))


def all_series(what: str, *, where: str = "memory", grace: float = 30, seed: int = 0) -> list[Series]:
    """Return the series of one kind of fault."""
    names = {"store": KINDS, "fetch": tuple(WAYS), "cancel": TARGETS}[what]
    return [Series(what, name, where, grace, seed) for name in names]


def serious(played: Round) -> list[str]:
    """Return the findings of a round that are faults of the engine's.

    A store that does a step and says that it has not may leave a job that nobody drains, and who waits
    for it waits until the runner closes. Nothing else may come of it, and nothing at all of other faults.
    """
    return [finding for finding in played.findings if not finding.startswith("left waiting")]


class Player:
    """Plays rounds; those in files in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.played = 0
        # Rounds in which nothing goes wrong, to sample from.
        self._quiet: dict[Plan, Round] = {}

    def play(self, plan: Plan) -> Round:
        """Play one round."""
        self.played += 1
        try:
            if plan.where == "memory":
                return run_round(plan)
            with TemporaryDirectory(dir=self._folder) as folder:
                return run_round(plan, Path(folder) / "jobs.sift")
        except BaseException as exc:
            exc.add_note(f"in the round {plan}")
            raise

    def whole(self, series: Series) -> Iterator[Round]:
        """Play every round of a series, until one ends before anything went wrong."""
        for number in range(1, _MOST):
            played = self.play(series.at(number))
            yield played
            if not played.fired:
                return
        raise AssertionError(f"{series}: no round ended by itself")

    def shallow(self, series: Series, count: int, rng: random.Random) -> Iterator[Round]:
        """Play about `count` rounds of a series."""
        for number in self._sample(series, count, rng):
            yield self.play(series.at(number))

    def _quiet_round(self, where: str, grace: float = 30, seed: int = 0, target: str = "runner") -> Round:
        """Return a round in which nothing goes wrong, with the steps counted at which it could."""
        plan = Plan(where=where, grace=grace, seed=seed, strikes=((target, _NEVER),))
        if plan not in self._quiet:
            self._quiet[plan] = self.play(plan)
        return self._quiet[plan]

    def _sample(self, series: Series, count: int, rng: random.Random) -> Iterable[int]:
        target = series.name if series.what == "cancel" else "runner"
        quiet = self._quiet_round(series.where, series.grace, series.seed, target)
        if series.what == "store":
            by_operation: dict[str, list[int]] = {}
            for number, operation in enumerate(quiet.operations, 1):
                by_operation.setdefault(operation, []).append(number)
            operations = rng.sample(sorted(by_operation), min(count, len(by_operation)))
            numbers = [rng.choice(by_operation[operation]) for operation in operations]
            return numbers + _some(len(quiet.operations), count - len(numbers), rng)
        if series.what == "fetch":
            return _some(quiet.fetches, count, rng)
        return _some(quiet.steps[0], count, rng)

    def compound(self, count: int, rng: random.Random, *, where: str = "memory") -> Iterator[Round]:
        """Play rounds in which two or three things go wrong, the second soon after the first."""
        quiet = self._quiet_round(where)
        calls, fetches, steps = len(quiet.operations), quiet.fetches, quiet.steps[0]
        for _ in range(count):
            plan = Plan(where=where, grace=rng.choice((0, 3, 30)), seed=rng.randrange(1000))
            at = rng.randint(1, calls)
            match rng.randrange(4):
                case 0:
                    kinds = rng.choice(KINDS), rng.choice(KINDS)
                    plan = replace(plan, store=tuple(zip((at, at + rng.randint(1, 6)), kinds, strict=True)))
                case 1:
                    strike = _strike(rng, steps)
                    plan = replace(plan, store=((at, rng.choice(KINDS)),), strikes=(strike,))
                case 2:
                    fault = (rng.randint(1, fetches), rng.choice(tuple(WAYS)))
                    plan = replace(plan, fetch=(fault,), strikes=(_strike(rng, steps),))
                case 3:
                    fault = (rng.randint(1, fetches), rng.choice(tuple(WAYS)))
                    plan = replace(plan, fetch=(fault,), store=((at, rng.choice(KINDS)),))
            yield self.play(plan)


def _some(most: int, count: int, rng: random.Random) -> list[int]:
    return sorted(rng.sample(range(1, most + 1), max(min(count, most), 0)))


def _strike(rng: random.Random, steps: int) -> tuple[str, int]:
    target = rng.choice(TARGETS)
    # Most scopes are open for few steps only.
    wide = target in ("runner", "body", "signal") or target.startswith("job ")
    return target, rng.randint(1, steps if wide else 20)
