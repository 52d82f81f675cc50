"""The wall clock is the application's, and may be anything."""

import math
from collections.abc import Callable

import pytest
from trio.testing import MockClock

from sift_batch import Caller, JobState, Result, Target, open_runner, open_store


async def _fetch(caller: Caller, target: Target) -> Result:
    return Result("page")


def _raises() -> float:
    raise RuntimeError("no clock")


@pytest.mark.parametrize(
    "broken", [_raises, lambda: math.nan, lambda: math.inf, lambda: 1e300, lambda: "noon", lambda: None]
)
async def test_a_clock_that_fails_stands_still(
    autojump_clock: MockClock, broken: Callable[[], float]
) -> None:
    """A clock that raises or gives no time stops nothing: the last time it gave is used again."""
    clock: Callable[[], float] = lambda: 1_000.0  # noqa: E731

    async with (
        open_store(":memory:") as store,
        open_runner(store, _fetch, now=lambda: clock()) as runner,
    ):
        clock = broken
        submission = await runner.submit(Caller("alice"), [Target("http://a.example/")])
        job = await runner.wait(submission.id)
        assert job is not None
        assert job.status is JobState.DONE
        assert (job.created_at, job.finished_at, job.lease) == (1_000, 1_000, 1_000)


class _Panic(BaseException):
    """What a compiled extension may raise."""


async def test_a_store_that_panics_is_a_store_that_refuses(autojump_clock: MockClock) -> None:
    """A store that raises outside `Exception` refuses the step; the step is offered again."""
    async with open_store(":memory:") as store:
        record, calls = store.record, 0

        async def panic_once(*args: object, **kwargs: object) -> object:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise _Panic
            return await record(*args, **kwargs)  # type: ignore[arg-type]

        store.record = panic_once  # type: ignore[method-assign, assignment]
        async with open_runner(store, _fetch) as runner:
            submission = await runner.submit(Caller("alice"), [Target("http://a.example/")])
            job = await runner.wait(submission.id)
            assert job is not None
            assert job.status is JobState.DONE
            assert calls == 2
