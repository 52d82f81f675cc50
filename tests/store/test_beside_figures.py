"""Are the figures of a store those of its jobs, and the victims those that are evicted?"""

from pathlib import Path

import pytest

from sift_batch import open_store
from sift_batch._store.beside import count_store
from sift_batch.testing._ledger import ALICE, BOB, FAILED, OWNER, SECRET, T0, TTL, Ledger

pytestmark = pytest.mark.real


async def test_each_caller_has_its_figures(tmp_path: Path) -> None:
    """Live, stored and lapsed jobs, bytes and the oldest lease are each caller's own."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        old = await ledger.ended("u", caller=ALICE, now=T0)
        young = await ledger.ended("v", "w", caller=ALICE, now=T0 + 50, outcomes=[FAILED, FAILED])
        live = await ledger.running("x", caller=BOB, now=T0 + 60)
        found = await count_store(path, now=T0 + TTL + 1, ttl=TTL, max_bytes=10**6)
    by_name = {item.caller: item for item in found.callers}
    assert set(by_name) == {"alice", "bob"}
    alice, bob = by_name["alice"], by_name["bob"]
    assert (alice.jobs, alice.live, alice.lapsed, alice.oldest_lease) == (2, 0, 1, T0)
    assert alice.nbytes == old.nbytes + young.nbytes
    assert (bob.jobs, bob.live, bob.lapsed, bob.oldest_lease, bob.nbytes) == (1, 1, 0, None, live.nbytes)
    assert (found.jobs, found.live) == (3, 1)
    assert found.nbytes == alice.nbytes + bob.nbytes
    assert found.file_bytes >= found.nbytes


async def test_an_empty_store(tmp_path: Path) -> None:
    """A store without a job has figures, all of them 0."""
    path = tmp_path / "jobs.sift"
    async with open_store(path):
        pass
    found = await count_store(path, now=T0, ttl=float("inf"), max_bytes=1)
    assert (found.jobs, found.live, found.nbytes, found.callers, found.victims) == (0, 0, 0, (), ())


@pytest.mark.parametrize("kept", [0, 1, 3, 6, 99])
async def test_victims_are_evicted_in_their_order(tmp_path: Path, kept: int) -> None:
    """The jobs named are those that an eviction removes, in order; over the budget are those that go now."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        # The leases run against the order of submission; one is ahead of every clock; one job is live.
        for number, lease in enumerate([50, 40, 10**9, 30, 20, 50, 60]):
            caller = (ALICE, BOB, SECRET)[number % 3]
            await ledger.ended("u" * 50 * (number + 1), caller=caller, now=T0 + lease)
        await ledger.queued("live")
        now = T0 + 100
        whole = await count_store(path, now=now, ttl=TTL, max_bytes=10**9, victims=99)
        assert len(whole.victims) == 6
        assert not any(item.over for item in whole.victims)
        budget = max(1, sum(item.nbytes for item in whole.victims[:kept]))
        found = await count_store(path, now=now, ttl=TTL, max_bytes=budget, victims=99)
        assert [item.job_id for item in found.victims] == [item.job_id for item in whole.victims]
        gone = []
        while removed := await store.evict(OWNER, max_bytes=budget, now=now, ttl=TTL):
            gone.append(removed.job_id)
        assert [item.job_id for item in found.victims if item.over] == gone


async def test_as_many_victims_as_asked(tmp_path: Path) -> None:
    """No more victims are named than were asked for."""
    path = tmp_path / "jobs.sift"
    async with open_store(path) as store:
        await store.acquire(OWNER, now=T0)
        ledger = Ledger(store)
        ids = [(await ledger.ended(str(number), now=T0 + number)).id for number in range(5)]
        for asked in (0, 1, 2):
            found = await count_store(path, now=T0, ttl=TTL, max_bytes=1, victims=asked)
            assert [item.job_id for item in found.victims] == ids[:asked]
