"""Whatever is cancelled, and whenever: no slot is lost, none is given twice, nobody starves."""

import math
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
import trio
import trio.testing
from gate_driver import CALLER, Site, assert_nothing_kept, drive, enter, refusal, target, url
from hypothesis import given, settings
from hypothesis import strategies as st

from sift_batch._gate.gate import Gate
from sift_batch._model.errors import RetryLater


class CancelAtStep(trio.abc.Instrument):
    """Cancels `scope` just before the run's task step number `step`."""

    def __init__(self, scope: trio.CancelScope, step: int) -> None:
        self.scope = scope
        self.left = step

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count, and cancel when it is time."""
        self.left -= 1
        if self.left == 0:
            self.scope.cancel()


async def _interactive(gate: Gate) -> None:
    for patience in (0.3, math.inf):
        try:
            async with gate.slot(url("a"), patience=patience):
                await trio.sleep(0.4)
        except RetryLater:
            pass


async def _batch(gate: Gate) -> None:
    fetch = gate.batch(Site(0.4))
    for host in "ab":
        await drive(lambda host=host: fetch(CALLER, target(host)), "victim")


async def _batch_slot(gate: Gate) -> None:
    async with gate.slot(url("a"), patience=math.inf, batch=True):
        gate.hold(url("a"), 0.3)
        await trio.sleep(0.1)


async def _told(gate: Gate) -> None:
    async with gate.slot(url("b"), patience=math.inf):
        try:
            await enter(gate, "b", batch=True)
        except RetryLater as refusal:
            busy = refusal
    assert busy.ready is not None
    await busy.ready()
    await trio.sleep(0.2)


@pytest.mark.parametrize("victim", [_interactive, _batch, _batch_slot, _told])
def test_a_cancel_at_any_step_loses_nothing(victim) -> None:  # type: ignore[no-untyped-def]
    """For every step of a run: cancel one fetch there, and all others finish and every slot is back."""

    async def others(gate: Gate, site: Site, scope: trio.CancelScope) -> None:
        fetch = gate.batch(site)

        async def cancelled_in_the_middle() -> None:
            with scope:
                await victim(gate)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(drive, lambda: fetch(CALLER, target("a")), "one")
            nursery.start_soon(drive, lambda: fetch(CALLER, target("b")), "two")
            nursery.start_soon(lambda: enter(gate, "a", patience=math.inf))
            nursery.start_soon(cancelled_in_the_middle)
            nursery.start_soon(drive, lambda: fetch(CALLER, target("a")), "three")

    async def main(step: int) -> bool:
        gate, site, scope = Gate(total=2, per_host=1), Site(0.5), trio.CancelScope()
        watch = CancelAtStep(scope, step)
        trio.lowlevel.add_instrument(watch)
        with trio.fail_after(20):
            await others(gate, site, scope)
        trio.lowlevel.remove_instrument(watch)
        assert len(site.order) == 3
        assert site.peak <= 2
        assert site.peak_per_host == 1
        await trio.sleep(1.5)
        async with gate.slot(url("x")), gate.slot(url("y")):
            assert gate.statistics().in_use == 2
        assert_nothing_kept(gate)
        return watch.left > 0

    # Trio shuffles the order of tasks, so each round meets other interleavings.
    for _ in range(8):
        step = 1
        while not trio.run(main, step, clock=trio.testing.MockClock(autojump_threshold=0)):
            step += 1
        assert step > 10


async def test_a_storm_of_cancels_leaves_all_slots_free(autojump_clock: trio.testing.MockClock) -> None:
    """Two thousand waits that are cancelled around the moment of their grant lose no slot."""
    gate = Gate(total=2, per_host=1)

    async def one(n: int) -> None:
        with trio.move_on_after(n % 7 * 0.1):
            async with gate.slot(url(f"h{n % 3}"), patience=math.inf, batch=n % 2 == 0):
                await trio.sleep(0.1)

    for _ in range(20):
        async with trio.open_nursery() as nursery:
            for n in range(100):
                nursery.start_soon(one, n)
    assert_nothing_kept(gate)
    async with gate.slot(url("x")), gate.slot(url("y")):
        pass


@dataclass
class Visit:
    """One who comes `at` some time, and how it behaves."""

    kind: str  # interactive, batch, fetch
    host: str
    at: float
    stay: float
    patience: float
    cancel_after: float


@dataclass
class Ledger:
    """What a server would see."""

    total: int
    per_host: int
    inside: Counter[str] = field(default_factory=Counter)
    held_until: dict[str, float] = field(default_factory=dict)

    def enter(self, host: str) -> None:
        """Let one in, and check that it may be there."""
        self.inside[host] += 1
        assert self.inside.total() <= self.total
        assert self.inside[host] <= self.per_host
        assert trio.current_time() >= self.held_until.get(host, 0.0)

    def hold(self, gate: Gate, host: str, seconds: float) -> None:
        """Hold a host, and remember until when."""
        gate.hold(url(host), seconds)
        end = trio.current_time() + seconds
        self.held_until[host] = max(end, self.held_until.get(host, 0.0))


_TIMES = st.integers(0, 40).map(lambda n: n / 10)
_VISITS = st.builds(
    Visit,
    kind=st.sampled_from(["interactive", "batch", "fetch"]),
    host=st.sampled_from("abc"),
    at=_TIMES,
    stay=_TIMES,
    patience=st.one_of(st.just(math.inf), st.just(0.0), _TIMES),
    cancel_after=st.one_of(st.just(math.inf), st.just(math.inf), _TIMES),
)
_HOLDS = st.tuples(_TIMES, st.sampled_from("abc"), st.integers(1, 30).map(lambda n: n / 10))


@given(
    st.lists(_VISITS, min_size=1, max_size=14),
    st.lists(_HOLDS, max_size=3),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from([0.0, 1.0, 60.0, math.inf]),
)
@settings(max_examples=150, deadline=None)
def test_any_schedule_keeps_the_limits_and_ends(
    visits: list[Visit], holds: list[tuple[float, str, float]], total: int, per_host: int, batch_wait: float
) -> None:
    """Under any mix of visits, cancels and holds: limits and holds are kept, all end, nothing is left."""
    gate = Gate(total=total, per_host=min(total, per_host), batch_wait=batch_wait)
    ledger = Ledger(total, min(total, per_host))
    done = 0

    async def stay(visit: Visit) -> None:
        ledger.enter(visit.host)
        try:
            await trio.sleep(visit.stay)
        finally:
            ledger.inside[visit.host] -= 1

    async def visit_once(visit: Visit, name: str) -> None:
        nonlocal done
        await trio.sleep(visit.at)
        with trio.move_on_after(visit.cancel_after) as scope:
            if visit.kind == "fetch":

                async def fetch(*_: object) -> None:
                    await stay(visit)

                await drive(lambda: gate.batch(fetch)(CALLER, target(visit.host)), name)  # type: ignore[arg-type]
            else:
                start = trio.current_time()
                try:
                    batch = visit.kind == "batch"
                    async with gate.slot(url(visit.host), patience=visit.patience, batch=batch):
                        assert trio.current_time() - start <= visit.patience + 1e-6
                        await stay(visit)
                except RetryLater:
                    assert trio.current_time() - start >= visit.patience - 1e-6
        done += 1
        assert scope.cancelled_caught <= (visit.cancel_after < math.inf)

    async def main() -> None:
        # Everybody in single file, and a second for each promise that nobody took up, is the worst.
        with trio.fail_after(
            4 + sum(visit.stay + 2 for visit in visits) + sum(hold[2] + 4 for hold in holds)
        ):
            async with trio.open_nursery() as nursery:
                for n, visit in enumerate(visits):
                    nursery.start_soon(visit_once, visit, f"job{n}")
                for at, host, seconds in sorted(holds):
                    await trio.sleep_until(max(at, trio.current_time()))
                    ledger.hold(gate, host, seconds)
                    assert ledger.inside.total() <= gate.statistics().in_use <= total
        await trio.sleep(5)
        assert_nothing_kept(gate)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert done == len(visits)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 200)), min_size=2, max_size=12))
@settings(max_examples=60, deadline=None)
def test_the_line_is_in_the_order_of_its_places(come: list[tuple[bool, int]]) -> None:
    """On one busy slot, all stand by arrival, the batch ones as if they had come `batch_wait` later."""
    gate = Gate(total=1, per_host=1, batch_wait=60)
    order: list[float] = []

    async def wait(batch: bool, at: int, place: float) -> None:
        await trio.sleep(at)
        async with gate.slot(url("a"), patience=math.inf, batch=batch):
            order.append(place)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            async with gate.slot(url("a")):
                for batch, at in come:
                    nursery.start_soon(wait, batch, at, at + 60 * batch)
                await trio.sleep(300)
        assert_nothing_kept(gate)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert order == sorted(order)


def test_ctrl_c_while_waiting_loses_nothing() -> None:
    """A `KeyboardInterrupt` comes out of a wait for a slot, and of a `ready`, and leaves nothing behind."""

    async def wait_for_slot(gate: Gate) -> None:
        await enter(gate, "a", patience=math.inf)

    async def wait_to_be_told(gate: Gate) -> None:
        busy = await refusal(lambda: enter(gate, "a", batch=True))
        assert busy.ready is not None
        await busy.ready()

    async def interrupt() -> None:
        await trio.testing.wait_all_tasks_blocked()
        signal.raise_signal(signal.SIGINT)

    for wait in (wait_for_slot, wait_to_be_told):
        gate = Gate(total=1, per_host=1)

        async def main(gate: Gate = gate, wait: Callable[[Gate], Awaitable[None]] = wait) -> None:
            trio.lowlevel.spawn_system_task(interrupt)
            async with gate.slot(url("b")):
                await wait(gate)

        with pytest.raises(KeyboardInterrupt):
            trio.run(main)
        assert_nothing_kept(gate)
