"""Many event streams at once: each has its news, and nothing stays of those that have closed."""

import gc
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio
from api_rig import Api, Fetch, serving, until

from sift_batch import open_store
from sift_batch.service._connection import Connection
from sift_batch.service._exchange import Exchange
from sift_batch.service._waiting import OpenRequest
from sift_batch.testing import FaultyStore

STREAMS = 200
FIRST, LAST = "https://a.example/1", "https://a.example/2"

pytestmark = pytest.mark.real


def tasks() -> int:
    """How many tasks the run has."""
    return trio.lowlevel.current_statistics().tasks_living


def descriptors() -> int:
    """How many files and sockets the process has open."""
    folder = Path("/proc/self/fd")
    return sum(1 for _ in folder.iterdir()) if folder.exists() else 0


def alive() -> int:
    """How many objects of connections, exchanges and requests are not freed."""
    gc.collect()
    return sum(isinstance(item, Connection | Exchange | OpenRequest) for item in gc.get_objects())


async def follow(api: Api, streams: AsyncExitStack, job_id: str) -> list[str]:
    """Follow a job on many streams until one of its targets is finished; the events that each had."""
    seen: list[str] = []
    ready = trio.Event()

    async def one() -> None:
        events = await streams.enter_async_context(api.ann.stream(f"/v1/batch/{job_id}/events"))
        while (event := await events.event()) is not None:
            seen.append(event["event"])
            if seen.count("job") >= STREAMS:
                ready.set()
            if event["event"] == "target":
                return

    async with trio.open_nursery() as readers:
        for _ in range(STREAMS):
            readers.start_soon(one)
        await ready.wait()
        api.fetch.release(FIRST)
    return seen


async def test_two_hundred_streams_all_have_the_news_and_leave_nothing_behind() -> None:
    """Each of 200 streams has a target's event; once they close, no task, file or object is left of them."""
    fetch = Fetch(hang=[FIRST, LAST])
    async with serving(fetch) as api:
        job_id = await api.submitted(FIRST, LAST)
        await api.ann.get(f"/v1/batch/{job_id}")
        await until(lambda: api.server.events["connection_closed"] == api.server.events["connection_opened"])
        before = tasks(), descriptors(), alive()
        with trio.fail_after(30):
            async with AsyncExitStack() as streams:
                seen = await follow(api, streams, job_id)
                assert seen.count("target") == STREAMS
                assert tasks() > before[0] + STREAMS
        await until(lambda: (tasks(), descriptors()) == before[:2])
        await until(lambda: alive() == before[2])
        assert api.server.events["connection_closed"] == api.server.events["connection_opened"]
        assert len(api.app._shared.bulletins) == 0
        assert api.errors == []


async def test_one_change_is_read_and_put_into_words_once_for_all_streams() -> None:
    """However many follow a job, the store is asked about a change as often as for a few of them."""
    asked = []
    for streams in (10, STREAMS):
        async with open_store(":memory:") as made, AsyncExitStack() as opened:
            store = FaultyStore(made)
            async with serving(Fetch(hang=[FIRST, LAST]), store=store) as api:
                job_id = await api.submitted(FIRST, LAST)
                readers = [
                    await opened.enter_async_context(api.ann.stream(f"/v1/batch/{job_id}/events"))
                    for _ in range(streams)
                ]
                with trio.fail_after(60):
                    for events in readers:
                        await events.event()
                    before = store.calls.count("status")
                    api.fetch.release(FIRST)
                    for events in readers:
                        event = await events.event()
                        while event is not None and event["event"] != "target":
                            event = await events.event()
                    asked.append(store.calls.count("status") - before)
                assert len(api.app._shared.bulletins) == 1
    assert asked[1] <= 2 * asked[0]
