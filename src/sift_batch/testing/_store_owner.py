"""The rules of a store for its owner: acquire, release, and what a restart puts right."""

from collections.abc import Awaitable, Callable
from typing import Final

import trio

from .._model.errors import StoreError, StoreInUseError
from .._model.lifecycle import JobEvent, JobState
from .._model.store import NewJob
from ._ledger import ALICE, BOB, CAPS, OWNER, T0, TTL, Ledger, done, series
from ._rules import Rules, hold, same

rule: Final = Rules[Ledger]()

_OTHER: Final = "owner-2"


def steps(ledger: Ledger, owner: str, job_id: str) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return a call of each step that changes something, for that owner and job."""
    store, new = ledger.store, NewJob(id=ledger.new_id(), caller=BOB, targets=series("n"))
    return {
        "submit": lambda: store.submit(owner, new, now=T0, ttl=TTL, caps=CAPS, max_age=None),
        "rerun": lambda: store.rerun(owner, new.id, job_id, caller=ALICE, now=T0, ttl=TTL, caps=CAPS),
        "begin": lambda: store.begin(owner, now=T0),
        "record": lambda: store.record(owner, job_id, 0, done(), now=T0),
        "stop": lambda: store.stop(owner, job_id, JobEvent.CANCEL, caller=None, now=T0, in_flight=False),
        "settle": lambda: store.settle(owner, job_id, now=T0),
        "touch": lambda: store.touch(owner, job_id, caller=None, now=T0 + 1, ttl=TTL),
        "delete": lambda: store.delete(owner, job_id, caller=None, now=T0, ttl=TTL),
        "sweep": lambda: store.sweep(owner, job_id, now=T0 + 1_000, ttl=TTL),
        "evict": lambda: store.evict(owner, max_bytes=1, now=T0, ttl=TTL),
        "erase": lambda: store.erase(owner),
        "check": lambda: store.check(owner, now=T0),
    }


@rule("While there is an owner, another one gets StoreInUseError and changes nothing.")
async def _one_owner(ledger: Ledger) -> None:
    await ledger.running("u", "v")
    before = await ledger.everything()
    for owner in (_OTHER, OWNER):
        try:
            await ledger.store.acquire(owner, now=T0 + 9)
        except StoreInUseError:
            continue
        raise AssertionError("the store has an owner and is acquired a second time")
    same(await ledger.everything(), before, "the store after that")
    hold(await ledger.stop(before[0].job.id), "the owner has lost the store")


@rule("Of two acquires at the same time exactly one gets the store, the other one StoreInUseError.")
async def _one_of_two(ledger: Ledger) -> None:
    await ledger.store.release(OWNER)
    owners: list[str] = []
    refused: list[str] = []

    async def acquire(owner: str) -> None:
        try:
            await ledger.store.acquire(owner, now=T0)
        except StoreInUseError:
            refused.append(owner)
        else:
            owners.append(owner)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(acquire, OWNER)
        nursery.start_soon(acquire, _OTHER)
    same((len(owners), len(refused)), (1, 1), "acquires that got the store, and that were refused")
    await ledger.store.check(owners[0], now=T0)
    await ledger.store.release(refused[0])
    await ledger.store.check(owners[0], now=T0)
    await ledger.store.release(owners[0])
    await ledger.store.acquire(OWNER, now=T0)


@rule("A step without an owner, or by one that is not the owner, is a StoreError and changes nothing.")
async def _owners_only(ledger: Ledger) -> None:
    running = await ledger.running("u", "v")
    await ledger.queued("w")
    before = await ledger.everything()
    await _all_refused(ledger, _OTHER, running.id)
    same(await ledger.everything(), before, "the store after steps of another owner")
    await ledger.store.release(OWNER)
    await _all_refused(ledger, OWNER, running.id)
    same(await ledger.everything(), before, "the store after steps without an owner")
    await ledger.store.acquire(OWNER, now=T0)


async def _all_refused(ledger: Ledger, owner: str, job_id: str) -> None:
    for name, step in steps(ledger, owner, job_id).items():
        try:
            await step()
        except StoreError:
            continue
        raise AssertionError(f"{name} works for somebody who is not the owner")


@rule("Only the owner can release a store; a release of somebody else is no error.")
async def _release(ledger: Ledger) -> None:
    await ledger.store.release(_OTHER)
    await ledger.queued("u")
    await ledger.store.release(OWNER)
    await ledger.store.release(OWNER)
    await ledger.store.acquire(_OTHER, now=T0)
    await ledger.store.release(_OTHER)
    await ledger.store.acquire(OWNER, now=T0)
    await ledger.queued("v")


@rule("Reads need no owner.")
async def _reads_need_no_owner(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    await ledger.store.release(OWNER)
    same(await ledger.job(job.id), job, "a job read without an owner")
    same(await ledger.jobs(), [job.id], "jobs listed without an owner")
    await ledger.store.acquire(OWNER, now=T0)


@rule("A restart fails live jobs with the error restart, finished_at and lease now, and settles them.")
async def _restart_live(ledger: Ledger) -> None:
    running = await ledger.running("u", "v", "w")
    await ledger.record(running.id, 0, done("kept"))
    queued = await ledger.queued("x", caller=BOB)
    versions = {job.id: job.version for job, _ in await ledger.everything()}
    await ledger.store.release(OWNER)
    found = await ledger.store.acquire(OWNER, now=T0 + 500)
    same([job.id for job in found.failed], [running.id, queued.id], "the jobs that acquire says it failed")
    for job in found.failed:
        same(job, await ledger.there(job.id, now=T0 + 500), "the job that acquire returns, beside the read")
        same((job.status, job.settled, job.error), (JobState.FAILED, True, "restart"), "how it ended")
        same((job.finished_at, job.lease), (T0 + 500, T0 + 500), "its times")
        hold(job.version > versions[job.id], "a restart does not raise the version")
    same(await ledger.states(running.id), ["done", "pending", "pending"], "targets of the running job")
    (kept, *_) = await ledger.targets(running.id)
    same(kept.result and kept.result.content, "kept", "the result that was stored before")
    same(found.stored_bytes, sum(job.nbytes for job, _ in await ledger.everything()), "stored bytes")
    same(await ledger.store.begin(OWNER, now=T0 + 500), None, "begin after a restart: jobs are not resumed")
    same(await ledger.record(running.id, 1), None, "record by who lost the job")


@rule("A restart settles stopped jobs as they ended, their running target back to pending.")
async def _restart_unsettled(ledger: Ledger) -> None:
    job = await ledger.running("u", "v")
    stopped = await ledger.stopped(job.id, in_flight=True, now=T0 + 1)
    await ledger.store.release(OWNER)
    found = await ledger.store.acquire(OWNER, now=T0 + 9)
    same(list(found.failed), [], "jobs that acquire says it failed")
    after = await ledger.there(job.id)
    same((after.status, after.settled, after.error), (JobState.CANCELLED, True, ""), "the stopped job")
    same(after.finished_at, T0 + 1, "its end")
    hold(after.version > stopped.version, "a restart that settles a job does not raise its version")
    same(await ledger.states(job.id), ["pending", "pending"], "its targets")


@rule("A second restart changes nothing, and a restart changes no settled job.")
async def _restart_twice(ledger: Ledger) -> None:
    finished = await ledger.ended("a", "b")
    before = await ledger.status(finished.id)
    await ledger.running("u", "v")
    await ledger.queued("w")
    await ledger.store.release(OWNER)
    first = await ledger.store.acquire(OWNER, now=T0 + 5)
    same(await ledger.status(finished.id), before, "a settled job after a restart")
    once = await ledger.everything()
    await ledger.store.release(OWNER)
    second = await ledger.store.acquire(OWNER, now=T0 + 50)
    same(list(second.failed), [], "jobs failed by the second restart")
    same(second.stored_bytes, first.stored_bytes, "stored bytes at the second restart")
    same(await ledger.everything(), once, "the store after the second restart")
