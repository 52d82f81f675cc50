"""Does anything break when two things go wrong, one soon after the other?"""

import random
from pathlib import Path

import pytest
from torture_sweep import Player, serious


@pytest.mark.parametrize("seed", range(3))
def test_two_faults(seed: int, tmp_path: Path) -> None:
    """After a fault and another, or a fault and a strike, all that was promised holds."""
    for played in Player(tmp_path).compound(50, random.Random(seed)):
        assert not serious(played), (str(played.plan), played.struck, played.findings)


@pytest.mark.real
def test_two_faults_over_a_file(tmp_path: Path) -> None:
    """With a store in a file as well."""
    for played in Player(tmp_path).compound(20, random.Random(0), where="file"):
        assert not serious(played), (str(played.plan), played.struck, played.findings)
