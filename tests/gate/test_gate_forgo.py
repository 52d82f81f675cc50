"""A told target that does not come back: it gives up its promise, and the next one is told at once."""

import gc
from collections.abc import Callable

import pytest
import trio
import trio.testing
from gate_driver import CALLER, Site, assert_nothing_kept, enter, occupy, refusal, target

from sift_batch._gate.claims import Claim
from sift_batch._gate.gate import Gate
from sift_batch._model.errors import RetryLater
from sift_batch._model.values import Attempt, attempt


def _as(name: str) -> None:
    attempt.set(Attempt(name, 0, 1))


async def _refused(gate: Gate, name: str, host: str = "a") -> RetryLater:
    _as(name)
    return await refusal(lambda: gate.batch(Site())(CALLER, target(host)))


async def _told(busy: RetryLater) -> float:
    """Wait until it is told; return when that was."""
    assert busy.ready is not None
    await busy.ready()
    return round(trio.current_time(), 6)


def _forgo(busy: RetryLater) -> None:
    """Do as an engine does, which knows no gate."""
    forgo: Callable[[], None] = getattr(busy.ready, "forgo")  # noqa: B009  # no declared attribute
    assert forgo() is None  # type: ignore[func-returns-value]


@pytest.mark.parametrize("other_host", ["a", "b"])
async def test_what_is_forgone_tells_the_next_at_once(
    other_host: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A promise given back at 5.25 s tells the next batch target then, of whatever host, not at 6 s."""
    gate = Gate(total=1)
    told: list[float] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        first = await _refused(gate, "first")
        second = await _refused(gate, "second", other_host)

        async def wait() -> None:
            told.append(await _told(second))

        assert await _told(first) == 5
        nursery.start_soon(wait)
        await trio.sleep(0.25)
        _forgo(first)
    assert told == [5.25]
    _forgo(second)
    assert_nothing_kept(gate)


async def test_what_is_forgone_is_free_for_a_newcomer(autojump_clock: trio.testing.MockClock) -> None:
    """With nobody in line, the slot that was given back is taken by whichever batch fetch comes next."""
    gate = Gate(total=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 1.0)
        told = await _refused(gate, "told")
        await _told(told)
    _as("other")
    await refusal(lambda: enter(gate, "b", batch=True))
    _forgo(told)
    assert_nothing_kept(gate)
    await enter(gate, "b", batch=True)
    assert_nothing_kept(gate)


async def test_an_interactive_promise_can_be_forgone(autojump_clock: trio.testing.MockClock) -> None:
    """The `ready` of an interactive refusal gives its promise back in the same way."""
    gate = Gate(total=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 1.0)
        told = await refusal(lambda: enter(gate, "a"))
        await _told(told)
    _forgo(told)
    assert_nothing_kept(gate)


async def test_forgoing_before_it_was_told_does_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """A target that forgoes before its `ready` returned, waiting or not, keeps its place in line."""
    gate = Gate(total=1)
    told: list[tuple[float, str]] = []

    async def wait(busy: RetryLater, name: str) -> None:
        told.append((await _told(busy), name))

    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        refused = [(await _refused(gate, name), name) for name in ("first", "second")]
        _forgo(refused[0][0])
        for busy, name in refused:
            nursery.start_soon(wait, busy, name)
        await trio.testing.wait_all_tasks_blocked()
        _forgo(refused[0][0])
        assert gate.statistics().waiting_batch == 2
    assert told == [(5, "first"), (6, "second")]
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def test_forgoing_after_a_cancelled_ready_does_nothing(autojump_clock: trio.testing.MockClock) -> None:
    """A `ready` that was cancelled has no promise, and its `forgo` takes nobody else's."""
    gate = Gate(total=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        given_up = await _refused(gate, "given up")
        told = await _refused(gate, "told")
        with trio.move_on_after(1):
            await _told(given_up)
        await _told(told)
    _forgo(given_up)
    _as("other")
    await refusal(lambda: enter(gate, "a", batch=True))
    _forgo(told)
    assert_nothing_kept(gate)


async def test_forgoing_twice_or_late_leaves_other_promises_alone(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A second `forgo`, or one when the promise is over, ends no promise of the same target or another."""
    gate = Gate(total=1)
    old: list[RetryLater] = []
    for seconds in (0.0, 1.0):  # the promise is given back, or runs out
        async with trio.open_nursery() as nursery:
            await nursery.start(occupy, gate, "a", 1.0)
            old.append(await _refused(gate, "told"))
            await _told(old[-1])
        if not seconds:
            _forgo(old[-1])
        await trio.sleep(seconds)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 1.0)
        new = await _refused(gate, "told")
        await _told(new)
    for busy in old * 2:
        _forgo(busy)
    _as("other")
    await refusal(lambda: enter(gate, "a", batch=True))
    _as("told")
    await enter(gate, "a", batch=True)
    _forgo(new)
    assert_nothing_kept(gate)


async def test_forgoing_after_the_promise_was_used_keeps_the_slot(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """While the told target sits in its slot, `forgo` takes nothing away from it."""
    gate = Gate(total=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 1.0)
        told = await _refused(gate, "told")
        await _told(told)
    async with gate.slot("http://a.test/", batch=True):
        _forgo(told)
        assert gate.statistics().in_use == 1
        assert (await refusal(lambda: enter(gate, "a"))).reason == "gate"
    assert_nothing_kept(gate)


async def test_forgo_gives_back_all_that_one_ready_was_told(autojump_clock: trio.testing.MockClock) -> None:
    """Of several tasks that wait with one `ready`, every promise ends."""
    gate = Gate(total=2)
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            await nursery.start(occupy, gate, "a", 5.0)
        busy = await refusal(lambda: enter(gate, "a", batch=True))  # without an attempt: known by task
        async with trio.open_nursery() as waiters:
            waiters.start_soon(_told, busy)
            waiters.start_soon(_told, busy)
    assert len(gate._plan._promises) == 2
    _forgo(busy)
    assert_nothing_kept(gate)


async def test_a_ready_awaited_often_keeps_its_last_promise_only(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """One `ready` that is awaited a hundred times keeps one claim in memory, and `forgo` ends that."""
    gate = Gate(total=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 1.0)
        busy = await refusal(lambda: enter(gate, "a", batch=True))
    gc.collect()
    before = sum(isinstance(thing, Claim) for thing in gc.get_objects())
    for _ in range(100):
        await _told(busy)
    gc.collect()
    assert sum(isinstance(thing, Claim) for thing in gc.get_objects()) <= before + 1
    _forgo(busy)
    assert_nothing_kept(gate)


def test_forgoing_after_the_run_breaks_nothing() -> None:
    """A `forgo` that is called when the run is over raises nothing and leaves nothing."""
    gate = Gate(total=1)

    async def main() -> RetryLater:
        async with trio.open_nursery() as nursery:
            await nursery.start(occupy, gate, "a", 1.0)
            told = await _refused(gate, "told")
            await _told(told)
        return told

    told = trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    _forgo(told)
    _forgo(told)
    assert gate._plan._promises == {}
    assert gate._plan.hosts == {}
