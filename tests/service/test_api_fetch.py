"""The interactive fetch: content now, and problems that are the target's."""

import pytest
import trio
from api_rig import Fetch, serving

from sift_batch import Options, Result, RetryLater, Target
from sift_batch.fetch import FetchError
from sift_batch.service import _now_routes

pytestmark = pytest.mark.real

A = "https://a.example/"


async def test_a_fetch_gives_content_and_meta() -> None:
    """The answer has exactly the two; nothing is stored; five seconds is all it waits for a slot."""
    async with serving(Fetch(results={A: Result("text", {"title": "T"})})) as api:
        reply = await api.ann.post("/v1/fetch", {"url": A, "options": {"mode": "text", "context": None}})
        assert (reply.status, reply.json) == (200, {"content": "text", "meta": {"title": "T"}})
        assert api.fetch.calls[0].target.options == Options(mode="text")
        assert api.fetch.calls[0].caller.name == "ann"
        assert api.fetch.patience == [5.0]
        assert await api.runner.jobs() == []


async def test_max_chars_cuts_at_a_block_and_says_so() -> None:
    """The content is the first whole blocks, the meta has `truncated` and the whole size."""
    async with serving(Fetch(results={A: "one two\n\nthree four"})) as api:
        got = (await api.ann.post("/v1/fetch", {"url": A, "max_chars": 12})).json
        assert got["content"] == "one two\n\n"
        assert (got["meta"]["truncated"], got["meta"]["chars_total"], got["meta"]["code"]) == (
            True,
            19,
            "truncated",
        )
        whole = (await api.ann.post("/v1/fetch", {"url": A, "max_chars": 19})).json
        assert whole == {"content": "one two\n\nthree four", "meta": {}}


@pytest.mark.parametrize(
    ("body", "pointers"),
    [
        ({}, ["/url"]),
        ({"url": 1}, ["/url"]),
        ([], [""]),
        ({"url": A, "max_chars": 0}, ["/max_chars"]),
        ({"url": A, "max_chars": True}, ["/max_chars"]),
        ({"url": A, "x": 1, "options": 1}, ["/x", "/options"]),
    ],
)
async def test_a_bad_body_is_422(body: object, pointers: list[str]) -> None:
    """Each bad item is named by its place."""
    async with serving() as api:
        problem = (await api.ann.post("/v1/fetch", body)).problem(422, "bad_request")
        assert [item["pointer"] for item in problem["errors"]] == pointers


@pytest.mark.parametrize("code", ["refused", "page_not_found", "bad_option", "dns", "too_large", "internal"])
async def test_a_problem_of_the_target_says_that_it_is_one(code: str) -> None:
    """It has the code's status, `origin` target, `http_status`, and the fetch's own words."""
    error = FetchError(code, "our words", hint="do this", reason="scheme" if code == "refused" else "")
    async with serving(Fetch(fail={A: error})) as api:
        reply = await api.ann.post("/v1/fetch", {"url": A})
        problem = reply.problem(error.status, code)
        assert (problem["origin"], problem["http_status"]) == ("target", error.status)
        assert (problem["detail"], problem["hint"]) == ("our words", "do this")
        assert problem["retryable"] == error.retryable
        assert problem.get("reason") == ("scheme" if code == "refused" else None)


async def test_what_needs_no_site_is_told_before_the_site_is_asked() -> None:
    """A bad option is 422 with its place, and nothing is fetched."""
    async with serving() as api:
        api.fetch.refuse[A] = FetchError("bad_option", "the jq program has a syntax error (line 1, column 5)")
        problem = (await api.ann.post("/v1/fetch", {"url": A})).problem(422, "bad_option")
        assert [item["pointer"] for item in problem["errors"]] == ["/options"]
        assert "line 1, column 5" in problem["detail"]
        assert api.fetch.calls == []


@pytest.mark.parametrize(
    ("busy", "code", "seconds"),
    [
        (RetryLater(reason="gate"), "gate_busy", 2),
        (RetryLater(reason="host", retry_after=6.2), "gate_busy", 7),
        (RetryLater(reason="retry_after", retry_after=30), "busy", 30),
        (RetryLater(reason="retry_after", retry_after=float("nan")), "busy", 2),
    ],
)
async def test_no_room_is_429_with_the_time_to_come_back(busy: RetryLater, code: str, seconds: int) -> None:
    """The gate's refusal is the service's, the site's is the target's; both have Retry-After."""
    async with serving() as api:
        api.fetch.busy(A, error=busy)
        reply = await api.ann.post("/v1/fetch", {"url": A})
        problem = reply.problem(429, code)
        assert (problem["retry_after"], reply.headers["retry-after"]) == (seconds, str(seconds))
        assert problem.get("origin") == ("target" if code == "busy" else None)


async def test_what_found_no_slot_can_be_sent_as_a_job_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """`next` of a fetch that was refused, or took too long, is a whole request: sent, it makes the job."""
    monkeypatch.setattr(_now_routes, "ANSWER_WITHIN", 0.1)
    body = {"url": A, "options": {"mode": "text"}, "max_chars": 10}
    async with serving() as api:
        api.fetch.busy(A, 1, RetryLater(reason="gate"))
        busy = (await api.ann.post("/v1/fetch", body)).problem(429, "gate_busy")
        api.fetch.hang(A)
        late = (await api.ann.post("/v1/fetch", body)).problem(504, "timeout")
        api.fetch.release()
        assert busy["next"] == late["next"]
        following = busy["next"]
        reply = await api.ann.send(following["method"], following["path"], following["body"])
        assert reply.status == 202, reply.body
        with trio.fail_after(5):
            await api.runner.wait(reply.json["id"])
        assert api.fetch.calls[-1].target == Target(A, Options(mode="text"))


async def test_an_answer_comes_within_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fetch that takes longer is cancelled, and is a `timeout`."""
    monkeypatch.setattr(_now_routes, "ANSWER_WITHIN", 0.1)
    async with serving(Fetch(hang=[A])) as api:
        problem = (await api.ann.post("/v1/fetch", {"url": A})).problem(504, "timeout")
        assert problem["origin"] == "target"
        assert api.fetch.in_flight == 0


async def test_a_client_that_leaves_ends_its_fetch() -> None:
    """Nobody waits any more, so nothing is fetched any more."""
    async with serving(Fetch(hang=[A])) as api:
        async with await trio.open_tcp_stream("127.0.0.1", api.server.port) as stream:
            await stream.send_all(api.ann.head("POST", "/v1/fetch", b'{"url": "https://a.example/"}', {}))
            await api.fetch.wait_started(1)
        with trio.fail_after(5):
            await api.fetch.wait_ended(1)
        assert isinstance(api.fetch.calls[0].error, trio.Cancelled)
