"""Does the scripted fetch say what it was told to say, and write down what it was asked?"""

from functools import partial
from math import inf

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sift_batch import Attempt, Caller, Result, RetryLater, Target, TargetError
from sift_batch._model.values import attempt
from sift_batch.testing import ScriptedFetch

CALLER = Caller("alice")


async def _ask(fetch: ScriptedFetch, url: str) -> Result:
    return await fetch(CALLER, Target(url))


async def test_without_a_script_everything_is_found(autojump_clock: MockClock) -> None:
    """A fetch without a script gives each target a content of its own."""
    fetch = ScriptedFetch()
    assert (await _ask(fetch, "https://a/")).content != (await _ask(fetch, "https://b/")).content
    assert fetch.order == ["https://a/", "https://b/"]


async def test_latency_in_all_or_by_key(autojump_clock: MockClock) -> None:
    """Each answer takes its latency on Trio's clock, and is under way meanwhile."""
    fetch = ScriptedFetch(latency=5)
    async with trio.open_nursery() as nursery:
        for url in ("https://a.x/1", "https://a.x/2", "https://b.x/"):
            nursery.start_soon(_ask, fetch, url)
        await fetch.wait_started(3)
        assert fetch.in_flight == 3
    assert trio.current_time() == 5
    assert (fetch.peak, fetch.peak_by_host, fetch.in_flight) == (3, {"a.x": 2, "b.x": 1}, 0)
    assert [(call.started, call.ended) for call in fetch.calls] == [(0, 5)] * 3

    fetch = ScriptedFetch(latency={"https://b/": 7})
    await _ask(fetch, "https://a/")
    assert trio.current_time() == 5
    await _ask(fetch, "https://b/")
    assert trio.current_time() == 12


async def test_failures(autojump_clock: MockClock) -> None:
    """Failures by key raise what was given, or a TargetError, each time they are asked for."""
    fetch = ScriptedFetch(fail={"https://a/": ValueError("a"), "https://b/": KeyError})
    fetch.fail("https://c/", TargetError("gone", status=404))
    fetch.fail("https://d/")
    for url, error in (
        ("https://a/", ValueError),
        ("https://b/", KeyError),
        ("https://c/", TargetError),
        ("https://d/", TargetError),
    ):
        for _ in range(2):
            with pytest.raises(error):
                await _ask(fetch, url)
    assert [type(call.error) for call in fetch.calls[:3]] == [ValueError, ValueError, KeyError]
    with pytest.raises(TargetError):
        await _ask(ScriptedFetch(fail=["https://x/"]), "https://x/")


async def test_busy_so_many_times(autojump_clock: MockClock) -> None:
    """A busy key raises RetryLater as often as it was told to, at once, and then answers."""
    fetch = ScriptedFetch(busy={"https://a/": 2}, latency=9)
    for _ in range(2):
        with pytest.raises(RetryLater):
            await _ask(fetch, "https://a/")
    assert trio.current_time() == 0
    assert isinstance(await _ask(fetch, "https://a/"), Result)
    fetch.busy("https://a/", inf, RetryLater(retry_after=3))
    for _ in range(5):
        with pytest.raises(RetryLater) as caught:
            await _ask(fetch, "https://a/")
        assert caught.value.retry_after == 3


async def test_answers_in_a_row(autojump_clock: MockClock) -> None:
    """Answers are given one a call, and the last one to all that follow."""
    fetch = ScriptedFetch(results={"https://b/": "text"})

    async def other(caller: Caller, target: Target) -> Result:
        return Result(f"{caller.name} {target.url}")

    fetch.answer("https://a/", Result("one", {"n": 1}), ValueError("two"), other)
    assert await _ask(fetch, "https://a/") == Result("one", {"n": 1})
    with pytest.raises(ValueError, match="two"):
        await _ask(fetch, "https://a/")
    for _ in range(2):
        assert (await _ask(fetch, "https://a/")).content == "alice https://a/"
    assert (await _ask(fetch, "https://b/")).content == "text"
    with pytest.raises(ValueError, match="needed"):
        fetch.answer("https://a/")


async def test_hanging_until_released(autojump_clock: MockClock) -> None:
    """A hanging call waits until its key is released, or for ever, and a cancel ends it."""
    fetch = ScriptedFetch(hang=["https://a/", "https://b/"])
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_ask, fetch, "https://a/")
        nursery.start_soon(_ask, fetch, "https://b/")
        await trio.sleep(10_000)
        assert fetch.in_flight == 2
        fetch.release("https://a/")
        await fetch.wait_ended(1)
        assert fetch.in_flight == 1
        nursery.cancel_scope.cancel()
    assert {type(call.error) for call in fetch.calls} == {type(None), trio.Cancelled}
    fetch.release()
    await _ask(fetch, "https://b/")


async def test_keys_may_be_indexes(autojump_clock: MockClock) -> None:
    """An int as a key is the index of a target in the job that the engine fetches it for."""
    fetch = ScriptedFetch(fail=[1], latency={2: 4})
    for idx, wanted in ((0, None), (1, TargetError), (2, None)):
        attempt.set(Attempt("job", idx, 1))
        if wanted is None:
            await _ask(fetch, "https://a/")
        else:
            with pytest.raises(wanted):
                await _ask(fetch, "https://a/")
    assert trio.current_time() == 4
    assert [call.attempt for call in fetch.calls] == [Attempt("job", idx, 1) for idx in range(3)]


async def test_waits_are_checkpoints_and_wake(autojump_clock: MockClock) -> None:
    """wait_started and wait_ended return as soon as the number is reached, and not before."""
    fetch = ScriptedFetch(latency=2)
    seen: list[float] = []

    async def watch() -> None:
        await fetch.wait_started(2)
        seen.append(trio.current_time())
        await fetch.wait_ended(2)
        seen.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        nursery.start_soon(_ask, fetch, "https://a/")
        await wait_all_tasks_blocked()
        await trio.sleep(1)
        assert seen == []
        nursery.start_soon(_ask, fetch, "https://b/")
    assert seen == [1, 3]


@pytest.mark.parametrize("keyword", ["fail", "hang"])
def test_one_str_is_no_collection(keyword: str) -> None:
    """A single URL in place of a collection of them is refused, not taken letter by letter."""
    with pytest.raises(TypeError, match="collection"):
        ScriptedFetch(**{keyword: "https://a/"})  # type: ignore[arg-type]


async def test_odd_urls_have_a_host_of_their_own(autojump_clock: MockClock) -> None:
    """A URL that can't be parsed is fetched all the same."""
    fetch = ScriptedFetch()
    for url in ("", "http://[", "no url", "https://A.example./x"):
        await _ask(fetch, url)
    assert fetch.peak_by_host == {"": 1, "a.example": 1}


async def test_with_a_cancelled_call_nothing_is_left_in_flight(autojump_clock: MockClock) -> None:
    """A call that is cancelled counts as ended."""
    fetch = ScriptedFetch(latency=100)
    with trio.move_on_after(1):
        await partial(_ask, fetch, "https://a/")()
    assert (fetch.in_flight, fetch.calls[0].ended) == (0, 1)
