"""Does the engine keep its promises in two hundred stories, and is each story the same every time?"""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import simulate
from sim_plan import Plan
from sim_run import run_plan
from sim_shrink import left_out
from sim_story import make_plan

SCRIPT = Path(simulate.__file__)
LEAST = {"virtual hours": 2_000, "actions": 5_000, "fetches": 7_000, "restarts": 400}
"""What two hundred stories come to, at the least."""


def _simulate(*options: str, hash_seed: str = "random") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )


@pytest.mark.slow
def test_sim_two_hundred_seeds() -> None:
    """In none of two hundred stories is a promise broken, and much happens in them."""
    done = _simulate("--seeds", "200", "--jobs", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    # The seeds decide this, and no machine; far below what they give, so that a story may change.
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("in all: ")]
    told = dict(part.split(" ", 1)[::-1] for part in line.removeprefix("in all: ").split(", "))
    for what, least in LEAST.items():
        assert int(told[what].replace(",", "")) >= least, done.stdout


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_sim_one_seed_is_one_story(seed: int) -> None:
    """The same seed gives the same story again, in this process and in another with other hashes."""
    first = run_plan(make_plan(seed))
    again = run_plan(make_plan(seed))
    assert first.story == again.story
    for hash_seed in ("1", "2"):
        told = _simulate("--seed", str(seed), hash_seed=hash_seed)
        assert f"trace {first.digest}" in told.stdout


def test_sim_other_seeds_are_other_stories() -> None:
    """No two seeds tell the same story."""
    assert len({run_plan(make_plan(seed)).digest for seed in range(8)}) == 8


@pytest.mark.parametrize("seed", range(12))
def test_sim_a_plan_survives_as_text(seed: int) -> None:
    """A plan that was written down and read back is the same plan."""
    plan = make_plan(seed)
    assert Plan.from_json(plan.to_json()) == plan


def test_sim_a_story_without_some_actions_makes_sense() -> None:
    """Any part of a story can be left out: what is left breaks no promise either."""
    plan = make_plan(5)
    for part in (plan.actions[::2], plan.actions[1::2], plan.actions[: len(plan.actions) // 3], []):
        assert run_plan(plan.copy(actions=part)).violations == []


def test_sim_left_out() -> None:
    """Of a hundred items, exactly those are kept that are needed together."""
    tried = 0

    def still(items: Sequence[int]) -> bool:
        nonlocal tried
        tried += 1
        return {3, 50, 97} <= set(items)

    assert left_out(range(100), still) == [3, 50, 97]
    assert tried < 120
