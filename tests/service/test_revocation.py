"""Who is let in no more loses streams and jobs, whatever the store does meanwhile. On the mock clock."""

from types import SimpleNamespace

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sift_batch import Caller, JobState, StoreError
from sift_batch.service._callers import Taken
from sift_batch.service._revocation import end_taken
from sift_batch.service._waiting import OpenRequests

ANN, BOB = Caller("ann", key_sha256="a"), Caller("bob", key_sha256="b")


async def quiet() -> dict[str, str]:
    """A client that neither sends nor leaves."""
    await trio.sleep_forever()
    raise AssertionError


class Engine:
    """Live jobs by caller; those of whom are in `broken` can't be read."""

    def __init__(self, *broken: str) -> None:
        self.broken = set(broken)
        self.live: dict[str, list[str]] = {}
        self.cancelled: list[str] = []

    async def jobs(self, name: str, *, status: JobState, limit: int) -> list[SimpleNamespace]:
        """The caller's jobs, all of them running."""
        await trio.lowlevel.checkpoint()
        if name in self.broken:
            raise StoreError("broken")
        names = self.live.get(name, []) if status is JobState.RUNNING else []
        return [SimpleNamespace(id=job_id) for job_id in names]

    async def cancel(self, job_id: str, *, caller: str) -> bool:
        """Cancel a job."""
        await trio.lowlevel.checkpoint()
        self.live[caller].remove(job_id)
        self.cancelled.append(job_id)
        return True


class Door:
    """The application, as far as revoking goes."""

    def __init__(self) -> None:
        self.open = OpenRequests()

    def revoke(self, taken: Taken) -> None:
        """End requests."""
        self.open.revoke(callers=taken.callers, keys=taken.keys)

    def revoked(self, callers: frozenset[str]) -> bool:
        """Return whether such requests have not ended yet."""
        return self.open.revoked(callers)


def nobody() -> frozenset[str]:
    """Who is let in: no one."""
    return frozenset()


def taken_of(*names: str) -> Taken:
    """Return what says that these callers are let in no more."""
    return Taken(frozenset(names), frozenset())


async def test_a_store_that_is_broken_holds_up_nobody_elses_end(autojump_clock: MockClock) -> None:
    """While one caller's jobs can't be read, the next one's streams end at once, and its jobs too."""
    engine, door = Engine("ann"), Door()
    engine.live = {"ann": ["a"], "bob": ["b"]}
    send, taken = trio.open_memory_channel[Taken](10)
    with door.open.enter(BOB, quiet) as request:
        async with trio.open_nursery() as tasks:
            tasks.start_soon(end_taken, taken, door, engine, nobody)
            send.send_nowait(taken_of("ann"))
            await trio.sleep(0.1)
            send.send_nowait(taken_of("bob"))
            await wait_all_tasks_blocked()
            assert request.end is not None
            assert engine.cancelled == ["b"]
            engine.broken.clear()
            await trio.sleep(5)
            assert engine.cancelled == ["b", "a"]
            tasks.cancel_scope.cancel()


async def test_a_submit_that_takes_long_is_cancelled_when_it_is_stored(autojump_clock: MockClock) -> None:
    """A job that the store takes in long after its caller has gone ends within two seconds of that."""
    engine, door = Engine(), Door()
    send, taken = trio.open_memory_channel[Taken](10)

    async def submit() -> None:
        with door.open.enter(ANN, quiet):
            await trio.sleep(20)
            engine.live["ann"] = ["late"]

    async with trio.open_nursery() as tasks:
        tasks.start_soon(submit)
        await wait_all_tasks_blocked()
        tasks.start_soon(end_taken, taken, door, engine, nobody)
        send.send_nowait(taken_of("ann"))
        await trio.sleep(22)
        assert engine.cancelled == ["late"]
        tasks.cancel_scope.cancel()


async def test_who_is_let_in_again_keeps_what_it_submits_then(autojump_clock: MockClock) -> None:
    """Once the requests of before have ended, nothing of a caller is cancelled any more."""
    engine, door = Engine(), Door()
    send, taken = trio.open_memory_channel[Taken](10)
    async with trio.open_nursery() as tasks:
        with door.open.enter(ANN, quiet):
            tasks.start_soon(end_taken, taken, door, engine, nobody)
            send.send_nowait(taken_of("ann"))
            await trio.sleep(3)
        with door.open.enter(ANN, quiet) as again:
            await trio.sleep(2)
            engine.live["ann"] = ["new"]
            await trio.sleep(10)
            assert (again.end, engine.cancelled) == (None, [])
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("broken", [True, False])
async def test_who_is_let_in_again_meanwhile_keeps_what_it_submits(
    autojump_clock: MockClock, broken: bool
) -> None:
    """Nothing of a caller that is let in again is cancelled, though a request or the store holds on."""
    engine, door = Engine(*(["ann"] if broken else [])), Door()
    let_in: set[str] = set()
    send, taken = trio.open_memory_channel[Taken](10)
    async with trio.open_nursery() as tasks:
        with door.open.enter(ANN, quiet), door.open.enter(BOB, quiet):
            tasks.start_soon(end_taken, taken, door, engine, lambda: frozenset(let_in))
            send.send_nowait(taken_of("ann", "bob"))
            await trio.sleep(3.5)
            let_in.add("ann")
            engine.broken.clear()
            engine.live = {"ann": ["new"], "bob": ["late"]}
            await trio.sleep(10)
            assert engine.cancelled == ["late"]
        tasks.cancel_scope.cancel()
