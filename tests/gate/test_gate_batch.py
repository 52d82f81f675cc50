"""Batch fetches: refused at once, told in the order of their age, never two for one slot."""

import gc
import math
import weakref

import pytest
import trio
import trio.testing
from gate_driver import CALLER, Site, assert_nothing_kept, drive, enter, occupy, refusal, target, url

from sift_batch._gate.claims import Claim
from sift_batch._gate.gate import Gate
from sift_batch._model.errors import RetryLater
from sift_batch._model.values import Attempt, Caller, Result, Target, attempt


def _call(gate: Gate, site: Site, host: str = "a"):  # type: ignore[no-untyped-def]
    fetch = gate.batch(site)
    return lambda: fetch(CALLER, target(host))


def _as(name: str) -> None:
    attempt.set(Attempt(name, 0, 1))


async def test_a_batch_fetch_runs_in_a_slot(autojump_clock: trio.testing.MockClock) -> None:
    """The fetch gets the caller and the target, its result comes back, and it holds one slot meanwhile."""
    gate = Gate()
    seen: list[object] = []

    async def fetch(caller: Caller, target: Target) -> Result:
        seen.extend((caller, target, gate.statistics().in_use))
        return Result("text")

    page = target("a")
    assert (await gate.batch(fetch)(CALLER, page)).content == "text"
    assert seen == [CALLER, page, 1]
    assert_nothing_kept(gate)


async def test_errors_of_the_fetch_pass_and_the_slot_comes_back(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever the fetch raises comes out as it is, a `RetryLater` of its own too, and no slot is lost."""
    gate = Gate(total=1, per_host=1)
    for error in (ValueError(), RetryLater(retry_after=3.0, reason="retry_after"), KeyboardInterrupt()):

        async def fetch(caller: Caller, target: Target, error: BaseException = error) -> Result:
            raise error

        with pytest.raises(type(error)) as caught:
            await gate.batch(fetch)(CALLER, target("a"))
        assert caught.value is error
    assert_nothing_kept(gate)


@pytest.mark.parametrize("fetch", [None, "fetch", 3, object()])
def test_what_is_no_function_can_not_be_wrapped(fetch: object) -> None:
    """Wrapping something that can't be called is a TypeError."""
    with pytest.raises(TypeError, match="async function"):
        Gate().batch(fetch)  # type: ignore[arg-type]


def test_a_fetch_behind_a_gate_can_not_be_wrapped_again() -> None:
    """A fetch that takes its slots by itself, or was wrapped already, is a TypeError."""
    gate = Gate()
    gated = Site()
    gated.gated = True  # type: ignore[attr-defined]
    for fetch in (gated, gate.batch(Site())):
        with pytest.raises(TypeError, match="already"):
            gate.batch(fetch)


async def test_ready_holds_nothing_and_returns_when_a_slot_is_free(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """While a target waits in `ready` it holds no slot; `ready` returns at once when one is free."""
    gate = Gate(total=1, per_host=1)
    site = Site()
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        busy = await refusal(_call(gate, site))
        assert busy.ready is not None
        nursery.start_soon(busy.ready)
        await trio.testing.wait_all_tasks_blocked()
        assert gate.statistics().in_use == 1
        assert gate.statistics().waiting_batch == 1
    assert trio.current_time() == pytest.approx(5.0, abs=1e-6)
    await trio.sleep(1)
    with trio.testing.assert_checkpoints():
        await busy.ready()
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def _tell_times(gate: Gate, names: list[str], seconds: float) -> list[tuple[float, str]]:
    """Refuse these, one a second; let none come back when told; return who was told when."""
    told: list[tuple[float, str]] = []

    async def wait(busy: RetryLater, name: str) -> None:
        assert busy.ready is not None
        await busy.ready()
        told.append((round(trio.current_time(), 6), name))

    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", seconds)
        refused = []
        for name in names:
            _as(name)
            refused.append((await refusal(_call(gate, Site())), name))
            await trio.sleep(1)
        for busy, name in reversed(refused):
            nursery.start_soon(wait, busy, name)
            await trio.testing.wait_all_tasks_blocked()
    return told


async def test_one_slot_tells_one_waiter_and_after_a_second_the_next(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A free slot tells the target that was refused first; unused, it tells the next one 1 s later."""
    gate = Gate(total=1, per_host=1)
    told = await _tell_times(gate, ["first", "second", "third"], 10.0)
    assert told == [(10, "first"), (11, "second"), (12, "third")]
    await trio.sleep(1)
    assert_nothing_kept(gate)


@pytest.mark.parametrize("total", [1, 8])
async def test_a_promised_slot_is_kept_from_other_batch_fetches_for_a_second(
    total: int, autojump_clock: trio.testing.MockClock
) -> None:
    """Once told, a target has its slot for 1 s against every other batch fetch, also an older one."""
    gate = Gate(total=total, per_host=1)
    site = Site(0.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        _as("older")
        older = await refusal(_call(gate, site))
        await trio.sleep(1)
        _as("told")
        told = await refusal(_call(gate, site))
        assert told.ready is not None
        await told.ready()
        await trio.sleep(0.5)
        _as("other")
        for host in "ab" if total == 1 else "a":
            assert (await refusal(_call(gate, site, host))).reason == "gate"
            await refusal(lambda host=host: enter(gate, host, batch=True))
        assert older.ready is not None
        with trio.move_on_after(0.4) as early:
            await older.ready()
        assert early.cancelled_caught
        _as("told")
        await _call(gate, site)()
        assert site.order == ["told"]
        await older.ready()
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def test_other_free_slots_stay_open_beside_a_promise(autojump_clock: trio.testing.MockClock) -> None:
    """A promise keeps one slot: with more of them free, other batch fetches go in."""
    gate = Gate(total=3, per_host=2)
    async with trio.open_nursery() as nursery:
        scopes = [await nursery.start(occupy, gate, host) for host in "aab"]
        _as("told")
        busy = await refusal(_call(gate, Site()))
        assert busy.ready is not None
        scopes[0].cancel()
        await busy.ready()
        _as("other")
        assert (await refusal(_call(gate, Site(), "b"))).reason == "gate"
        scopes[2].cancel()
        await trio.testing.wait_all_tasks_blocked()
        await _call(gate, Site(0), "b")()
        await refusal(_call(gate, Site(0), "a"))
        scopes[1].cancel()
        await trio.testing.wait_all_tasks_blocked()
        await _call(gate, Site(0), "a")()
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def test_an_interactive_fetch_takes_a_promised_slot_and_the_age_stays(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An interactive fetch goes before a told batch fetch, which is refused then and keeps its age."""
    gate = Gate(total=1, per_host=1)
    site = Site(0.0)
    order: list[str] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        refused = {}
        for name in ("old", "young"):
            _as(name)
            refused[name] = await refusal(_call(gate, site))
            await trio.sleep(1)
        assert refused["old"].ready is not None
        await refused["old"].ready()
        await nursery.start(occupy, gate, "a", 3.0)
        _as("old")
        again = await refusal(_call(gate, site))
        assert again.reason == "gate"

        async def wait(name: str, busy: RetryLater) -> None:
            assert busy.ready is not None
            await busy.ready()
            order.append(name)
            _as(name)
            await _call(gate, site)()

        nursery.start_soon(wait, "young", refused["young"])
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(wait, "old", again)
    assert order == ["old", "young"]
    assert_nothing_kept(gate)


async def test_without_an_attempt_a_target_is_known_by_its_task(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Outside an engine the promise is the task's: it gets in, and another task does not."""
    gate = Gate(total=1, per_host=1)
    site = Site(0.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 1.0)
        busy = await refusal(_call(gate, site))
        assert busy.ready is not None
        await busy.ready()

        async def other() -> None:
            assert (await refusal(_call(gate, site))).reason == "gate"

        async with trio.open_nursery() as others:
            others.start_soon(other)
        await _call(gate, site)()
    assert_nothing_kept(gate)


@pytest.mark.parametrize("moment", ["before it is woken", "after it was woken"])
async def test_a_told_waiter_that_is_cancelled_passes_its_slot_on(
    moment: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A `ready` cancelled in the tick in which it was told gives the slot to the next one at once."""
    gate = Gate(total=1, per_host=1)
    told: list[float] = []
    refused: list[RetryLater] = []
    scope = trio.CancelScope()
    decide, settle = gate._plan.decide, gate._sleepers.settle

    async def first() -> None:
        assert refused[0].ready is not None
        with scope:
            await refused[0].ready()
            raise AssertionError("it was cancelled")

    async def second() -> None:
        assert refused[1].ready is not None
        await refused[1].ready()
        told.append(trio.current_time())

    def decide_and_cancel(now: float) -> list[Claim]:
        granted = decide(now)
        if granted and moment == "before it is woken":
            scope.cancel()
        return granted

    def settle_and_cancel() -> None:
        settle()
        if gate._plan._promises and moment == "after it was woken":
            scope.cancel()

    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 10.0)
        for name in ("first", "second"):
            _as(name)
            refused.append(await refusal(_call(gate, Site())))
        nursery.start_soon(first)
        nursery.start_soon(second)
        await trio.sleep(1)
        gate._plan.decide = decide_and_cancel  # type: ignore[method-assign]
        gate._sleepers.settle = settle_and_cancel  # type: ignore[method-assign]
    assert told == [pytest.approx(10.0)]
    assert scope.cancelled_caught
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def test_a_cancelled_ready_leaves_the_line(autojump_clock: trio.testing.MockClock) -> None:
    """A waiter that is cancelled, or a `ready` that nobody awaits, is in nobody's way."""
    gate = Gate(total=1, per_host=1)
    async with trio.open_nursery() as nursery:
        scope = await nursery.start(occupy, gate, "a")
        _as("never awaited")
        await refusal(_call(gate, Site()))
        _as("given up")
        busy = await refusal(_call(gate, Site()))
        assert busy.ready is not None
        with trio.move_on_after(1):
            await busy.ready()
        assert gate.statistics().waiting == 0
        scope.cancel()
    await enter(gate, "a", batch=True)
    assert_nothing_kept(gate)


async def test_a_ready_waits_through_a_hold(autojump_clock: trio.testing.MockClock) -> None:
    """A target in `ready` is told at the end of a hold of its host, not before, and one for each slot."""
    gate = Gate(total=8, per_host=2)
    site = Site(1.0)
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            await nursery.start(occupy, gate, "a", 1.0)
        for n in range(4):
            nursery.start_soon(drive, _call(gate, site), f"job{n}")
        await trio.testing.wait_all_tasks_blocked()
        gate.hold(url("a"), 10)
    assert [round(when - start, 6) for when in site.started_at] == [10, 10, 11, 11]
    assert_nothing_kept(gate)


async def test_a_hold_reaches_who_waits_for_the_total(autojump_clock: trio.testing.MockClock) -> None:
    """A target in `ready` that no slot of its own host is missing for is not told during a hold either."""
    gate = Gate(total=1, per_host=1)
    told: list[float] = []
    start = trio.current_time()

    async def wait_to_be_told() -> None:
        busy = await refusal(_call(gate, Site()))
        assert busy.ready is not None
        await busy.ready()
        told.append(trio.current_time() - start)

    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "b", 5.0)
        nursery.start_soon(wait_to_be_told)
        await trio.testing.wait_all_tasks_blocked()
        gate.hold(url("a"), 30)
    assert told == [pytest.approx(30.0)]
    await trio.sleep(1)
    await enter(gate, "a")
    assert_nothing_kept(gate)


async def test_a_hold_does_not_cost_a_target_its_age(autojump_clock: trio.testing.MockClock) -> None:
    """A target that a hold sent away stands, afterwards, where its first refusal puts it."""
    gate = Gate(total=1, per_host=1)
    site = Site(0.0)
    gate.hold(url("a"), 10)
    order: list[str] = []

    async def come(name: str, at: float) -> None:
        await trio.sleep_until(at)
        _as(name)
        busy = await refusal(_call(gate, site))
        if busy.reason == "host":
            await trio.sleep(10.5 - trio.current_time())
            busy = await refusal(_call(gate, site))
        assert busy.ready is not None
        await busy.ready()
        order.append(name)
        await _call(gate, site)()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come, "second", 3.0)
        nursery.start_soon(come, "first", 1.0)
        nursery.start_soon(come, "third", 10.2)
        nursery.start_soon(lambda: _enter_and_stay(gate, 10.0, 5.0))
    assert order == ["first", "second", "third"]
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def test_a_busy_host_does_not_remember_a_hold_for_long(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A target that a hold sent away and that never came back is forgotten 1 s after the hold."""
    gate = Gate(total=2, per_host=2)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 20.0)
        gate.hold(url("a"), 10)
        for n in range(2_000):
            _as(f"never back {n}")
            await refusal(_call(gate, Site()))
        host = gate._plan.hosts["a.test"]
        assert 0 < len(host.refused) <= 1_000
        await trio.sleep(11)
        await enter(gate, "a")
        assert not host.refused
    assert_nothing_kept(gate)


async def test_a_fetch_that_ran_begins_a_new_age(autojump_clock: trio.testing.MockClock) -> None:
    """Once a target was in a slot, what a hold did to it before counts no more."""
    gate = Gate(total=1, per_host=1)
    gate.hold(url("a"), 10)
    _as("ran")
    await refusal(_call(gate, Site()))
    await trio.sleep(10)
    await _call(gate, Site(0.0))()
    order: list[str] = []

    async def wait(name: str, busy: RetryLater) -> None:
        assert busy.ready is not None
        await busy.ready()
        order.append(name)
        _as(name)
        await _call(gate, Site(0.0))()

    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        refused = []
        for name in ("waits", "ran"):
            _as(name)
            refused.append((name, await refusal(_call(gate, Site()))))
            await trio.sleep(0.1)
        for name, busy in reversed(refused):
            nursery.start_soon(wait, name, busy)
    assert order == ["waits", "ran"]
    await trio.sleep(1)
    assert_nothing_kept(gate)


@pytest.mark.parametrize("total", [2, 3])
async def test_of_two_told_the_older_has_the_slot_that_is_left(
    total: int, autojump_clock: trio.testing.MockClock
) -> None:
    """When an interactive fetch takes one of two promised slots, the older target has the other.

    It is so whether or not there would be a third slot for another host.
    """
    gate = Gate(total=total, per_host=2)
    site = Site(0.0)
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            await nursery.start(occupy, gate, "a", 5.0)
        refused = []
        for name in ("old", "young"):
            _as(name)
            refused.append(await refusal(_call(gate, site)))
        async with trio.open_nursery() as waiters:
            for busy in refused:
                assert busy.ready is not None
                waiters.start_soon(busy.ready)
        await nursery.start(occupy, gate, "a", 2.0)
        for name in ("young", "young", "other"):
            _as(name)
            assert (await refusal(_call(gate, site))).reason == "gate"
        _as("old")
        await _call(gate, site)()
    assert site.order == ["old"]
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def _enter_and_stay(gate: Gate, at: float, seconds: float) -> None:
    await trio.sleep_until(at)
    async with gate.slot(url("a"), patience=1):
        await trio.sleep(seconds)


async def test_a_batch_target_gets_its_turn_under_interactive_load(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """However many interactive fetches come, a batch target waits `batch_wait` and one slot, no more."""
    gate = Gate(total=1, per_host=1, batch_wait=60)
    site = Site(0.0)

    async def browse(n: int) -> None:
        await trio.sleep(n * 0.4)
        async with gate.slot(url("a"), patience=math.inf):
            await trio.sleep(0.5)

    async with trio.open_nursery() as nursery:
        for n in range(250):
            nursery.start_soon(browse, n)
        await trio.sleep(0.1)
        await drive(_call(gate, site), "job")
        waited = trio.current_time()
    # At 60 s about a fifth of the interactive ones, those who came before, are still in front of it.
    assert 60 <= waited <= 60 + 0.2 * 60 / 0.4 * 0.5 + 1
    assert_nothing_kept(gate)


async def test_an_interactive_ready_returns_in_its_turn(autojump_clock: trio.testing.MockClock) -> None:
    """The `ready` of an interactive refusal goes before every batch waiter and counts as interactive."""
    gate = Gate(total=1, per_host=1)
    order: list[str] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        batch = await refusal(_call(gate, Site()))
        interactive = await refusal(lambda: enter(gate, "a"))

        async def wait(busy: RetryLater, name: str) -> None:
            assert busy.ready is not None
            await busy.ready()
            order.append(name)

        nursery.start_soon(wait, batch, "batch")
        nursery.start_soon(wait, interactive, "interactive")
        await trio.testing.wait_all_tasks_blocked()
        assert gate.statistics().waiting_interactive == 1
        assert gate.statistics().waiting_batch == 1
    assert order == ["interactive", "batch"]
    await trio.sleep(1)
    assert_nothing_kept(gate)


@pytest.mark.parametrize("room", [1, 2])
async def test_awaiting_one_ready_twice_breaks_nothing(
    room: int, autojump_clock: trio.testing.MockClock
) -> None:
    """Several waiters with one `ready` are all told in the end, and leave nothing behind."""
    gate = Gate(total=room, per_host=room)
    async with trio.open_nursery() as nursery:
        for _ in range(room):
            await nursery.start(occupy, gate, "a", 5.0)
        _as("twice")
        busy = await refusal(_call(gate, Site()))
        assert busy.ready is not None
        for _ in range(3):
            nursery.start_soon(busy.ready)
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def test_a_finished_task_is_not_kept_alive(autojump_clock: trio.testing.MockClock) -> None:
    """A promise that a task never took up does not keep that task, or what it held, in memory."""
    gate = Gate(total=1, per_host=1)
    tasks: list[weakref.ref[trio.lowlevel.Task]] = []

    async def told() -> None:
        tasks.append(weakref.ref(trio.lowlevel.current_task()))
        busy = await refusal(_call(gate, Site()))
        assert busy.ready is not None
        await busy.ready()

    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 1.0)
        nursery.start_soon(told)
    await trio.testing.wait_all_tasks_blocked()
    gc.collect()
    assert tasks[0]() is None
    assert len(gate._plan._promises) == 1
