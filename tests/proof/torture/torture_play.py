"""What happens in a round? A small play that has everything: three callers, jobs that end in every way.

    act 1   three jobs at once behind a narrow gate: one is partial, two are cancelled while a fetch is
            in flight, which comes back busy or is stored; streams, waits, reads and a touch meanwhile
    act 2   a rerun, a delete, a job whose time is up, one that is cancelled while it waits out a busy
            spell, a result that is too large for the budget, a lapse
    act 3   the runner is left with a fetch in flight and jobs in the queue

In a round without faults every operation of the store is called. Next: `torture_round.py`.
"""

from collections.abc import Callable
from typing import Final

import trio
from torture_fetch import TARGET_SECONDS, TornFetch
from torture_readers import Readers

from sift_batch import Caller, CallerClass, Config

ALICE: Final = Caller("alice")
BOB: Final = Caller("bob")
CAROL: Final = Caller("carol", caller_class=CallerClass.RESTRICTED)
TTL: Final = 300
JOB_SECONDS: Final = 150.0


def settings(grace: float) -> Config:
    """Return the play's config; its caps are in nobody's way."""
    return Config(
        ttl=TTL,
        targets_per_job=8,
        jobs_per_caller=50,
        jobs_total=50,
        workers=2,
        max_bytes=2_500,
        retry_wait=1.0,
        retry_for=30.0,
        target_timeout=TARGET_SECONDS,
        job_timeout=JOB_SECONDS,
        shutdown_grace=grace,
        sweep_every=40.0,
    )


async def play(desk: Readers, fetch: TornFetch, look: Callable[[bool], None]) -> None:
    """Play all acts; `look` is called between them, and told whether all jobs must have settled."""
    await _act_1(desk, fetch)
    look(await desk.drain())
    await _act_2(desk, fetch)
    look(await desk.drain())
    await desk.submit(ALICE, "six", 2, "a")
    await desk.submit(BOB, "eight", 1, "b")
    await desk.submit(CAROL, "nine", 1, "b")
    if "six" in desk.ids:
        await fetch.wait_started("http://a.test/six/0")


async def _act_1(desk: Readers, fetch: TornFetch) -> None:
    await desk.submit(ALICE, "one", 3, "a")
    await desk.submit(CAROL, "two", 3, "b")
    await desk.submit(BOB, "three", 2, "a")
    await desk.submit(ALICE, "one", 3, "a")
    async with trio.open_nursery() as readers:
        readers.start_soon(desk.results, ALICE, "one")
        readers.start_soon(desk.watch, CAROL, "two")
        readers.start_soon(desk.wait, BOB, "three")
        readers.start_soon(desk.visit, "http://a.test/visitor", 1.5)
        if "two" in desk.ids:
            await fetch.wait_started("http://b.test/two/1")
        await desk.cancel(CAROL, "two")
        if "three" in desk.ids:
            await fetch.wait_started("http://a.test/three/0")
        await desk.cancel(BOB, "three")
        await desk.touch(ALICE, "one")
        await desk.job(ALICE, "one")
        await desk.status(BOB, "one")
        await desk.jobs(ALICE)


async def _act_2(desk: Readers, fetch: TornFetch) -> None:
    await desk.rerun(ALICE, "four", "one")
    await desk.results(ALICE, "four")
    await desk.delete(CAROL, "two")
    await desk.check(ALICE)
    await desk.submit(CAROL, "seven", 1, "b")
    await desk.submit(BOB, "five", 1, "a")
    await desk.submit(ALICE, "ten", 2, "b")
    await desk.wait(BOB, "five")
    if "ten" in desk.ids:
        await fetch.wait_started("http://b.test/ten/0")
    await trio.sleep(0.5)
    await desk.cancel(ALICE, "ten")
    await desk.gone(BOB, "three")
    await desk.drain()
    # Everything lapses and is swept.
    await trio.sleep(TTL + 41)
