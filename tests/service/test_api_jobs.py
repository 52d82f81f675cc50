"""Jobs over HTTP: submit, list, look, wait, cancel, run again, delete."""

import itertools
import re
from typing import Any

import pytest
import trio
from api_rig import Fetch, serving, until

from sift_batch import Config, TargetError

pytestmark = pytest.mark.real

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"
VIEW = {
    "id",
    "status",
    "settled",
    "error",
    "hint",
    "next",
    "targets",
    "created_at",
    "started_at",
    "finished_at",
    "expires_at",
    "stored_bytes",
    "poll_after",
    "eta_seconds",
    "waiting",
    "rerun_of",
    "links",
}
UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


async def test_a_submit_answers_202_with_the_job() -> None:
    """A new job is 202 with Location, Retry-After and the whole view; its times are RFC 3339."""
    async with serving(Fetch(hang=[A])) as api:
        reply = await api.ann.post("/v1/batch", {"targets": [A, {"url": B, "options": {"mode": "text"}}]})
        job = reply.json
        assert reply.status == 202
        assert reply.headers["location"] == f"/v1/batch/{job['id']}" == job["links"]["self"]
        assert int(reply.headers["retry-after"]) == job["poll_after"] > 0
        assert set(job) == VIEW
        assert "idempotent-replayed" not in reply.headers
        assert UTC.fullmatch(job["created_at"])
        assert (job["finished_at"], job["expires_at"], job["next"], job["error"]) == (None, None, None, "")
        await api.fetch.wait_started(1)
        job = (await api.ann.get(f"/v1/batch/{job['id']}")).json
        assert job["status"] == "running"
        assert job["targets"] == {"total": 2, "pending": 1, "running": 1, "done": 0, "failed": 0}
        api.fetch.release()


async def test_shared_options_fill_in_what_a_target_leaves_out() -> None:
    """A target's own option wins, the others come from the job's."""
    async with serving() as api:
        body = {
            "targets": [{"url": A, "options": {"mode": "links"}}, B],
            "options": {"mode": "text", "recover": True},
        }
        job_id = (await api.ann.post("/v1/batch", body)).json["id"]
        await api.runner.wait(job_id)
        options = [target.options for target in (await api.runner.status(job_id)).targets]
        assert [(item.mode, item.recover) for item in options] == [("links", True), ("text", True)]


async def test_an_equal_job_is_joined() -> None:
    """The same targets again are 200, replayed, the same job; with max_age 0 a finished one is not."""
    async with serving() as api:
        job_id = await api.settled(A)
        again = await api.ann.post("/v1/batch", {"targets": [A]})
        assert (again.status, again.json["id"]) == (200, job_id)
        assert again.headers["idempotent-replayed"] == "true"
        fresh = await api.ann.post("/v1/batch", {"targets": [A], "max_age": 0})
        assert (fresh.status, fresh.json["id"] == job_id) == (202, False)
        other = await api.bob.post("/v1/batch", {"targets": [A]})
        assert other.status == 202


async def test_a_joined_job_with_failures_names_the_rerun() -> None:
    """A partial job's view has the rerun as its next step."""
    async with serving(Fetch(fail=[B])) as api:
        job_id = await api.settled(A, B)
        again = await api.ann.post("/v1/batch", {"targets": [A, B]})
        assert (again.status, again.json["status"]) == (200, "partial")
        assert again.json["next"] == {"method": "POST", "path": f"/v1/batch/{job_id}/rerun", "body": None}


async def test_every_bad_item_is_named_by_place_and_never_by_value() -> None:
    """All errors of a body come at once, as pointers; what was sent is not in the answer."""
    async with serving() as api:
        api.fetch.refuse[C] = TargetError("the jq program is broken: line 1, column 3", code="bad_option")
        api.fetch.refuse[B] = TargetError("this address may not be called", code="refused", hint="use allow")
        body = {
            "targets": [
                1,
                {"url": "", "x": 1},
                {"options": {"mode": 5, "zz-secret": 1}},
                C,
                B,
                {"url": A, "options": []},
            ],
            "max_age": -1,
            "options": {"recover": "yes"},
        }
        reply = await api.ann.post("/v1/batch", body)
        problem = reply.problem(422, "bad_request")
        found = {(item["pointer"], item["code"]) for item in problem["errors"]}
        assert found == {
            ("/targets/0", "type"),
            ("/targets/1/url", "length"),
            ("/targets/1/x", "unknown_field"),
            ("/targets/2/url", "missing"),
            ("/targets/2/options/mode", "type"),
            ("/targets/2/options/?", "unknown_field"),
            ("/targets/3/options", "bad_option"),
            ("/targets/4/url", "refused"),
            ("/targets/5/options", "type"),
            ("/max_age", "range"),
            ("/options/recover", "type"),
        }
        assert b"secret" not in reply.body
        assert b"line 1, column 3" in reply.body
        assert api.fetch.calls == []


async def test_too_few_and_too_many_targets() -> None:
    """No targets and too many are 422 with the limit and what was given."""
    async with serving(config=Config(targets_per_job=2)) as api:
        problem = (await api.ann.post("/v1/batch", {"targets": []})).problem(422, "no_targets")
        assert (problem["limit"], problem["given"]) == (2, 0)
        problem = (await api.ann.post("/v1/batch", {"targets": [A, B, C]})).problem(422, "too_many_targets")
        assert (problem["limit"], problem["given"]) == (2, 3)
        (await api.ann.post("/v1/batch", {})).problem(422, "no_targets")
        misspelt = (await api.ann.post("/v1/batch", {"urls": [A]})).problem(422, "no_targets")
        assert [(item["pointer"], item["code"]) for item in misspelt["errors"]] == [
            ("/urls", "unknown_field")
        ]
        (await api.ann.post("/v1/batch", [])).problem(422, "bad_request")


async def test_caps_are_429_and_name_the_live_job() -> None:
    """`caller_busy` has the job's id and how to look at it; `jobs_busy` names nobody's job."""
    async with serving(Fetch(hang=[A]), config=Config(jobs_total=1)) as api:
        job_id = await api.submitted(A)
        problem = (await api.ann.post("/v1/batch", {"targets": [B]})).problem(429, "caller_busy")
        assert problem["job_id"] == job_id
        assert problem["next"]["path"] == f"/v1/batch/{job_id}"
        reply = await api.bob.post("/v1/batch", {"targets": [B]})
        problem = reply.problem(429, "jobs_busy")
        assert int(reply.headers["retry-after"]) == problem["retry_after"]
        assert job_id not in reply.body.decode()
        api.fetch.release()


async def test_a_look_that_finds_nothing_new_is_304() -> None:
    """The ETag is the version; a 304 has no body and does not touch the job, a 200 does."""
    async with serving() as api:
        job_id = await api.settled(A)
        job = await api.runner.job(job_id)
        first = await api.ann.get(f"/v1/batch/{job_id}")
        assert first.headers["etag"] == f'W/"{job.version}"'
        touched = []
        touch = api.runner.touch

        async def noting(job_id, *, caller=None):
            touched.append(job_id)
            await touch(job_id, caller=caller)

        api.runner.touch = noting
        api.app._shared.leases._touched.clear()
        same = await api.ann.get(f"/v1/batch/{job_id}", If_None_Match=first.headers["etag"])
        assert (same.status, same.body, same.headers["etag"]) == (304, b"", first.headers["etag"])
        assert touched == []
        assert "content-length" not in same.headers
        assert (await api.ann.get(f"/v1/batch/{job_id}", If_None_Match='W/"1", "x"')).status == 200
        odd = first.headers["etag"].replace('/"', '/"0')
        assert (await api.ann.get(f"/v1/batch/{job_id}", If_None_Match=odd)).status == 200
        assert touched == [job_id]
        assert (await api.ann.get(f"/v1/batch/{job_id}")).status == 200
        assert touched == [job_id]  # at most once a second


async def test_wait_returns_when_the_job_has_settled() -> None:
    """`?wait` answers at the end of the job; `until=change` at the next version; 0 at once."""
    async with serving(Fetch(hang=[A, B])) as api:
        job_id = await api.submitted(A, B)
        path = f"/v1/batch/{job_id}"
        await api.fetch.wait_started(1)
        etag = (await api.ann.get(path)).headers["etag"]
        for at_once in ("0", "-1"):
            assert (await api.ann.get(f"{path}?wait={at_once}")).json["settled"] is False
        got = {}

        async def wait(name, query, **headers):
            got[name] = await api.ann.get(path + query, **headers)

        with trio.fail_after(5):
            async with trio.open_nursery() as tasks:
                tasks.start_soon(wait, "settled", "?wait=99")
                tasks.start_soon(lambda: wait("change", "?wait=25&until=change", If_None_Match=etag))
                await trio.sleep(0.1)
                assert got == {}
                api.fetch.release(A)
                await api.fetch.wait_started(2)
                await until(lambda: "change" in got)
                assert list(got) == ["change"]
                api.fetch.release(B)
        assert got["change"].headers["etag"] != etag
        assert got["settled"].json["status"] == "done"


async def test_wait_ends_at_its_time_with_what_is_there() -> None:
    """A wait that brings no news is a 304 for who knows the version and the view for who does not."""
    async with serving(Fetch(hang=[A])) as api:
        path = f"/v1/batch/{await api.submitted(A)}"
        await api.fetch.wait_started(1)
        etag = (await api.ann.get(path)).headers["etag"]
        assert (await api.ann.get(f"{path}?wait=1&until=change", If_None_Match=etag)).status == 304
        assert (await api.ann.get(f"{path}?wait=1")).json["status"] == "running"
        api.fetch.release()


@pytest.mark.parametrize(
    "query", ["wait=x", "wait=1.5", "wait=--1", "until=change", "wait=1&until=x", "wait=1&wait=2", "w=1"]
)
async def test_a_query_that_makes_no_sense_is_422(query: str) -> None:
    """Unknown, repeated and malformed parameters are refused by name."""
    async with serving() as api:
        job_id = await api.settled(A)
        problem = (await api.ann.get(f"/v1/batch/{job_id}?{query}")).problem(422, "bad_request")
        assert all(item["pointer"].startswith("?") for item in problem["errors"])


async def test_the_list_has_own_jobs_newest_first_in_pages() -> None:
    """Pages give every own job once; a filter holds; another's cursor and a changed one are refused."""
    async with serving() as api:
        ids = [await api.settled(f"https://a.example/{n}") for n in range(3)]
        await api.settled(A, client=api.bob)
        first = (await api.ann.get("/v1/batch?limit=2")).json
        assert [job["id"] for job in first["items"]] == ids[:0:-1]
        assert first["settled"] is True
        cursor = first["next_cursor"]
        last = (await api.ann.get(f"/v1/batch?limit=2&cursor={cursor}")).json
        assert ([job["id"] for job in last["items"]], last["next_cursor"]) == (ids[:1], None)
        assert (await api.ann.get("/v1/batch?status=failed")).json["items"] == []
        for client, query in (
            (api.bob, f"cursor={cursor}"),
            (api.ann, f"status=done&cursor={cursor}"),
            (api.ann, f"cursor=A{cursor}"),
            (api.ann, "cursor=%00"),
            (api.ann, "cursor="),
        ):
            problem = (await client.get(f"/v1/batch?{query}")).problem(422, "bad_request")
            assert [item["pointer"] for item in problem["errors"]] == ["?cursor"]
        (await api.ann.get("/v1/batch?status=odd")).problem(422, "bad_request")
        (await api.ann.get("/v1/batch?limit=0")).problem(422, "bad_request")


@pytest.mark.parametrize("gone", [1, 3, 6])
async def test_a_list_goes_on_where_it_was_whatever_of_it_was_deleted(gone: int) -> None:
    """A page whose last jobs, or all of whose jobs, were deleted since is followed by the next one."""
    seconds = itertools.count(1_700_000_000)
    async with serving(now=lambda: next(seconds)) as api:
        ids = [await api.settled(f"https://a.example/{n}") for n in range(12)][::-1]
        first = (await api.ann.get("/v1/batch?limit=6")).json
        assert [job["id"] for job in first["items"]] == ids[:6]
        for job in first["items"][-gone:]:
            assert (await api.ann.send("DELETE", f"/v1/batch/{job['id']}")).status == 204
        last = (await api.ann.get(f"/v1/batch?limit=50&cursor={first['next_cursor']}")).json
        assert ([job["id"] for job in last["items"]], last["next_cursor"]) == (ids[6:], None)


async def test_a_list_leaves_out_no_job_when_all_are_deleted_page_by_page() -> None:
    """Jobs of one second too: each page is read and deleted, and every job was seen at the end."""
    async with serving(now=lambda: 1_700_000_000) as api:
        ids = {await api.settled(f"https://a.example/{n}") for n in range(13)}
        seen: list[str] = []
        cursor = ""
        while cursor is not None:
            page = (await api.ann.get(f"/v1/batch?limit=5{cursor and f'&cursor={cursor}'}")).json
            for job in page["items"]:
                seen.append(job["id"])
                await api.ann.send("DELETE", f"/v1/batch/{job['id']}")
            cursor = page["next_cursor"]
        assert (len(seen), set(seen)) == (13, ids)


async def test_cancel_is_safe_to_repeat() -> None:
    """The first cancel gives the view, the second says that it had ended already."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A, B)
        await api.fetch.wait_started(1)
        first = await api.ann.post(f"/v1/batch/{job_id}/cancel")
        assert (first.status, first.json["status"], first.json["settled"]) == (200, "cancelled", False)
        assert "already_ended" not in first.json
        second = await api.ann.post(f"/v1/batch/{job_id}/cancel")
        assert (second.status, second.json["already_ended"]) == (200, True)
        (await api.ann.post(f"/v1/batch/{job_id}/rerun")).problem(409, "job_live")
        (await api.ann.send("DELETE", f"/v1/batch/{job_id}")).problem(409, "job_live")
        api.fetch.release()
        await api.runner.wait(job_id)
        job = (await api.ann.get(f"/v1/batch/{job_id}")).json
        assert job["targets"] == {"total": 2, "pending": 1, "running": 0, "done": 1, "failed": 0}
        assert job["next"]["path"] == f"/v1/batch/{job_id}/rerun"
        assert job["expires_at"] is not None


async def test_two_reruns_at_once_are_one_job() -> None:
    """While a rerun is live, another one is 200, replayed, the same job; a done job is its own rerun."""
    fetch = Fetch(fail=[B])
    async with serving(fetch) as api:
        job_id = await api.settled(A, B)
        fetch.answer(B, "now")
        fetch.hang(B)
        replies = []

        async def rerun():
            replies.append(await api.ann.post(f"/v1/batch/{job_id}/rerun"))

        async with trio.open_nursery() as tasks:
            for _ in range(5):
                tasks.start_soon(rerun)
        assert sorted(reply.status for reply in replies) == [200, 200, 200, 200, 202]
        (new_id,) = {reply.json["id"] for reply in replies}
        assert {reply.json["rerun_of"] for reply in replies} == {job_id}
        assert sum("idempotent-replayed" in reply.headers for reply in replies) == 4
        assert len(api.app._shared.reruns) == 0
        fetch.release(B)
        await api.runner.wait(new_id)
        assert fetch.order.count(A) == 1
        own = await api.ann.post(f"/v1/batch/{new_id}/rerun")
        assert (own.status, own.json["id"]) == (200, new_id)


async def test_delete_is_204_twice_and_the_job_is_gone_with_its_reason() -> None:
    """Afterwards its owner gets 410 with the reason; for others it never was."""
    async with serving() as api:
        job_id = await api.settled(A)
        for _ in range(2):
            reply = await api.ann.send("DELETE", f"/v1/batch/{job_id}")
            assert (reply.status, reply.body, "content-length" in reply.headers) == (204, b"", False)
        for path in ("", "/targets", "/results", "/events", "/targets/0"):
            problem = (await api.ann.get(f"/v1/batch/{job_id}{path}")).problem(410, "gone")
            assert problem["reason"] == "deleted"
            (await api.bob.get(f"/v1/batch/{job_id}{path}")).problem(404, "unknown_job")
        (await api.bob.send("DELETE", f"/v1/batch/{job_id}")).problem(404, "unknown_job")
        (await api.ann.post(f"/v1/batch/{job_id}/rerun")).problem(410, "gone")


async def test_limits_are_the_callers_own() -> None:
    """Own live jobs and bytes are listed; another caller's change nothing."""
    async with serving(Fetch(hang=[A, C])) as api:
        await api.settled(B, client=api.bob)
        await api.submitted(C, client=api.bob)
        before = (await api.ann.get("/v1/limits")).json
        assert (before["live_jobs"], before["stored_bytes"]) == ([], 0)
        job_id = await api.submitted(A)
        limits = (await api.ann.get("/v1/limits")).json
        assert set(limits) == {
            "targets_per_job",
            "jobs_per_caller",
            "result_max_bytes",
            "max_body_bytes",
            "ttl_seconds",
            "max_wait_seconds",
            "gate",
            "live_jobs",
            "stored_bytes",
        }
        assert (limits["live_jobs"], limits["stored_bytes"] > 0) == ([job_id], True)
        assert limits["gate"] == {"total": 8, "per_host": 2}
        assert (limits["ttl_seconds"], limits["max_wait_seconds"], limits["max_body_bytes"]) == (
            86_400,
            55,
            2**20,
        )
        api.fetch.release()


async def test_a_job_that_starts_meanwhile_is_live_in_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that begins to run between two reads of the limits is in one of them."""
    async with serving(Fetch(hang=[A])) as api:
        real = api.runner.jobs
        job_id = await api.submitted(A)
        await api.fetch.wait_started(1)
        (running,) = await real()
        seen: list[str] = []

        async def jobs(*arguments: object, **named: object) -> list[object]:
            # It is queued at the first look, and running from then on.
            status = named.get("status")
            if status is None:
                return await real(*arguments, **named)
            seen.append(str(status))
            return [running] if status == ("queued" if len(seen) == 1 else "running") else []

        monkeypatch.setattr(api.runner, "jobs", jobs)
        assert (await api.ann.get("/v1/limits")).json["live_jobs"] == [job_id]
        assert len(seen) == 2
        api.fetch.release()


async def test_options_are_looked_at_once_however_many_targets_have_them() -> None:
    """A jq program costs a process at each look: a job of ten targets with it costs one or two."""
    async with serving() as api:
        check, programs = api.fetch.check, []

        async def checking(target: Any) -> None:
            programs.append(target.options.jq)
            await check(target)

        api.fetch.check = checking  # type: ignore[method-assign]
        urls = [f"{A}{number}" for number in range(10)]
        reply = await api.ann.post("/v1/batch", {"targets": urls, "options": {"jq": ".a", "question": "?"}})
        assert reply.status == 202
        assert programs.count(".a") <= 2
        assert len(programs) >= len(urls)


async def test_a_client_that_leaves_while_its_targets_are_looked_at_submits_nothing() -> None:
    """Its request ends with it, whatever the looking would have taken; there is no job."""
    async with serving() as api:
        looking = trio.Event()

        async def hanging(target: Any) -> None:
            looking.set()
            await trio.sleep_forever()

        api.fetch.check = hanging  # type: ignore[method-assign]
        async with await trio.open_tcp_stream("127.0.0.1", api.server.port) as stream:
            await stream.send_all(api.ann.head("POST", "/v1/batch", b'{"targets": ["%s"]}' % A.encode(), {}))
            await looking.wait()
        await until(lambda: not api.app._shared.open._open)
        assert await api.runner.jobs() == []
        assert api.errors == []
