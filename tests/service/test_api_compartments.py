"""What can a caller learn of another? Nothing: its transcript is the same with and without the other."""

import json
import re
from typing import Any

import trio
from api_rig import Api, Client, Fetch, serving, until

from sift_batch import Config

URLS = ("https://a.example/1", "https://b.example/2", "https://c.example/broken")
_ID = re.compile(rb"[0-9a-f]{32}")
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_CURSOR = re.compile(rb'(?<="next_cursor":")[^"]+')


class Transcript:
    """Everything that one client was told, with ids by their order, and without times and cursors' bytes."""

    def __init__(self, client: Client) -> None:
        self._client, self._ids, self.told = client, {}, []

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send a request, note its whole answer, and return that."""
        reply = await self._client.send(method, path, body, **headers)
        raw = b"\n".join([b"%s: %s" % field for field in reply.raw_headers] + [reply.body])
        self.told.append((method, reply.status, self._plain(raw)))
        return reply

    def _plain(self, raw: bytes) -> bytes:
        named = _ID.sub(lambda found: b"id%d" % self._ids.setdefault(found[0], len(self._ids)), raw)
        return _CURSOR.sub(b"cursor", _TIME.sub(b"time", named))


async def transcript(api: Api) -> list[Any]:
    """Walk through everything that a caller can ask for."""
    said = Transcript(api.ann)
    await said.ask("GET", "/v1/batch")
    await said.ask("GET", "/v1/limits")
    submitted = await said.ask("POST", "/v1/batch", {"targets": list(URLS)})
    path = f"/v1/batch/{submitted.json['id']}"
    with trio.fail_after(5):
        await api.runner.wait(submitted.json["id"])
    settled = await said.ask("GET", f"{path}?wait=5")
    await said.ask("GET", path, If_None_Match=settled.headers["etag"])
    for part in (
        "targets",
        "targets?limit=1",
        "results?max_chars=3",
        "results",
        "targets/0",
        "targets/9",
        "events",
    ):
        await said.ask("GET", f"{path}/{part}")
    await said.ask("GET", f"{path}/results?follow=1", Accept="application/jsonl")
    await said.ask("POST", "/v1/batch", {"targets": list(URLS)})
    again = await said.ask("POST", f"{path}/rerun")
    with trio.fail_after(5):
        await api.runner.wait(again.json["id"])
    await said.ask("POST", f"{path}/cancel")
    await said.ask("GET", "/v1/batch?limit=1")
    await said.ask("POST", "/v1/fetch", {"url": URLS[0]})
    await said.ask("POST", "/v1/fetch", {"url": URLS[2]})
    await said.ask("GET", "/v1/limits")
    await said.ask("DELETE", path)
    await said.ask("GET", path)
    await said.ask("GET", "/v1/batch/" + "0" * 32)
    return said.told


async def heard(*, others: bool) -> list[Any]:
    """Return what one caller hears, with two other callers at work beside it, or alone."""
    fetch = Fetch(fail=[URLS[2]])
    config = Config(workers=2, jobs_per_caller=4, jobs_total=8)
    async with serving(fetch, config=config) as api:
        if others:
            held = "https://held.example/"
            fetch.hang(held)
            await api.settled(*URLS, client=api.bob)
            await api.settled(*URLS, client=api.eve)
            await api.submitted(held, client=api.bob)
            await until(lambda: api.runner.statistics().in_flight == 1)
        told = await transcript(api)
        if others:
            fetch.release()
    return told


async def test_a_transcript_is_the_same_with_and_without_other_callers():
    """Below every cap, no answer, header or length tells whether another has jobs, even the same ones."""
    alone, beside = await heard(others=False), await heard(others=True)
    assert len(alone) > 20
    for one, other in zip(alone, beside, strict=True):
        assert one == other


async def test_the_transcript_would_show_a_difference():
    """What the comparison is made of is not empty: another caller's own id is told apart from none."""
    async with serving() as api:
        said = Transcript(api.ann)
        job = await api.settled(URLS[0])
        other = await api.settled(URLS[0], client=api.bob)
        await said.ask("GET", f"/v1/batch/{job}")
        await said.ask("GET", f"/v1/batch/{other}")
    assert [status for _, status, _ in said.told] == [200, 404]
    assert json.dumps(said.told[0][2].decode()) != json.dumps(said.told[1][2].decode())
