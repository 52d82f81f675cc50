"""Does the faulty store fail when it should, and only then?"""

import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf

import pytest
from trio.testing import assert_checkpoints

from sift_batch import StoreError, open_store
from sift_batch._model.store import Store
from sift_batch.testing import FaultyStore, check_store


@asynccontextmanager
async def _faulty(
    fail_at: int | None = None, *, times: float = 1, operations: set[str] | None = None
) -> AsyncIterator[FaultyStore]:
    async with open_store(":memory:") as inner:
        await inner.acquire("owner", now=1)
        yield FaultyStore(inner, fail_at, times=times, operations=operations)


async def _outcomes(store: FaultyStore, count: int) -> str:
    """Ask `count` times; return "." for each call that worked and "F" for each that failed."""
    marks = ""
    for n in range(count):
        try:
            with assert_checkpoints():
                if n % 2:
                    await store.lapsed(now=1, ttl=1)
                else:
                    await store.check("owner", now=1)
            marks += "."
        except StoreError:
            marks += "F"
    return marks


async def test_the_nth_call_fails() -> None:
    """The call number fail_at fails, and no other."""
    async with _faulty(3) as store:
        assert await _outcomes(store, 6) == "..F..."
        assert store.failed == 1
        assert store.calls == ["check", "lapsed"] * 3


async def test_several_in_a_row() -> None:
    """`times` calls in a row fail, infinitely many if told so."""
    async with _faulty(2, times=2) as store:
        assert await _outcomes(store, 6) == ".FF..."
    async with _faulty(4, times=inf) as store:
        assert await _outcomes(store, 8) == "...FFFFF"


async def test_only_the_named_operations() -> None:
    """With operations, only those are counted and fail."""
    async with _faulty(2, operations={"lapsed"}) as store:
        assert await _outcomes(store, 8) == "...F...."
        assert store.failed == 1


async def test_from_now_on() -> None:
    """`fail` makes calls fail from now on, and `recover` ends it."""
    async with _faulty() as store:
        assert await _outcomes(store, 4) == "...."
        store.fail()
        assert await _outcomes(store, 4) == "FFFF"
        store.recover()
        assert await _outcomes(store, 2) == ".."
        store.fail(1, operations={"lapsed"})
        assert await _outcomes(store, 4) == ".F.."


async def test_a_call_that_fails_never_reaches_the_store() -> None:
    """What fails has not happened."""
    async with _faulty(1) as store:
        with pytest.raises(StoreError):
            await store.release("owner")
        await store.check("owner", now=1)


async def test_a_working_one_is_a_store() -> None:
    """A faulty store that has nothing to fail keeps every rule of a store."""

    @asynccontextmanager
    async def factory() -> AsyncIterator[Store]:
        async with open_store(":memory:") as inner:
            yield FaultyStore(inner)

    await check_store(factory)


@pytest.mark.parametrize("operations", [{"recrod"}, {"_pass"}, {"__init__"}])
def test_names_are_checked(operations: set[str]) -> None:
    """A misspelt operation is refused: a test with it could not fail."""
    with pytest.raises(ValueError, match="no operation"):
        FaultyStore(None, 1, operations=operations)  # type: ignore[arg-type]


def test_odd_arguments_are_refused() -> None:
    """Calls count from 1, and a single str is no collection of names."""
    with pytest.raises(ValueError, match="from 1"):
        FaultyStore(None, 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="collection"):
        FaultyStore(None, 1, operations="record")  # type: ignore[arg-type]


def test_every_operation_can_fail() -> None:
    """The faulty store has every operation of the protocol, with the same parameters."""
    for name in dir(Store):
        if not name.startswith("_"):
            ours = inspect.signature(getattr(FaultyStore, name))
            assert str(ours) == str(inspect.signature(getattr(Store, name))), name
