"""What comes out of the block round a service? What the body raised, as it was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from api_rig import Fetch

from sift_batch.service._open import open_service
from sift_batch.service._settings import load_settings

pytestmark = pytest.mark.real


@asynccontextmanager
async def scripted(*_: Any, **__: Any) -> AsyncIterator[Fetch]:
    """Stand in for the fetch pipeline."""
    yield Fetch()


@pytest.mark.parametrize(
    "error",
    [
        ValueError("mine"),
        ExceptionGroup("mine", [ValueError("one")]),
        ExceptionGroup("mine", [OSError(), KeyError()]),
    ],
    ids=["bare", "group of one", "group of two"],
)
async def test_what_the_body_raises_comes_out_as_it_was(tmp_path: Path, error: Exception) -> None:
    """The very error, with the cause that it had, in no group of a nursery's."""
    cause = KeyError("why")
    flags = {"service.data": str(tmp_path / "data"), "service.port": 0}
    with pytest.raises(type(error)) as caught:
        async with open_service(load_settings(None, {}, flags), fetcher=scripted):
            raise error from cause
    assert caught.value is error
    assert error.__cause__ is cause


async def test_a_cancel_goes_through_the_block(tmp_path: Path) -> None:
    """A scope round the block that is cancelled ends it, and nothing is left over."""
    flags = {"service.data": str(tmp_path / "data"), "service.port": 0}
    with trio.CancelScope() as scope:
        async with open_service(load_settings(None, {}, flags), fetcher=scripted):
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
