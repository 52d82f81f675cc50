"""The rules of a store for reruns: what is carried over, and what is refused."""

from typing import Final

from .._model.lifecycle import JobState
from .._model.store import CallerBusy, Caps, JobsBusy, RerunOutcome, Reused, UnknownJob, UnsettledJob
from .._model.values import Caller, Job
from ._ledger import (
    ALICE,
    BOB,
    CAPS,
    FAILED,
    OWNER,
    T0,
    TTL,
    Ledger,
    created,
    done,
    outcome_bytes,
    series,
    target_bytes,
)
from ._rules import Rules, present, same

rule: Final = Rules[Ledger]()


async def _rerun(
    ledger: Ledger, job_id: str, *, caller: Caller = ALICE, now: int = T0, caps: Caps = CAPS
) -> RerunOutcome:
    return await ledger.store.rerun(
        OWNER, ledger.new_id(), job_id, caller=caller, now=now, ttl=TTL, caps=caps
    )


async def _made(ledger: Ledger, job_id: str, *, now: int = T0) -> Job:
    outcome = await _rerun(ledger, job_id, now=now)
    return created(outcome)


@rule("A rerun carries the done targets over with their results; the others are to be fetched again.")
async def _carries_over(ledger: Ledger) -> None:
    outcomes = [FAILED, done("kept", n=1), FAILED]
    source = await ledger.ended("a", "b", "c", outcomes=outcomes)
    before = await ledger.status(source.id)
    job = await _made(ledger, source.id, now=T0 + 9)
    same(job, await ledger.there(job.id), "the job that rerun returns, beside the job that is read")
    same((job.status, job.settled, job.rerun_of), (JobState.QUEUED, False, source.id), "the new job")
    same((job.targets_total, job.targets_done, job.targets_failed), (3, 1, 0), "its counts")
    same((job.created_at, job.lease, job.started_at, job.finished_at), (T0 + 9, T0 + 9, None, None), "times")
    wanted = target_bytes(series("a", "b", "c")) + outcome_bytes(outcomes[1])
    same(job.nbytes, wanted, "its bytes: those of the result that was carried over, and no failure's")
    targets = await ledger.targets(job.id)
    same([item.status.value for item in targets], ["pending", "done", "pending"], "states of its targets")
    same([item.error + item.hint + item.code for item in targets], [""] * 3, "their errors")
    same([item.http_status for item in targets], [None] * 3, "their HTTP status")
    same((targets[1].result, targets[1].chars), (before.targets[1].result, 4), "what was carried over")
    same(await ledger.status(source.id), before, "the source after the rerun")


@rule("A rerun drains like any other job, over the targets that were not done.")
async def _drains(ledger: Ledger) -> None:
    source = await ledger.ended("a", "b", "c", outcomes=[done(), FAILED, FAILED])
    job = await _made(ledger, source.id)
    work = await ledger.begin()
    same(work.job.id, job.id, "the job that begins")
    same(list(work.targets), [(1, series("b")[0]), (2, series("c")[0])], "what is to be fetched")
    same(await ledger.states(job.id), ["done", "running", "pending"], "states of its targets")
    await ledger.record(job.id, 1)
    same(await ledger.states(job.id), ["done", "done", "running"], "states after the first record")
    await ledger.record(job.id, 2)
    after = await ledger.there(job.id)
    same((after.status, after.settled, after.targets_done), (JobState.DONE, True, 3), "how it ended")


@rule("A target marked running skips those that were carried over.")
async def _skips(ledger: Ledger) -> None:
    source = await ledger.ended("a", "b", "c", outcomes=[FAILED, done(), FAILED])
    job = await _made(ledger, source.id)
    await ledger.begin()
    await ledger.record(job.id, 0)
    same(await ledger.states(job.id), ["done", "done", "running"], "states after the first record")
    last = await ledger.record(job.id, 2, FAILED)
    ended = present(
        present(last, "the last target is not stored").job, "the last record does not end the job"
    )
    same((ended.status, ended.targets_failed), (JobState.PARTIAL, 1), "how it ended")


@rule("A rerun with nothing left to fetch is done and settled in the same step.")
async def _nothing_left(ledger: Ledger) -> None:
    source = await ledger.ended("a", "b")
    job = await _made(ledger, source.id, now=T0 + 9)
    same(job, await ledger.there(job.id), "the job that rerun returns, beside the job that is read")
    same((job.status, job.settled, job.finished_at), (JobState.DONE, True, T0 + 9), "the new job")
    same((job.targets_done, job.targets_failed, job.nbytes), (2, 0, source.nbytes), "its counts and bytes")
    same(await ledger.store.begin(OWNER, now=T0), None, "begin with nothing to fetch")


@rule("A submit equal to a rerun's source finds the rerun: it has the same key and is newer.")
async def _same_key(ledger: Ledger) -> None:
    source = await ledger.ended("a", "b", outcomes=[done(), FAILED])
    job = await _made(ledger, source.id)
    same(await ledger.submit("a", "b"), Reused(job.id), "the job that answers")


@rule("A cancelled job, and one that a restart failed, can be run again.")
async def _after_stop(ledger: Ledger) -> None:
    cancelled = await ledger.running("a", "b")
    await ledger.record(cancelled.id, 0)
    await ledger.stop(cancelled.id)
    job = await _made(ledger, cancelled.id)
    same(await ledger.states(job.id), ["done", "pending"], "targets of the first rerun")
    await ledger.store.release(OWNER)
    await ledger.store.acquire(OWNER, now=T0)
    again = await _made(ledger, job.id)
    same(await ledger.states(again.id), ["done", "pending"], "targets of the rerun of the rerun")
    same(again.rerun_of, job.id, "what it is a rerun of")


@rule(
    "A rerun of an unknown job, or another caller's, is UnknownJob; of a live or unsettled one UnsettledJob."
)
async def _refused(ledger: Ledger) -> None:
    source = await ledger.ended("a")
    unsettled = await ledger.running("b")
    await ledger.stop(unsettled.id, in_flight=True)
    running = await ledger.running("c")
    queued = await ledger.queued("d")
    before = await ledger.everything()
    same(await _rerun(ledger, "0" * 32), UnknownJob(), "rerun of no job")
    same(await _rerun(ledger, source.id, caller=BOB), UnknownJob(), "rerun of another caller's job")
    for job in (unsettled, running, queued):
        same(await _rerun(ledger, job.id), UnsettledJob(), "rerun of a job that is not settled")
        same(await _rerun(ledger, job.id, caller=BOB), UnknownJob(), "the same by another caller")
    same(await ledger.everything(), before, "the store after that")


@rule("The caps of a submit apply to a rerun.")
async def _caps(ledger: Ledger) -> None:
    source = await ledger.ended("a", outcomes=[FAILED])
    live = await ledger.queued("b")
    same(await _rerun(ledger, source.id, caps=Caps(1, 9)), CallerBusy(live.id), "the caller's cap reached")
    same(await _rerun(ledger, source.id, caps=Caps(9, 1)), JobsBusy(), "the total cap reached")
    same(len(await ledger.everything()), 2, "jobs after that")


@rule("A rerun outlives its source: it keeps the results when the source is removed.")
async def _outlives(ledger: Ledger) -> None:
    source = await ledger.ended("a", "b", outcomes=[done("kept"), FAILED])
    job = await _made(ledger, source.id)
    await ledger.store.delete(OWNER, source.id, caller=None, now=T0, ttl=TTL)
    (kept, _) = await ledger.targets(job.id)
    same(kept.result and kept.result.content, "kept", "the result that was carried over")
    same(await ledger.there(job.id), job, "the rerun after its source is gone")
