"""How often is the store read for one request? The look at a job that clients repeat must stay cheap."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from api_rig import Api, Fetch, serving

URLS = [f"https://a.example/{number}" for number in range(12)]


@contextmanager
def counted(api: Api) -> Iterator[list[str]]:
    """Write down each read that the service asks the engine for."""
    calls: list[str] = []

    def counting(name: str) -> Any:
        asked = getattr(api.runner, name)

        async def read(*arguments: Any, **named: Any) -> Any:
            calls.append(name)
            return await asked(*arguments, **named)

        return read

    for name in ("job", "status", "touch"):
        setattr(api.runner, name, counting(name))
    try:
        yield calls
    finally:
        for name in ("job", "status", "touch"):
            delattr(api.runner, name)


async def test_a_poll_is_one_read_and_one_that_finds_nothing_new_reads_a_row() -> None:
    """A poll reads the job once, beside its lease's touch once a second; a 304 reads its row alone."""
    async with serving() as api:
        job_id = await api.settled(*URLS)
        first = await api.ann.get(f"/v1/batch/{job_id}")
        with counted(api) as calls:
            assert (await api.ann.get(f"/v1/batch/{job_id}")).status == 200
            assert [name for name in calls if name != "touch"] == ["status"]
            calls.clear()
            tag = first.headers["etag"]
            assert (await api.ann.get(f"/v1/batch/{job_id}", If_None_Match=tag)).status == 304
            assert calls == ["job"]


async def test_a_stream_reads_many_finished_targets_in_few_steps() -> None:
    """A stream that begins late reads twelve finished targets in two steps, and tells of all of them."""
    async with serving() as api:
        job_id = await api.settled(*URLS)
        with counted(api) as calls:
            async with api.ann.stream(f"/v1/batch/{job_id}/events") as stream:
                events = []
                while (event := await stream.event()) is not None:
                    events.append(event["event"])
        assert events == ["job", *["target"] * len(URLS), "end"]
        assert calls.count("status") == 3  # the job, and twice eight targets at most


async def test_only_the_bodies_of_done_targets_are_read_for_a_list() -> None:
    """A list of failed targets reads the job alone, however many results lie between them."""
    fetch = Fetch(fail=[URLS[0], URLS[11]])
    async with serving(fetch) as api:
        job_id = await api.settled(*URLS)
        with counted(api) as calls:
            page = (await api.ann.get(f"/v1/batch/{job_id}/targets?status=failed")).json
            assert [item["idx"] for item in page["items"]] == [0, 11]
            assert calls.count("status") == 1
            calls.clear()
            page = (await api.ann.get(f"/v1/batch/{job_id}/targets?status=done")).json
            assert [item["idx"] for item in page["items"]] == list(range(1, 11))
            assert calls.count("status") == 3  # the job, and twice eight targets at most
