"""Server-sent events: a job followed live, left, and followed again."""

import pytest
import trio
from api_rig import Fetch, Incoming, serving

from sift_batch.service import _event_routes

pytestmark = pytest.mark.real

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"


async def read_all(stream: Incoming) -> list[dict]:
    """Return all events that are left."""
    found = []
    while (event := await stream.event()) is not None:
        found.append(event)
    return found


async def test_events_tell_the_job_each_finished_target_and_the_end() -> None:
    """The job comes first, each target once, `end` last, with the settled version as its id."""
    async with serving(Fetch(hang=[A, B], fail=[B])) as api:
        job_id = await api.submitted(A, B)
        await api.fetch.wait_started(1)
        with trio.fail_after(5):
            async with api.ann.stream(f"/v1/batch/{job_id}/events") as stream:
                assert await stream.block(b"\n\n") == "retry: 3000"
                first = await stream.event()
                assert (first["event"], first["data"]["id"]) == ("job", job_id)
                api.fetch.release()
                events = [first, *await read_all(stream)]
                assert stream.whole is True
        job = await api.runner.job(job_id)
        assert [event["data"]["idx"] for event in events if event["event"] == "target"] == [0, 1]
        assert all("result" not in event["data"] for event in events if event["event"] == "target")
        assert [event["event"] for event in events][-2:] == ["job", "end"]
        assert (events[-1]["id"], events[-1]["data"]["settled"]) == (str(job.version), True)
        ids = [int(event["id"]) for event in events if "id" in event]
        assert ids == sorted(set(ids))


async def test_the_stream_is_one_that_proxies_pass_on() -> None:
    """Its type is text/event-stream and no proxy is to keep it back."""
    async with serving() as api:
        reply = await api.ann.get(f"/v1/batch/{await api.settled(A)}/events")
        assert reply.headers["content-type"] == "text/event-stream"
        assert reply.headers["x-accel-buffering"] == "no"


async def test_who_has_seen_the_end_gets_204() -> None:
    """Of the settled version there is nothing to resume; of an older one, everything is told again."""
    async with serving() as api:
        job_id = await api.settled(A, B)
        version = (await api.runner.job(job_id)).version
        path = f"/v1/batch/{job_id}/events"
        seen = await api.ann.get(path, Last_Event_ID=str(version))
        assert (seen.status, seen.body) == (204, b"")
        for older in (str(version - 1), "x", "0"):
            async with api.ann.stream(path, Last_Event_ID=older) as stream:
                events = await read_all(stream)
            assert [event["event"] for event in events] == ["job", "target", "target", "end"]
            assert [event.get("id") for event in events] == [None, None, None, str(version)]


async def test_who_resumes_from_the_newest_version_gets_no_target_twice() -> None:
    """Targets that were told before the last id are not told again; later ones are."""
    async with serving(Fetch(hang=[B])) as api:
        job_id = await api.submitted(A, B)
        await api.fetch.wait_started(2)
        path = f"/v1/batch/{job_id}/events"
        with trio.fail_after(5):
            async with api.ann.stream(path) as stream:
                assert (await stream.event())["event"] == "job"
                last = await stream.event()
                assert (last["event"], last["data"]["idx"]) == ("target", 0)
            async with api.ann.stream(path, Last_Event_ID=last["id"]) as stream:
                assert (await stream.event())["event"] == "job"
                api.fetch.release()
                events = await read_all(stream)
        assert [event["data"]["idx"] for event in events if event["event"] == "target"] == [1]


async def test_a_quiet_stream_is_kept_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """When nothing happens a comment comes, so that nobody on the way takes it for dead."""
    monkeypatch.setattr(_event_routes, "_COMMENT_EVERY", 0.05)
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        await api.fetch.wait_started(1)
        with trio.fail_after(5):
            async with api.ann.stream(f"/v1/batch/{job_id}/events") as stream:
                await stream.event()
                while not (await stream.block(b"\n\n")).startswith(": "):
                    pass
                api.fetch.release()
                assert (await read_all(stream))[-1]["event"] == "end"


async def test_a_stop_is_told_and_ends_the_stream() -> None:
    """`shutdown` is the last event, and the answer is whole."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        with trio.fail_after(5):
            async with api.ann.stream(f"/v1/batch/{job_id}/events") as stream:
                await stream.event()
                api.app.stop()
                assert (await read_all(stream))[-1]["event"] == "shutdown"
                assert stream.whole is True
            reply = await api.ann.get(f"/v1/batch/{job_id}?wait=50")
            assert reply.json["settled"] is False
        api.fetch.release()


async def test_a_job_that_goes_while_it_is_followed_cuts_the_stream() -> None:
    """A deleted job's stream is no whole answer."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        await api.fetch.wait_started(1)
        with trio.fail_after(5):
            async with api.ann.stream(f"/v1/batch/{job_id}/events") as stream:
                await stream.event()
                status = api.runner.status

                async def nothing(*args, **kwargs):
                    await trio.lowlevel.checkpoint()

                api.runner.status = nothing
                api.fetch.release()
                await read_all(stream)
                api.runner.status = status
                assert stream.whole is False
