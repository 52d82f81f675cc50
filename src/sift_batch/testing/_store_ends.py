"""The rules of a store for jobs that are ended from outside: stop and settle."""

from typing import Final

from .._model.lifecycle import JobEvent, JobState
from ._ledger import ALICE, BOB, FAILED, OWNER, T0, Ledger, done
from ._rules import Rules, hold, present, same

rule: Final = Rules[Ledger]()


@rule("A queued job that is cancelled is settled at once, and never begins.")
async def _stop_queued(ledger: Ledger) -> None:
    job = await ledger.queued("u", "v")
    stopped = await ledger.stopped(job.id, now=T0 + 3)
    same(stopped, await ledger.there(job.id), "the job that stop returns, beside the job that is read")
    same((stopped.status, stopped.settled, stopped.error), (JobState.CANCELLED, True, ""), "how it ended")
    same((stopped.started_at, stopped.finished_at, stopped.lease), (None, T0 + 3, T0 + 3), "its times")
    hold(stopped.version > job.version, "stop does not raise the version")
    same(await ledger.states(job.id), ["pending", "pending"], "its targets")
    same(await ledger.store.begin(OWNER, now=T0), None, "begin with nothing but a cancelled job")


@rule("With nothing in flight, stop puts the target that was marked running back to pending.")
async def _stop_idle(ledger: Ledger) -> None:
    job = await ledger.running("u", "v", "w")
    await ledger.record(job.id, 0)
    stopped = await ledger.stopped(job.id)
    same((stopped.status, stopped.settled), (JobState.CANCELLED, True), "how the job ended")
    same(await ledger.states(job.id), ["done", "pending", "pending"], "states of its targets")
    same(await ledger.record(job.id, 1), None, "record into the settled job")


@rule("With a fetch in flight, stop leaves the job unsettled; record settles it and marks nothing more.")
async def _stop_in_flight(ledger: Ledger) -> None:
    job = await ledger.running("u", "v", "w")
    stopped = await ledger.stopped(job.id, in_flight=True, now=T0 + 1)
    same((stopped.status, stopped.settled, stopped.finished_at), (JobState.CANCELLED, False, T0 + 1), "stop")
    same(await ledger.states(job.id), ["running", "pending", "pending"], "its targets meanwhile")
    recorded = await ledger.record(job.id, 0, done("late"), now=T0 + 9)
    settled = await ledger.there(job.id)
    last = present(recorded, "a result that comes after a stop is not stored")
    same(last.ended, False, "whether the record that settles says that it ended the job")
    same(last.job, settled, "the job that record returns, beside the job that is read")
    same((settled.status, settled.settled, settled.error), (JobState.CANCELLED, True, ""), "the settled job")
    same((settled.finished_at, settled.lease, settled.targets_done), (T0 + 1, T0 + 9, 1), "its times, count")
    hold(settled.version > stopped.version, "settling does not raise the version")
    same(await ledger.states(job.id), ["done", "pending", "pending"], "its targets in the end")


@rule("A job that was cancelled stays cancelled when its last target is stored.")
async def _last_into_stopped(ledger: Ledger) -> None:
    for outcome in (done(), FAILED):
        job = await ledger.running("u")
        await ledger.stop(job.id, in_flight=True, now=T0 + 1)
        await ledger.record(job.id, 0, outcome, now=T0 + 2)
        ended = await ledger.there(job.id)
        same((ended.status, ended.settled, ended.finished_at), (JobState.CANCELLED, True, T0 + 1), "the job")
        same(ended.targets_failed, int(outcome is FAILED), "its failed targets")


@rule("Settle settles a stopped job, its running target back to pending, and changes no other job.")
async def _settle(ledger: Ledger) -> None:
    job = await ledger.running("u", "v")
    same(await ledger.store.settle(OWNER, job.id, now=T0), None, "settle of a running job")
    same((await ledger.there(job.id)).settled, False, "whether the running job is settled")
    stopped = await ledger.stopped(job.id, in_flight=True, now=T0 + 1)
    settled = present(await ledger.store.settle(OWNER, job.id, now=T0 + 4), "a stopped job is not settled")
    same(settled, await ledger.there(job.id), "the job that settle returns, beside the job that is read")
    same(
        (settled.status, settled.settled, settled.finished_at), (JobState.CANCELLED, True, T0 + 1), "the job"
    )
    hold(settled.version > stopped.version, "settle does not raise the version")
    same(await ledger.states(job.id), ["pending", "pending"], "its targets")
    before = await ledger.everything()
    same(await ledger.store.settle(OWNER, job.id, now=T0 + 9), None, "a second settle")
    same(await ledger.store.settle(OWNER, "0" * 32, now=T0 + 9), None, "settle of an unknown job")
    same(await ledger.everything(), before, "the store after that")


@rule("A terminal job is never ended again, whatever it ended as.")
async def _stop_terminal(ledger: Ledger) -> None:
    ended = [await ledger.ended("u"), await ledger.ended("v", outcomes=[FAILED])]
    ended.append(await ledger.ended("u", "v", outcomes=[done(), FAILED]))
    cancelled = await ledger.running("w")
    await ledger.stop(cancelled.id, in_flight=True)
    before = await ledger.everything()
    for job_id in [*(job.id for job in ended), cancelled.id, "0" * 32]:
        for event in (JobEvent.CANCEL, JobEvent.TIMEOUT):
            for in_flight in (False, True):
                stopped = await ledger.stop(job_id, event, now=T0 + 5, in_flight=in_flight, error="again")
                same(stopped, None, f"{event.value} of a terminal or unknown job")
    same(await ledger.everything(), before, "the store after that")


@rule("A timeout ends a running job as failed with its error; a queued one has not begun to count.")
async def _timeout(ledger: Ledger) -> None:
    job = await ledger.queued("u", "v")
    same(await ledger.stop(job.id, JobEvent.TIMEOUT, error="timeout"), None, "timeout of a queued job")
    await ledger.begin()
    stopped = await ledger.stopped(job.id, JobEvent.TIMEOUT, error="timeout", in_flight=True, now=T0 + 8)
    same((stopped.status, stopped.settled, stopped.error), (JobState.FAILED, False, "timeout"), "the job")
    await ledger.record(job.id, 0, now=T0 + 9)
    ended = await ledger.there(job.id)
    same((ended.status, ended.error, ended.finished_at), (JobState.FAILED, "timeout", T0 + 8), "settled")


@rule("Stop for another caller's job is the same as for an unknown one.")
async def _stop_narrowed(ledger: Ledger) -> None:
    job = await ledger.running("u", caller=ALICE)
    before = await ledger.everything()
    same(await ledger.stop(job.id, caller=BOB.name), None, "stop by another caller")
    same(await ledger.everything(), before, "the store after that")
    hold(await ledger.stop(job.id, caller=ALICE.name), "the job's own caller can't stop it")


@rule("Stop and settle never move a lease backwards.")
async def _stop_lease(ledger: Ledger) -> None:
    job = await ledger.running("u")
    await ledger.stop(job.id, in_flight=True, now=T0 - 50)
    same((await ledger.there(job.id)).lease, T0, "lease after a stop with a clock that was set back")
    await ledger.store.settle(OWNER, job.id, now=T0 - 50)
    same((await ledger.there(job.id)).lease, T0, "lease after a settle with such a clock")
