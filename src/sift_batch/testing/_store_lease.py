"""The rules of a store for leases: when a job lapses, and what keeps it."""

from typing import Final

from .._model.store import UnknownJob
from ._ledger import ALICE, BOB, CAPS, OWNER, SECRET, T0, TTL, Ledger
from ._rules import Rules, hold, same

rule: Final = Rules[Ledger]()

_LAST: Final = T0 + int(TTL)  # the last second at which a lease of T0 holds


@rule("A job is readable while now - lease <= ttl, in whole seconds, and gone for every reader after.")
async def _lapse(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    same(await ledger.job(job.id, now=_LAST), job, "job in the last second")
    same(await ledger.jobs(now=_LAST), [job.id], "jobs in the last second")
    now = _LAST + 1
    same(await ledger.job(job.id, now=now), None, "job a second later")
    same(await ledger.jobs(now=now), [], "jobs a second later")
    same(await ledger.jobs(caller=ALICE.name, now=now), [], "jobs of the caller a second later")
    same(await ledger.jobs(before=job.id, now=now), None, "jobs before a lapsed one")
    status = await ledger.store.status(
        job.id, caller=None, now=now, ttl=TTL, results=True, start=0, stop=None
    )
    same(status, None, "status a second later")


@rule("A ttl may hold a fraction of a second; the whole seconds of an age are compared with it.")
async def _fraction(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    for now, there in ((T0 + 2, True), (T0 + 3, False)):
        read = await ledger.store.job(job.id, caller=None, now=now, ttl=2.5)
        same(read is not None, there, f"whether a job with a ttl of 2.5 s is there after {now - T0} s")


@rule("A lapsed job can't be touched, deleted or run again.")
async def _lapsed_is_gone(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    before = await ledger.everything()
    now, store = _LAST + 1, ledger.store
    same(await store.touch(OWNER, job.id, caller=None, now=now, ttl=TTL), False, "touch")
    same(await store.delete(OWNER, job.id, caller=None, now=now, ttl=TTL), None, "delete")
    rerun = await store.rerun(OWNER, ledger.new_id(), job.id, caller=ALICE, now=now, ttl=TTL, caps=CAPS)
    same(rerun, UnknownJob(), "rerun")
    same(await ledger.everything(), before, "the store after that")


@rule("Live and unsettled jobs never lapse.")
async def _live_never_lapses(ledger: Ledger) -> None:
    unsettled = await ledger.running("u")
    await ledger.stop(unsettled.id, in_flight=True)
    running = await ledger.running("v")
    queued = await ledger.queued("w")
    now = T0 + 10**6
    same(await ledger.jobs(now=now), [queued.id, running.id, unsettled.id], "jobs that can be read")
    same(list((await ledger.store.lapsed(now=now, ttl=TTL)).job_ids), [], "jobs that are lapsed")
    for job_id in (unsettled.id, running.id, queued.id):
        await ledger.there(job_id, now=now)
        same(await ledger.store.sweep(OWNER, job_id, now=now, ttl=TTL), None, "sweep")
    hold(await ledger.stop(queued.id, now=now), "a queued job with an old lease can't be stopped")


@rule("Touch sets the lease to now, never backwards, and raises no version.")
async def _touch(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    store = ledger.store
    same(await store.touch(OWNER, job.id, caller=None, now=T0 + 40, ttl=TTL), True, "touch")
    same((await ledger.there(job.id)).lease, T0 + 40, "lease after a touch")
    same(await store.touch(OWNER, job.id, caller=ALICE.name, now=T0 + 20, ttl=TTL), True, "touch, clock back")
    after = await ledger.there(job.id)
    same((after.lease, after.version), (T0 + 40, job.version), "lease and version after a touch, clock back")
    await ledger.there(job.id, now=T0 + 40 + int(TTL))
    running = await ledger.running("v")
    same(await store.touch(OWNER, running.id, caller=None, now=T0 + 9, ttl=TTL), True, "touch of a live job")
    same((await ledger.there(running.id)).lease, T0 + 9, "lease of the live job")


@rule("Touch is False for a job that is not there, and for another caller's.")
async def _touch_unknown(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    store = ledger.store
    same(await store.touch(OWNER, "0" * 32, caller=None, now=T0 + 5, ttl=TTL), False, "touch of no job")
    same(await store.touch(OWNER, job.id, caller=BOB.name, now=T0 + 5, ttl=TTL), False, "touch by another")
    same((await ledger.there(job.id)).lease, T0, "lease after that")


@rule("Reads never move a lease.")
async def _reads_move_nothing(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    await ledger.job(job.id, now=T0 + 50)
    await ledger.jobs(now=T0 + 50)
    await ledger.store.gone(job.id, caller=ALICE.name, now=T0 + 50, ttl=TTL)
    await ledger.store.lapsed(now=T0 + 50, ttl=TTL)
    await ledger.store.status(job.id, caller=None, now=T0 + 50, ttl=TTL, results=True, start=0, stop=None)
    same(await ledger.there(job.id), job, "the job after all reads")


@rule("Lapsed names jobs to sweep, and the oldest lease of the jobs that are settled and not lapsed.")
async def _lapsed(ledger: Ledger) -> None:
    same(await ledger.store.lapsed(now=T0, ttl=TTL), ([], None), "lapsed of an empty store")
    old = await ledger.ended("u", now=T0)
    young = await ledger.ended("v", now=T0 + 30)
    await ledger.running("w", now=T0 - 500)
    found = await ledger.store.lapsed(now=_LAST, ttl=TTL)
    same((list(found.job_ids), found.oldest_lease), ([], T0), "lapsed in the last second")
    found = await ledger.store.lapsed(now=_LAST + 1, ttl=TTL)
    same((list(found.job_ids), found.oldest_lease), ([old.id], T0 + 30), "lapsed a second later")
    found = await ledger.store.lapsed(now=T0 + 1_000, ttl=TTL)
    same((set(found.job_ids), found.oldest_lease), ({old.id, young.id}, None), "lapsed with all jobs lapsed")


@rule("Sweep asks again: what was touched since, or never lapsed, stays.")
async def _sweep_asks_again(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    same(list((await ledger.store.lapsed(now=_LAST + 1, ttl=TTL)).job_ids), [job.id], "lapsed")
    await ledger.store.touch(OWNER, job.id, caller=None, now=_LAST, ttl=TTL)
    same(await ledger.store.sweep(OWNER, job.id, now=_LAST + 1, ttl=TTL), None, "sweep of a touched job")
    same(await ledger.store.sweep(OWNER, "0" * 32, now=_LAST + 1, ttl=TTL), None, "sweep of no job")
    await ledger.there(job.id, now=_LAST + 1)


@rule("Sweep removes a lapsed job whole and says how many bytes went, and of what class it was.")
async def _sweep(ledger: Ledger) -> None:
    for caller in (ALICE, SECRET):
        job = await ledger.ended("u", "v", caller=caller)
        removed = await ledger.store.sweep(OWNER, job.id, now=_LAST + 1, ttl=TTL)
        same(removed, (job.id, job.nbytes, caller is SECRET), "what sweep removed")
        same(await ledger.everything(), [], "the store after that")
        same(await ledger.store.sweep(OWNER, job.id, now=_LAST + 1, ttl=TTL), None, "a second sweep")


@rule("A lease ahead of now by more than the ttl counts as now, and sweep sets it so.")
async def _future_lease(ledger: Ledger) -> None:
    ahead = await ledger.ended("u", now=T0 + int(TTL) + 1)
    at_the_edge = await ledger.ended("v", now=T0 + int(TTL))
    found = await ledger.store.lapsed(now=T0, ttl=TTL)
    same(list(found.job_ids), [ahead.id], "jobs for the sweep to look at")
    for job in (ahead, at_the_edge):
        same(await ledger.job(job.id, now=T0), job, "a job of a clock that was ahead, read")
        same(await ledger.store.sweep(OWNER, job.id, now=T0, ttl=TTL), None, "its sweep")
    same((await ledger.there(ahead.id)).lease, T0, "a lease ahead by more than the ttl, after the sweep")
    same((await ledger.there(at_the_edge.id)).lease, T0 + int(TTL), "a lease ahead by the ttl, after it")
    same(await ledger.job(ahead.id, now=_LAST + 1), None, "the job a ttl after the sweep")
