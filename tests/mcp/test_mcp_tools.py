"""Does each tool do what it says, against a whole service in this process?"""

from typing import Any

import pytest
import trio
from mcp.shared.exceptions import MCPError
from mcp_rig import CALLER, Agent, Fetch, Told, an_agent

from sift_batch import RetryLater, TargetError
from sift_batch.mcp._tools import TOOLS, UNTRUSTED

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"
NAMES = (
    "batch_submit batch_wait batch_targets batch_results batch_read batch_rerun batch_cancel batch_list fetch"
)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_it_has_these_tools_and_no_others(autojump_clock: Any, mode: str) -> None:
    """There are nine tools; each takes an object of known names, and says whose words a page's are."""
    async with an_agent(mode=mode) as agent:
        listed = (await agent.client.list_tools()).tools
        assert [tool.name for tool in listed] == NAMES.split()
        for tool in listed:
            assert UNTRUSTED in (tool.description or "")
            assert tool.input_schema["type"] == "object"
            assert tool.input_schema["additionalProperties"] is False
        assert UNTRUSTED in (agent.client.instructions or "")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_what_next_says_leads_from_submit_to_the_results(autojump_clock: Any, mode: str) -> None:
    """An agent that does nothing but what `next` says gets from a submit to all results."""
    async with an_agent(Fetch(latency=20), mode=mode) as agent:
        told = await agent.call("batch_submit", targets=[A, {"url": B, "options": {"mode": "text"}}, C])
        assert told["status"] == "queued"
        seen = []
        while told["next"] is not None:
            seen.append(told["next"]["tool"])
            told = await agent.follow(told["next"])
        assert set(seen) == {"batch_wait", "batch_results"}
        assert [(item["idx"], item["url"], item["status"]) for item in told["items"]] == [
            (0, A, "done"),
            (1, B, "done"),
            (2, C, "done"),
        ]
        assert all(item["result"]["content"] for item in told["items"])
        assert told["settled"] is True
        assert told["next_cursor"] is None


async def test_no_answer_has_a_path(autojump_clock: Any) -> None:
    """What an agent is told are tools: no answer has a path of the HTTP API."""
    async with an_agent(Fetch(fail=[B])) as agent:
        job_id = await agent.settled(A, B)
        for tool in ("batch_wait", "batch_targets", "batch_results", "batch_cancel"):
            assert "/v1/" not in (await agent.call(tool, job_id=job_id)).text
        assert "/v1/" not in (await agent.call("batch_list")).text
        assert "/v1/" not in (await agent.tell("batch_read", {"job_id": job_id, "idx": 9})).text


async def test_options_reach_the_fetch(autojump_clock: Any) -> None:
    """A target is fetched with its own options, and with the shared ones where it has none."""
    async with an_agent() as agent:
        targets = [A, {"url": B, "options": {"question": "why"}}]
        await agent.settled(*targets, options={"mode": "text", "question": "how"})
        options = [call.target.options for call in agent.fetch.calls]
        assert [(o.mode, o.question) for o in options] == [("text", "how"), ("text", "why")]


async def test_submitting_again_joins_the_job(autojump_clock: Any) -> None:
    """The same targets again are the same job, and `replayed` says so; with `max_age` 0 a new one."""
    async with an_agent() as agent:
        job_id = await agent.settled(A)
        again = await agent.call("batch_submit", targets=[A])
        assert (again["id"], again["replayed"]) == (job_id, True)
        await trio.sleep(2)
        anew = await agent.call("batch_submit", targets=[A], max_age=0)
        assert anew["id"] != job_id
        assert "replayed" not in anew.view


async def test_a_wait_ends_at_its_time(autojump_clock: Any) -> None:
    """A wait for a job that takes long ends after `seconds`, and says to wait again; 0 does not wait."""
    async with an_agent(Fetch(hang=[A])) as agent:
        job = await agent.call("batch_submit", targets=[A])
        for seconds in (0, 7, 55):
            began = trio.current_time()
            told = await agent.call("batch_wait", job_id=job["id"], seconds=seconds)
            assert trio.current_time() - began == pytest.approx(seconds, abs=0.5)
            assert told["settled"] is False
            assert told["next"] == {"tool": "batch_wait", "arguments": {"job_id": job["id"]}}


async def test_more_than_the_longest_wait_counts_as_that(autojump_clock: Any) -> None:
    """A wait of an hour ends after 55 seconds."""
    async with an_agent(Fetch(hang=[A])) as agent:
        job = await agent.call("batch_submit", targets=[A])
        began = trio.current_time()
        await agent.call("batch_wait", job_id=job["id"], seconds=3600)
        assert trio.current_time() - began == pytest.approx(55, abs=0.5)


async def test_progress_is_told_if_it_is_asked_for(autojump_clock: Any) -> None:
    """During a wait with a progress token each finished target is told once, and no number goes back."""
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, word: str | None) -> None:
        seen.append((done, total, word))

    async with an_agent(Fetch(latency=3, fail=[B]), mode="legacy") as agent:
        job = await agent.call("batch_submit", targets=[A, B, C])
        arguments = {"job_id": job["id"], "seconds": 55}
        told = Told(await agent.client.call_tool("batch_wait", arguments, progress_callback=note))
        assert told["settled"]
        await trio.testing.wait_all_tasks_blocked()
    assert [(done, total) for done, total, _ in seen] == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert seen[-1][2] == "3 of 3 targets are finished, 1 failed"


async def test_cancelling_a_wait_leaves_the_job(autojump_clock: Any) -> None:
    """A wait that the agent cancels ends at once, and its job goes on to its end."""
    async with an_agent(Fetch(latency=20)) as agent:
        job = await agent.call("batch_submit", targets=[A, B])
        with trio.move_on_after(5) as scope:
            await agent.call("batch_wait", job_id=job["id"], seconds=55)
        assert scope.cancelled_caught
        told = await agent.call("batch_wait", job_id=job["id"], seconds=55)
        assert (told["settled"], told["targets"]["done"]) == (True, 2)


async def test_results_of_a_job_that_runs(autojump_clock: Any) -> None:
    """While a job runs, results are what is finished so far; with none yet, the next step is to wait."""
    async with an_agent(Fetch(hang=[B])) as agent:
        job = await agent.call("batch_submit", targets=[A, B])
        await agent.fetch.wait_started(2)
        told = await agent.call("batch_results", job_id=job["id"])
        assert [item["idx"] for item in told["items"]] == [0]
        assert told["next"]["tool"] == "batch_results"
        told = await agent.follow(told["next"])
        assert (told["items"], told["settled"]) == ([], False)
        assert told["next"] == {"tool": "batch_wait", "arguments": {"job_id": job["id"]}}
        agent.fetch.release()
        await agent.follow(told["next"])
        last = await agent.call("batch_results", job_id=job["id"], cursor=told["next_cursor"])
        assert [item["idx"] for item in last["items"]] == [1]
        assert last["next"] is None


async def test_targets_are_listed_by_state_and_in_pages(autojump_clock: Any) -> None:
    """A list of targets has no content, takes a state and a limit, and its `next` is the next page."""
    async with an_agent(Fetch(fail=[B])) as agent:
        job_id = await agent.settled(A, B, C)
        told = await agent.call("batch_targets", job_id=job_id, status="done", limit=1)
        assert [item["url"] for item in told["items"]] == [A]
        assert "result" not in told["items"][0]
        told = await agent.follow(told["next"])
        assert [item["url"] for item in told["items"]] == [C]
        assert told["next"] is None


async def test_a_failed_job_leads_to_its_rerun_and_names_its_results(autojump_clock: Any) -> None:
    """The next step of a job with failures is its rerun, which fetches them alone; its hint names results."""
    async with an_agent(Fetch(results={B: "late"})) as agent:
        agent.fetch.fail(B, TargetError("no", code="connect", retryable=True))
        job_id = await agent.settled(A, B)
        told = await agent.call("batch_wait", job_id=job_id)
        assert told["status"] == "partial"
        assert told["hint"] == "1 failed; a rerun fetches it; batch_results has what there is"
        assert told["next"] == {"tool": "batch_rerun", "arguments": {"job_id": job_id}}
        agent.fetch.answer(B, "late")
        rerun = await agent.follow(told["next"])
        assert rerun["rerun_of"] == job_id
        await agent.call("batch_wait", job_id=rerun["id"], seconds=55)
        results = await agent.call("batch_results", job_id=rerun["id"])
        assert [item["status"] for item in results["items"]] == ["done", "done"]
        assert agent.fetch.order.count(A) == 1


async def test_cancel_stops_a_job_and_is_safe_to_repeat(autojump_clock: Any) -> None:
    """A cancelled job is `cancelled` both times; what was never fetched is listed as such."""
    async with an_agent(Fetch(hang=[A])) as agent:
        job = await agent.call("batch_submit", targets=[A, B])
        await agent.fetch.wait_started(1)
        first = await agent.call("batch_cancel", job_id=job["id"])
        agent.fetch.release()
        again = await agent.call("batch_cancel", job_id=job["id"])
        assert (first["status"], again["status"], again["already_ended"]) == ("cancelled", "cancelled", True)
        await agent.call("batch_wait", job_id=job["id"])
        told = await agent.call("batch_results", job_id=job["id"])
        assert [item["code"] for item in told["items"]] == ["", "not_fetched"]


async def test_jobs_are_listed_newest_first_in_pages(autojump_clock: Any) -> None:
    """The list has the newest job first; its pages follow each other by `next`."""
    async with an_agent() as agent:
        ids = [await agent.settled(url) for url in (A, B, C)]
        told = await agent.call("batch_list", limit=2)
        assert [item["id"] for item in told["items"]] == [ids[2], ids[1]]
        assert [item["next"]["tool"] for item in told["items"]] == ["batch_results"] * 2
        told = await agent.follow(told["next"])
        assert [item["id"] for item in told["items"]] == [ids[0]]
        assert (await agent.call("batch_list", status="failed"))["items"] == []


async def test_fetch_gives_a_page_at_once(autojump_clock: Any) -> None:
    """A fetch answers with the content and its meta, and makes no job."""
    async with an_agent(Fetch(results={A: "hello"})) as agent:
        told = await agent.call("fetch", url=A, options={"mode": "text"})
        assert told["content"] == "hello"
        assert told["next"] is None
        assert (await agent.call("batch_list"))["items"] == []


async def test_a_fetch_that_fails_says_why(autojump_clock: Any) -> None:
    """A fetch of a page that is not there is a problem with the target's own code and hint."""
    async with an_agent() as agent:
        agent.fetch.fail(A, TargetError("no such page", hint="look", status=404, code="page_not_found"))
        problem = (await agent.tell("fetch", {"url": A})).problem("page_not_found")
        assert (problem["detail"], problem["hint"]) == ("no such page", "look")
        assert (problem["origin"], problem["http_status"]) == ("target", 404)


async def test_a_fetch_without_a_slot_leads_to_a_job(autojump_clock: Any) -> None:
    """A fetch that gets no slot is `gate_busy`, and its next step submits that very target."""
    async with an_agent() as agent:
        agent.fetch.answer(A, RetryLater(retry_after=7, reason="gate"))
        target = {"url": A, "options": {"mode": "text"}}
        problem = (await agent.tell("fetch", target)).problem("gate_busy")
        assert problem["retry_after"] == 7
        assert problem["next"] == {"tool": "batch_submit", "arguments": {"targets": [target]}}


async def test_a_second_job_is_told_of_the_first(autojump_clock: Any) -> None:
    """With a live job, another is `caller_busy`: it names the job, and waiting for it is the next step."""
    async with an_agent(Fetch(hang=[A])) as agent:
        job = await agent.call("batch_submit", targets=[A])
        problem = (await agent.tell("batch_submit", {"targets": [B]})).problem("caller_busy")
        assert problem["job_id"] == job["id"]
        assert problem["next"] == {"tool": "batch_wait", "arguments": {"job_id": job["id"]}}


async def _steps(agent: Agent, *steps: tuple[str, dict[str, Any], str, str | None]) -> None:
    for tool, arguments, code, following in steps:
        problem = (await agent.tell(tool, arguments)).problem(code)
        assert (problem["next"] or {}).get("tool") == following, (tool, problem)


async def test_problems_of_jobs_lead_on(autojump_clock: Any) -> None:
    """A job that is not there, not settled, or a target that is not there or not finished: each leads on."""
    async with an_agent(Fetch(hang=[A])) as agent:
        job_id = (await agent.call("batch_submit", targets=[A]))["id"]
        await _steps(
            agent,
            ("batch_wait", {"job_id": "0" * 32}, "unknown_job", "batch_list"),
            ("batch_wait", {"job_id": "../limits?x=1"}, "unknown_job", "batch_list"),
            ("batch_read", {"job_id": "..", "idx": 0}, "unknown_job", "batch_list"),
            ("batch_read", {"job_id": job_id, "idx": 1}, "unknown_target", "batch_targets"),
            ("batch_read", {"job_id": job_id, "idx": 0}, "not_finished", "batch_wait"),
            ("batch_rerun", {"job_id": job_id}, "job_live", "batch_wait"),
            ("batch_results", {"job_id": job_id, "cursor": "AAAA"}, "bad_request", None),
        )


async def test_a_job_that_was_deleted_is_gone(autojump_clock: Any) -> None:
    """A job that is kept no more is `gone`, with the reason, and its hint names the tool."""
    async with an_agent() as agent:
        job_id = await agent.settled(A)
        await agent.runner.delete(job_id, caller=CALLER)
        problem = (await agent.tell("batch_results", {"job_id": job_id})).problem("gone")
        assert problem["reason"] == "deleted"
        assert problem["hint"] == "call batch_submit with its targets again"


BAD = [
    ("batch_submit", {}, "/targets", "missing"),
    ("batch_submit", {"targets": A}, "/targets", "type"),
    ("batch_submit", {"targets": [A], "urls": []}, "/urls", "unknown_field"),
    ("batch_submit", {"targets": [A], "options": []}, "/options", "type"),
    ("batch_submit", {"targets": [A], "max_age": "1"}, "/max_age", "type"),
    ("batch_submit", {"targets": [A], "max_age": -1}, "/max_age", "range"),
    ("batch_submit", {"targets": [{"url": 5}]}, "/targets/0/url", "type"),
    ("batch_submit", {"targets": [{"url": A, "x": 1}]}, "/targets/0/x", "unknown_field"),
    ("batch_submit", {"targets": [{"url": B, "options": {"x": 1}}]}, "/targets/0/options/x", "unknown_field"),
    ("batch_wait", {}, "/job_id", "missing"),
    ("batch_wait", {"job_id": None}, "/job_id", "missing"),
    ("batch_wait", {"job_id": ""}, "/job_id", "length"),
    ("batch_wait", {"job_id": "x", "seconds": "5"}, "/seconds", "type"),
    ("batch_wait", {"job_id": "x", "seconds": True}, "/seconds", "type"),
    ("batch_wait", {"job_id": "x", "seconds": 1.5}, "/seconds", "type"),
    ("batch_wait", {"job_id": "x", "seconds": -1}, "/seconds", "range"),
    ("batch_targets", {"job_id": "x", "status": "finished"}, "/status", "choice"),
    ("batch_results", {"job_id": "x", "limit": 0}, "/limit", "range"),
    ("batch_results", {"job_id": "x", "max_chars": 10}, "/max_chars", "range"),
    ("batch_results", {"job_id": "x", "cursor": 4}, "/cursor", "type"),
    ("batch_read", {"job_id": "x"}, "/idx", "missing"),
    ("batch_read", {"job_id": "x", "idx": "0"}, "/idx", "type"),
    ("batch_read", {"job_id": "x", "idx": 0, "offset": -5}, "/offset", "range"),
    ("batch_rerun", {"job_id": 7}, "/job_id", "type"),
    ("batch_cancel", {"id": "x", "job_id": "x"}, "/id", "unknown_field"),
    ("batch_list", {"status": "live"}, "/status", "choice"),
    ("fetch", {"urls": [A]}, "/urls", "unknown_field"),
    ("fetch", {"url": A, "options": "text"}, "/options", "type"),
    ("fetch", {"url": A, "options": {"jq": 1}}, "/options/jq", "type"),
]  # fmt: skip


async def test_bad_arguments_are_named(autojump_clock: Any) -> None:
    """A wrong argument is named by its place with what is allowed, never by its value; nothing is fetched."""
    async with an_agent() as agent:
        for tool, arguments, pointer, code in BAD:
            problem = (await agent.tell(tool, arguments)).problem("bad_request")
            found = [(error["pointer"], error["code"]) for error in problem["errors"]]
            assert (pointer, code) in found, (tool, arguments, problem)
            assert all(error["detail"] for error in problem["errors"])
        assert agent.fetch.calls == []
        problem = (await agent.tell("batch_wait", {"job_id": "x", "wait": 5})).problem("bad_request")
        assert problem["errors"][0]["detail"] == "the arguments are job_id, seconds"
        (await agent.tell("batch_submit", {"targets": []})).problem("no_targets")
        problem = (await agent.tell("batch_submit", {"targets": [A] * 33})).problem("too_many_targets")
        assert (problem["limit"], problem["given"]) == (32, 33)
        assert problem["hint"] == (
            "call batch_submit with fewer targets, and with the rest when that job has ended"
        )


async def test_a_secret_in_a_wrong_argument_is_not_said_again(autojump_clock: Any) -> None:
    """Neither a value nor a name that is no plain word is repeated in a problem."""
    secret = "hunter2 https://secret.example/?token=1"
    async with an_agent() as agent:
        for arguments in ({"job_id": [secret]}, {"job_id": "x", secret: 1}, {"job_id": secret}):
            told = await agent.tell("batch_wait", arguments)
            assert told.bad
            assert "hunter2" not in told.text
        with pytest.raises(MCPError) as caught:
            await agent.client.call_tool(secret, {})
        assert "hunter2" not in str(caught.value)
        assert all(name in str(caught.value) for name in TOOLS)


async def test_numbers_without_a_fraction_are_whole(autojump_clock: Any) -> None:
    """5.0 is as good as 5 where a whole number is wanted, and null as good as nothing."""
    async with an_agent() as agent:
        job_id = await agent.settled(A)
        await agent.call("batch_wait", job_id=job_id, seconds=5.0)
        await agent.call("batch_results", job_id=job_id, cursor=None, status=None, max_chars=None)


async def test_a_rerun_in_vain_is_advised_against(autojump_clock: Any) -> None:
    """With nothing retryable among the failures every view of the job says that a rerun won't help."""
    async with an_agent() as agent:
        agent.fetch.fail(B, TargetError("no", code="page_not_found", retryable=False))
        job_id = await agent.settled(A, B)
        submitted = await agent.call("batch_submit", targets=[A, B])
        waited = await agent.call("batch_wait", job_id=job_id)
        for told in (submitted, waited, await agent.call("batch_cancel", job_id=job_id)):
            assert (
                told["hint"] == "1 failed, not retryable: a rerun won't help; batch_results has what there is"
            )
            assert told["next"]["tool"] == "batch_rerun"


async def test_a_rerun_that_may_help_is_not_advised_against(autojump_clock: Any) -> None:
    """One failure that is retryable, or one target that was not fetched, is enough."""
    async with an_agent(Fetch(hang=[C])) as agent:
        agent.fetch.fail(A, TargetError("no", code="page_not_found", retryable=False))
        agent.fetch.fail(B, TargetError("late", code="timeout", retryable=True))
        job_id = await agent.settled(A, B)
        told = await agent.call("batch_wait", job_id=job_id)
        assert told["hint"] == "2 failed; a rerun fetches them; batch_results has what there is"
        job_id = (await agent.call("batch_submit", targets=[A, C, B]))["id"]
        while (await agent.call("batch_wait", job_id=job_id, seconds=1))["targets"]["failed"] < 1:
            pass
        await agent.call("batch_cancel", job_id=job_id)
        agent.fetch.release()
        told = await agent.call("batch_wait", job_id=job_id, seconds=55)
        assert "won't help" not in told["hint"]
