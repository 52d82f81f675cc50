"""Hooks: which is called when, with what, and what comes of one that raises."""

import itertools
from typing import Any

import pytest
import trio
from flow_desk import ALICE, BOB, CAROL, START, Heard, Lines, drained, running, targets
from trio.testing import MockClock

from sift_batch import Config, Hooks, Job, Result, RetryLater, TargetError, open_runner, open_store
from sift_batch.testing import FaultyStore, ScriptedFetch, WallClock

NAMES = sorted(name for name in vars(Hooks) if not name.startswith("_"))


async def test_the_whole_story_of_a_job_is_told(autojump_clock: MockClock) -> None:
    """A job tells its creation, its begin, each target with error, time and bytes, and its end, in order."""
    heard = Heard()
    error = TargetError("bad")
    fetch = ScriptedFetch(latency=2, fail={"http://a.test/1": error})
    async with running(fetch, hooks=heard) as runner:
        await runner.submit(BOB, targets(1, "b.test"))
        await fetch.wait_started(1)
        await runner.drain()
        heard.calls.clear()
        submission = await runner.submit(ALICE, targets(3))
        job, _ = await drained(runner, submission.id)
    told = [call for call in heard.calls if call[0] in {"job", "queued", "target", "job_seconds", "ended"}]
    size = len(b'{"content":"content of http://a.test/0","meta":{}}')
    assert told == [
        ("job", ("created",)),
        ("queued", (0.0,)),
        ("target", (None, 2.0, size)),
        ("target", (error, 2.0, 0)),
        ("target", (None, 2.0, size)),
        ("job", ("partial",)),
        ("job_seconds", (6.0,)),
        ("ended", (job,)),
    ]


async def test_the_gauges_are_told_on_opening(autojump_clock: MockClock) -> None:
    """Opening tells depth, targets in flight and stored bytes once, those of the store that is opened."""
    async with open_store(":memory:") as store:
        for expected in (0, 1):
            heard = Heard()
            async with open_runner(store, ScriptedFetch(), hooks=heard) as runner:
                assert heard.of("depth") == heard.of("in_flight") == [(0,)]
                ((stored,),) = heard.of("stored")
                assert (stored > 0) == bool(expected)
                await runner.wait((await runner.submit(ALICE, targets(1))).id)


async def test_depth_follows_the_live_jobs(autojump_clock: MockClock) -> None:
    """`depth` tells the number of live jobs after every change of it, and ends at 0."""
    heard = Heard()
    fetch = ScriptedFetch(latency=1)
    async with running(fetch, hooks=heard, jobs_per_caller=9) as runner:
        ids = [(await runner.submit(ALICE, targets(1, f"h{n}.test"))).id for n in range(3)]
        assert heard.of("depth") == [(0,), (1,), (2,), (3,)]
        await runner.cancel(ids[2])
        assert heard.of("depth")[-1] == (2,)
        await runner.submit(ALICE, targets(1, "h0.test"))  # it answers: no change
        await runner.drain()
    assert heard.of("depth") == [(0,), (1,), (2,), (3,), (2,), (1,), (0,)]


async def test_in_flight_follows_the_fetches(autojump_clock: MockClock) -> None:
    """`in_flight` tells the number of targets being fetched after every change, and ends at 0."""
    heard = Heard()
    fetch = ScriptedFetch(latency={0: 3, 1: 1})
    async with running(fetch, hooks=heard, workers=2, jobs_per_caller=9) as runner:
        for n in range(2):
            await runner.submit(ALICE, targets(2, f"h{n}.test"))
        await runner.drain()
    counts = [values[0] for values in heard.of("in_flight")]
    assert counts[0] == counts[-1] == 0
    assert max(counts) == 2
    assert all(abs(after - before) == 1 for before, after in itertools.pairwise(counts))
    assert len(counts) == 1 + 2 * 4


async def test_stored_follows_the_bytes(autojump_clock: MockClock) -> None:
    """`stored` tells the bytes of all stored jobs after every change: they are the sum of what is there."""
    heard, clock = Heard(), WallClock(START)
    async with running(ScriptedFetch(), hooks=heard, now=clock, ttl=100) as runner:
        for n in range(3):
            await runner.wait((await runner.submit(ALICE, targets(2, f"h{n}.test"))).id)
            assert heard.of("stored")[-1] == (sum(job.nbytes for job in await runner.jobs()),)
        changes = len(heard.of("stored"))
        assert changes == 1 + 3 * 3
        assert await runner.delete((await runner.jobs())[0].id)
        assert heard.of("stored")[-1] == (sum(job.nbytes for job in await runner.jobs()),)
        clock.jump(200)
        await trio.sleep(61)
        assert heard.of("stored")[-1] == (0,)
        assert heard.of("swept") == [(2,)]


async def test_eviction_is_told(autojump_clock: MockClock) -> None:
    """What the byte budget removes is told in jobs and bytes."""
    heard, clock = Heard(), WallClock(START)
    fetch = ScriptedFetch(results={0: Result("x" * 1_000)})
    async with running(fetch, hooks=heard, now=clock, max_bytes=2_500) as runner:
        for n in range(3):
            clock.jump(1)
            await runner.wait((await runner.submit(ALICE, targets(1, f"h{n}.test"))).id)
        await trio.testing.wait_all_tasks_blocked()
        (kept, _) = await runner.jobs()
    assert heard.of("evicted") == [(1, kept.nbytes)]


async def test_the_queue_time_counts_from_the_submit(autojump_clock: MockClock) -> None:
    """`queued` tells the seconds from a job's submit to its first fetch, `job_seconds` those to its end."""
    heard = Heard()
    fetch = ScriptedFetch(latency=5)
    async with running(fetch, hooks=heard, jobs_per_caller=9) as runner:
        for n in range(3):
            await runner.submit(ALICE, targets(2, f"h{n}.test"))
        await runner.drain()
    assert heard.of("queued") == [(0.0,), (10.0,), (20.0,)]
    assert heard.of("job_seconds") == [(10.0,), (20.0,), (30.0,)]


async def test_seconds_are_trios(autojump_clock: MockClock) -> None:
    """No hook's seconds follow the wall clock, however it jumps."""
    heard, clock = Heard(), WallClock(START)
    fetch = ScriptedFetch(latency=2, busy={0: 1})
    async with running(fetch, hooks=heard, now=clock) as runner:
        submission = await runner.submit(ALICE, targets(1))
        for jump in (-500_000, 900_000):
            await trio.sleep(1)
            clock.jump(jump)
        await runner.wait(submission.id)
    assert heard.of("queued") == [(0.0,)]
    assert heard.of("busy") == [("host", 2.0)]
    assert heard.of("target")[0][1] == 2.0
    assert heard.of("job_seconds") == [(4.0,)]
    assert all(seconds == 0 for _, seconds in heard.of("store"))


@pytest.mark.parametrize("state", ["done", "partial", "failed", "cancelled"])
async def test_each_end_is_told_once(state: str, autojump_clock: MockClock) -> None:
    """However a job ends, its outcome, its seconds and the job as it was stored are told exactly once."""
    heard = Heard()
    fetch = ScriptedFetch(
        latency=1,
        fail={"done": [], "partial": [0], "failed": [0, 1], "cancelled": []}[state],
    )
    async with running(fetch, hooks=heard) as runner:
        submission = await runner.submit(ALICE, targets(2))
        await fetch.wait_started(1)
        if state == "cancelled":
            await runner.cancel(submission.id)
            at_once = await runner.job(submission.id)
            assert heard.of("ended") == [(at_once,)]
        await runner.wait(submission.id)
        assert not await runner.cancel(submission.id)
    assert heard.of("job") == [("created",), (state,)]
    ((job,),) = heard.of("ended")
    assert (job.id, job.status) == (submission.id, state)
    assert len(heard.of("job_seconds")) == 1


async def test_ended_is_told_after_the_commit(autojump_clock: MockClock) -> None:
    """When `ended` is called the store has the job in that state already."""
    found: list[Job | None] = []

    class Looking(Hooks):
        def ended(self, job: Job) -> None:
            connection = store._inline._connection  # type: ignore[attr-defined]
            row = connection.execute("SELECT status FROM batch_job WHERE id = ?", (job.id,)).fetchone()
            assert row == (job.status,)
            assert not connection.in_transaction
            found.append(job)

    async with open_store(":memory:") as store:
        async with open_runner(store, ScriptedFetch(latency=1), hooks=Looking()) as runner:
            first = await runner.submit(ALICE, targets(1))
            await runner.wait(first.id)
            second = await runner.submit(ALICE, targets(2))
            await runner.cancel(second.id)
            await runner.drain()
    assert len(found) == 2


async def test_jobs_of_an_earlier_process_are_told_without_seconds(autojump_clock: MockClock) -> None:
    """A job that a restart fails counts as `failed` and `ended`, once, without `job_seconds`."""
    async with open_store(":memory:") as store:
        async with open_runner(store, ScriptedFetch(hang=[0]), Config(shutdown_grace=0)) as runner:
            left = [(await runner.submit(caller, targets(1))).id for caller in (ALICE, CAROL)]
        for expected in (left, []):
            heard = Heard()
            async with open_runner(store, ScriptedFetch(), hooks=heard):
                pass
            assert heard.of("job") == [("failed",)] * len(expected)
            assert [job.id for (job,) in heard.of("ended")] == expected
            assert all(job.error == "restart" for (job,) in heard.of("ended"))
            assert heard.of("job_seconds") == []


async def test_every_step_of_the_store_is_timed(autojump_clock: MockClock) -> None:
    """Each step of the store, refused ones too, is told by its name with its seconds."""
    heard = Heard()
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner, 1, operations={"record"})
        async with open_runner(store, ScriptedFetch(), hooks=heard) as runner:
            submission = await runner.submit(ALICE, targets(1))
            await runner.wait(submission.id)
            await runner.touch(submission.id)
            await runner.jobs()
            await runner.check()
            await runner.delete(submission.id)
    names = [name for name, _ in heard.of("store")]
    assert names.count("record") == 2
    assert {"acquire", "submit", "begin", "record", "touch", "jobs", "check", "delete", "job"} <= set(names)
    assert all(isinstance(seconds, float) and seconds >= 0 for _, seconds in heard.of("store"))


async def test_a_restricted_caller_is_told_less(autojump_clock: MockClock) -> None:
    """A restricted job calls `target_restricted`, and none of target, busy, queued and job_seconds."""
    heard = Heard()
    fetch = ScriptedFetch(busy={0: 1}, fail=["http://a.test/1"])
    async with running(fetch, hooks=heard) as runner:
        submission = await runner.submit(CAROL, targets(3))
        await runner.wait(submission.id)
    assert heard.of("target_restricted") == [(False,), (True,), (False,)]
    for name in ("target", "busy", "queued", "job_seconds"):
        assert heard.of(name) == []
    assert heard.of("job") == [("created",), ("partial",)]
    assert [job.caller_class for (job,) in heard.of("ended")] == ["restricted"]


class Raising(Hooks):
    """Hooks of which one, or every one, raises."""

    def __init__(self, faulty: str | None, error: BaseException) -> None:
        self._faulty = faulty
        self._error = error

    def __getattribute__(self, name: str) -> Any:
        if name in NAMES and object.__getattribute__(self, "_faulty") in {None, name}:
            error = object.__getattribute__(self, "_error")

            def hook(*_: object) -> None:
                raise error

            return hook
        return object.__getattribute__(self, name)


@pytest.mark.parametrize("faulty", [None, *NAMES])
async def test_a_hook_that_raises_changes_nothing(faulty: str | None, autojump_clock: MockClock) -> None:
    """Whichever hook raises at every call, everything else happens as without it."""
    for error in (ValueError("http://secret.test/"), GeneratorExit(), TargetError("x"), RetryLater()):
        log, clock = Lines(), WallClock(START)
        fetch = ScriptedFetch(latency=1, busy={"http://a.test/0": 1}, fail=["http://a.test/1"])
        hooks = Raising(faulty, error)
        async with running(
            fetch, hooks=hooks, log=log, now=clock, ttl=100, max_bytes=200, jobs_per_caller=2
        ) as runner:
            first = await runner.submit(ALICE, targets(3))
            job, _ = await drained(runner, first.id)
            assert (job.status, job.targets_done) == ("partial", 3)
            assert (await runner.submit(ALICE, targets(3))).reused
            second = await runner.submit(CAROL, targets(2))
            third = await runner.submit(BOB, targets(2))
            await runner.cancel(third.id)
            await runner.wait(second.id)
            with pytest.raises(Exception, match="at least one"):
                await runner.submit(ALICE, [])
            await runner.drain()
            assert runner.statistics().in_flight == 0
            clock.jump(1_000)
            await trio.sleep(61)
            assert await runner.jobs() == []
            assert runner.statistics().stored_bytes == 0
        told = [fields["hook"] for fields in log.of("hook.failed")]
        assert len(told) == len(set(told))
        if faulty is not None:
            assert told == [faulty]
        assert not any("secret" in str(event) for event in log.events)


async def test_hooks_of_any_class_will_do(autojump_clock: MockClock) -> None:
    """An object that lacks hooks in place of `Hooks` is told of what it has, and breaks nothing."""

    class Few:
        def __init__(self) -> None:
            self.outcomes: list[str] = []

        def job(self, outcome: str) -> None:
            self.outcomes.append(outcome)

    hooks = Few()
    async with running(ScriptedFetch(), hooks=hooks) as runner:  # type: ignore[arg-type]
        await runner.wait((await runner.submit(ALICE, targets(1))).id)
    assert hooks.outcomes == ["created", "done"]


async def test_a_hook_may_ask_the_runner(autojump_clock: MockClock) -> None:
    """A hook may read statistics and progress of the runner that calls it, and finds them up to date."""
    seen: list[tuple[int, int]] = []

    class Asking(Hooks):
        def depth(self, live: int) -> None:
            if runners:
                counts = runners[0].statistics()
                seen.append((live, counts.queued + counts.running))

    runners: list[Any] = []
    async with running(ScriptedFetch(), hooks=Asking(), jobs_per_caller=9) as runner:
        runners.append(runner)
        for n in range(3):
            await runner.submit(ALICE, targets(1, f"h{n}.test"))
        await runner.drain()
    assert seen
    assert all(live == counted for live, counted in seen)
