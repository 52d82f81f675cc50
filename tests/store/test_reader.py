"""What does a reader take, and what does it refuse?"""

from pathlib import Path
from typing import Any

import pytest

from sift_batch import JobState, open_reader, open_store
from sift_batch.testing._ledger import OWNER, T0, Ledger

pytestmark = pytest.mark.real


async def test_a_state_may_be_given_as_text(tmp_path: Path) -> None:
    """Jobs are narrowed to a state by its text as by the state; any other text is a ValueError."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        job = await Ledger(store).ended("u")
        await Ledger(store).stop(job.id)
    async with open_reader(path) as reader:
        assert [found.id for found in await reader.jobs(status="done")] == [job.id]  # type: ignore[arg-type]
        assert [found.id for found in await reader.jobs(status=JobState.DONE)] == [job.id]
        assert await reader.jobs(status="failed") == []  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="ended"):
            await reader.jobs(status="ended")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "arguments", "error"),
    [
        ("jobs", {"limit": -1}, ValueError),
        ("jobs", {"limit": 0}, ValueError),
        ("jobs", {"limit": "1"}, TypeError),
        ("status", {"start": -1}, ValueError),
        ("status", {"stop": -1}, ValueError),
        ("status", {"start": None}, TypeError),
        ("status", {"stop": 1.0}, TypeError),
    ],
)
async def test_numbers_are_checked(
    tmp_path: Path, method: str, arguments: dict[str, Any], error: type[Exception]
) -> None:
    """A limit, start or stop that makes no sense is refused by its name, as a runner refuses it."""
    path = tmp_path / "jobs.sift"
    async with open_store(path):
        pass
    (name,) = arguments
    async with open_reader(path) as reader:
        call = getattr(reader, method)
        with pytest.raises(error, match=name):
            await call(*(["0" * 32] if method == "status" else []), **arguments)
