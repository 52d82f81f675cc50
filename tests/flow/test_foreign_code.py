"""Stores, hooks and loggers are somebody else's code: what they raise, and when, breaks nothing of ours."""

import copy
import json
import logging
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from sift_batch import (
    Caller,
    Config,
    Hooks,
    JobState,
    Result,
    RetryLater,
    StoreError,
    Target,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, ScriptedFetch, WallClock

ALICE = Caller("alice")
SERIES = [Target("http://a.example/1"), Target("http://a.example/2")]


async def _fetch(caller: Caller, target: Target) -> Result:
    await trio.sleep(1)
    return Result("page")


class _Proxy:
    """A store that does something else for one operation."""

    def __init__(self, store: Any, operation: str, instead: Any) -> None:
        self._store, self._operation, self._instead = store, operation, instead

    def __getattr__(self, name: str) -> Any:
        return self._instead if name == self._operation else getattr(self._store, name)


async def test_a_store_that_raises_before_it_is_awaited_refuses(autojump_clock: MockClock) -> None:
    """A plain function that raises in place of a coroutine is a refused step, offered again."""
    async with open_store(":memory:") as store:
        calls = 0

        def record(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 1:
                raise OSError("no coroutine yet")
            return store.record(*args, **kwargs)

        proxy: Any = _Proxy(store, "record", record)
        async with open_runner(proxy, _fetch) as runner:
            job = await runner.wait((await runner.submit(ALICE, SERIES)).id)
            assert job is not None
            assert (job.status, calls) == (JobState.DONE, 3)


async def test_a_cancellation_in_a_stores_own_group_stays_one(autojump_clock: MockClock) -> None:
    """A store with a nursery of its own hands a cancellation on in a group; the scope takes it."""
    async with open_store(":memory:") as store:

        async def submit(*args: Any, **kwargs: Any) -> Any:
            try:
                await trio.sleep_forever()
            except trio.Cancelled as exc:
                raise BaseExceptionGroup("of a nursery", [exc]) from None

        proxy: Any = _Proxy(store, "submit", submit)
        async with open_runner(proxy, _fetch) as runner:
            with trio.move_on_after(1) as scope:
                await runner.submit(ALICE, SERIES)
            assert scope.cancelled_caught


async def test_an_interrupt_in_a_stores_own_group_comes_out(autojump_clock: MockClock) -> None:
    """A Ctrl-C inside a store's nursery is no refusal of the store."""
    async with open_store(":memory:") as store:

        async def job(*args: Any, **kwargs: Any) -> Any:
            await trio.lowlevel.checkpoint()
            raise BaseExceptionGroup("of a nursery", [KeyboardInterrupt()])

        proxy: Any = _Proxy(store, "job", job)
        async with open_runner(proxy, _fetch) as runner:
            with pytest.raises(KeyboardInterrupt):
                await runner.job("0" * 32)


async def test_a_cancelled_submit_is_cancelled_before_it_is_refused(autojump_clock: MockClock) -> None:
    """In a cancelled scope a submit raises `Cancelled` and has told nobody, whatever is wrong with it."""

    class Refusals(Hooks):
        told: list[str] = []  # noqa: RUF012 - one test, one list

        def refused(self, reason: str) -> None:
            self.told.append(reason)

    async with open_store(":memory:") as store, open_runner(store, _fetch, hooks=Refusals()) as runner:
        for series in ([], "text"):
            with trio.CancelScope() as scope:
                scope.cancel()
                await runner.submit(ALICE, series)  # type: ignore[arg-type]
            assert scope.cancelled_caught
    assert Refusals.told == []


class _Exits(Hooks):
    """Raises `SystemExit` wherever a hook has one name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name == self._name:
            raise SystemExit(name)
        return super().__getattribute__(name)


_HOOKS = [name for name in vars(Hooks) if not name.startswith("_")]


@pytest.mark.parametrize("name", _HOOKS)
async def test_a_hook_that_asks_for_an_exit_strands_no_job(name: str, autojump_clock: MockClock) -> None:
    """A hook that raises `SystemExit`, whichever it is, changes nothing of what happens to the jobs."""
    config = Config(jobs_per_caller=9)
    async with open_store(":memory:") as store:
        async with open_runner(store, _fetch, config, hooks=_Exits(name)) as runner:
            done = await runner.submit(ALICE, SERIES)
            queued = await runner.submit(ALICE, SERIES[:1])
            assert await runner.cancel(queued.id)
            with trio.fail_after(60):
                await runner.drain()
            job = await runner.job(done.id)
            assert job is not None
            assert job.status is JobState.DONE
            stored = sum(item.nbytes for item in await runner.jobs())
            assert (runner.statistics().stored_bytes, runner.statistics().in_flight) == (stored, 0)


class _ExitingHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        raise SystemExit(record.getMessage())


async def test_a_logger_that_asks_for_an_exit_changes_nothing(autojump_clock: MockClock) -> None:
    """A logger that raises `SystemExit` at each event neither hangs the runner nor keeps the store."""
    log = logging.getLogger(f"{__name__}.exits")
    log.handlers, log.propagate = [_ExitingHandler()], False
    log.setLevel(logging.DEBUG)
    async with open_store(":memory:") as store:
        with trio.fail_after(100):
            async with open_runner(store, _fetch, log=log) as runner:
                job = await runner.wait((await runner.submit(ALICE, SERIES)).id)
                assert job is not None
                assert job.status is JobState.DONE
        async with open_runner(store, _fetch):
            pass


def _logger(level: int, handler: logging.Handler) -> logging.Logger:
    log = logging.getLogger(f"{__name__}.{type(handler).__qualname__}")
    log.handlers, log.propagate = [handler], False
    log.setLevel(level)
    return log


async def test_a_stubborn_fetch_is_told_of_by_the_end_of_the_grace(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """When the surrounding scope is cancelled, a fetch that can't be ended is logged 5 s after the grace."""
    told: list[float] = []

    class Notes(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("fetch.stuck"):
                told.append(trio.current_time())

    async def stubborn(caller: Caller, target: Target) -> Result:
        with trio.CancelScope(shield=True):
            await trio.sleep(100)
        return Result("late")

    log = _logger(logging.WARNING, Notes())
    began = trio.current_time()
    async with open_store(":memory:") as store:
        with trio.CancelScope() as outer:
            async with open_runner(store, stubborn, Config(shutdown_grace=30), log=log) as runner:
                await runner.submit(ALICE, SERIES)
                await trio.sleep(1)
                outer.cancel()
                with trio.CancelScope(shield=True):
                    await trio.sleep(60)
    assert [at - began for at in told] == [pytest.approx(36)]


async def test_a_slow_store_is_no_stuck_fetch(autojump_clock: MockClock) -> None:
    """A result that takes long to store is not logged as a fetch that goes on."""
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    log = _logger(logging.WARNING, Lines())
    async with open_store(":memory:") as store:

        async def record(*args: Any, **kwargs: Any) -> Any:
            with trio.CancelScope(shield=True):
                await trio.sleep(60)
            return await store.record(*args, **kwargs)

        proxy: Any = _Proxy(store, "record", record)
        async with open_runner(proxy, _fetch, Config(shutdown_grace=0), log=log) as runner:
            await runner.submit(ALICE, SERIES)
            await trio.sleep(2)
            assert runner.statistics().in_flight == 0
    assert not [line for line in lines if line.startswith("fetch.stuck")]


async def test_a_job_that_was_cancelled_before_its_fetch_never_began_one(autojump_clock: MockClock) -> None:
    """`Hooks.queued` is called with the first fetch, so not for a job that is ended before it."""

    class Queued(Hooks):
        seconds: list[float] = []  # noqa: RUF012 - one test, one list

        def queued(self, seconds: float) -> None:
            self.seconds.append(seconds)

    async with open_store(":memory:") as store:
        began = trio.Event()

        async def begin(*args: Any, **kwargs: Any) -> Any:
            work = await store.begin(*args, **kwargs)
            began.set()
            await trio.sleep(1)
            return work

        proxy: Any = _Proxy(store, "begin", begin)
        async with open_runner(proxy, _fetch, hooks=Queued()) as runner:
            job_id = (await runner.submit(ALICE, SERIES)).id
            await began.wait()
            assert await runner.cancel(job_id)
            await runner.wait(job_id)
    assert Queued.seconds == []


async def test_a_ready_that_is_not_come_for_is_forgone(autojump_clock: MockClock) -> None:
    """A target that was told of a slot and then ended from outside gives the slot back at once."""
    forgone: list[float] = []

    async def ready() -> None:
        await trio.sleep(1)

    ready.forgo = lambda: forgone.append(trio.current_time())  # type: ignore[attr-defined]

    async def busy(caller: Caller, target: Target) -> Result:
        raise RetryLater(ready=ready, reason="gate")

    async with open_store(":memory:") as store:

        async def stop(*args: Any, **kwargs: Any) -> Any:
            await trio.sleep(5)
            return await store.stop(*args, **kwargs)

        proxy: Any = _Proxy(store, "stop", stop)
        async with open_runner(proxy, busy) as runner:
            job_id = (await runner.submit(ALICE, SERIES)).id
            await trio.sleep(0.5)
            began = trio.current_time()
            assert await runner.cancel(job_id)
    assert forgone == [pytest.approx(began + 0.5)]


@pytest.mark.parametrize("end", ["its time is up", "the runner is left"])
async def test_a_fetch_that_ends_before_it_came_forgoes(end: str, autojump_clock: MockClock) -> None:
    """A target that was told of a slot, and whose next fetch ends before it took it, gives it back then."""
    forgone: list[float] = []
    tries: list[float] = []

    async def ready() -> None:
        await trio.sleep(1)

    ready.forgo = lambda: forgone.append(trio.current_time())  # type: ignore[attr-defined]

    async def fetch(caller: Caller, target: Target) -> Result:
        tries.append(trio.current_time())
        if len(tries) == 1:
            raise RetryLater(ready=ready, reason="gate")
        await trio.sleep_forever()
        raise AssertionError

    config = Config(target_timeout=7 if end == "its time is up" else 600, shutdown_grace=2)
    async with open_store(":memory:") as store, open_runner(store, fetch, config) as runner:
        await runner.submit(ALICE, SERIES[:1])
        if end == "its time is up":
            await runner.drain()
        else:
            await trio.sleep(3)
            left = trio.current_time()
    assert forgone == [pytest.approx(tries[1] + 7 if end == "its time is up" else left + 2)]


def test_the_default_meta_is_a_dict() -> None:
    """A result without meta can be dumped, copied and told from none."""
    result = Result("x")
    assert json.dumps(result.meta) == "{}"
    assert copy.deepcopy(result) == result


async def test_store_errors_are_still_store_errors(autojump_clock: MockClock) -> None:
    """A refused read raises the store's own error, not a wrapped one."""
    async with open_store(":memory:") as store:
        refusal = StoreError("no")

        async def job(*args: Any, **kwargs: Any) -> Any:
            await trio.lowlevel.checkpoint()
            raise refusal

        proxy: Any = _Proxy(store, "job", job)
        async with open_runner(proxy, _fetch) as runner:
            with pytest.raises(StoreError) as caught:
                await runner.job("0" * 32)
            assert caught.value is refusal


async def test_what_can_be_no_id_is_unknown(autojump_clock: MockClock) -> None:
    """Waiting for something that can be no id ends at once, like waiting for an unknown job."""
    async with open_store(":memory:") as store, open_runner(store, _fetch) as runner:
        for odd in (["no id"], None, 3, "\ud800", "a/b"):
            assert await runner.wait(odd) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("refused", [{"stop"}, {"stop", "record"}, {"stop", "settle"}, None])
async def test_nobody_waits_for_ever_when_a_timeout_is_refused(
    refused: set[str] | None, autojump_clock: MockClock
) -> None:
    """When the store refuses the end of an overdue job until the runner is left, all waits end as closed."""
    ended: list[str] = []
    async with open_store(":memory:") as inner, trio.open_nursery() as outside:
        store = FaultyStore(inner)
        config = Config(job_timeout=3, shutdown_grace=20)
        async with open_runner(store, ScriptedFetch(latency=5), config) as runner:
            job_id = (await runner.submit(ALICE, SERIES)).id

            async def closed(name: str) -> None:
                with pytest.raises((trio.ClosedResourceError, StoreError)):
                    await follow(name)
                ended.append(name)

            async def follow(name: str) -> None:
                if name == "drain":
                    await runner.drain()
                elif name == "wait":
                    await runner.wait(job_id)
                else:
                    async with getattr(runner, name)(job_id) as steps:
                        async for _ in steps:
                            pass

            for name in ("wait", "drain", "watch", "results"):
                outside.start_soon(closed, name)
            await trio.sleep(1)
            store.fail(operations=refused) if refused else store.fail()
            await trio.sleep(1)
        await trio.sleep(1)
        assert sorted(ended) == ["drain", "results", "wait", "watch"]


async def test_one_row_that_cannot_be_removed_keeps_no_other(autojump_clock: MockClock) -> None:
    """A lapsed job that the store can't remove is left for the next turn; all others are swept."""
    clock = WallClock()
    config = Config(ttl=10, sweep_every=5, jobs_per_caller=9)
    async with open_store(":memory:") as store:
        bad: list[str] = []

        async def sweep(owner: str, job_id: str, **rest: Any) -> Any:
            if job_id in bad:
                await trio.lowlevel.checkpoint()
                raise StoreError("a bad row")
            return await store.sweep(owner, job_id, **rest)

        proxy: Any = _Proxy(store, "sweep", sweep)
        async with open_runner(proxy, _fetch, config, now=clock) as runner:
            for n in range(5):
                submission = await runner.submit(ALICE, [Target(f"http://a.example/{n}")])
                bad[:] = bad or [submission.id]
            await runner.drain()
            await trio.sleep(60)
            reads = await store.jobs(caller=None, status=None, before=None, limit=9, now=0, ttl=1e9)
            assert reads is not None
            assert [job.id for job in reads] == bad
