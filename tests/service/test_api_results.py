"""Results over HTTP: targets, pages, budgets, parts, lines."""

import pytest
import trio
from api_rig import Fetch, holding, serving, until
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import Config, Options, Result, TargetError, TargetState, TargetStatus
from sift_batch.service._callers import Taken
from sift_batch.service._lines import wants_lines
from sift_batch.service._parts import block_ends, part_of
from sift_batch.service._result_routes import plan_page

A, B, C = "https://a.example/", "https://b.example/", "https://c.example/"
VIEW = {"idx", "url", "status", "chars", "result", "error", "code", "hint", "retryable", "http_status"}


def indexes(page: dict) -> list[int]:
    """Return the indexes of a page."""
    return [item["idx"] for item in page["items"]]


@pytest.mark.real
async def test_targets_are_listed_in_all_states_without_bodies() -> None:
    """Every target is there in input order; a done one's code and hint come from its meta."""
    fetch = Fetch(hang=[C], results={A: Result("", {"code": "no_match", "hint": "widen it"})})
    fetch.fail(B, TargetError("no such page", code="page_not_found", status=404, hint="look"))
    async with serving(fetch) as api:
        job_id = await api.submitted(A, B, C, "https://d.example/")
        await fetch.wait_started(3)
        page = (await api.ann.get(f"/v1/batch/{job_id}/targets")).json
        assert set(page) == {"items", "next_cursor", "settled"}
        assert all(set(item) == VIEW - {"result"} for item in page["items"])
        assert [item["status"] for item in page["items"]] == ["done", "failed", "running", "pending"]
        assert [item["code"] for item in page["items"]] == ["no_match", "page_not_found", "", ""]
        assert (page["items"][0]["hint"], page["items"][1]["http_status"]) == ("widen it", 404)
        pending = (await api.ann.get(f"/v1/batch/{job_id}/targets?status=pending")).json
        assert indexes(pending) == [3]
        first = (await api.ann.get(f"/v1/batch/{job_id}/targets?limit=3")).json
        rest = (await api.ann.get(f"/v1/batch/{job_id}/targets?cursor={first['next_cursor']}")).json
        assert (indexes(first), indexes(rest), rest["next_cursor"]) == ([0, 1, 2], [3], None)
        fetch.release()


@pytest.mark.real
async def test_what_the_engine_cut_says_so_as_what_the_fetch_cut_does() -> None:
    """A result over the engine's limit is `truncated` wherever it is read; one that just fits is not."""
    async with serving(
        Fetch(results={A: "x" * 3_000, B: "y" * 2_000}), config=Config(result_max_bytes=2_000)
    ) as api:
        path = f"/v1/batch/{await api.settled(A, B)}"
        pages = [(await api.ann.get(f"{path}/{part}")).json["items"] for part in ("targets", "results")]
        one = (await api.ann.get(f"{path}/targets/0")).json
        for view in (pages[0][0], pages[1][0], one):
            assert (view["code"], view["chars"]) == ("truncated", 2_000)
            assert "2,000 characters" in view["hint"]
        assert [page[1]["code"] for page in pages] == ["", ""]


@pytest.mark.real
async def test_a_page_stops_before_the_first_target_without_a_result() -> None:
    """While the job is not settled there is always a next page; null means settled and complete."""
    async with serving(Fetch(hang=[B], fail=[C])) as api:
        job_id = await api.submitted(A, B, C)
        path = f"/v1/batch/{job_id}/results"
        await api.fetch.wait_started(2)
        page = (await api.ann.get(path)).json
        assert (indexes(page), page["settled"]) == ([0], False)
        assert page["items"][0]["result"] == {"content": f"content of {A}", "meta": {}}
        assert set(page["items"][0]) == VIEW
        again = (await api.ann.get(f"{path}?cursor={page['next_cursor']}")).json
        assert (indexes(again), again["next_cursor"] is None) == ([], False)
        api.fetch.release()
        await api.runner.wait(job_id)
        rest = (await api.ann.get(f"{path}?cursor={again['next_cursor']}")).json
        assert (indexes(rest), rest["next_cursor"], rest["settled"]) == ([1, 2], None, True)
        assert rest["items"][1]["result"] is None
        assert indexes((await api.ann.get(f"{path}?status=failed")).json) == [2]


@pytest.mark.real
async def test_targets_never_fetched_are_listed_once_the_job_has_settled() -> None:
    """They are pending, not_fetched; every index comes exactly once, in pages and in lines."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A, B, C)
        await api.fetch.wait_started(1)
        await api.ann.post(f"/v1/batch/{job_id}/cancel")
        api.fetch.release()
        await api.runner.wait(job_id)
        found, cursor = [], None
        while True:
            query = "" if cursor is None else f"&cursor={cursor}"
            page = (await api.ann.get(f"/v1/batch/{job_id}/results?limit=1{query}")).json
            found += page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        told = [(item["idx"], item["status"], item["code"], item["retryable"]) for item in found]
        assert told == [
            (0, "done", "", False),
            (1, "pending", "not_fetched", True),
            (2, "pending", "not_fetched", True),
        ]
        lines = (await api.ann.get(f"/v1/batch/{job_id}/results", Accept="application/jsonl")).lines
        assert lines == found
        one = await api.ann.get(f"/v1/batch/{job_id}/targets/1")
        assert (one.status, one.json["code"]) == (200, "not_fetched")
        assert indexes((await api.ann.get(f"/v1/batch/{job_id}/results?status=pending")).json) == [1, 2]


@pytest.mark.real
async def test_a_budget_gives_whole_targets() -> None:
    """`max_chars` counts content; a first target over it comes without its result and says how to read it."""
    fetch = Fetch(results={A: "x" * 60, B: "y" * 60, C: "z" * 300})
    async with serving(fetch) as api:
        job_id = await api.settled(A, B, C)
        path = f"/v1/batch/{job_id}/results?max_chars=100"
        first = (await api.ann.get(path)).json
        assert indexes(first) == [0]
        second = (await api.ann.get(f"{path}&cursor={first['next_cursor']}")).json
        assert indexes(second) == [1]
        third = (await api.ann.get(f"{path}&cursor={second['next_cursor']}")).json
        (item,) = third["items"]
        assert (item["idx"], item["result"], item["code"], item["chars"]) == (2, None, "over_budget", 300)
        assert third["next_cursor"] is None
        part = (await api.ann.get(item["next"]["path"])).json
        assert (part["result"]["content"], part["next_offset"], part["chars"]) == ("z" * 100, 100, 300)
        assert indexes((await api.ann.get(f"/v1/batch/{job_id}/results?max_chars=120")).json) == [0, 1]


@pytest.mark.real
async def test_one_target_when_it_is_finished() -> None:
    """Before that it is 409 with Retry-After; a failed one is 200; a bad index is 404."""
    async with serving(Fetch(fail=[A], hang=[B])) as api:
        job_id = await api.submitted(A, B)
        await api.fetch.wait_started(2)
        failed = await api.ann.get(f"/v1/batch/{job_id}/targets/0")
        assert (failed.status, failed.json["status"]) == (200, "failed")
        assert set(failed.json) == VIEW
        reply = await api.ann.get(f"/v1/batch/{job_id}/targets/1")
        problem = reply.problem(409, "not_finished")
        assert int(reply.headers["retry-after"]) == problem["retry_after"] > 0
        for index in ("2", "-1", "00", "01", "x", "%31", "9" * 30, "1.0", "+1"):
            (await api.ann.get(f"/v1/batch/{job_id}/targets/{index}")).problem(404, "unknown_target")
        api.fetch.release()


@pytest.mark.real
async def test_the_parts_of_a_target_are_its_whole_blocks() -> None:
    """Read by `next_offset` from 0, the parts put together are the content."""
    content = "\n\n".join(f"## Part {n}\n\n{'word ' * n}end" for n in range(1, 30))
    async with serving(Fetch(results={A: content})) as api:
        path = f"/v1/batch/{await api.settled(A)}/targets/0"
        offset, parts = 0, []
        while offset is not None:
            view = (await api.ann.get(f"{path}?offset={offset}&max_chars=200")).json
            parts.append(view["result"]["content"])
            offset = view["next_offset"]
        assert "".join(parts) == content
        assert all(len(part) <= 200 for part in parts)
        assert all(part.startswith(("## ", "word")) for part in parts)
        assert "next_offset" not in (await api.ann.get(path)).json
        beyond = (await api.ann.get(f"{path}?offset={len(content) + 5}")).json
        assert (beyond["result"]["content"], beyond["next_offset"]) == ("", None)


@pytest.mark.real
@pytest.mark.parametrize("kind", ["application/jsonl", "application/x-ndjson"])
async def test_lines_give_what_is_finished_now(kind: str) -> None:
    """Without `follow` the lines end with what there is; each is a target view."""
    async with serving(Fetch(hang=[B])) as api:
        job_id = await api.submitted(A, B)
        await api.fetch.wait_started(2)
        reply = await api.ann.get(f"/v1/batch/{job_id}/results", Accept=kind)
        assert (reply.status, reply.headers["content-type"]) == (200, kind)
        assert [(line["idx"], set(line)) for line in reply.lines] == [(0, VIEW)]
        failed = await api.ann.get(f"/v1/batch/{job_id}/results?status=failed", Accept=kind)
        assert (failed.status, failed.body) == (200, b"")
        api.fetch.release()


@pytest.mark.real
async def test_followed_lines_go_on_until_the_job_has_settled() -> None:
    """Each line comes when its target is finished, and the end is a whole answer."""
    async with serving(Fetch(hang=[B, C])) as api:
        job_id = await api.submitted(A, B, C)
        with trio.fail_after(5):
            async with api.ann.stream(
                f"/v1/batch/{job_id}/results?follow=1", Accept="application/jsonl"
            ) as lines:
                assert '"idx":0' in (await lines.block(b"\n") or "")
                await api.fetch.wait_started(2)
                api.fetch.release(B)
                assert '"idx":1' in (await lines.block(b"\n") or "")
                assert lines.whole is None
                await api.fetch.wait_started(3)
                await api.ann.post(f"/v1/batch/{job_id}/cancel")
                api.fetch.release(C)
                assert '"idx":2' in (await lines.block(b"\n") or "")
                assert await lines.block(b"\n") is None
                assert lines.whole is True


@pytest.mark.real
async def test_followed_lines_that_are_cut_are_no_whole_answer() -> None:
    """When the service stops before the job has settled, the stream breaks off without its last chunk."""
    async with serving(Fetch(hang=[B])) as api:
        job_id = await api.submitted(A, B)
        with trio.fail_after(5):
            async with api.ann.stream(
                f"/v1/batch/{job_id}/results?follow=1", Accept="application/jsonl"
            ) as lines:
                await lines.block(b"\n")
                api.app.stop()
                assert await lines.block(b"\n") is None
                assert lines.whole is False
        api.fetch.release()


@pytest.mark.real
@pytest.mark.parametrize("query", ["limit=1", "max_chars=5", "cursor=x", "follow=0"])
async def test_lines_have_no_pages(query: str) -> None:
    """What belongs to pages is refused with lines, and `follow` without them."""
    async with serving() as api:
        path = f"/v1/batch/{await api.settled(A)}/results"
        (await api.ann.get(f"{path}?{query}", Accept="application/jsonl")).problem(422, "bad_request")
        (await api.ann.get(f"{path}?follow=1")).problem(422, "bad_request")


@pytest.mark.real
async def test_a_reader_that_leaves_ends_its_wait() -> None:
    """A closed connection ends the stream behind it, and the job goes on."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        await api.fetch.wait_started(1)
        async with api.ann.stream(f"/v1/batch/{job_id}/events") as events:
            await events.event()
            assert len(api.app._shared.open._open) == 1
        await until(lambda: not api.app._shared.open._open)
        api.fetch.release()
        assert (await api.runner.wait(job_id)).status == "done"


@pytest.mark.real
async def test_memory_for_results_is_given_back() -> None:
    """After pages, parts and problems the room for results is as large as before."""
    async with serving(config=Config(jobs_per_caller=2)) as api:
        job_id = await api.settled(A, B)
        room = api.app._shared.room
        free = room.free
        for path in (
            "targets",
            "results",
            "results?max_chars=1",
            "targets/0",
            "targets/1?max_chars=2",
            "targets/7",
        ):
            await api.ann.get(f"/v1/batch/{job_id}/{path}")
        assert room.free == free


@pytest.mark.real
async def test_lines_are_read_as_there_is_room() -> None:
    """While others hold all the memory for results, no line is read; then they come, and give it back."""
    async with serving() as api:
        path = f"/v1/batch/{await api.settled(A, B)}/results"
        room = api.app._shared.room
        free = room.free
        for query in ("", "?follow=1"):
            async with api.ann.stream(path + query, Accept="application/jsonl") as lines:
                async with holding(room, free):
                    with trio.move_on_after(0.2) as scope:
                        await lines.block(b"\n")
                    assert scope.cancelled_caught
                with trio.fail_after(5):
                    while await lines.block(b"\n") is not None:
                        pass
                assert lines.whole is True
        assert room.free == free


@pytest.mark.real
async def test_a_page_without_results_needs_no_room() -> None:
    """While others hold all the memory for results, and more wait, a page that has none comes at once."""
    async with serving(Fetch(hang=[A])) as api:
        job_id = await api.submitted(A)
        room = api.app._shared.room
        async with holding(room, room.free), trio.open_nursery() as waiting:
            waiting.start_soon(room.take, 1)
            with trio.fail_after(3):
                assert (await api.ann.get(f"/v1/batch/{job_id}/results")).json["items"] == []
            waiting.cancel_scope.cancel()
        api.fetch.release()


@pytest.mark.real
async def test_lines_to_a_caller_that_is_revoked_are_cut() -> None:
    """A stream of lines that is under way ends with the line that is being sent."""
    async with serving() as api:
        job_id = await api.settled(*(f"{A}{number}" for number in range(9)))
        touch = api.app._shared.leases.touch
        told: list[int] = []

        async def touching(*arguments: object) -> None:
            told.append(1)
            if len(told) == 3:  # the request itself, and two lines
                api.app.revoke(Taken(frozenset({"ann"}), frozenset()))
            await touch(*arguments)

        api.app._shared.leases.touch = touching
        async with api.ann.stream(f"/v1/batch/{job_id}/results", Accept="application/jsonl") as lines:
            with trio.fail_after(5):
                count = 0
                while await lines.block(b"\n") is not None:
                    count += 1
        assert (count, lines.whole) == (2, False)


def state(idx: int, status: TargetState, chars: int = 0) -> TargetStatus:
    """Return a target in a state."""
    return TargetStatus(idx, A, Options(), status, None, "", "", "", None, False, chars)


@given(
    st.lists(st.tuples(st.sampled_from(TargetState), st.integers(0, 30)), min_size=1, max_size=12),
    st.sampled_from([None, *TargetState]),
    st.integers(1, 4),
    st.none() | st.integers(1, 40),
    st.booleans(),
)
def test_pages_give_each_target_once(
    states: list[tuple[TargetState, int]],
    status: TargetState | None,
    limit: int,
    budget: int | None,
    settled: bool,
) -> None:
    """Page after page: in order, none twice, none left out, within the budget; the last only if settled."""
    targets = [state(idx, *item) for idx, item in enumerate(states)]
    start, seen = 0, []
    while True:
        plan = plan_page(targets, start, status=status, limit=limit, budget=budget, settled=settled)
        chars = sum(targets[idx].chars for idx in plan.chosen)
        assert len(plan.chosen) <= limit
        assert budget is None or chars <= budget
        seen += [plan.too_long.idx] if plan.too_long is not None else plan.chosen
        if plan.next_start is None or plan.next_start == start:
            break
        assert plan.next_start > start
        start = plan.next_start
    assert (plan.next_start is None) == settled
    finished = (TargetState.DONE, TargetState.FAILED)
    open_ones = [idx for idx, (item, _) in enumerate(states) if item not in finished]
    end = len(states) if settled or not open_ones else open_ones[0]
    shown = [item if item in finished else TargetState.PENDING for item, _ in states]
    assert seen == [idx for idx in range(end) if status in (None, shown[idx])]


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/jsonl", "application/jsonl"),
        ("Application/X-NDJSON; q=0.5", "application/x-ndjson"),
        ("text/html, application/jsonl", "application/jsonl"),
        ("application/json, application/jsonl", None),
        ("application/jsonl;q=0", None),
        ("*/*", None),
        ("", None),
    ],
)
def test_lines_are_given_to_who_asks_for_them(accept: str, kind: str | None) -> None:
    """Lines come only for an `Accept` that names them before plain JSON."""
    assert wants_lines(accept) == kind


@given(st.text(alphabet="ab# \n`~", max_size=200), st.integers(1, 50))
def test_parts_make_up_the_text_and_get_on(content: str, size: int) -> None:
    """Whatever the text, no part is longer than asked for, none is empty, and together they are the text."""
    offset: int | None = 0
    parts = []
    while offset is not None:
        part, offset = part_of(content, offset, size)
        assert len(part) <= size
        assert part or not content
        parts.append(part)
    assert "".join(parts) == content


def test_a_fence_is_one_block_and_a_heading_stands_alone() -> None:
    """No block ends inside a fence, not even at a blank line in it."""
    text = "intro\n\n```py\na\n\n# no heading\n```\n# Title\ntext\n\nlast"
    ends = [text[end:].split("\n")[0] for end in block_ends(text)]
    assert ends == ["```py", "# Title", "text", "last"]
