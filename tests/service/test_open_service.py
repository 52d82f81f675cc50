"""What comes out of the block round a service? What the body raised, as it was."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from api_rig import Fetch

from sift_batch.fetch import FetchConfig
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


async def test_the_fetch_cuts_what_the_engine_would_not_keep(tmp_path: Path) -> None:
    """The engine's limit on a result is the fetch's, if it is lower."""
    given: list[int] = []

    @asynccontextmanager
    async def noted(config: FetchConfig, **_: Any) -> AsyncIterator[Fetch]:
        given.append(config.result_max_bytes)
        yield Fetch()

    for kept, cut in ((2_000, 2**18), (2**18, 3_000)):
        flags = {
            "service.data": str(tmp_path / "data"),
            "service.port": 0,
            "engine.result_max_bytes": kept,
            "fetch.result_max_bytes": cut,
        }
        async with open_service(load_settings(None, {}, flags), fetcher=noted):
            pass
    assert given == [2_000, 3_000]
