"""Does torture see a fault that is there? Faults are planted, and must be seen."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from breakages import Breakage, apply
from torture_plan import LOST, Plan
from torture_planted import ALONE, PLANTED, Planted
from torture_round import Round, run_round
from torture_sweep import Player, all_series, serious


def rounds_near(plan: Plan) -> Iterator[Round]:
    """Play a plan, then some in which its faults come a little sooner or later: engines change."""
    for shift in (0, 1, -1, 2, -2, 3, -3, 4, -4):
        yield run_round(
            replace(
                plan,
                store=tuple((max(at + shift, 1), kind) for at, kind in plan.store),
                fetch=tuple((max(at + shift, 1), way) for at, way in plan.fetch),
                strikes=tuple((what, max(at + shift, 1)) for what, at in plan.strikes),
            )
        )


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_planted_fault_is_seen(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The round that is named for a fault finds something, and without the fault it finds nothing."""
    plan = Plan.parse(planted.plan)
    assert not run_round(plan).findings
    apply(Breakage(planted.module, planted.old, planted.new, ""), monkeypatch)
    assert any(played.findings for played in rounds_near(plan))


@pytest.mark.parametrize("name", ALONE)
def test_a_fault_that_one_kind_alone_sees(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a fault is kept for sees it: failing calls, failing fetches, strikes, two faults in a row."""
    planted = next(planted for planted in PLANTED if planted.name == name)
    apply(Breakage(planted.module, planted.old, planted.new, ""), monkeypatch)
    player = Player(tmp_path)
    seen = {what for what in ("store", "fetch", "cancel") if _sees(what, planted, player)}
    if any(map(serious, rounds_near(Plan.parse(planted.plan)))):
        seen.add(planted.seen_by)
    # Others may see it too, by the moments that they happen to choose.
    assert planted.seen_by in seen


def _sees(what: str, planted: Planted, player: Player) -> bool:
    """Whether a sample of one kind sees the fault; what its own round strikes is in the sample."""
    rng = random.Random(what)
    sound = [series for series in all_series(what) if series.name not in LOST]
    own = [series for series in sound if series.name in planted.plan]
    for series in [*own, *rng.sample(sound, 8)]:
        if any(map(serious, player.shallow(series, 2 if series in own else 1, rng))):
            return True
    return False
