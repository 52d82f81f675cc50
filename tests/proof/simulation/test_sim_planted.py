"""Does the simulation see a fault, and can the story of one be made short enough to read?"""

from itertools import chain
from typing import Final

import pytest
import simulate
from sim_faults import FAULTS, planted
from sim_run import run_plan
from sim_shrink import Shrinker
from sim_story import make_plan

ENOUGH: Final = 200
"""So many seeds at most may be needed; most faults are seen by the first or the second."""

LIKELY: Final = {
    "cancel-not-awaited": 14,
    "closing-not-told": 49,
    "interactive-not-first": 5,
    "lapses-early": 4,
    "offered-too-late": 19,
    "promise-not-forgone": 134,
    "settling-forgotten": 13,
    "start-after-cancel": 14,
    "start-while-closing": 14,
    "tries-too-close": 4,
}
"""Where to look first for a fault that few stories show: the first seed that saw it, when last counted."""


def first_seen(fault: str) -> int:
    """Return a seed whose story goes wrong with a fault planted."""
    for seed in chain([LIKELY.get(fault, 0)], range(ENOUGH)):
        if simulate.run_seed(seed, fault).violations:
            return seed
    raise AssertionError(f"{ENOUGH} seeds do not see {fault}")


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_sim_sees(fault: str) -> None:
    """The simulation sees this fault, and without it the same story is well again."""
    seed = first_seen(fault)
    assert run_plan(make_plan(seed)).violations == []


@pytest.mark.parametrize("fault", ["lost-wake-up", "restart-leaves-running"])
def test_sim_a_story_shrinks(fault: str) -> None:
    """What is left of a story that went wrong has at most fifteen actions and breaks the same rule."""
    plan = make_plan(first_seen(fault))
    with planted(fault):
        report = run_plan(plan)
        shrinker = Shrinker(plan, report, tries=250)
        least = shrinker.shrink()
        assert len(least.actions) <= 15 < len(plan.actions)
        again = run_plan(least)
    assert again.violations[0].rule == report.violations[0].rule
    assert again.digest == shrinker.report.digest
    assert len(again.story) <= 60
