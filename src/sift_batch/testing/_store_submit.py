"""The rules of a store for submits: idempotency, caps, and what is stored."""

from typing import Final

import trio

from .._model.lifecycle import JobEvent, JobState
from .._model.store import CallerBusy, Caps, Created, JobsBusy, Reused, SubmitOutcome
from .._model.values import Options, Target
from ._ledger import ALICE, BOB, CAPS, FAILED, T0, TTL, Ledger, created, done, series, target_bytes
from ._rules import Rules, hold, same

rule: Final = Rules[Ledger]()

_TARGETS: Final = [
    Target("https://a.example/?q=<1>&é", Options(mode="text", context=False, recover=True)),
    Target("https://b.example/"),
    Target("https://b.example/"),
]


@rule("A submit stores the job, queued, and all its targets, pending, in their order.")
async def _stores_all(ledger: Ledger) -> None:
    new = created(await ledger.submit(targets=_TARGETS))
    job, targets = await ledger.status(new.id)
    same(new, job, "the job that submit returns, beside the job that is read")
    same((job.status, job.settled, job.error), (JobState.QUEUED, False, ""), "state of a new job")
    same((job.created_at, job.lease, job.started_at, job.finished_at), (T0, T0, None, None), "its times")
    same((job.targets_total, job.targets_done, job.targets_failed), (3, 0, 0), "its counts")
    same((job.caller, job.caller_class, job.rerun_of), ("alice", ALICE.caller_class, None), "its caller")
    same(job.nbytes, target_bytes(_TARGETS), "its bytes: those of urls and options")
    same([Target(item.url, item.options) for item in targets], _TARGETS, "the targets that are read")
    same([item.idx for item in targets], [0, 1, 2], "their indexes")
    same(await ledger.states(job.id), ["pending"] * 3, "their states")


@rule("Twenty equal submits at once store one job, and all name it.")
async def _twenty_equal(ledger: Ledger) -> None:
    outcomes = await _at_once(ledger, [("u",)] * 20)
    created = [item.job.id for item in outcomes if isinstance(item, Created)]
    same(len(created), 1, "jobs created")
    reused = [item.job_id for item in outcomes if isinstance(item, Reused)]
    same(reused, created * 19, "jobs that answer the others")
    same(await ledger.jobs(), created, "jobs stored")


@rule("Twenty submits at once never store more jobs than the caps allow.")
async def _twenty_capped(ledger: Ledger) -> None:
    outcomes = await _at_once(ledger, [(f"u{n}",) for n in range(20)], Caps(3, 100))
    same(sum(isinstance(item, Created) for item in outcomes), 3, "jobs created under a caller's cap of 3")
    same(sum(isinstance(item, CallerBusy) for item in outcomes), 17, "submits refused")
    same(len(await ledger.jobs() or ()), 3, "jobs stored")


async def _at_once(ledger: Ledger, every: list[tuple[str, ...]], caps: Caps = CAPS) -> list[SubmitOutcome]:
    outcomes: list[SubmitOutcome] = []

    async def submit(urls: tuple[str, ...]) -> None:
        outcomes.append(await ledger.submit(*urls, caps=caps))

    async with trio.open_nursery() as nursery:
        for urls in every:
            nursery.start_soon(submit, urls)
    return outcomes


@rule("An equal job that is queued, running, done or partial answers, whatever the caps say.")
async def _reuses(ledger: Ledger) -> None:
    job = await ledger.queued("u", "v")
    full = Caps(1, 1)
    same(await ledger.submit("u", "v", caps=full), Reused(job.id), "submit equal to a queued job")
    await ledger.begin()
    same(await ledger.submit("u", "v", caps=full), Reused(job.id), "submit equal to a running job")
    await ledger.record(job.id, 0)
    await ledger.record(job.id, 1, FAILED)
    same(await ledger.submit("u", "v", caps=full), Reused(job.id), "submit equal to a partial job")
    finished = await ledger.ended("w")
    same(await ledger.submit("w", caps=Caps(1, 1)), Reused(finished.id), "submit equal to a done job")


@rule("A failed or a cancelled job never answers a submit.")
async def _no_reuse(ledger: Ledger) -> None:
    await ledger.ended("u", outcomes=[FAILED])
    hold(isinstance(await ledger.submit("u"), Created), "a failed job answers")
    await ledger.begin()
    cancelled = await ledger.queued("v")
    await ledger.stop(cancelled.id)
    hold(isinstance(await ledger.submit("v"), Created), "a cancelled job answers")
    timed_out = (await ledger.begin()).job
    await ledger.stop(timed_out.id, JobEvent.TIMEOUT, error="timeout")
    hold(isinstance(await ledger.submit("v"), Created), "a job that ran out of time answers")


@rule("Only the same targets with the same options in the same order, of the same caller, are equal.")
async def _equal_means_equal(ledger: Ledger) -> None:
    await ledger.queued("u", "v")
    hold(isinstance(await ledger.submit("v", "u"), Created), "another order is taken for equal")
    hold(isinstance(await ledger.submit("u"), Created), "a part is taken for equal")
    hold(isinstance(await ledger.submit("u", "v", caller=BOB), Created), "another caller's job answers")
    options = [Target("u", Options(context=False)), Target("v")]
    hold(isinstance(await ledger.submit(targets=options), Created), "other options are taken for equal")


@rule("A reused job's lease is bumped to now, and never moves backwards.")
async def _reuse_bumps(ledger: Ledger) -> None:
    job = await ledger.queued("u")
    await ledger.submit("u", now=T0 + 7)
    same((await ledger.there(job.id)).lease, T0 + 7, "lease after an equal submit 7 s later")
    await ledger.submit("u", now=T0 + 3)
    after = await ledger.there(job.id)
    same(after.lease, T0 + 7, "lease after an equal submit with a clock that was set back")
    same(after.version, job.version, "version, which a moved lease does not raise")


@rule("A job answers equal submits until it has lapsed, and then no more.")
async def _reuse_until_lapsed(ledger: Ledger) -> None:
    job = await ledger.ended("u")
    same(await ledger.submit("u", now=T0 + int(TTL)), Reused(job.id), "submit in the last second of a ttl")
    later = T0 + 2 * int(TTL)
    same(await ledger.submit("u", now=later), Reused(job.id), "submit a whole ttl after the bump")
    hold(isinstance(await ledger.submit("u", now=later + int(TTL) + 1), Created), "a lapsed job answers")


@rule("With max_age a finished job answers only while now - finished_at < max_age; a live one always.")
async def _max_age(ledger: Ledger) -> None:
    live = await ledger.queued("u")
    same(await ledger.submit("u", max_age=0, now=T0 + 50), Reused(live.id), "max_age=0 and a live job")
    same(await ledger.submit("u", max_age=10, now=T0 + 50), Reused(live.id), "max_age=10 and a live job")
    await ledger.begin()
    await ledger.record(live.id, 0)
    same(await ledger.submit("u", max_age=10, now=T0 + 9), Reused(live.id), "max_age=10 after 9 s")
    hold(isinstance(await ledger.submit("u", max_age=10, now=T0 + 10), Created), "max_age=10 after 10 s")
    done_now = await ledger.begin(T0 + 20)
    await ledger.record(done_now.job.id, 0, now=T0 + 20)
    hold(isinstance(await ledger.submit("u", max_age=0, now=T0 + 20), Created), "max_age=0 after 0 s")
    again = await ledger.begin(T0 + 20)
    await ledger.record(again.job.id, 0, now=T0 + 20)
    hold(isinstance(await ledger.submit("u", max_age=0, now=T0), Created), "max_age=0, clock set back")


@rule("Of several equal jobs the one that was submitted last answers.")
async def _newest_answers(ledger: Ledger) -> None:
    await ledger.ended("u")
    await ledger.submit("u", max_age=0)
    newest = await ledger.begin()
    await ledger.record(newest.job.id, 0)
    same(await ledger.submit("u"), Reused(newest.job.id), "the job that answers")


@rule("The caller's cap comes before the total one; it names the caller's newest live job.")
async def _caps_order(ledger: Ledger) -> None:
    await ledger.queued("u1")
    newest = await ledger.queued("u2")
    await ledger.queued("w", caller=BOB)
    same(await ledger.submit("u3", caps=Caps(2, 3)), CallerBusy(newest.id), "both caps reached")
    same(await ledger.submit("u3", caps=Caps(3, 3)), JobsBusy(), "the total cap reached")
    hold(isinstance(await ledger.submit("u3", caps=Caps(3, 4)), Created), "refused although there is room")


@rule("Terminal jobs count for no cap, settled or not.")
async def _terminal_jobs_are_free(ledger: Ledger) -> None:
    await ledger.ended("u")
    unsettled = await ledger.running("v")
    await ledger.stop(unsettled.id, in_flight=True)
    hold(isinstance(await ledger.submit("w", caps=Caps(1, 1)), Created), "ended jobs count for a cap")


@rule("A refused submit stores nothing.")
async def _refusal_stores_nothing(ledger: Ledger) -> None:
    await ledger.queued("u")
    before = await ledger.everything()
    await ledger.submit("v", caps=Caps(1, 9))
    await ledger.submit("v", caller=BOB, caps=Caps(9, 1))
    same(await ledger.everything(), before, "the store after two refusals")


@rule("Text with NUL or lone surrogates is stored and read back; a surrogate becomes U+FFFD.")
async def _odd_text(ledger: Ledger) -> None:
    odd = Target("https://x/\0\ud800é\U0001f600", Options(question="\0\udfff", grep="\ud83d"))
    job = created(await ledger.submit(targets=[odd]))
    same(job.nbytes, target_bytes([odd]), "bytes of odd text")
    scrubbed = Target("https://x/\0\ufffdé\U0001f600", Options(question="\0\ufffd", grep="\ufffd"))
    work = await ledger.begin()
    same(list(work.targets), [(0, scrubbed)], "the target that is handed out to be fetched")
    await ledger.record(job.id, 0, done("\0 in a result"))
    (target,) = await ledger.targets(job.id)
    same((target.url, target.options), (scrubbed.url, scrubbed.options), "the target that is read")
    same(target.result and target.result.content, "\0 in a result", "the content that is read")
    hold(isinstance(await ledger.submit(targets=[odd]), Reused), "an equal submit of odd text is no reuse")


@rule("A job of many targets, and a target of a megabyte, are stored whole.")
async def _large(ledger: Ledger) -> None:
    urls = [f"https://host/{n}" for n in range(500)]
    job = await ledger.queued(*urls)
    same([item.url for item in await ledger.targets(job.id)], urls, "urls of a job of 500 targets")
    await ledger.stop(job.id)
    long = series("https://host/" + "x" * 2**20)
    large = created(await ledger.submit(targets=long))
    same(large.nbytes, target_bytes(long), "bytes of a target of a megabyte")
    same((await ledger.targets(large.id))[0].url, long[0].url, "its url")
