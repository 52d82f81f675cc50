"""One browser for all tests of the dashboard; without Chromium they are skipped."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The service under test is put together by the rig of the service's own tests.
sys.path.append(str(Path(__file__).parent.parent / "service"))

from chromium_rig import CHROMIUM, Chromium, started


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """A browser that runs."""
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with started() as browser:
        yield browser
