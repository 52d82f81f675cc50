"""The rules of a store for its calls as such: checkpoints, cancellation, errors, order."""

from collections.abc import Awaitable, Callable
from typing import Final

import trio
from trio.testing import assert_checkpoints

from .._model.errors import StoreError
from .._model.store import NewJob
from ._ledger import ALICE, BOB, CAPS, OWNER, T0, TTL, Ledger, done, series
from ._rules import Rules, hold, same
from ._store_owner import steps

rule: Final = Rules[Ledger]()


def _reads(ledger: Ledger, job_id: str) -> dict[str, Callable[[], Awaitable[object]]]:
    store = ledger.store
    return {
        "job": lambda: store.job(job_id, caller=None, now=T0, ttl=TTL),
        "status": lambda: store.status(
            job_id, caller=None, now=T0, ttl=TTL, results=True, start=0, stop=None
        ),
        "jobs": lambda: store.jobs(caller=None, status=None, before=None, limit=9, now=T0, ttl=TTL),
        "gone": lambda: store.gone(job_id, caller=ALICE.name, now=T0, ttl=TTL),
        "lapsed": lambda: store.lapsed(now=T0, ttl=TTL),
    }


@rule("Every call that returns was a checkpoint, whether it did something or not.")
async def _checkpoints(ledger: Ledger) -> None:
    job = await ledger.running("u", "v")
    for job_id in (job.id, "0" * 32):
        calls = _reads(ledger, job_id) | steps(ledger, OWNER, job_id)
        for name, call in calls.items():
            await _is_checkpoint(name, call)
    await _is_checkpoint("release", lambda: ledger.store.release(OWNER))
    await _is_checkpoint("a release without an owner", lambda: ledger.store.release(OWNER))
    await _is_checkpoint("acquire", lambda: ledger.store.acquire(OWNER, now=T0))


async def _is_checkpoint(name: str, call: Callable[[], Awaitable[object]]) -> None:
    try:
        with assert_checkpoints():
            await call()
    except AssertionError as exc:
        raise AssertionError(f"{name} returns without a checkpoint") from exc


@rule("A call in a cancelled scope raises Cancelled and has done nothing.")
async def _cancelled_calls(ledger: Ledger) -> None:
    finished = await ledger.ended("a", "b")
    running = await ledger.running("u", "v")
    await ledger.queued("w")
    before = await ledger.everything()
    for job_id in (running.id, finished.id):
        for name, call in (_reads(ledger, job_id) | steps(ledger, OWNER, job_id)).items():
            await _is_cancelled(name, call)
            same(await ledger.everything(), before, f"the store after a cancelled {name}")
    await ledger.store.release(OWNER)
    await _is_cancelled("acquire", lambda: ledger.store.acquire(OWNER, now=T0 + 9))
    same(await ledger.everything(), before, "the store after a cancelled acquire")
    await ledger.store.acquire(OWNER, now=T0)


async def _is_cancelled(name: str, call: Callable[[], Awaitable[object]]) -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await call()
    hold(scope.cancelled_caught, f"{name} in a cancelled scope does not raise Cancelled")


@rule("A call that is cancelled while it runs has either returned and happened, or not happened.")
async def _cancelled_meanwhile(ledger: Ledger) -> None:
    returned: list[str] = []
    every = [f"u{n}" for n in range(40)]

    async def submit(url: str) -> None:
        await ledger.submit(url)
        returned.append(url)

    for turns in range(5):
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                for url in every[turns * 8 : turns * 8 + 8]:
                    nursery.start_soon(submit, url)
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                scope.cancel()
    stored = [status.targets[0].url for status in await ledger.everything()]
    same(sorted(stored), sorted(returned), "what is stored, beside the submits that returned")


@rule("A step that the store can't do is a StoreError, and changes nothing.")
async def _errors(ledger: Ledger) -> None:
    job = await ledger.queued("u")
    before = await ledger.everything()
    taken = NewJob(id=job.id, caller=BOB, targets=series("v", "w"))
    try:
        await ledger.store.submit(OWNER, taken, now=T0, ttl=TTL, caps=CAPS, max_age=None)
    except StoreError as exc:
        hold("v" not in str(exc).split(), "the error's text holds a target")
    else:
        raise AssertionError("a submit under an id that is taken is no StoreError")
    same(await ledger.everything(), before, "the store after that")
    await ledger.queued("x")


@rule("A step that fails takes no other step with it that was asked for at the same time.")
async def _fails_alone(ledger: Ledger) -> None:
    job = await ledger.queued("u")
    failures: list[StoreError] = []

    async def bad() -> None:
        taken = NewJob(id=job.id, caller=BOB, targets=series("bad"))
        try:
            await ledger.store.submit(OWNER, taken, now=T0, ttl=TTL, caps=CAPS, max_age=None)
        except StoreError as exc:
            failures.append(exc)

    async def good(n: int) -> None:
        await ledger.queued(f"good{n}")

    async with trio.open_nursery() as nursery:
        for n in range(4):
            nursery.start_soon(good, n)
            nursery.start_soon(bad)
    same(len(failures), 4, "steps that failed")
    same(len(await ledger.jobs() or ()), 5, "jobs stored")


@rule("A read that begins after a step has returned sees what the step did.")
async def _reads_own_writes(ledger: Ledger) -> None:
    job = await ledger.running(*(f"u{n}" for n in range(20)))
    for idx in range(20):
        await ledger.record(job.id, idx, done(str(idx)))
        status = await ledger.status(job.id)
        same(status.job.targets_done, idx + 1, "targets counted right after the step")
        finished = sum(item.result is not None for item in status.targets)
        same(finished, idx + 1, "results read in the same step as the count")


@rule("Every status that is read shows a count and targets of one and the same moment.")
async def _snapshots(ledger: Ledger) -> None:
    job = await ledger.running(*(f"u{n}" for n in range(30)))
    ended = trio.Event()

    async def read() -> None:
        while not ended.is_set():
            status = await ledger.status(job.id)
            finished = sum(item.status.value == "done" for item in status.targets)
            same(status.job.targets_done, finished, "the count beside the targets that are done")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(read)
        for idx in range(30):
            await ledger.record(job.id, idx)
        ended.set()


@rule("Check writes and reads back, and changes no job; erase says whether the log is clean.")
async def _check(ledger: Ledger) -> None:
    await ledger.ended("u")
    before = await ledger.everything()
    await ledger.store.check(OWNER, now=T0)
    await ledger.store.check(OWNER, now=T0 - 10)
    same(await ledger.store.erase(OWNER) in (True, False), True, "what erase returns is a bool")
    same(await ledger.everything(), before, "the store after that")
