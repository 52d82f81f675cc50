"""Does anything break when a cancellation or a Ctrl-C strikes at the Nth step?"""

import random

import pytest
from torture_strike import TARGETS
from torture_sweep import Player, Series, serious


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Player:
    """Return a player of all rounds here."""
    return Player(tmp_path_factory.mktemp("torture"))


@pytest.mark.parametrize("target", TARGETS)
def test_a_strike_at_any_step(target: str, player: Player) -> None:
    """Whenever a scope, a job or the program is struck, all that was promised holds."""
    for played in player.shallow(Series("cancel", target), 9, random.Random(target)):
        assert played.struck == [target]
        assert not serious(played), (str(played.plan), played.findings)


@pytest.mark.parametrize("target", ["runner", "body", "signal"])
def test_a_strike_at_any_step_without_grace(target: str, player: Player) -> None:
    """Without a grace nothing else is lost than what was in flight."""
    for played in player.shallow(Series("cancel", target, grace=0), 12, random.Random(target)):
        assert not serious(played), (str(played.plan), played.findings)


@pytest.mark.real
@pytest.mark.parametrize("target", ["runner", "body", "signal", "submit", "cancel", "results", "job one"])
def test_a_strike_at_any_step_over_a_file(target: str, player: Player) -> None:
    """A step of a store in a file is withdrawn, or it is done and its answer comes."""
    for played in player.shallow(Series("cancel", target, where="file"), 5, random.Random(target)):
        assert not serious(played), (str(played.plan), played.findings)
