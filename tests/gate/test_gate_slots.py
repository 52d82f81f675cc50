"""The slot: who gets one, who waits, who is refused, and that it always comes back."""

import math

import pytest
import trio
import trio.testing
from gate_driver import assert_nothing_kept, enter, occupy, refusal, url

from sift_batch._gate.gate import Gate, GateStatistics
from sift_batch._model.errors import RetryLater


async def test_limits_hold_and_a_refusal_says_gate(autojump_clock: trio.testing.MockClock) -> None:
    """A third slot of one host, and a slot beyond the total, are refused while the others last."""
    gate = Gate(total=3, per_host=2)
    async with gate.slot(url("a")), gate.slot(url("a")):
        busy = await refusal(lambda: enter(gate, "a"))
        assert (busy.reason, busy.retry_after) == ("gate", None)
        assert busy.ready is not None
        async with gate.slot(url("b")):
            assert (await refusal(lambda: enter(gate, "c"))).reason == "gate"
            assert gate.statistics().in_use == 3
        await enter(gate, "c")
    assert_nothing_kept(gate)


async def test_spellings_of_a_host_share_its_slots(autojump_clock: trio.testing.MockClock) -> None:
    """Four spellings of one host have two slots, not eight."""
    gate = Gate()
    async with gate.slot("http://LOCALHOST:80/"), gate.slot("https://localhost./x"):
        for spelling in ("http://localhost/", "http://user@Loc%61lhost"):
            with pytest.raises(Exception, match="no slot"):
                await gate.slot(spelling).__aenter__()
    async with gate.slot("http:///"), gate.slot("nonsense"):
        await refusal(gate.slot("").__aenter__)
    assert_nothing_kept(gate)


@pytest.mark.parametrize("patience", [-1, -0.001, math.nan, -math.inf])
def test_patience_below_zero_is_refused_at_once(patience: float) -> None:
    """A patience that is no waiting time raises when the slot is asked for, before anything else."""
    with pytest.raises(ValueError, match="patience"):
        Gate().slot(url("a"), patience=patience)


async def test_patience_waits_so_long_and_no_longer(autojump_clock: trio.testing.MockClock) -> None:
    """With patience a slot is waited for, and given up for at the end of it."""
    gate = Gate(total=1, per_host=1)
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 5.0)
        start = trio.current_time()
        assert (await refusal(lambda: enter(gate, "b", patience=3.0))).reason == "gate"
        assert trio.current_time() - start == pytest.approx(3.0)
        await enter(gate, "b", patience=2.5)
        assert trio.current_time() - start == pytest.approx(5.0)
        await nursery.start(occupy, gate, "a", 1e6)
        await enter(gate, "b", patience=10**400)
    assert_nothing_kept(gate)


async def test_the_slot_comes_back_whatever_ends_the_block(autojump_clock: trio.testing.MockClock) -> None:
    """An error, a cancel, a return in the block: twenty of each leave all slots free."""
    gate = Gate(total=1, per_host=1)
    for error in (ValueError, KeyboardInterrupt, SystemExit, GeneratorExit):
        for _ in range(20):
            with pytest.raises(error):
                async with gate.slot(url("a")):
                    raise error
    for _ in range(20):
        with trio.move_on_after(1):
            async with gate.slot(url("a")):
                await trio.sleep_forever()
    assert_nothing_kept(gate)


async def test_entering_is_a_checkpoint(autojump_clock: trio.testing.MockClock) -> None:
    """Entering a free slot yields, as a refusal does; in a cancelled scope no slot is held after it."""
    gate = Gate(total=1, per_host=1)
    with trio.testing.assert_checkpoints():
        slot = gate.slot(url("a"))
        await slot.__aenter__()
    with trio.testing.assert_checkpoints():
        await refusal(lambda: enter(gate, "a"))
    await slot.__aexit__(None, None, None)
    with trio.CancelScope() as scope:
        scope.cancel()
        async with gate.slot(url("a")):
            raise AssertionError("entered")
    assert scope.cancelled_caught
    assert_nothing_kept(gate)


async def test_a_slot_is_entered_once(autojump_clock: trio.testing.MockClock) -> None:
    """Entering the same slot twice is an error, and does not cost a token."""
    gate = Gate()
    slot = gate.slot(url("a"))
    async with slot:
        with pytest.raises(RuntimeError, match="once"):
            async with slot:
                raise AssertionError("entered")
        assert gate.statistics().in_use == 1
    assert_nothing_kept(gate)


@pytest.mark.parametrize("patience", [0.0, 5.0])
async def test_two_tasks_that_enter_one_slot_hold_one(
    patience: float, autojump_clock: trio.testing.MockClock
) -> None:
    """Of two tasks that enter the same slot at once one gets an error, and no token is lost by it."""
    gate = Gate()
    slot = gate.slot(url("a"), patience=patience)
    errors: list[RuntimeError] = []

    async def use() -> None:
        try:
            async with slot:
                assert gate.statistics().in_use == 1
                await trio.sleep(1)
        except RuntimeError as error:
            errors.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(use)
        nursery.start_soon(use)
    assert len(errors) == 1
    assert_nothing_kept(gate)


async def test_a_slot_that_was_refused_or_cancelled_can_be_tried_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An entry that failed does not use a slot up: the same one is entered later, once."""
    gate = Gate(total=1)
    slot = gate.slot(url("a"), patience=1.0)
    async with gate.slot(url("a")):
        await refusal(slot.__aenter__)
        with trio.move_on_after(0.5) as early:
            await slot.__aenter__()
        assert early.cancelled_caught
    async with slot:
        assert gate.statistics().in_use == 1
    with pytest.raises(RuntimeError, match="once"):
        await slot.__aenter__()
    assert_nothing_kept(gate)


async def test_a_slot_may_be_left_in_another_task(autojump_clock: trio.testing.MockClock) -> None:
    """The slot belongs to the block, not to the task that entered it."""
    gate = Gate(total=1, per_host=1)
    slot = gate.slot(url("a"))
    await slot.__aenter__()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(slot.__aexit__, None, None, None)
    await slot.__aexit__(None, None, None)
    assert_nothing_kept(gate)


async def test_waiting_for_a_busy_host_is_in_nobodys_way(autojump_clock: trio.testing.MockClock) -> None:
    """Twenty who wait for one busy host hold no token: a free host is entered at once."""
    gate = Gate(total=3, per_host=2)
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            await nursery.start(occupy, gate, "slow", 100.0)
        for batch in (False, True) * 10:
            nursery.start_soon(lambda batch=batch: enter(gate, "slow", patience=math.inf, batch=batch))
        await trio.testing.wait_all_tasks_blocked()
        start = trio.current_time()
        await enter(gate, "free")
        await enter(gate, "free", batch=True)
        assert trio.current_time() == start
    assert_nothing_kept(gate)


async def _line(gate: Gate, host: str, come: list[tuple[float, str, bool]], free_at: float) -> list[str]:
    """Let waiters come at their times, free the slot then, and return the order in which they had it."""
    order: list[str] = []

    async def wait(name: str, after: float, batch: bool) -> None:
        await trio.sleep(after)
        async with gate.slot(url(host), patience=math.inf, batch=batch):
            order.append(name)
            await trio.sleep(0.001)

    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, host, free_at)
        for after, name, batch in come:
            nursery.start_soon(wait, name, after, batch)
    assert_nothing_kept(gate)
    return order


async def test_interactive_goes_before_batch(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever waits interactively goes first, each class in the order in which it came."""
    come = [(1.0, "b1", True), (2.0, "b2", True), (3.0, "i1", False), (4.0, "i2", False)]
    assert await _line(Gate(total=1, per_host=1), "a", come, 10.0) == ["i1", "i2", "b1", "b2"]


async def test_batch_stands_with_the_interactive_after_batch_wait(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A batch fetch that has waited `batch_wait` stands as if it had come then, interactively."""
    come = [
        (1.0, "b1", True),
        (60.5, "i1", False),
        (61.5, "i2", False),
        (1.2, "b2", True),
        (61.1, "i3", False),
    ]
    gate = Gate(total=1, per_host=1)
    assert await _line(gate, "a", come, 100.0) == ["i1", "b1", "i3", "b2", "i2"]


async def test_batch_never_ages_with_an_infinite_batch_wait(autojump_clock: trio.testing.MockClock) -> None:
    """With `batch_wait=inf` an interactive fetch overtakes a batch fetch of any age."""
    gate = Gate(total=1, per_host=1, batch_wait=math.inf)
    come = [(1.0, "b1", True), (2.0, "b2", True), (1e6, "i1", False)]
    assert await _line(gate, "a", come, 2e6) == ["i1", "b1", "b2"]


async def test_batch_wait_zero_is_one_line_for_all(autojump_clock: trio.testing.MockClock) -> None:
    """With `batch_wait=0` all stand in the order in which they came."""
    gate = Gate(total=1, per_host=1, batch_wait=0)
    come = [(1.0, "b1", True), (2.0, "i1", False), (3.0, "b2", True)]
    assert await _line(gate, "a", come, 5.0) == ["b1", "i1", "b2"]


async def test_a_newcomer_does_not_jump_the_line(autojump_clock: trio.testing.MockClock) -> None:
    """When a slot comes free it is the waiting one's, even if a newcomer asks in the same tick."""
    gate = Gate(total=1, per_host=1)
    async with trio.open_nursery() as nursery:
        first = await nursery.start(occupy, gate, "a")
        second = await nursery.start(lambda task_status: _wait_and_sit(gate, task_status))
        first.cancel()
        for _ in range(5):
            await refusal(lambda: enter(gate, "a"))
            await refusal(lambda: enter(gate, "b", batch=True))
        second.cancel()
    await enter(gate, "a")
    assert_nothing_kept(gate)


async def _wait_and_sit(gate: Gate, task_status: trio.TaskStatus[trio.CancelScope]) -> None:
    with trio.CancelScope() as scope:
        task_status.started(scope)
        async with gate.slot(url("b"), patience=math.inf):
            await trio.sleep_forever()


async def test_hold_keeps_both_classes_out_until_its_end(autojump_clock: trio.testing.MockClock) -> None:
    """During a hold both classes are refused with what is left of it; other hosts are not touched."""
    gate = Gate()
    gate.hold(url("a"), 10)
    for batch in (False, True):
        busy = await refusal(lambda batch=batch: enter(gate, "a", batch=batch))
        assert busy.reason == "host"
        assert busy.retry_after == pytest.approx(10)
        assert busy.ready is None
    await enter(gate, "b")
    assert gate.statistics().held == 1
    await trio.sleep(4)
    busy = await refusal(lambda: enter(gate, "A", patience=1))
    assert busy.retry_after == pytest.approx(5)
    await trio.sleep(busy.retry_after or 0)
    await enter(gate, "a")
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def test_the_later_end_of_two_holds_wins(autojump_clock: trio.testing.MockClock) -> None:
    """A shorter hold does not end a longer one, and a longer one prolongs it, in any order."""
    gate = Gate()
    for first, second in ((10, 3), (3, 10)):
        gate.hold(url("a"), first)
        gate.hold(url("a"), second)
        assert (await refusal(lambda: enter(gate, "a"))).retry_after == pytest.approx(10)
        start = trio.current_time()
        await enter(gate, "a", patience=math.inf)
        assert trio.current_time() - start == pytest.approx(10)
        assert_nothing_kept(gate)


async def test_a_patience_that_outlasts_the_hold_waits_through_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Patience for the whole hold ends in a slot at its end; for less of it, in a refusal."""
    gate = Gate()
    gate.hold(url("a"), 5)
    start = trio.current_time()
    assert (await refusal(lambda: enter(gate, "a", patience=4.9))).reason == "host"
    await enter(gate, "a", patience=1)
    assert trio.current_time() - start == pytest.approx(5)
    gate.hold(url("a"), 5)
    await enter(gate, "a", patience=5)
    assert trio.current_time() - start == pytest.approx(10)
    assert_nothing_kept(gate)


async def test_a_refused_one_comes_back_when_the_hold_is_over(autojump_clock: trio.testing.MockClock) -> None:
    """Sleeping for `retry_after` is never a moment too short, whatever the clock's digits."""
    gate = Gate()
    for seconds in (1e-9, *(n * n / 7.3 for n in range(1, 200))):
        await trio.sleep(seconds % 1 / 7)
        gate.hold(url("a"), seconds)
        busy = await refusal(lambda: enter(gate, "a"))
        await trio.sleep(busy.retry_after or 0)
        await enter(gate, "a")
    assert_nothing_kept(gate)


class TickingClock(trio.abc.Clock):
    """A clock that goes on each time it is read, as real ones do."""

    now = 1e6

    def start_clock(self) -> None:
        """Do nothing: it runs already."""

    def current_time(self) -> float:
        """Return a later time than ever before."""
        self.now += 1e-6
        return self.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        """Return no time: reading is what makes it pass."""
        return 0.0


def test_a_hold_that_ends_while_it_refuses_still_gives_a_time() -> None:
    """Whenever a hold ends, a refusal for its sake has a `retry_after` above 0."""

    async def main() -> list[float | None]:
        gate = Gate(total=1, per_host=1)
        seen: list[float | None] = []
        for ticks in range(1, 60):
            gate.hold(url("a"), ticks * 1e-6)
            try:
                await enter(gate, "a")
            except RetryLater as busy:
                seen.append(busy.retry_after)
            await trio.sleep(1e-4)
        return seen

    seen = trio.run(main, clock=TickingClock())
    assert 0 < len(seen) < 59
    assert all(left is not None and left > 0 for left in seen)


async def test_waiters_of_both_classes_wake_at_the_end_of_a_hold(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """At its end a hold lets in as many as there is room for, interactive ones first, and no more."""
    gate = Gate(total=8, per_host=2)
    gate.hold(url("a"), 10)
    entered: list[tuple[float, bool]] = []
    start = trio.current_time()

    async def wait(batch: bool) -> None:
        async with gate.slot(url("a"), patience=math.inf, batch=batch):
            entered.append((round(trio.current_time() - start, 6), batch))
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        for batch in (True, False, True, False):
            nursery.start_soon(wait, batch)
            await trio.testing.wait_all_tasks_blocked()
        assert gate.statistics() == GateStatistics(8, 0, 2, 1, 4, 2, 2)
    assert entered == [(10, False), (10, False), (11, True), (11, True)]
    assert_nothing_kept(gate)


async def test_a_hold_in_the_tick_of_a_grant_counts(autojump_clock: trio.testing.MockClock) -> None:
    """Who was granted a slot but has not run yet when its host is held waits for the end of the hold."""
    gate = Gate(total=1, per_host=1)
    entered: list[float] = []

    async def wait(patience: float) -> None:
        async with gate.slot(url("a"), patience=patience):
            entered.append(trio.current_time())

    async with trio.open_nursery() as nursery:
        async with gate.slot(url("b")):
            nursery.start_soon(wait, math.inf)
            await trio.testing.wait_all_tasks_blocked()
            start = trio.current_time()
        assert gate.statistics().in_use == 1
        gate.hold(url("a"), 5)
        await enter(gate, "c", patience=1)
    assert entered == [pytest.approx(start + 5)]
    assert_nothing_kept(gate)


async def test_a_hold_does_not_end_slots(autojump_clock: trio.testing.MockClock) -> None:
    """Who is in a slot when its host is held stays there; who waits, waits for the hold as well."""
    gate = Gate(total=1, per_host=1)
    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        await nursery.start(occupy, gate, "a", 1.0)
        nursery.start_soon(lambda: enter(gate, "a", patience=math.inf))
        await trio.testing.wait_all_tasks_blocked()
        gate.hold(url("a"), 7)
        assert gate.statistics().in_use == 1
    assert trio.current_time() - start == pytest.approx(7)
    assert_nothing_kept(gate)


@pytest.mark.parametrize("seconds", [0, -1, -0.0, math.nan, math.inf, -math.inf])
async def test_a_hold_needs_a_finite_time(seconds: float) -> None:
    """A hold that would last no time, or for ever, raises and holds nothing."""
    gate = Gate()
    with pytest.raises(ValueError, match="seconds"):
        gate.hold(url("a"), seconds)
    assert_nothing_kept(gate)


@pytest.mark.parametrize("seconds", ["1", None, True, 1j])
async def test_a_hold_needs_a_number(seconds: object) -> None:
    """A hold for what is no number is a TypeError that names the argument."""
    with pytest.raises(TypeError, match="seconds"):
        Gate().hold(url("a"), seconds)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "error", "name"),
    [
        ({"total": 0}, ValueError, "total"),
        ({"total": -1}, ValueError, "total"),
        ({"total": 2.0}, ValueError, "total"),
        ({"total": math.nan}, ValueError, "total"),
        ({"total": math.inf}, ValueError, "total"),
        ({"total": "eight"}, TypeError, "total"),
        ({"total": True}, TypeError, "total"),
        ({"total": None}, TypeError, "total"),
        ({"per_host": 0}, ValueError, "per_host"),
        ({"per_host": 1.5}, ValueError, "per_host"),
        ({"per_host": False}, TypeError, "per_host"),
        ({"per_host": 9}, ValueError, "per_host"),
        ({"total": 1, "per_host": 3}, ValueError, "per_host"),
        ({"total": 2, "per_host": 3}, ValueError, "per_host"),
        ({"batch_wait": -1}, ValueError, "batch_wait"),
        ({"batch_wait": math.nan}, ValueError, "batch_wait"),
        ({"batch_wait": -math.inf}, ValueError, "batch_wait"),
        ({"batch_wait": "60"}, TypeError, "batch_wait"),
    ],
)
def test_limits_that_make_no_sense_are_refused(
    settings: dict[str, int], error: type[Exception], name: str
) -> None:
    """Nonsense in a limit raises at once and names the argument."""
    with pytest.raises(error, match=name):
        Gate(**settings)


@pytest.mark.parametrize(("total", "per_host"), [(1, 1), (2, 2), (8, 2)])
async def test_a_total_alone_is_enough(
    total: int, per_host: int, autojump_clock: trio.testing.MockClock
) -> None:
    """Who names the total only gets two slots of a host, or one where there is only one in all."""
    gate = Gate(total=total)
    assert gate.statistics() == GateStatistics(total, 0, per_host, 0, 0, 0, 0)
    async with trio.open_nursery() as nursery:
        for _ in range(per_host):
            await nursery.start(occupy, gate, "a", 1.0)
        assert (await refusal(lambda: enter(gate, "a"))).reason == "gate"
    assert_nothing_kept(gate)


def test_a_gate_works_outside_a_run_as_far_as_it_can() -> None:
    """A gate can be made, read and shown before and after a run, and used in it."""
    gate = Gate(total=4, per_host=1)
    empty = GateStatistics(4, 0, 1, 0, 0, 0, 0)
    assert gate.statistics() == empty

    async def main() -> None:
        await enter(gate, "a")
        gate.hold(url("a"), 5)
        assert await trio.to_thread.run_sync(gate.statistics) == GateStatistics(4, 0, 1, 1, 0, 0, 0)

    trio.run(main)
    assert gate.statistics() == GateStatistics(4, 0, 1, 1, 0, 0, 0)


async def test_nothing_shows_a_host(autojump_clock: trio.testing.MockClock) -> None:
    """No repr and no error text of the gate has a host in it."""
    gate = Gate(total=1, per_host=1)
    async with gate.slot(url("secret")):
        busy = await refusal(lambda: enter(gate, "secret"))
        gate.hold(url("secret"), 5)
        held = await refusal(lambda: enter(gate, "secret"))
        shown = [gate, gate.slot(url("secret")), gate.statistics(), busy, busy.ready, held, held.args]
        assert "secret" not in " ".join(map(repr, shown))
        assert repr(gate) == "<Gate: 1 of 1 slots in use, 0 waiting, held hosts: 1>"


async def test_no_entry_is_left_for_an_idle_host(autojump_clock: trio.testing.MockClock) -> None:
    """Ten thousand hosts, some of them given up while waiting, leave nothing behind."""
    gate = Gate()
    async with trio.open_nursery() as nursery:
        for n in range(8):
            await nursery.start(occupy, gate, f"busy{n}", 5.0)
        with trio.move_on_after(1):
            async with trio.open_nursery() as given_up:
                for n in range(1_000):
                    given_up.start_soon(lambda n=n: enter(gate, f"h{n}", patience=10, batch=n % 2 == 0))
        for n in range(1_000):
            nursery.start_soon(lambda n=n: enter(gate, f"g{n}", patience=10, batch=n % 2 == 0))
    for n in range(8_000):
        await enter(gate, f"x{n}")
    assert_nothing_kept(gate)
    for n in range(100):
        gate.hold(url(f"h{n}"), 1 + n / 100)
        gate.hold(url(f"h{n}"), 2)
        await refusal(lambda n=n: enter(gate, f"h{n}", batch=True))
    await trio.sleep(2)
    assert gate.statistics().held == 0
    await trio.sleep(1)
    assert_nothing_kept(gate)


@pytest.mark.parametrize("seconds", [0.2, 3.0])
async def test_a_hold_soon_after_a_hold(seconds: float, autojump_clock: trio.testing.MockClock) -> None:
    """A new hold just after an old one that sent batch fetches away lasts exactly as long as it says."""
    gate = Gate()
    gate.hold(url("a"), 1)
    await refusal(lambda: enter(gate, "a", batch=True))
    await trio.sleep(1.5)
    gate.hold(url("a"), seconds)
    start = trio.current_time()
    assert (await refusal(lambda: enter(gate, "a"))).reason == "host"
    assert gate.statistics().held == 1
    await enter(gate, "a", patience=math.inf)
    assert trio.current_time() - start == pytest.approx(seconds)
    await trio.sleep(1)
    assert_nothing_kept(gate)


async def test_a_hold_that_is_over_is_forgotten_at_the_next_call(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Whatever the gate is asked next, for whatever host, it drops the entries of holds that ended."""
    gate = Gate()
    for n in range(10):
        gate.hold(url(f"h{n}"), 1 + n / 10)
    await trio.sleep(2)
    await enter(gate, "other")
    assert gate._plan.hosts == {}
    assert gate._plan._calendar == []
