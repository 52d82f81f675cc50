"""The rules of a store for a job that drains: begin, record, and how it ends by itself."""

from typing import Final

import trio

from .._model.lifecycle import JobState, TargetState
from .._model.store import Outcome, Recorded
from .._model.values import Result
from ._ledger import ALICE, BOB, FAILED, OWNER, T0, TTL, Ledger, done, outcome_bytes, series, target_bytes
from ._rules import Rules, hold, present, same

rule: Final = Rules[Ledger]()


@rule("Queued jobs begin in the order in which they were submitted; None when there is none.")
async def _fifo(ledger: Ledger) -> None:
    same(await ledger.store.begin(OWNER, now=T0), None, "begin without a queued job")
    # Neither the clock nor the caller decides: submits of a clock that runs backwards.
    submitted = [
        (await ledger.queued(f"u{n}", now=T0 - n, caller=BOB if n % 2 else ALICE)).id for n in range(6)
    ]
    same([(await ledger.begin()).job.id for _ in submitted], submitted, "jobs in the order of begin")
    same(await ledger.store.begin(OWNER, now=T0), None, "begin with all jobs begun")


@rule("No job begins twice, however many ask at once.")
async def _begin_at_once(ledger: Ledger) -> None:
    submitted = {(await ledger.queued(f"u{n}")).id for n in range(5)}
    begun: list[str] = []

    async def begin() -> None:
        work = await ledger.store.begin(OWNER, now=T0)
        if work is not None:
            begun.append(work.job.id)

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(begin)
    same(sorted(begun), sorted(submitted), "jobs begun by eight at once")


@rule("Begin makes the job and its first target running and gives what is to be fetched, in order.")
async def _begin(ledger: Ledger) -> None:
    queued = await ledger.queued("u", "v", "w")
    work = await ledger.begin(T0 + 5)
    same(work.job, await ledger.there(queued.id), "the job that begin returns, beside the job that is read")
    same((work.job.status, work.job.started_at), (JobState.RUNNING, T0 + 5), "state and start of the job")
    hold(work.job.version > queued.version, "begin does not raise the version")
    same(list(work.targets), list(enumerate(series("u", "v", "w"))), "targets to be fetched")
    same(await ledger.states(queued.id), ["running", "pending", "pending"], "states of the targets")


@rule("Record stores the target and marks the next one running, in one step.")
async def _record(ledger: Ledger) -> None:
    job = await ledger.running("u", "v", "w")
    outcome = done("café", lang="fr", nested={"a": [1, None]})
    same(
        await ledger.record(job.id, 0, outcome), Recorded(outcome_bytes(outcome), None, ended=False), "record"
    )
    first = (await ledger.targets(job.id))[0]
    same(first.result, Result("café", {"lang": "fr", "nested": {"a": [1, None]}}), "result that is read")
    same((first.chars, first.error, first.code), (4, "", ""), "what stands beside the result")
    same(await ledger.states(job.id), ["done", "running", "pending"], "states of the targets")


@rule("A failure is stored with its message, hint, code, HTTP status and whether it may be retried.")
async def _failure(ledger: Ledger) -> None:
    job = await ledger.ended("u", "v", outcomes=[FAILED, done()])
    first = (await ledger.targets(job.id))[0]
    same(first.status, TargetState.FAILED, "state of the target")
    same((first.error, first.hint), (FAILED.error, FAILED.hint), "its texts")
    same((first.code, first.http_status, first.retryable), ("page_not_found", 404, True), "its marks")
    same((first.result, first.chars), (None, 0), "its result")


@rule("Record bumps count, bytes, lease and version of the job.")
async def _record_counts(ledger: Ledger) -> None:
    job = await ledger.running("u", "v", "w")
    await ledger.record(job.id, 0, done("one"), now=T0 + 5)
    after_one = await ledger.there(job.id, now=T0 + 5)
    same((after_one.targets_done, after_one.targets_failed), (1, 0), "counts after a result")
    same(
        (after_one.lease, after_one.nbytes), (T0 + 5, job.nbytes + outcome_bytes(done("one"))), "lease, bytes"
    )
    hold(after_one.version > job.version, "record does not raise the version")
    await ledger.record(job.id, 1, FAILED, now=T0 + 6)
    after_two = await ledger.there(job.id, now=T0 + 6)
    same((after_two.targets_done, after_two.targets_failed), (2, 1), "counts after a failure")
    hold(after_two.version > after_one.version, "the record of a failure does not raise the version")


@rule("Record never moves a lease backwards.")
async def _record_lease(ledger: Ledger) -> None:
    job = await ledger.running("u", "v", now=T0)
    await ledger.record(job.id, 0, now=T0 - 50)
    same((await ledger.there(job.id)).lease, T0, "lease after a record with a clock that was set back")
    await ledger.record(job.id, 1, now=T0 - 50)
    same((await ledger.there(job.id)).lease, T0, "lease after the last record with such a clock")


@rule("The last target ends and settles its job: all done, done; all failed, failed; else partial.")
async def _last_target(ledger: Ledger) -> None:
    for outcomes, wanted in (
        ([done(), done()], JobState.DONE),
        ([FAILED, FAILED], JobState.FAILED),
        ([FAILED, done()], JobState.PARTIAL),
        ([done(), FAILED], JobState.PARTIAL),
    ):
        job = await ledger.running("u", "v", now=T0)
        await ledger.record(job.id, 0, outcomes[0], now=T0 + 1)
        last = await ledger.record(job.id, 1, outcomes[1], now=T0 + 2)
        recorded = present(last, "the record of the last target returns None")
        ended = await ledger.there(job.id)
        same(recorded.ended, True, "whether the last record says that it ended the job")
        same(recorded.job, ended, "the job that record returns, beside the job that is read")
        same((ended.status, ended.settled, ended.error), (wanted, True, ""), "how the job ended")
        same((ended.started_at, ended.finished_at, ended.lease), (T0, T0 + 2, T0 + 2), "its times")
        await ledger.store.delete(OWNER, job.id, caller=None, now=T0, ttl=TTL)  # so that no job answers


@rule("Record stores nothing for a target that is not running, not there, or stored already.")
async def _record_guard(ledger: Ledger) -> None:
    job = await ledger.running("u", "v")
    waiting = await ledger.queued("w")
    await ledger.record(job.id, 0, done("first"))
    before = await ledger.everything()
    same(await ledger.record(job.id, 0, done("second")), None, "record of a target that is stored")
    same(await ledger.record(waiting.id, 0), None, "record into a queued job")
    same(await ledger.record(job.id, 2), None, "record of an index that is not there")
    same(await ledger.record(job.id, -1), None, "record of a negative index")
    same(await ledger.record("0" * 32, 0), None, "record into an unknown job")
    same(await ledger.everything(), before, "the store after that")
    ahead = await ledger.begin()
    await ledger.record(ahead.job.id, 0)
    before = await ledger.everything()
    same(await ledger.record(ahead.job.id, 0, FAILED), None, "record into an ended job")
    same(await ledger.everything(), before, "the store after that")


@rule("Of twenty records of one target at once, one is stored.")
async def _record_at_once(ledger: Ledger) -> None:
    job = await ledger.running("u", "v")
    stored: list[Recorded] = []

    async def record() -> None:
        recorded = await ledger.record(job.id, 0)
        if recorded is not None:
            stored.append(recorded)

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(record)
    same(len(stored), 1, "records that say they were stored")
    same((await ledger.there(job.id)).targets_done, 1, "targets counted")


@rule("A job's bytes are those of url, options, result, error and hint of its targets, summed up.")
async def _bytes(ledger: Ledger) -> None:
    outcomes = [done("é" * 1_000), FAILED, done("", size=1)]
    job = await ledger.ended("https://u/é", "v", "w", outcomes=outcomes)
    wanted = target_bytes(series("https://u/é", "v", "w")) + sum(map(outcome_bytes, outcomes))
    same(job.nbytes, wanted, "bytes of the job")


@rule("Whatever UTF-8 a result holds is read back as it was stored.")
async def _any_text(ledger: Ledger) -> None:
    contents = ["", "\0", "\x1b[31m", "\u2028\ufeff\U0010ffff", 'quote " and \\', "x" * 300_000]
    outcomes: list[Outcome] = [done(content) for content in contents]
    job = await ledger.ended(*(f"u{n}" for n in range(len(contents))), outcomes=outcomes)
    read = await ledger.targets(job.id)
    same([item.result and item.result.content for item in read], contents, "contents")
    same([item.chars for item in read], [len(content) for content in contents], "their characters")
