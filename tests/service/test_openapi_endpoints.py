"""What the description says of an endpoint and an example shows better than a schema."""

import json

import pytest
from api_rig import Fetch, serving

from sift_batch import TargetError

pytestmark = pytest.mark.real

A, B = "https://a.example/", "https://b.example/"


async def test_a_second_delete_is_204_for_a_restricted_caller_too() -> None:
    """Whoever deletes a job again is told the same; nobody is told anything else of it."""
    async with serving() as api:
        job_id = await api.settled(A, client=api.eve)
        path = f"/v1/batch/{job_id}"
        assert [(await api.eve.send("DELETE", path)).status for _ in range(3)] == [204] * 3
        mine = (await api.eve.get(path)).body
        assert (await api.eve.get(path)).problem(404, "unknown_job")
        never = path[:-4] + "0000"
        assert (await api.ann.send("DELETE", path)).body == (await api.ann.send("DELETE", never)).body
        assert mine == (await api.eve.get(never)).body


async def test_both_spellings_of_the_default_mode_are_one_job() -> None:
    """`markdown` and no mode at all ask for the same: the second submit joins the first."""
    async with serving() as api:
        first = await api.ann.post("/v1/batch", {"targets": [{"url": A, "options": {"mode": "markdown"}}]})
        for body in (
            {"targets": [A]},
            {"targets": [A], "options": {"mode": "markdown"}},
            {"targets": [{"url": A, "options": {"mode": "markdown"}}], "options": {"mode": "text"}},
        ):
            again = await api.ann.post("/v1/batch", body)
            assert (again.status, again.json["id"]) == (200, first.json["id"])
            assert again.headers["idempotent-replayed"] == "true"


class Picky(Fetch):
    """Refuses one option by its value."""

    async def check(self, target) -> None:
        """Refuse a program that is none."""
        await super().check(target)
        if target.options.jq == "}{":
            raise TargetError("the program is none: line 1, column 1", code="bad_option", status=422)
        if target.options.grep == "(":
            raise TargetError("the pattern is none: line 1, column 1", code="bad_option", status=422)
        if target.options.jq and target.options.pages:
            raise TargetError("jq and pages exclude each other", code="bad_option", status=422)


async def test_a_bad_option_of_the_job_is_named_once_and_by_its_own_place() -> None:
    """What is wrong in the job's options is wrong there, not at each target, even if none takes it."""
    async with serving(Picky()) as api:
        bad = {"jq": "}{"}
        problem = (await api.ann.post("/v1/batch", {"targets": [A, B], "options": bad})).problem(
            422, "bad_request"
        )
        assert [item["pointer"] for item in problem["errors"]] == ["/options/jq"]
        assert "line 1, column 1" in problem["errors"][0]["detail"]
        own = {"targets": [{"url": A, "options": {"jq": "."}}], "options": bad}
        assert (await api.ann.post("/v1/batch", own)).problem(422, "bad_request")
        target = {"targets": [A, {"url": B, "options": bad}]}
        problem = (await api.ann.post("/v1/batch", target)).problem(422, "bad_request")
        assert [item["pointer"] for item in problem["errors"]] == ["/targets/1/options/jq"]


async def test_every_bad_option_of_a_target_is_named_and_its_url_beside_them() -> None:
    """One bad thing hides no other; options that only together do not fit are named as such."""
    async with serving(Picky()) as api:
        api.fetch.refuse[B] = TargetError("no such place", code="refused", status=403)
        bad = {"jq": "}{", "grep": "("}
        target = {
            "targets": [A, {"url": B, "options": bad}, {"url": A, "options": {"jq": ".", "pages": "1"}}]
        }
        problem = (await api.ann.post("/v1/batch", target)).problem(422, "bad_request")
        assert {item["pointer"] for item in problem["errors"]} == {
            "/targets/1/url",
            "/targets/1/options/jq",
            "/targets/1/options/grep",
            "/targets/2/options",
        }
        problem = (await api.ann.post("/v1/fetch", {"url": A, "options": bad})).problem(422, "bad_option")
        assert {item["pointer"] for item in problem["errors"]} == {"/options/jq", "/options/grep"}
        both = {"url": A, "options": {"jq": ".", "pages": "1"}}
        problem = (await api.ann.post("/v1/fetch", both)).problem(422, "bad_option")
        assert [item["pointer"] for item in problem["errors"]] == ["/options"]


async def test_a_whole_number_may_be_written_with_a_point() -> None:
    """JSON has one kind of number: 100.0 characters are 100, and 100.5 are no number of characters."""
    async with serving() as api:
        assert (await api.ann.post("/v1/fetch", {"url": A, "max_chars": 100.0})).status == 200
        problem = (await api.ann.post("/v1/fetch", {"url": A, "max_chars": 100.5})).problem(
            422, "bad_request"
        )
        assert problem["errors"][0]["pointer"] == "/max_chars"


async def test_lines_have_what_is_finished_now_in_order() -> None:
    """A target that is being fetched holds nothing back; who follows gets it in its place."""
    fetch = Fetch(fail=[A])
    async with serving(fetch) as api:
        first = await api.settled(A, B)
        fetch.hang(A)
        job_id = (await api.ann.post(f"/v1/batch/{first}/rerun")).json["id"]
        await fetch.wait_started(3)
        path = f"/v1/batch/{job_id}/results"
        lines = (await api.ann.get(path, Accept="application/jsonl")).lines
        assert [line["idx"] for line in lines] == [1]
        page = (await api.ann.get(path)).json
        assert (page["items"], page["settled"]) == ([], False)
        async with api.ann.stream(f"{path}?follow=1", Accept="application/x-ndjson") as stream:
            fetch.release()
            lines = [json.loads(await stream.block(b"\n") or "") for _ in range(2)]
            assert await stream.block(b"\n") is None
        assert [line["idx"] for line in lines] == [0, 1]


async def test_a_new_job_says_when_to_look_whatever_became_of_it() -> None:
    """A 202 has Location and Retry-After even if the job has ended before the answer was made."""
    async with serving() as api:
        submit = api.runner.submit

        async def submit_and_end(*args, **options):
            submission = await submit(*args, **options)
            await api.runner.wait(submission.id)
            return submission

        api.runner.submit = submit_and_end
        reply = await api.ann.post("/v1/batch", {"targets": [A]})
        assert (reply.status, reply.json["settled"], reply.headers["retry-after"]) == (202, True, "1")
        assert reply.headers["location"] == reply.json["links"]["self"]
