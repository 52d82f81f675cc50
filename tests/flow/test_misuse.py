"""The commonest slips of a newcomer get a word that says what to do."""

import asyncio
from typing import Any

import pytest
from trio.testing import MockClock

from sift_batch import Caller, Hooks, Result, Target, open_reader, open_runner, open_store


async def _fetch(caller: Caller, target: Target) -> Result:
    return Result("page")


async def test_a_submission_is_no_id(autojump_clock: MockClock) -> None:
    """Every by-id call says that a `Submission` has the id, and is none."""
    async with open_store(":memory:") as store, open_runner(store, _fetch) as runner:
        submission: Any = await runner.submit(Caller("alice"), [Target("http://a.example/")])
        for call in (runner.wait, runner.job, runner.status, runner.cancel, runner.delete, runner.touch):
            with pytest.raises(TypeError, match=r"\.id"):
                await call(submission)
        for call in (runner.watch, runner.results, runner.progress):
            with pytest.raises(TypeError, match=r"\.id"):
                call(submission)
        with pytest.raises(TypeError, match=r"\.id"):
            await runner.rerun(Caller("alice"), submission)


async def test_what_is_no_store_is_refused(autojump_clock: MockClock) -> None:
    """A path, or a store that was not entered, in place of a store says what to give."""
    for odd in ("jobs.sift", open_store(":memory:")):
        with pytest.raises(TypeError, match="open_store"):
            async with open_runner(odd, _fetch):  # type: ignore[arg-type]
                pass


async def test_a_class_of_hooks_is_refused(autojump_clock: MockClock) -> None:
    """The class in place of an instance is refused when the runner opens, not at each call."""
    async with open_store(":memory:") as store:
        with pytest.raises(TypeError, match="instance"):
            async with open_runner(store, _fetch, hooks=Hooks):  # type: ignore[arg-type]
                pass


def test_asyncio_is_told_of_trio() -> None:
    """Under asyncio the error says what to run it on."""

    async def main(manager: Any) -> None:
        async with manager:
            pass

    for manager in (open_store(":memory:"), open_reader("x.sift"), open_runner(None, _fetch)):  # type: ignore[arg-type]
        with pytest.raises(RuntimeError, match="runs on Trio"):
            asyncio.run(main(manager))
