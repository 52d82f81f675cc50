"""The rules of a store for reads: what they show, to whom, and how much of it."""

from dataclasses import replace
from math import inf
from typing import Final

from .._model.lifecycle import JobState
from .._model.store import NewJob
from .._model.values import JobStatus
from ._ledger import ALICE, BOB, CAPS, FAILED, OWNER, SECRET, T0, TTL, Ledger, done, series
from ._rules import Rules, hold, same

rule: Final = Rules[Ledger]()

_ODD_IDS: Final = ("", "0" * 32, "\0", "\ud800", "ü" * 32, "'; DROP TABLE batch_job; --", "x" * 100_000)


async def _status(ledger: Ledger, job_id: str, caller: str | None) -> JobStatus | None:
    return await ledger.store.status(job_id, caller=caller, now=T0, ttl=TTL, results=True, start=0, stop=None)


@rule("Another caller's job is an unknown id to every read that names the caller.")
async def _narrowed(ledger: Ledger) -> None:
    job = await ledger.ended("u", caller=ALICE)
    other = await ledger.ended("u", caller=BOB)
    same(await ledger.job(job.id, caller=BOB.name), None, "job of another caller")
    same(await _status(ledger, job.id, BOB.name), None, "status of another caller's job")
    same(await ledger.jobs(caller=BOB.name), [other.id], "jobs of one caller")
    same(await ledger.jobs(caller=BOB.name, before=job.id), None, "jobs before another caller's")
    same(await ledger.job(job.id, caller=ALICE.name), job, "job of its own caller")
    hold(await _status(ledger, job.id, ALICE.name), "the status of the caller's own job can't be read")
    same(await ledger.jobs(caller="nobody"), [], "jobs of a caller who has none")


@rule("What can't be an id is an unknown id, to reads and steps alike.")
async def _odd_ids(ledger: Ledger) -> None:
    await ledger.ended("u")
    before = await ledger.everything()
    store = ledger.store
    for odd in _ODD_IDS:
        same(await ledger.job(odd), None, "job of an odd id")
        same(await _status(ledger, odd, None), None, "status of an odd id")
        same(await ledger.jobs(before=odd), None, "jobs before an odd id")
        same(await store.gone(odd, caller=ALICE.name, now=T0, ttl=TTL), None, "gone of an odd id")
        same(await ledger.stop(odd), None, "stop of an odd id")
        same(await store.touch(OWNER, odd, caller=None, now=T0 + 9, ttl=TTL), False, "touch of an odd id")
        same(await store.delete(OWNER, odd, caller=None, now=T0, ttl=TTL), None, "delete of an odd id")
    same(await ledger.everything(), before, "the store after that")


@rule("Status without results leaves them out and keeps everything else, chars included.")
async def _without_results(ledger: Ledger) -> None:
    job = await ledger.ended("u", "v", "w", outcomes=[done("text é"), FAILED, done("")])
    job_with, full = await ledger.status(job.id)
    job_without, bare = await ledger.status(job.id, results=False)
    same(job_without, job_with, "the job beside a summary")
    same([item.result for item in bare], [None] * 3, "results of a summary")
    same([item.chars for item in bare], [6, 0, 0], "chars of a summary")
    wanted = tuple(replace(item, result=None) for item in full)
    same(bare, wanted, "targets of a summary, beside those read with results")


@rule("Status gives the targets with start <= idx < stop, in order.")
async def _window(ledger: Ledger) -> None:
    job = await ledger.queued(*(f"u{n}" for n in range(12)))
    for start, stop in (
        (0, None),
        (3, None),
        (3, 7),
        (0, 1),
        (11, 99),
        (5, 5),
        (7, 3),
        (12, None),
        (10**9, 10**20),
    ):
        found = await ledger.status(job.id, start=start, stop=stop)
        wanted = [f"u{n}" for n in range(12)][start:stop]
        same([item.url for item in found.targets], wanted, f"targets from {start} to {stop}")
        same(found.job.targets_total, 12, "total of the job beside them")


@rule("Jobs come newest submission first, at most `limit` of them, whatever the clock said.")
async def _listed(ledger: Ledger) -> None:
    ids = [(await ledger.queued(f"u{n}", now=T0 - n)).id for n in range(5)]
    newest_first = ids[::-1]
    same(await ledger.jobs(), newest_first, "all jobs")
    same(await ledger.jobs(limit=2), newest_first[:2], "two jobs")
    same(await ledger.jobs(before=newest_first[1], limit=2), newest_first[2:4], "two jobs of the next page")
    same(await ledger.jobs(before=newest_first[-1]), [], "jobs before the first")


@rule("Jobs can be narrowed to one state.")
async def _by_state(ledger: Ledger) -> None:
    wanted = {
        JobState.DONE: (await ledger.ended("a")).id,
        JobState.PARTIAL: (await ledger.ended("b", "c", outcomes=[done(), FAILED])).id,
        JobState.FAILED: (await ledger.ended("d", outcomes=[FAILED])).id,
    }
    cancelled = await ledger.queued("e")
    await ledger.stop(cancelled.id)
    wanted[JobState.CANCELLED] = cancelled.id
    wanted[JobState.RUNNING] = (await ledger.running("f")).id
    wanted[JobState.QUEUED] = (await ledger.queued("g")).id
    for state, job_id in wanted.items():
        same(await ledger.jobs(status=state), [job_id], f"jobs that are {state.value}")
        same(
            await ledger.jobs(status=state, caller=ALICE.name), [job_id], f"a caller's that are {state.value}"
        )
        same(
            await ledger.jobs(status=state, before=job_id), [], f"those before the one that is {state.value}"
        )


@rule("The class of a caller is read back with each job.")
async def _classes(ledger: Ledger) -> None:
    for caller in (ALICE, SECRET):
        job = await ledger.queued("u", caller=caller)
        same((job.caller, job.caller_class), (caller.name, caller.caller_class), "caller of a job")
        same(await ledger.there(job.id), job, "the job that is read")


@rule("A ttl without end lets nothing lapse.")
async def _for_ever(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    far = T0 + 10**9
    same(await ledger.store.job(job.id, caller=None, now=far, ttl=inf), job, "job after 30 years")
    same(list((await ledger.store.lapsed(now=far, ttl=inf)).job_ids), [], "lapsed after 30 years")
    same(await ledger.store.sweep(OWNER, job.id, now=far, ttl=inf), None, "sweep after 30 years")
    same(await ledger.store.evict(OWNER, max_bytes=10**9, now=far, ttl=inf), None, "evict within the budget")
    new = NewJob(id=ledger.new_id(), caller=BOB, targets=series("u"))
    await ledger.store.submit(OWNER, new, now=far, ttl=inf, caps=CAPS, max_age=inf)


@rule("A job's id can't be taken twice: the second submit under it fails and changes nothing.")
async def _ids(ledger: Ledger) -> None:
    job = await ledger.queued("u")
    before = await ledger.everything()
    taken = NewJob(id=job.id, caller=BOB, targets=series("v"))
    try:
        await ledger.store.submit(OWNER, taken, now=T0, ttl=TTL, caps=CAPS, max_age=None)
    except Exception:  # noqa: S110 - which one is the next rule's business
        pass
    else:
        raise AssertionError("an id is taken twice")
    same(await ledger.everything(), before, "the store after that")
