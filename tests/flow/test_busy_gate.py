"""The engine and the gate together: limits, order, and how close to the ideal schedule they come."""

import random

import pytest
import trio
from flow_desk import ALICE, drained, running, targets
from trio.testing import MockClock

from sift_batch import Caller, Gate, RetryLater, Target
from sift_batch.testing import ScriptedFetch

WIDE = {"jobs_per_caller": 1_000, "jobs_total": 1_000, "workers_limit": 1_000}


def _idle(gate: Gate) -> bool:
    now = gate.statistics()
    return (now.in_use, now.waiting, now.held) == (0, 0, 0) and not gate._plan.hosts


async def test_320_jobs_take_the_ideal_time(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """320 jobs of one target on 8 hosts, 20 ms each, take at most 1.05 times 0.8 s, grouped or mixed."""
    # Trio shuffles who comes first, and the last rounds depend on it.
    monkeypatch.setattr(trio._core._run, "_r", random.Random(0))
    for grouped in (False, True):
        gate, fetch = Gate(), ScriptedFetch(latency=0.02)
        async with running(gate.batch(fetch), workers=320, **WIDE) as runner:
            for n in range(320):
                host = n // 40 if grouped else n % 8
                await runner.submit(ALICE, [Target(f"http://h{host}.test/{n}")])
            began = trio.current_time()
            await runner.drain()
            assert round((trio.current_time() - began) / 0.8, 6) <= 1.05
            assert len(await runner.jobs(status=None, limit=400)) == 320
        assert len(fetch.calls) == 320
        assert fetch.peak == 8
        assert max(fetch.peak_by_host.values()) <= 2
        assert _idle(gate)


async def test_a_contended_host_has_no_idle_gaps(autojump_clock: MockClock) -> None:
    """Six jobs on one host with room for two take at most 1.1 times the ideal, and no slot is ever idle."""
    gate, fetch = Gate(), ScriptedFetch(latency=1)
    async with running(gate.batch(fetch), workers=6, **WIDE) as runner:
        for n in range(6):
            await runner.submit(ALICE, [Target(f"http://one.test/{n}/{k}") for k in range(5)])
        began = trio.current_time()
        await runner.drain()
        assert trio.current_time() - began <= 15 * 1.1
    starts = sorted(call.started for call in fetch.calls)
    ends = sorted(call.ended for call in fetch.calls if call.ended is not None)
    # From the third on, each fetch starts in the moment in which one before it ends.
    assert [round(when, 6) for when in starts[2:]] == [round(when, 6) for when in ends[:-2]]
    assert fetch.peak == 2
    assert _idle(gate)


async def test_the_limits_are_never_broken(autojump_clock: MockClock) -> None:
    """Never more than 8 fetches in all and 2 of one host, whatever mix of hosts, spellings and lengths."""
    gate = Gate()
    hosts = ["a.test", "A.TEST", "a.test.", "a.test:80", "b.test", "c.test", "d.test", "e.test", "f.test"]
    fetch = ScriptedFetch(
        latency={f"http://{host}/{n}": 0.1 + n % 5 / 10 for host in hosts for n in range(40)}
    )
    async with running(gate.batch(fetch), workers=30, **WIDE) as runner:
        for n in range(40):
            await runner.submit(ALICE, [Target(f"http://{host}/{n}") for host in hosts])
        await runner.drain()
    assert len(fetch.calls) == 360
    assert fetch.peak == 8
    spellings = [sum(fetch.peak_by_host.get(name, 0) for name in names) for names in ([*"bcdef"], ["a.test"])]
    assert spellings[1] <= 2
    assert max(fetch.peak_by_host.values()) <= 2
    assert _idle(gate)


async def test_a_slow_host_starves_nobody(autojump_clock: MockClock) -> None:
    """Twenty jobs that wait for a slow host keep no slot: a job on an idle host starts at once."""
    gate = Gate()
    fetch = ScriptedFetch(hang=[f"http://slow.test/{n}" for n in range(20)])
    async with running(gate.batch(fetch), workers=40, target_timeout=1e6, **WIDE) as runner:
        for n in range(20):
            await runner.submit(ALICE, [Target(f"http://slow.test/{n}")])
        await trio.sleep(100)
        assert (fetch.in_flight, gate.statistics().waiting_batch) == (2, 18)
        began = trio.current_time()
        submission = await runner.submit(ALICE, targets(3, "fast.test"))
        await drained(runner, submission.id)
        assert trio.current_time() == began
        fetch.release()
        await runner.drain()
    assert len(fetch.calls) == 23
    assert _idle(gate)


async def test_waiting_for_the_gate_never_fails_a_target(autojump_clock: MockClock) -> None:
    """A target that waits for its host for a day is fetched in the end, whatever `retry_for` says."""
    gate = Gate(total=1, per_host=1)
    fetch = ScriptedFetch()
    async with running(gate.batch(fetch), retry_for=1, job_timeout=1e9) as runner:
        async with gate.slot("http://a.test/"):
            submission = await runner.submit(ALICE, targets(2))
            await trio.sleep(80_000)
            progress = runner.progress(submission.id)
            assert progress is not None
            assert progress.reason == "gate"
            assert fetch.calls == []
        job, _ = await drained(runner, submission.id)
        assert job.status == "done"
        assert [call.started for call in fetch.calls] == [80_000, 80_000]


async def test_a_hold_counts_as_busy(autojump_clock: MockClock) -> None:
    """A held host is reason `host`: its targets wait for the end of the hold, and at most `retry_for`."""
    gate, fetch = Gate(), ScriptedFetch()
    async with running(gate.batch(fetch), retry_for=100, workers=2) as runner:
        gate.hold("http://a.test/", 50)
        gate.hold("http://b.test/", 500)
        ids = [(await runner.submit(Caller(host), targets(1, f"{host}.test"))).id for host in "ab"]
        stored = [(await drained(runner, job_id))[1][0] for job_id in ids]
        await trio.sleep(500)
    assert [(t.status, t.code) for t in stored] == [("done", ""), ("failed", "busy")]
    assert [call.started for call in fetch.calls] == pytest.approx([50])
    assert _idle(gate)


async def test_a_cancel_while_waiting_for_the_gate_fetches_nothing(autojump_clock: MockClock) -> None:
    """A job that is cancelled while it waits at the gate is never fetched, and leaves nothing there."""
    gate, fetch = Gate(total=2, per_host=2), ScriptedFetch()
    async with running(gate.batch(fetch), workers=9, **WIDE) as runner:
        async with gate.slot("http://a.test/"), gate.slot("http://b.test/"):
            ids = [(await runner.submit(ALICE, targets(2, f"{host}.test"))).id for host in "abcd"]
            await trio.sleep(10)
            assert gate.statistics().waiting_batch == 4
            for job_id in ids[:3]:
                assert await runner.cancel(job_id)
                job, stored = await drained(runner, job_id)
                assert (job.status, [t.status for t in stored]) == ("cancelled", ["pending"] * 2)
            assert gate.statistics().waiting_batch == 1
        await runner.drain()
    assert fetch.order == ["http://d.test/0", "http://d.test/1"]
    assert _idle(gate)


async def test_no_slot_is_held_while_a_target_waits(autojump_clock: MockClock) -> None:
    """A fetch that says busy from inside its slot has given the slot back before the wait begins."""
    gate = Gate(total=1, per_host=1)
    fetch = ScriptedFetch()
    fetch.busy("http://a.test/0", 1, RetryLater(retry_after=100))
    async with running(gate.batch(fetch), workers=2, jobs_total=9) as runner:
        first = await runner.submit(ALICE, targets(1))
        await trio.sleep(1)
        assert gate.statistics().in_use == 0
        second = await runner.submit(Caller("bob"), targets(3, "b.test"))
        await drained(runner, second.id)
        assert trio.current_time() == 1
        await drained(runner, first.id)
        assert trio.current_time() == 100


async def test_targets_of_one_host_go_oldest_first(autojump_clock: MockClock) -> None:
    """Targets that wait for one host are fetched in the order of their first refusals."""
    gate, fetch = Gate(total=1, per_host=1), ScriptedFetch(latency=5)
    async with running(gate.batch(fetch), workers=20, **WIDE) as runner:
        for n in range(12):
            await runner.submit(ALICE, [Target(f"http://one.test/{n}")])
            await trio.sleep(0.25)
        await runner.drain()
    assert fetch.order == [f"http://one.test/{n}" for n in range(12)]
