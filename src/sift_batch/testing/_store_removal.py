"""The rules of a store for jobs that leave it: delete, evict, and what is remembered of them."""

from typing import Final

import trio

from .._model.lifecycle import JobState
from .._model.store import Created, Removed
from ._ledger import ALICE, BOB, CAPS, OWNER, SECRET, T0, TTL, Ledger, created, done
from ._rules import Rules, hold, same

rule: Final = Rules[Ledger]()

_WEEK: Final = 7 * 86_400
_REMEMBERED: Final = 10_000


async def _delete(ledger: Ledger, job_id: str, *, caller: str | None = None, now: int = T0) -> Removed | None:
    return await ledger.store.delete(OWNER, job_id, caller=caller, now=now, ttl=TTL)


async def _evict(ledger: Ledger, max_bytes: int, *, now: int = T0) -> str | None:
    removed = await ledger.store.evict(OWNER, max_bytes=max_bytes, now=now, ttl=TTL)
    return None if removed is None else removed.job_id


async def _gone(ledger: Ledger, job_id: str, *, caller: str = ALICE.name, now: int = T0) -> str | None:
    return await ledger.store.gone(job_id, caller=caller, now=now, ttl=TTL)


@rule("Delete removes a settled job whole and says how many bytes went, and of what class it was.")
async def _deletes(ledger: Ledger) -> None:
    for caller in (ALICE, SECRET):
        job = await ledger.ended("u", "v", caller=caller)
        same(await _delete(ledger, job.id), (job.id, job.nbytes, caller is SECRET), "what delete removed")
        same(await ledger.everything(), [], "the store after that")
        same(await _delete(ledger, job.id), None, "a second delete")
    hold(isinstance(await ledger.submit("u", "v"), Created), "a deleted job answers a submit")


@rule("Delete removes no job that is live, unsettled, unknown or another caller's.")
async def _delete_refused(ledger: Ledger) -> None:
    unsettled = await ledger.running("u")
    await ledger.stop(unsettled.id, in_flight=True)
    running = await ledger.running("v")
    queued = await ledger.queued("w")
    before = await ledger.everything()
    for job_id in (unsettled.id, running.id, queued.id, "0" * 32):
        same(await _delete(ledger, job_id), None, "delete")
    await ledger.store.settle(OWNER, unsettled.id, now=T0)
    same(await _delete(ledger, unsettled.id, caller=BOB.name), None, "delete by another caller")
    same(len(await ledger.everything()), len(before), "jobs after that")
    hold(await _delete(ledger, unsettled.id, caller=ALICE.name), "the job's own caller can't delete it")


@rule("A job that was removed takes nothing of another job with it.")
async def _removes_one(ledger: Ledger) -> None:
    jobs = [await ledger.ended("u", f"v{n}") for n in range(3)]
    kept = [await ledger.status(job.id) for job in (jobs[2], jobs[0])]
    await _delete(ledger, jobs[1].id)
    same(await ledger.everything(), kept, "the store after the middle one of three was deleted")


@rule("Evict removes nothing while the stored jobs are within the budget.")
async def _within_budget(ledger: Ledger) -> None:
    total = (await ledger.ended("u")).nbytes + (await ledger.ended("v", now=T0 + 1)).nbytes
    same(await _evict(ledger, total), None, "evict with a budget that is just met")
    hold(await _evict(ledger, total - 1), "evict removes nothing with one byte too many")


@rule("Evict removes one job a call: the settled one with the oldest lease, then in order of submission.")
async def _evict_order(ledger: Ledger) -> None:
    late = await ledger.ended("a", now=T0 + 9)
    early = await ledger.ended("b", now=T0 + 1)
    tied = [await ledger.ended(f"c{n}", now=T0 + 5) for n in range(3)]
    newest = await ledger.ended("d", now=T0 + 20)
    wanted = [early.id, *(job.id for job in tied), late.id]
    same([await _evict(ledger, 1) for _ in wanted], wanted, "jobs in the order of eviction")
    same(await ledger.jobs(), [newest.id], "jobs left")


@rule("The settled job with the newest lease stays, whatever its size; of equal leases the last submitted.")
async def _newest_stays(ledger: Ledger) -> None:
    first = await ledger.ended("u", now=T0)
    newest = await ledger.ended("v", now=T0, outcomes=[done("x" * 100_000)])
    same(await _evict(ledger, 10), first.id, "the first eviction")
    same(await _evict(ledger, 10), None, "evict with one settled job left")
    same(await ledger.jobs(), [newest.id], "jobs left")
    await ledger.running("w", now=T0 + 50)
    same(await _evict(ledger, 10), None, "evict with one settled and one live job left")


@rule("Evict never removes a live or an unsettled job, though their bytes count.")
async def _evict_settled_only(ledger: Ledger) -> None:
    unsettled = await ledger.running("a", now=T0 - 9)
    await ledger.stop(unsettled.id, now=T0 - 9, in_flight=True)
    running = await ledger.running("b", "c" * 1_000, now=T0 - 9)
    await ledger.record(running.id, 0, now=T0 - 9)
    settled = await ledger.queued("d")
    await ledger.stop(settled.id)
    newest = await ledger.queued("e", now=T0 + 1)
    await ledger.stop(newest.id, now=T0 + 1)
    queued = await ledger.queued("f", now=T0 - 9)
    same(await _evict(ledger, 500), settled.id, "evict with a live job over the budget")
    same(await _evict(ledger, 500), None, "evict with nothing left but live, unsettled and newest")
    same(await ledger.jobs(), [queued.id, newest.id, running.id, unsettled.id], "jobs left")


@rule("For evict too, a lease ahead of now by more than the ttl counts as now.")
async def _evict_future(ledger: Ledger) -> None:
    ahead = await ledger.ended("u", now=T0 + 10**6)
    newest = await ledger.ended("v", now=T0 + 5)
    same(await _evict(ledger, 10, now=T0), ahead.id, "the job evicted: the one whose lease was wrong")
    same(await ledger.jobs(now=T0), [newest.id], "jobs left")


@rule("Evict takes lapsed jobs that were not swept yet first.")
async def _evict_lapsed(ledger: Ledger) -> None:
    lapsed = await ledger.ended("u", now=T0)
    await ledger.ended("v", now=T0 + 1_000)
    same(await _evict(ledger, 10, now=T0 + 1_000), lapsed.id, "the job evicted")


@rule("Gone says why a job left: ttl, budget or deleted; a lapsed job is gone by ttl before its sweep.")
async def _reasons(ledger: Ledger) -> None:
    evicted = await ledger.ended("a", now=T0)
    swept = await ledger.ended("b", now=T0 + 1)
    deleted = await ledger.ended("c", now=T0 + 900)
    same([await _gone(ledger, job.id) for job in (evicted, swept, deleted)], [None] * 3, "gone while there")
    await _evict(ledger, 10, now=T0 + 1)
    same(await _gone(ledger, swept.id, now=T0 + 1 + int(TTL)), None, "gone in the last second")
    same(await _gone(ledger, swept.id, now=T0 + 900), "ttl", "gone of a lapsed job before its sweep")
    await ledger.store.sweep(OWNER, swept.id, now=T0 + 900, ttl=TTL)
    await _delete(ledger, deleted.id, now=T0 + 900)
    reasons = [await _gone(ledger, job.id, now=T0 + 900) for job in (evicted, swept, deleted)]
    same(reasons, ["budget", "ttl", "deleted"], "why the three jobs are gone")


@rule("Gone is None for what never was, what is there, and another caller's job.")
async def _gone_narrowed(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    lapsed = await ledger.ended("v", now=T0 - 900)
    live = await ledger.queued("w", now=T0 - 900)
    await _delete(ledger, job.id)
    same(await _gone(ledger, job.id, caller=BOB.name), None, "gone of another caller's deleted job")
    same(await _gone(ledger, lapsed.id, caller=BOB.name), None, "gone of another caller's lapsed job")
    same(await _gone(ledger, live.id), None, "gone of a live job with an old lease")
    same(await _gone(ledger, "0" * 32), None, "gone of a job that never was")


@rule("Nothing is remembered of a restricted caller's jobs.")
async def _gone_restricted(ledger: Ledger) -> None:
    job = await ledger.ended("u", caller=SECRET)
    same(await _gone(ledger, job.id, caller=SECRET.name, now=T0 + 900), None, "gone of its lapsed job")
    await _delete(ledger, job.id)
    same(await _gone(ledger, job.id, caller=SECRET.name), None, "gone of its deleted job")
    for n in range(2):
        swept = await ledger.ended(f"v{n}", caller=SECRET, now=T0 + n)
    await _evict(ledger, 1, now=T0 + 1)
    await ledger.store.sweep(OWNER, swept.id, now=T0 + 900, ttl=TTL)
    same(await ledger.everything(), [], "the store with all jobs removed")
    same(await _gone(ledger, swept.id, caller=SECRET.name), None, "gone of its swept job")


@rule("A job that left is remembered for 7 days.")
async def _a_week(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    await _delete(ledger, job.id)
    same(await _gone(ledger, job.id, now=T0 + _WEEK), "deleted", "gone in the last second of the week")
    same(await _gone(ledger, job.id, now=T0 + _WEEK + 1), None, "gone a second later")


@rule("At most 10,000 jobs that left are remembered, the last ones.")
async def _ten_thousand(ledger: Ledger) -> None:
    source = await ledger.ended("u")

    async def come_and_go() -> str:
        # A rerun with nothing left to fetch is settled at once: two steps a job.
        made = await ledger.store.rerun(
            OWNER, ledger.new_id(), source.id, caller=ALICE, now=T0, ttl=TTL, caps=CAPS
        )
        job_id = created(made).id
        await _delete(ledger, job_id)
        return job_id

    first = await come_and_go()
    for start in range(1, _REMEMBERED, 500):
        async with trio.open_nursery() as nursery:
            for _ in range(start, min(start + 500, _REMEMBERED)):
                nursery.start_soon(come_and_go)
    same(await _gone(ledger, first), "deleted", "gone of the first of 10,000 jobs that left")
    last = await come_and_go()
    same(await _gone(ledger, first), None, "gone of the first of 10,001 jobs that left")
    same(await _gone(ledger, last), "deleted", "gone of the last of them")


@rule("A cancelled job can be deleted as soon as it is settled, and its bytes leave the total.")
async def _delete_cancelled(ledger: Ledger) -> None:
    job = await ledger.running("u")
    await ledger.stop(job.id, in_flight=True)
    same(await _delete(ledger, job.id), None, "delete of an unsettled job")
    await ledger.record(job.id, 0)
    settled = await ledger.there(job.id)
    same(settled.status, JobState.CANCELLED, "its state")
    same(await _delete(ledger, job.id), (job.id, settled.nbytes, False), "what delete removed")
    await ledger.store.release(OWNER)
    same((await ledger.store.acquire(OWNER, now=T0)).stored_bytes, 0, "stored bytes of the empty store")
