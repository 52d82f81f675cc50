"""Does the proxy example do what it is for? nginx runs with the shipped file, in front of a real service."""

import re
from functools import partial
from pathlib import Path

import pytest
import trio
from proxy_rig import CONF, NAME, NGINX, Fetch, everything, free_port, proxied

from sift_batch.service._problems import server_answer
from sift_batch.service._reading_routes import MAX_WAIT
from sift_batch.service._settings import load_settings

FAST, SLOW = "https://pages.example.org/fast", "https://pages.example.org/slow"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed (apt-get install nginx-light)"),
]


async def test_a_job_goes_through(tmp_path: Path) -> None:
    """A client submits, waits and reads through the proxy, by paths that hold no name of either side."""
    async with everything(tmp_path, Fetch()) as proxy:
        job_id = await proxy.submitted(FAST, SLOW)
        waited = await proxy.send("GET", f"/v1/batch/{job_id}?wait=5")
        results = await proxy.send("GET", waited.json["links"]["results"])

        assert (waited.status, waited.json["status"]) == (200, "done")
        assert [item["status"] for item in results.json["items"]] == ["done", "done"]
        assert results.headers["strict-transport-security"] == "max-age=31536000"


async def test_clients_may_speak_http2(tmp_path: Path) -> None:
    """A client that offers HTTP/2 gets it."""
    async with proxied(tmp_path, free_port()) as proxy, proxy.connect(NAME, "h2", "http/1.1") as stream:
        assert stream.selected_alpn_protocol() == "h2"


async def test_events_come_as_they_happen(tmp_path: Path) -> None:
    """An event is with the client while the job still runs: the proxy holds nothing back."""
    fetch = Fetch(hang=[SLOW])
    async with everything(tmp_path, fetch) as proxy:
        job_id = await proxy.submitted(FAST, SLOW)
        async with proxy.exchange("GET", f"/v1/batch/{job_id}/events") as events:
            status, headers = await events.start()
            await events.until(b"event: target")
            early = events.body
            fetch.release()
            await events.until(b"event: end")

        assert (status, headers["content-type"].partition(";")[0]) == (200, "text/event-stream")
        assert b"event: end" not in early


async def test_lines_come_as_they_happen(tmp_path: Path) -> None:
    """A followed result is with the client while the next target is being fetched."""
    fetch = Fetch(hang=[SLOW])
    async with everything(tmp_path, fetch) as proxy:
        job_id = await proxy.submitted(FAST, SLOW)
        path = f"/v1/batch/{job_id}/results?follow=1"
        async with proxy.exchange("GET", path, Accept="application/jsonl") as lines:
            await lines.start()
            await lines.until(b"\n")
            early = lines.body
            fetch.release()
            while await lines.more():
                pass

        assert [len(text.splitlines()) for text in (early, lines.body)] == [1, 2]


async def test_no_other_protocol_gets_through(tmp_path: Path) -> None:
    """The service is asked by HTTP/1.1, under the client's name for it, and never to change the protocol."""
    heads: list[bytes] = []

    async def record(stream: trio.SocketStream) -> None:
        async with stream:
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive_some(4096)
            heads.append(head.lower())
            await stream.send_all(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with trio.open_nursery() as nursery:
        (listener,) = await nursery.start(partial(trio.serve_tcp, record, 0, host="127.0.0.1"))
        async with proxied(tmp_path, listener.socket.getsockname()[1]) as proxy:
            reply = await proxy.send(
                "GET",
                "/v1/batch",
                Connection="Upgrade, HTTP2-Settings",
                Upgrade="h2c",
                HTTP2_Settings="AAMAAABkAAQCAAAAAAIAAAAA",
            )
        nursery.cancel_scope.cancel()

    (head,) = heads
    assert reply.status == 204
    assert head.startswith(b"get /v1/batch http/1.1\r\n")
    assert f"\r\nhost: {NAME}\r\n".encode() in head
    assert b"\r\nauthorization: bearer " in head
    assert not re.search(rb"^(upgrade|http2-settings|connection):", head, re.MULTILINE)


async def test_the_largest_body(tmp_path: Path) -> None:
    """A body of 1 MiB reaches the service; one more byte is refused in the service's own words."""
    async with everything(tmp_path, Fetch()) as proxy:
        whole = await proxy.send("POST", "/v1/batch", b" " * 2**20)
        # Refused by its length alone: whether any of the body was sent makes no difference.
        larger = await proxy.send("POST", "/v1/batch", Content_Length=str(2**20 + 1))

    assert (whole.status, whole.json["code"]) == (400, "bad_json")
    assert larger.status == 413
    assert larger.headers["content-type"] == "application/problem+json"
    assert larger.body == server_answer(413).body


async def test_other_names_are_turned_away(tmp_path: Path) -> None:
    """Whoever asks for another name gets no handshake, and a request for another name no answer of ours."""
    async with everything(tmp_path, Fetch()) as proxy:
        with pytest.raises(trio.BrokenResourceError) as caught:
            async with proxy.connect("other.example.org"):
                pass
        reply = await proxy.send("GET", "/healthz", Host="other.example.org")

    # The server says so; the client did not get as far as to look at a certificate.
    assert getattr(caught.value.__cause__, "reason", None) == "TLSV1_UNRECOGNIZED_NAME"
    assert reply.status == 421


async def test_what_is_open_and_what_is_not(tmp_path: Path) -> None:
    """Health can be seen through the proxy, metrics can't, and no job without a key."""
    async with everything(tmp_path, Fetch()) as proxy:
        health = await proxy.send("GET", "/healthz")
        metrics = await proxy.send("GET", "/metrics")
        refused = await proxy.send("GET", "/v1/batch", Authorization="Bearer siftb_of_nobody_at_all")

    assert (health.status, health.body.strip()) == (200, b"ok")
    assert metrics.status == 404
    assert (refused.status, refused.json["code"]) == (401, "unauthorized")


async def test_the_logs_hold_no_key_and_no_path(tmp_path: Path) -> None:
    """After refusals and successes the proxy's logs hold neither key, path, query, job nor address."""
    async with everything(tmp_path, Fetch()) as proxy:
        job_id = await proxy.submitted(FAST)
        await proxy.send("GET", f"/v1/batch/{job_id}?wait=5&note=canary")
        await proxy.send("POST", "/v1/batch?canary", Content_Length=str(2**20 + 1))
        await proxy.send("GET", f"/v1/batch?key={proxy.key}", Referer="https://canary.example.org/")
        text = logged(tmp_path)

    assert len(text.splitlines()) >= 4
    for secret in (proxy.key, "/v1", "canary", job_id, "127.0.0.1", "Bearer"):
        assert secret not in text


def logged(folder: Path) -> str:
    """All that is in nginx's logs."""
    return "".join(path.read_text() for path in folder.glob("*.log"))


def test_the_proxy_is_more_patient_than_the_service() -> None:
    """The proxy waits longer than a client may, and gives an idle connection up before the service does."""
    text = CONF.read_text("utf-8")
    read = int(re.findall(r"proxy_read_timeout (\d+)s;", text)[0])
    idle = int(re.findall(r"^ +keepalive_timeout (\d+)s;", text, re.MULTILINE)[0])
    service = load_settings().service

    assert read > MAX_WAIT
    assert idle < service.idle_seconds
