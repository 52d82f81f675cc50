"""Does anything break when the Nth call of the store goes wrong?"""

import random
from pathlib import Path

import pytest
from torture_plan import LOST
from torture_store import KINDS, OPERATIONS
from torture_sweep import Player, Series, serious


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_in_memory_in_which_any_call_goes_wrong(kind: str, tmp_path: Path) -> None:
    """Whichever operation goes wrong, in whatever way, all that was promised holds."""
    player, struck = Player(tmp_path), set[str]()
    for played in player.shallow(Series("store", kind), len(OPERATIONS), random.Random(kind)):
        assert not serious(played), (str(played.plan), played.struck, played.findings)
        assert kind in LOST or not played.findings
        struck.update(played.struck)
    assert struck >= set(OPERATIONS), "an operation that is never called proves nothing"


@pytest.mark.real
@pytest.mark.parametrize("kind", KINDS)
def test_a_store_in_a_file_in_which_any_call_goes_wrong(kind: str, tmp_path: Path) -> None:
    """With the threads of a store in a file all that was promised holds as well."""
    for played in Player(tmp_path).shallow(Series("store", kind, where="file"), 3, random.Random(kind)):
        assert not serious(played), (str(played.plan), played.struck, played.findings)
