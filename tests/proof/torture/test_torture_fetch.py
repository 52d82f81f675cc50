"""Does anything break when the Nth fetch ends in a way that nobody expects?"""

import random

import pytest
from torture_sweep import Player, Series, serious
from torture_ways import WAYS


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Player:
    """Return a player of all rounds here."""
    return Player(tmp_path_factory.mktemp("torture"))


@pytest.mark.parametrize("way", WAYS)
def test_any_fetch_may_end_in_any_way(way: str, player: Player) -> None:
    """However a fetch ends, its target gets what the rules say, and all that was promised holds."""
    for played in player.shallow(Series("fetch", way), 3, random.Random(way)):
        assert played.struck == [way]
        assert not serious(played), (str(played.plan), played.findings)


@pytest.mark.real
@pytest.mark.parametrize("way", random.Random(0).sample(sorted(WAYS), 8))
def test_any_fetch_may_end_in_any_way_over_a_file(way: str, player: Player) -> None:
    """With a store in a file as well."""
    for played in player.shallow(Series("fetch", way, where="file"), 1, random.Random(way)):
        assert not serious(played), (str(played.plan), played.findings)
