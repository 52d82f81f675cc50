"""Can a round be played again?"""

import re

import pytest
from torture_plan import Plan
from torture_round import Round, run_round


def test_a_plan_is_its_line() -> None:
    """A plan that is read from its line is that plan: a failing round can be played again."""
    plan = Plan(
        where="file",
        grace=0.5,
        seed=7,
        store=((3, "lost foreign"),),
        fetch=((2, "busy ready breaks"),),
        strikes=(("job one", 12), ("signal", 4)),
    )
    assert Plan.parse(str(plan)) == plan


@pytest.mark.parametrize(
    "line",
    [
        "memory grace=30 seed=0",
        "memory grace=3 seed=5 store@40=late fetch@3=busy_for_long strike:job_one@60",
        "memory grace=0 seed=9 fetch@7=hang strike:runner@150",
    ],
)
def test_a_plan_gives_the_same_round_twice(line: str) -> None:
    """In memory the same plan gives the same history, but for the jobs' ids."""
    one, two = (_history(run_round(Plan.parse(line))) for _ in range(2))
    assert one == two
    assert len(one) > 20


def _history(played: Round) -> list[str]:
    names: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"job {len(names)}")

    return [re.sub(r"\b[0-9a-f]{32}\b", name, repr(event)) for event in played.book.history.events]
