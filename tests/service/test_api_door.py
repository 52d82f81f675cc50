"""The door: who is let in, what is not found, and what every answer has."""

import pytest
import trio
from api_rig import ANN, Client, Fetch, serving, until

from sift_batch import StoreError
from sift_batch.service._callers import Taken
from sift_batch.service._service_config import ServiceConfig

pytestmark = pytest.mark.real

A, B = "https://a.example/", "https://b.example/"
ALWAYS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize(
    "path", ["/v1/batch", "/v1/nothing", "/dashboard.js", "/metrics", "/v1/batch/x/cancel", "/%2e%2e"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_without_a_key_every_path_is_401(path: str, method: str) -> None:
    """Known or not, with whatever method: the same 401, with WWW-Authenticate."""
    async with serving() as api:
        reply = await api.nobody.send(method, path)
        problem = reply.problem(401, "unauthorized")
        assert reply.headers["www-authenticate"] == "Bearer"
        assert problem["next"] is None
        wrong = await api.nobody.send(method, path, Authorization=f"Bearer {ANN[:-1]}x")
        assert (wrong.body, wrong.raw_headers) == (reply.body, reply.raw_headers)


async def test_the_body_is_not_read_before_the_key() -> None:
    """A large body without a key is answered without its bytes."""
    async with serving() as api:
        raw = b"POST /v1/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900000\r\n\r\n"
        with trio.fail_after(3):
            assert (await api.server.talk(raw)).startswith(b"HTTP/1.1 401 ")


async def test_too_many_failures_of_one_address_are_429_and_a_valid_key_still_passes() -> None:
    """The limit is for wrong keys, and says how long it lasts; without a key it is always 401."""
    async with serving(service=ServiceConfig(auth_failures_per_minute=2)) as api:
        wrong = Client(api.server.port, "siftb_" + "x" * 43)
        for _ in range(2):
            (await wrong.get("/v1/batch")).problem(401, "unauthorized")
        reply = await wrong.get("/v1/batch")
        reply.problem(429, "auth_failures")
        assert 0 < int(reply.headers["retry-after"]) <= 60
        for _ in range(4):
            (await api.nobody.get("/v1/batch")).problem(401, "unauthorized")
        assert (await api.ann.get("/v1/batch")).status == 200


async def test_another_callers_an_unknown_and_a_malformed_job_are_the_same_404() -> None:
    """The bytes and the headers are equal, whatever is asked of the job."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        for method, rest in (
            ("GET", ""),
            ("GET", "?wait=5"),
            ("GET", "/targets"),
            ("GET", "/results"),
            ("GET", "/events"),
            ("GET", "/targets/0"),
            ("POST", "/cancel"),
            ("POST", "/rerun"),
            ("DELETE", ""),
        ):
            replies = [
                await api.bob.send(method, f"/v1/batch/{name}{rest}")
                for name in (job_id, "0" * 32, "x", "%00", "..", "a;b", job_id.upper(), "%e2%82", "9" * 2000)
            ]
            replies[0].problem(404, "unknown_job")
            assert len({(reply.body, tuple(reply.raw_headers)) for reply in replies}) == 1
        assert (await api.runner.job(job_id)).status.live
        api.fetch.release()


async def test_a_page_of_another_callers_job_is_the_404_of_an_unknown_one() -> None:
    """A cursor that its owner was given does not make it a request of another kind."""
    async with serving() as api:
        job_id = await api.settled(A, B)
        for part in ("targets", "results"):
            cursor = (await api.ann.get(f"/v1/batch/{job_id}/{part}?limit=1")).json["next_cursor"]
            replies = [
                await api.bob.get(f"/v1/batch/{name}/{part}?limit=1&cursor={text}")
                for name in (job_id, "0" * 32, "x")
                for text in (cursor, "odd")
            ]
            replies[0].problem(404, "unknown_job")
            assert len({(reply.body, tuple(reply.raw_headers)) for reply in replies}) == 1
            (await api.ann.get(f"/v1/batch/{job_id}/{part}?cursor=odd")).problem(422, "bad_request")
        await api.runner.delete(job_id)
        (await api.ann.get(f"/v1/batch/{job_id}/targets?cursor=odd")).problem(410, "gone")


async def test_nobody_changes_another_callers_job() -> None:
    """Cancelled, run again or deleted by another caller, a job is as it was, live or settled."""
    async with serving(Fetch(hang=[A], fail=[B])) as api:
        settled = await api.settled(B)
        live = await api.submitted(A)
        await api.fetch.wait_started(2)
        for job_id in (settled, live):
            before = await api.runner.job(job_id)
            for method, rest in (("POST", "/cancel"), ("POST", "/rerun"), ("DELETE", "")):
                (await api.bob.send(method, f"/v1/batch/{job_id}{rest}")).problem(404, "unknown_job")
            assert await api.runner.job(job_id) == before
        assert await api.runner.jobs("bob") == []
        api.fetch.release()


@pytest.mark.parametrize(
    "path",
    [
        "/v1/batch/",
        "//v1/batch",
        "/v1//batch",
        "/v1/ba%74ch",
        "/v1/batch;a",
        "/V1/batch",
        "/v1/batch/x/../y",
        "/v1/batch/x/targets/",
        "/v1",
        "/v2/batch",
        "/v1/./batch",
        "/v1/batch/x/targets/1/2",
    ],
)
async def test_a_path_that_is_not_written_as_it_is_listed_is_404(path: str) -> None:
    """Nothing is decoded, joined or cut off to find a route."""
    async with serving() as api:
        (await api.ann.get(path)).problem(404, "unknown_path")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/batch", "GET, HEAD, POST"),
        ("POST", "/v1/batch/x", "DELETE, GET, HEAD"),
        ("GET", "/v1/batch/x/cancel", "POST"),
        ("OPTIONS", "/v1/fetch", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("DELETE", "/v1/limits", "GET, HEAD"),
    ],
)
async def test_a_method_that_a_path_does_not_have_is_405(method: str, path: str, allow: str) -> None:
    """`Allow` lists what it has; a method override changes nothing."""
    async with serving() as api:
        reply = await api.ann.send(method, path, X_HTTP_Method_Override="GET")
        reply.problem(405, "method_not_allowed")
        assert reply.headers["allow"] == allow


async def test_head_is_get_without_the_body() -> None:
    """The status and headers are those of GET."""
    async with serving() as api:
        job_id = await api.settled(A)
        got, head = (
            await api.ann.get(f"/v1/batch/{job_id}"),
            await api.ann.send("HEAD", f"/v1/batch/{job_id}"),
        )
        assert (head.status, head.body) == (200, b"")
        assert head.headers == got.headers


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:8080", True),
        ("localhost", True),
        ("[::1]:80", True),
        ("LOCALHOST.", True),
        ("sift.corp", True),
        ("SIFT.corp.:8", True),
        ("evil.example", False),
        ("sift.corp.evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.0.0.1@evil.example", False),
        ("[::1", False),
        ("10.0.0.1", False),
    ],
)
async def test_a_host_that_is_not_ours_is_421(host: str, known: bool) -> None:
    """Loopback, `host` and the server names are ours, on any port; the key makes no difference."""
    async with serving(service=ServiceConfig(server_name=("sift.corp",))) as api:
        for path in ("/v1/limits", "/healthz"):
            reply = await api.ann.get(path, Host=host)
            if known:
                assert reply.status == 200
            else:
                reply.problem(421, "unknown_host")


async def test_health_is_open_and_says_no_more_than_it_must() -> None:
    """`/healthz` is `200 ok`; `/readyz` is 200, and 503 once the store fails or the service stops."""
    async with serving() as api:
        reply = await api.nobody.get("/healthz")
        assert (reply.status, reply.body) == (200, b"ok")
        assert (await api.nobody.get("/readyz")).status == 200
        api.app.health._until = float("-inf")
        check = api.runner.check

        async def failing():
            raise StoreError("no disk, secret")

        api.runner.check = failing
        reply = await api.nobody.get("/readyz")
        assert (reply.status, reply.body) == (503, b"not ready")
        api.runner.check = check
        api.app.health._until = float("-inf")
        assert (await api.nobody.get("/readyz")).status == 200
        api.app.stop()
        assert (await api.nobody.get("/readyz")).status == 503


async def test_every_answer_has_the_headers_that_keep_browsers_out() -> None:
    """Answers, problems, streams, empty ones and the server's own refusals alike; none names the server."""
    async with serving() as api:
        job_id = await api.settled(A)
        etag = (await api.ann.get(f"/v1/batch/{job_id}")).headers["etag"]
        replies = [
            await api.nobody.get("/healthz"),
            await api.nobody.get("/v1/batch"),
            await api.ann.get("/v1/batch"),
            await api.ann.get("/nothing"),
            await api.ann.get(f"/v1/batch/{job_id}", If_None_Match=etag),
            await api.ann.get(f"/v1/batch/{job_id}/results", Accept="application/jsonl"),
            await api.ann.get(f"/v1/batch/{job_id}/events"),
            await api.ann.get("/v1/batch", X_Long="x" * 20_000),
            await api.ann.send("DELETE", f"/v1/batch/{job_id}"),
        ]
        assert [reply.status for reply in replies] == [200, 401, 200, 404, 304, 200, 200, 431, 204]
        for reply in replies:
            assert ALWAYS.items() <= reply.headers.items()
            assert not {"server", "access-control-allow-origin"} & set(reply.headers)


async def test_a_failing_store_is_503_and_a_bug_is_500_without_a_word_of_it() -> None:
    """Neither answer holds the exception's text; the bug is told to whoever logs it."""
    async with serving() as api:
        job_id = await api.settled(A)

        async def failing(*args, **kwargs):
            raise error

        api.runner.status = failing
        error: Exception = StoreError("secret")
        reply = await api.ann.get(f"/v1/batch/{job_id}")
        reply.problem(503, "store_unavailable")
        assert int(reply.headers["retry-after"]) > 0
        assert api.errors == []
        error = KeyError("secret")
        bug = await api.ann.get(f"/v1/batch/{job_id}")
        bug.problem(500, "internal")
        assert api.errors == [error]
        error = trio.ClosedResourceError("secret")
        (await api.ann.get(f"/v1/batch/{job_id}")).problem(503, "store_unavailable")
        assert b"secret" not in reply.body + bug.body


async def test_a_key_that_is_taken_away_ends_its_streams_and_no_others() -> None:
    """The stream of the revoked caller is cut, another one's goes on."""
    async with serving(Fetch(hang=[A])) as api:
        jobs = {client: await api.submitted(A, client=client) for client in (api.ann, api.bob)}
        with trio.fail_after(5):
            async with (
                api.ann.stream(f"/v1/batch/{jobs[api.ann]}/events") as taken,
                api.bob.stream(f"/v1/batch/{jobs[api.bob]}/events") as kept,
            ):
                await taken.event()
                await kept.event()
                api.app.revoke(Taken(frozenset({"ann"}), frozenset()))
                while await taken.event() is not None:
                    pass
                assert (taken.whole, kept.whole) == (False, None)
                api.fetch.release()
                while (event := await kept.event()) is not None:
                    last = event
                assert (last["event"], kept.whole) == ("end", True)


async def test_a_body_that_outlasts_its_key_submits_nothing() -> None:
    """A caller that is revoked while its body is on the way gets 401, and there is no job."""
    async with serving() as api:
        head = api.ann.head("POST", "/v1/batch", b'{"targets": ["https://a.example/"]}', {})
        async with await trio.open_tcp_stream("127.0.0.1", api.server.port) as stream:
            await stream.send_all(head[:-5])
            with trio.fail_after(5):
                await until(lambda: api.app._shared.open._open)
                api.app.revoke(Taken(frozenset(), frozenset({"a" * 64})))
                await stream.send_all(head[-5:])
                assert (await stream.receive_some(1000)).startswith(b"HTTP/1.1 401 ")
        assert await api.runner.jobs() == []


async def test_a_restricted_caller_is_served_like_any_other() -> None:
    """Its results are its own; a deleted job of it is forgotten, so it is unknown and not gone."""
    async with serving() as api:
        job_id = await api.settled(A, client=api.eve)
        assert (await api.eve.get(f"/v1/batch/{job_id}/results")).json["items"][0]["url"] == A
        (await api.ann.get(f"/v1/batch/{job_id}")).problem(404, "unknown_job")
        assert (await api.eve.send("DELETE", f"/v1/batch/{job_id}")).status == 204
        (await api.eve.get(f"/v1/batch/{job_id}")).problem(404, "unknown_job")
