"""Does anything break, wherever a cancellation or an interrupt strikes?

Each flow here runs again and again; the run number N strikes at the Nth step that a task (or any task)
takes, until a run ends before it was struck. After each run the rows are audited and the store opened.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from flow_stage import ALICE, Stage, Told, audit, idle, series, stage, wide
from trio.lowlevel import Task

from sift_batch import JobState, RetryLater, StoreError, open_store
from sift_batch.testing import FaultyStore, ScriptedFetch

MOST = 2_000


class Strike(trio.abc.Instrument):
    """Cancels a scope before the Nth step of one task, or of all tasks."""

    def __init__(self, number: int, scope: trio.CancelScope, task: Task | None = None) -> None:
        self._left, self._scope, self._task = number, scope, task
        self.struck = False

    def before_task_step(self, task: Task) -> None:
        """Count, and strike when it is time."""
        if self._task is None or task is self._task:
            self._left -= 1
            if self._left == 0:
                self.struck = True
                self._scope.cancel()


async def struck_at(number: int, work: Callable[[], Awaitable[None]], *, own_task: bool) -> bool:
    """Do the work in a scope that is cancelled at step `number`; False if it ended before."""
    with trio.CancelScope() as scope:
        strike = Strike(number, scope, trio.lowlevel.current_task() if own_task else None)
        trio.lowlevel.add_instrument(strike)
        try:
            await work()
        finally:
            trio.lowlevel.remove_instrument(strike)
    return strike.struck


def a_fetch() -> ScriptedFetch:
    """Return a fetch with a failure, a busy answer and some latency."""
    fetch = ScriptedFetch(latency=1, fail=["https://host.example/one/1"])
    fetch.busy("https://host.example/one/0", 1, RetryLater(retry_after=2.0))
    fetch.busy("https://host.example/two/1", 1, RetryLater(ready=partial(trio.sleep, 1), reason="gate"))
    return fetch


@pytest.mark.parametrize("own_task", [True, False], ids=["own task", "any task"])
@pytest.mark.parametrize("grace", [0, 30])
async def test_a_surrounding_scope_that_is_cancelled_at_any_step(
    autojump_clock: object, own_task: bool, grace: int
) -> None:
    """Wherever the surrounding scope is cancelled: rows fit, jobs end once, the store is free."""
    for number in range(1, MOST):
        told = Told()
        async with open_store(":memory:") as store:
            fetch = a_fetch()

            async def flow(store: Any = store, told: Told = told, fetch: Any = fetch) -> None:
                config = wide(workers=2, shutdown_grace=grace)
                async with stage(config, store=store, fetch=fetch, hooks=told) as on:
                    one = await on.submit(3, "one")
                    two = await on.submit(3, "two")
                    three = await on.submit(2, "three")
                    async with on.runner.results(one) as targets:
                        async for target in targets:
                            if target.idx == 1:
                                await on.runner.cancel(two)
                    await on.runner.wait(three)
                    await on.runner.delete(one)
                    await on.runner.drain()

            struck = await struck_at(number, flow, own_task=own_task)
            assert fetch.in_flight == 0
            audit(store)
            assert len({job.id for (job,) in told.of("ended")}) == len(told.of("ended"))
            assert told.of("in_flight")[-1:] in ([(0,)], [])
            async with stage(store=store, hooks=told) as on:
                audit(store, on.runner, settled=True)
                # Whatever was created ended exactly once, here or by the restart.
                created = len([1 for (outcome,) in told.of("job") if outcome == "created"])
                assert len({job.id for (job,) in told.of("ended")}) == len(told.of("ended")) >= created
        if not struck:
            assert number > 20
            return
    raise AssertionError("the flow never ended by itself")


CALLS: dict[str, Callable[[Stage, str], Awaitable[Any]]] = {
    "submit": lambda on, job_id: on.runner.submit(ALICE, series(2, "new")),
    "cancel": lambda on, job_id: on.runner.cancel(job_id),
    "wait": lambda on, job_id: on.runner.wait(job_id),
    "drain": lambda on, job_id: on.runner.drain(),
    "touch": lambda on, job_id: on.runner.touch(job_id),
    "check": lambda on, job_id: on.runner.check(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("at", [0.0, 0.5, 1.0, 2.0])
async def test_a_call_that_is_cancelled_at_any_step(autojump_clock: object, call: str, at: float) -> None:
    """Wherever one call is cancelled, it has happened or not, the runner goes on, and everything settles."""
    for number in range(1, MOST):
        told = Told()
        async with open_store(":memory:") as store:
            async with stage(store=store, fetch=ScriptedFetch(latency=1), hooks=told) as on:
                job_id = await on.submit(2)
                await trio.sleep(at)
                returned = []

                async def once(on: Stage = on, job_id: str = job_id, returned: list[Any] = returned) -> None:
                    returned.append(await CALLS[call](on, job_id))

                struck = await struck_at(number, once, own_task=True)
                await on.runner.drain()
                for job in await on.runner.jobs():
                    assert job.settled
                job = await on.job(job_id)
                if call == "cancel" and returned:
                    assert (job.status is JobState.CANCELLED) == returned[0]
                elif call != "cancel":
                    assert job.status is JobState.DONE
                if call == "submit" and returned:
                    assert (await on.job(returned[0].id)).status is JobState.DONE
                assert not on.runner._roster._coming
                assert len(told.of("ended")) == len(await on.runner.jobs())
                audit(store, on.runner, settled=True)
        if not struck:
            return
    raise AssertionError("the call never ended by itself")


@pytest.mark.parametrize("kind", ["cancel", "close", "plain"])
async def test_a_store_that_fails_at_any_call(autojump_clock: object, kind: str) -> None:
    """Whichever call of the store fails, for a while: nothing is lost, nothing twice, the store is free."""
    for number in range(1, MOST):
        told = Told()
        async with open_store(":memory:") as store:
            faulty = FaultyStore(store)
            fetch = a_fetch()
            try:
                config = wide(workers=2, max_bytes=300, ttl=5, sweep_every=3)
                async with stage(config, store=store, wrap=lambda _: faulty, fetch=fetch, hooks=told) as on:  # noqa: B023
                    faulty._passing, faulty._failing = number - 1, 2
                    for name in ("one", "two", "three"):
                        await on.submit(3, name)
                        await trio.sleep(1.5)
                    if kind == "cancel":
                        for job in await on.runner.jobs():
                            await on.runner.cancel(job.id)
                    if kind != "close":
                        await on.runner.drain()
                        await idle()
                        audit(store, on.runner, settled=True)
            except StoreError:
                pass
            finally:
                failed = faulty.failed
                faulty.recover()
            audit(store)
            if store._owner is not None:  # type: ignore[attr-defined]
                await store.release(store._owner)  # type: ignore[attr-defined]
            async with stage(store=store, hooks=told) as on:
                audit(store, on.runner, settled=True)
            assert len({job.id for (job,) in told.of("ended")}) == len(told.of("ended"))
        if not failed:
            assert number > 10
            return
    raise AssertionError("the flow never ended by itself")


@pytest.mark.parametrize("where", ["fetch", "body"])
def test_an_interrupt_at_any_time(where: str) -> None:
    """Whenever a fetch or the body is interrupted: it comes out bare, rows fit, the store is free."""
    for tenth in range(0, 80, 3):

        async def main(tenth: int = tenth) -> None:
            at = tenth / 10 + 0.05
            async with open_store(":memory:") as store:
                fetch = a_fetch()
                inner = fetch.__call__

                async def interrupted(caller: Any, target: Any) -> Any:
                    if where == "fetch" and trio.current_time() > at:
                        raise BaseExceptionGroup("nursery", [KeyboardInterrupt()])
                    return await inner(caller, target)

                try:
                    async with stage(wide(workers=2), store=store, fetch=interrupted) as on:
                        for name in ("one", "two", "three"):
                            await on.submit(3, name)
                        if where == "body":
                            await trio.sleep(at)
                            raise KeyboardInterrupt
                        await on.runner.drain()
                except KeyboardInterrupt:
                    pass
                audit(store)
                async with stage(store=store) as on:
                    audit(store, on.runner, settled=True)

        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
