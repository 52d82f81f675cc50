"""Drain: which job starts when, and how one goes from its first target to its last."""

import pytest
import trio
from flow_desk import ALICE, BOB, START, Lines, drained, raising, running, targets
from trio.testing import MockClock

from sift_batch import (
    Caller,
    Result,
    RetryLater,
    Runner,
    Submission,
    Target,
    TargetError,
    open_runner,
    open_store,
)
from sift_batch.testing import FaultyStore, ScriptedFetch, WallClock

WIDE = {"jobs_per_caller": 100, "jobs_total": 100, "workers_limit": 100}


async def _submit_many(runner: Runner, count: int, size: int = 1) -> list[Submission]:
    return [await runner.submit(ALICE, targets(size, f"h{n}.test")) for n in range(count)]


@pytest.mark.parametrize("workers", [1, 3])
async def test_queued_jobs_start_in_the_order_of_their_submits(
    workers: int, autojump_clock: MockClock
) -> None:
    """Queued jobs start first in, first out, with one worker or several."""
    # No two of them end in the same moment.
    fetch = ScriptedFetch(latency={f"http://h{n}.test/0": 1 + n % 3 + n / 100 for n in range(12)})
    async with running(fetch, workers=workers, **WIDE) as runner:
        await _submit_many(runner, 12)
        await runner.drain()
    started = {call.target.url: call.started for call in fetch.calls}
    assert len(started) == 12
    in_order = [started[f"http://h{n}.test/0"] for n in range(12)]
    assert in_order == sorted(in_order)
    assert len(set(in_order[workers:])) == 12 - workers


async def test_jobs_that_end_while_queued_are_passed_over(autojump_clock: MockClock) -> None:
    """A job that is cancelled while it is queued is never fetched, and the next in line starts."""
    fetch = ScriptedFetch(latency=1)
    async with running(fetch, **WIDE) as runner:
        made = await _submit_many(runner, 6)
        for n in (1, 2, 4):
            assert await runner.cancel(made[n].id)
        await runner.drain()
    assert fetch.order == [f"http://h{n}.test/0" for n in (0, 3, 5)]


@pytest.mark.parametrize("workers", [1, 2, 5])
async def test_as_many_jobs_drain_at_once_as_there_are_workers(
    workers: int, autojump_clock: MockClock
) -> None:
    """Exactly `workers` jobs drain at the same time, one target of each."""
    fetch = ScriptedFetch(latency=1)
    async with running(fetch, workers=workers, **WIDE) as runner:
        await _submit_many(runner, 7, size=3)
        await fetch.wait_started(workers)
        await trio.sleep(0.5)
        counts = runner.statistics()
        assert (counts.workers, counts.running, counts.queued) == (workers, workers, 7 - workers)
        await runner.drain()
    assert fetch.peak == workers
    assert set(fetch.peak_by_host.values()) == {1}


async def test_workers_above_the_limit_are_clamped_with_one_warning(autojump_clock: MockClock) -> None:
    """`workers` above `workers_limit` become the limit, and exactly one warning says so."""
    fetch, log = ScriptedFetch(latency=1), Lines()
    async with running(fetch, log=log, jobs_per_caller=9, workers=7, workers_limit=3) as runner:
        assert runner.statistics().workers == 3
        await _submit_many(runner, 8)
        await runner.drain()
    assert fetch.peak == 3
    assert [event for event in log.events if event[0] == "warning"] == [
        ("warning", "workers.clamped", {"asked": 7, "limit": 3})
    ]


async def test_workers_within_the_limit_give_no_warning(autojump_clock: MockClock) -> None:
    """`workers` equal to `workers_limit` are taken as they are, silently."""
    log = Lines()
    async with running(ScriptedFetch(), log=log, workers=3, workers_limit=3) as runner:
        assert runner.statistics().workers == 3
    assert log.of("workers.clamped") == []


async def test_a_job_keeps_its_worker_over_its_busy_spells(autojump_clock: MockClock) -> None:
    """While a target of the only worker's job waits out a busy spell, no other job starts."""
    fetch = ScriptedFetch(busy={"http://h0.test/1": 3})
    async with running(fetch, **WIDE) as runner:
        first, second = await _submit_many(runner, 2, size=3)
        await fetch.wait_started(3)
        await trio.sleep(1)
        status = await runner.status(second.id)
        assert status is not None
        assert status.job.status == "queued"
        await runner.drain()
    assert fetch.order == [
        "http://h0.test/0",
        *["http://h0.test/1"] * 4,
        "http://h0.test/2",
        *[f"http://h1.test/{n}" for n in range(3)],
    ]
    assert first.id != second.id


async def test_targets_go_in_the_order_of_their_index(autojump_clock: MockClock) -> None:
    """Targets of a job are fetched one at a time in `idx` order, whatever their URLs, twins included."""
    urls = [f"http://{host}.test/{n}" for n in range(8) for host in "zay"] + ["http://z.test/0"] * 3
    fetch = ScriptedFetch(latency=0.5)
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, [Target(url) for url in urls])
        _, stored = await drained(runner, submission.id)
    assert fetch.order == urls
    assert fetch.peak == 1
    assert [call.attempt.idx for call in fetch.calls if call.attempt] == list(range(len(urls)))
    # Each has its own result.
    assert [t.result.content for t in stored if t.result] == [f"content of {url}" for url in urls]


async def test_a_target_starts_only_when_the_one_before_is_stored(autojump_clock: MockClock) -> None:
    """Target i+1 starts after target i is stored, however long the store takes over it."""
    seen: list[tuple[int, list[str]]] = []
    async with open_store(":memory:") as store:
        record = store.record

        async def slowly(*args: object, **keywords: object) -> object:
            await trio.sleep(100)
            return await record(*args, **keywords)  # type: ignore[arg-type]

        store.record = slowly  # type: ignore[method-assign, assignment]

        async def fetch(caller: Caller, target: Target) -> Result:
            status = await runner.status(submission.id)
            assert status is not None
            seen.append((round(trio.current_time()), [t.status.value for t in status.targets]))
            return Result("")

        async with open_runner(store, fetch) as runner:
            submission = await runner.submit(ALICE, targets(3))
            await runner.wait(submission.id)
    assert seen == [
        (0, ["running", "pending", "pending"]),
        (100, ["done", "running", "pending"]),
        (200, ["done", "done", "running"]),
    ]


async def test_a_target_that_the_store_refuses_holds_up_the_next(autojump_clock: MockClock) -> None:
    """A result that is refused is offered again without fetching again, and nothing starts meanwhile."""
    fetch = ScriptedFetch()
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner, 2, times=3, operations={"record"})
        async with open_runner(store, fetch) as runner:
            submission = await runner.submit(ALICE, targets(3))
            job, _ = await drained(runner, submission.id)
    assert (job.status, job.targets_done) == ("done", 3)
    assert [call.started for call in fetch.calls] == [0, 0, 1 + 2 + 4]


async def test_each_stored_target_bumps_the_lease(autojump_clock: MockClock) -> None:
    """Every stored target, done or failed, moves the job's lease to its moment, and so its one expiry."""
    clock = WallClock(START)
    fetch = ScriptedFetch(latency=10, fail=["http://a.test/1"])
    async with running(fetch, now=clock, ttl=15, sweep_every=1) as runner:
        submission = await runner.submit(ALICE, targets(4))
        async with runner.watch(submission.id) as statuses:
            leases = [(job.targets_done, job.lease - START) async for job, _ in statuses]
        # The TTL is shorter than the job was long: no target has lapsed before the others.
        await trio.sleep(15)
        _, stored = await drained(runner, submission.id)
        assert [t.status for t in stored] == ["done", "failed", "done", "done"]
        await trio.sleep(1)
        assert await runner.status(submission.id) is None
    assert leases == [(0, 0), (1, 10), (2, 20), (3, 30), (4, 40)] or leases == [
        (0, 0),
        (0, 0),
        (1, 10),
        (2, 20),
        (3, 30),
        (4, 40),
    ]


@pytest.mark.parametrize("at", range(4))
async def test_a_failure_never_stops_the_job(at: int, autojump_clock: MockClock) -> None:
    """Whichever target fails, the others are fetched and the counters add up at every step."""
    errors = (TargetError("bad"), ValueError("bad"), TimeoutError(), MemoryError())
    fetch = ScriptedFetch(fail={f"http://a.test/{at}": errors[at]})
    async with running(fetch) as runner:
        submission = await runner.submit(ALICE, targets(4))
        async with runner.watch(submission.id) as statuses:
            async for job, stored in statuses:
                ended = [t for t in stored if t.status in {"done", "failed"}]
                assert job.targets_done == len(ended)
                assert job.targets_failed == sum(t.status == "failed" for t in ended)
                assert len(stored) == job.targets_total == 4
        assert (job.status, job.targets_done, job.targets_failed) == ("partial", 4, 1)
        assert stored[at].status == "failed"
    assert len(fetch.calls) == 4


async def test_how_a_job_ends_depends_on_all_its_targets(autojump_clock: MockClock) -> None:
    """All done makes a job `done`, all failed `failed`, anything else `partial`."""
    clock = WallClock(START)
    fetch = ScriptedFetch(latency=1, fail=["http://f.test/0", "http://f.test/1", "http://p.test/0"])
    async with running(fetch, now=clock) as runner:
        for host, state in (("d.test", "done"), ("f.test", "failed"), ("p.test", "partial")):
            began = int(clock())
            submission = await runner.submit(ALICE, targets(2, host))
            job, stored = await drained(runner, submission.id)
            assert job.status == state
            assert (job.started_at, job.finished_at, job.settled) == (began, began + 2, True)
            assert len(stored) == 2
            assert job.error == ""


async def test_a_worker_outlives_every_job(autojump_clock: MockClock) -> None:
    """After jobs that failed, timed out and were cancelled, the worker takes the next one at once."""
    fetch = ScriptedFetch(hang=["http://h1.test/0"], fail=["http://h0.test/0"])
    async with running(fetch, target_timeout=30, **WIDE) as runner:
        made = await _submit_many(runner, 4)
        await fetch.wait_started(2)
        await runner.cancel(made[1].id)
        await runner.drain()
        jobs = [await runner.job(one.id) for one in made]
    assert [job.status for job in jobs if job] == ["failed", "cancelled", "done", "done"]
    assert trio.current_time() == 30


async def test_a_fetch_gets_the_caller_and_target_that_were_submitted(autojump_clock: MockClock) -> None:
    """A fetch is given its own target and the whole caller of its submit, credentials included."""
    fetch = ScriptedFetch(latency=1)
    callers = [Caller(f"c{n}", f"w{n}", f"k{n}") for n in range(6)]
    async with running(fetch, workers=3, **WIDE) as runner:
        for n, caller in enumerate(callers):
            await runner.submit(caller, targets(2, f"h{n}.test"))
        await runner.drain()
    for n, caller in enumerate(callers):
        calls = [call for call in fetch.calls if call.caller == caller]
        assert [call.target.url for call in calls] == [f"http://h{n}.test/0", f"http://h{n}.test/1"]


async def test_a_batch_that_fails_whole_is_read_like_any_other(autojump_clock: MockClock) -> None:
    """When every target fails, each has its own error and the job is terminal."""
    async with running(raising(TargetError("refused", code="connect"))) as runner:
        submission = await runner.submit(BOB, targets(5))
        job, stored = await drained(runner, submission.id)
    assert (job.status, job.targets_done, job.targets_failed) == ("failed", 5, 5)
    assert [(t.error, t.code) for t in stored] == [("refused", "connect")] * 5


async def test_what_a_cancelled_job_stored_is_read_page_by_page(autojump_clock: MockClock) -> None:
    """Every stored target of a job that was cancelled half-way is read in pages; the rest is `pending`."""
    fetch = ScriptedFetch(latency=1)
    async with running(fetch, targets_per_job=50) as runner:
        submission = await runner.submit(ALICE, targets(50))
        await trio.sleep(29.5)
        await runner.cancel(submission.id)
        await runner.wait(submission.id)
        pages = []
        for start in range(0, 60, 10):
            status = await runner.status(submission.id, start=start, stop=start + 10)
            assert status is not None
            assert status.job.targets_done == 30
            pages.append(status.targets)
    assert [len(page) for page in pages] == [10, 10, 10, 10, 10, 0]
    read = [target for page in pages for target in page]
    assert [target.idx for target in read] == list(range(50))
    assert [target.result is not None for target in read] == [True] * 30 + [False] * 20
    assert {target.status for target in read[30:]} == {"pending"}


async def test_many_jobs_lose_and_mix_nothing(autojump_clock: MockClock) -> None:
    """A thousand targets in jobs side by side, busy, failing and done: each index has its own outcome."""
    busy_once: set[str] = set()

    async def fetch(caller: Caller, target: Target) -> Result:
        n = int(target.url.rsplit("/", 1)[1])
        await trio.sleep((n * 7 % 5) / 10)
        if n % 7 == 3 and target.url not in busy_once:
            busy_once.add(target.url)
            raise RetryLater(retry_after=0.5)
        if n % 20 == 9:
            raise ConnectionResetError(target.url)
        return Result(target.url)

    async with running(fetch, workers=4, targets_per_job=50, **WIDE) as runner:
        made = await _submit_many(runner, 20, size=50)
        await runner.drain()
        for number, one in enumerate(made):
            job, stored = await drained(runner, one.id)
            assert (job.targets_done, job.targets_failed) == (50, 3)
            for n, target in enumerate(stored):
                url = f"http://h{number}.test/{n}"
                assert (target.idx, target.url) == (n, url)
                if n % 20 == 9:
                    assert (target.status, target.error) == ("failed", url)
                else:
                    assert target.result == Result(url)
