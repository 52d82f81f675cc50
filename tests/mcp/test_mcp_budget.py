"""Does every answer fit what was asked for, whatever it has to hold?

What is counted is all of an answer: its text, and the object beside it, if there is one.
"""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp_rig import Agent, Fetch, Service, Told, agent_of, an_agent

from sift_batch import Result
from sift_batch.mcp._fit import (
    DEFAULT,
    LEAST,
    MOST,
    fits,
    fitting_problem,
    how_many,
    lean,
    longest_part,
    shortened,
    text_of,
)
from sift_batch.service import _json_body

URLS = [f"https://{n}.example/" for n in range(32)]


def in_all(told: Told) -> int:
    """All characters of an answer."""
    text = len(told.text)
    return text if told.object is None else text + len(json.dumps(told.object, ensure_ascii=False))


def check(told: Told, budget: int = DEFAULT) -> None:
    """An answer fits its budget, and 40,000 characters in all."""
    assert len(told.text) <= budget
    assert in_all(told) <= MOST


async def all_parts(agent: Agent, job_id: str, idx: int, max_chars: int | None = None) -> str:
    """The content of a target, read in parts by `next` alone; each part fits."""
    more = {} if max_chars is None else {"max_chars": max_chars}
    told = await agent.call("batch_read", job_id=job_id, idx=idx, **more)
    content = ""
    while True:
        check(told, max_chars or DEFAULT)
        assert told["result"]["content"]
        content += told["result"]["content"]
        if told["next"] is None:
            assert told["next_offset"] is None
            return content
        assert told["next"]["arguments"]["offset"] == told["next_offset"] == len(content)
        told = await agent.follow(told["next"])


async def all_results(agent: Agent, job_id: str, **arguments: Any) -> list[Any]:
    """All items of a job's results, by `next` alone; each page fits."""
    told = await agent.call("batch_results", job_id=job_id, **arguments)
    items = []
    while True:
        check(told, arguments.get("max_chars", DEFAULT))
        items += told["items"]
        if told["next"] is None:
            return items
        assert told["items"]
        told = await agent.follow(told["next"])


TEXTS = {
    "plain": "word " * 20_000,
    "one word": "x" * 80_000,
    "lines": "line\n" * 12_000,
    "quotes": '"\\' * 30_000,
    "controls": "\x01\x02\n" * 15_000,
    "emoji": "😀\n\n" * 15_000,
    "chinese": "批量抓取。" * 12_000,
    "blocks": ("paragraph " * 60 + "\n\n") * 150,
}


@pytest.mark.parametrize("kind", sorted(TEXTS))
async def test_a_huge_target_is_read_in_parts(autojump_clock: Any, kind: str) -> None:
    """A target too long for a page is `over_budget`; its `next` reads all of it, in parts that fit."""
    text = TEXTS[kind]
    async with an_agent(Fetch(results={URLS[0]: text})) as agent:
        job_id = await agent.settled(URLS[0], URLS[1])
        told = await agent.call("batch_results", job_id=job_id)
        check(told)
        first, second = told["items"] if len(told["items"]) == 2 else [told["items"][0], None]
        assert (first["code"], first["result"], first["chars"]) == ("over_budget", None, len(text))
        assert first["next"]["arguments"] | {"max_chars": 0} == {
            "job_id": job_id,
            "idx": 0,
            "offset": 0,
            "max_chars": 0,
        }
        check(await agent.follow(first["next"]))
        assert await all_parts(agent, job_id, 0) == text
        rest = await all_results(agent, job_id)
        assert [item["idx"] for item in rest] == [0, 1]
        assert second is None or second["idx"] == 1


@pytest.mark.parametrize("max_chars", [LEAST, LEAST + 1, 5_000, MOST])
async def test_parts_are_as_large_as_was_asked_for(autojump_clock: Any, max_chars: int) -> None:
    """Parts fit any budget, put together they are the text, and they use most of the room."""
    text = TEXTS["blocks"][:90_000] + "\n\n" + "tail " * 400
    async with an_agent(Fetch(results={URLS[0]: text})) as agent:
        job_id = await agent.settled(URLS[0])
        assert await all_parts(agent, job_id, 0, max_chars) == text
        told = await agent.call("batch_read", job_id=job_id, idx=0, max_chars=max_chars)
        assert len(told.text) > max_chars - 1_000


async def test_more_than_the_most_counts_as_the_most(autojump_clock: Any) -> None:
    """No answer has more than 40,000 characters, whatever `max_chars` says."""
    async with an_agent(Fetch(results={URLS[0]: TEXTS["plain"]})) as agent:
        job_id = await agent.settled(URLS[0])
        told = await agent.call("batch_read", job_id=job_id, idx=0, max_chars=10_000_000)
        check(told, MOST)
        assert len(told.text) > MOST - 1_000


async def test_the_object_is_left_out_when_both_would_be_too_long(autojump_clock: Any) -> None:
    """An answer has its text and the same as an object, until both together pass 40,000 characters."""
    async with an_agent(Fetch(results={URLS[0]: "x" * 100_000})) as agent:
        job_id = await agent.settled(URLS[0])
        for max_chars, both in ((15_000, True), (19_800, True), (30_000, False), (40_000, False)):
            told = await agent.call("batch_read", job_id=job_id, idx=0, max_chars=max_chars)
            assert (told.object is not None) is both, max_chars
            check(told, max_chars)


async def test_a_target_that_fits_to_the_last_character_is_on_the_page(autojump_clock: Any) -> None:
    """The largest content that fits a page is on it, and one character more is `over_budget`."""
    async with an_agent() as agent:
        for extra, whole in ((0, True), (1, False)):
            url = URLS[extra]
            agent.fetch.answer(url, "x")
            empty = await agent.settled(url)
            told = await agent.call("batch_results", job_id=empty)
            # `chars` and `stored` have more digits then.
            room = DEFAULT - len(told.text) + 1 - len("19000") + len("1")
            agent.fetch.answer(url, "x" * (room + extra))
            job_id = await agent.settled(url, max_age=0)
            assert job_id != empty
            told = await agent.call("batch_results", job_id=job_id)
            check(told)
            assert (told["items"][0]["code"] != "over_budget") is whole
            if whole:
                assert len(told.text) == DEFAULT


async def test_a_job_of_thirty_two_is_read_once_and_whole(autojump_clock: Any) -> None:
    """Each of 32 targets of all sizes comes exactly once, in order, on pages that fit."""
    texts = {url: f"{n}\n" * (n * 90) + "end" for n, url in enumerate(URLS)}
    async with an_agent(Fetch(results=dict(texts))) as agent:
        job_id = await agent.settled(*URLS)
        for max_chars in (LEAST, DEFAULT, MOST):
            items = await all_results(agent, job_id, max_chars=max_chars)
            assert [item["idx"] for item in items] == list(range(32))
            for item in items:
                if item["code"] == "over_budget":
                    assert len(texts[item["url"]]) > max_chars - 1_500 - texts[item["url"]].count("\n")
                else:
                    assert item["result"]["content"] == texts[item["url"]]
        assert len(await all_results(agent, job_id, limit=3)) == 32


async def test_long_addresses_do_not_make_a_list_too_long(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """32 targets with addresses of 8,000 characters are listed on pages that fit, each exactly once."""
    # A large body is looked through in a thread, for which the mock clock does not wait.
    monkeypatch.setattr(_json_body, "_LARGE", 2**20)
    urls = [url + "x" * 8_000 for url in URLS]
    async with an_agent(Fetch(fail=urls[:3])) as agent:
        job_id = await agent.settled(*urls)
        for tool in ("batch_targets", "batch_results"):
            for max_chars in (LEAST, MOST):
                told, seen = await agent.call(tool, job_id=job_id, max_chars=max_chars), []
                check(told, max_chars)
                seen += told["items"]
                while told["next"] is not None:
                    told = await agent.follow(told["next"])
                    check(told, max_chars)
                    seen += told["items"]
                assert [item["idx"] for item in seen] == list(range(32))
        check(await agent.call("batch_read", job_id=job_id, idx=0, max_chars=LEAST), LEAST)
        check(await agent.call("batch_read", job_id=job_id, idx=5, max_chars=LEAST), LEAST)


async def test_what_is_known_of_a_page_leaves_room_for_what_it_says(autojump_clock: Any) -> None:
    """A page whose title alone would fill the answer is read to its end all the same."""
    meta = {"title": "long title " * 3_000, "redirects": [URLS[0]] * 50, "author": "x" * 9_000}
    result = Result("text " * 9_000, meta=meta)
    async with an_agent(Fetch(results={URLS[0]: result})) as agent:
        job_id = await agent.settled(URLS[0])
        assert await all_parts(agent, job_id, 0) == result.content
        assert await all_parts(agent, job_id, 0, LEAST) == result.content
        assert [item["code"] for item in await all_results(agent, job_id)] == ["over_budget"]
        told = await agent.call("fetch", url=URLS[0])
        check(told)
        assert result.content.startswith(told["content"])
        assert told["content"]


@pytest.mark.parametrize("kind", sorted(TEXTS))
async def test_a_long_page_fetched_at_once_is_cut_and_says_so(autojump_clock: Any, kind: str) -> None:
    """A fetch of a long page has its beginning, says that it is cut, and leads to a job of that target."""
    target = {"url": URLS[0], "options": {"mode": "text"}}
    async with an_agent(Fetch(results={URLS[0]: TEXTS[kind]})) as agent:
        for max_chars in (LEAST, DEFAULT, MOST):
            told = await agent.call("fetch", **target, max_chars=max_chars)
            check(told, max_chars)
            assert TEXTS[kind].startswith(told["content"])
            assert len(text_of(told["content"])) > max_chars // 4
            meta = told["meta"]
            assert (meta["truncated"], meta["code"]) == (True, "truncated")
            assert meta["chars_total"] == len(TEXTS[kind])
            assert told["next"] == {"tool": "batch_submit", "arguments": {"targets": [target]}}


async def test_a_long_list_of_jobs_is_told_in_pages(autojump_clock: Any) -> None:
    """As many jobs as there may be on a page fit it, whatever their number, each exactly once."""
    async with an_agent() as agent:
        ids = [await agent.settled(f"{URLS[0]}{n}") for n in range(40)]
        told, seen = await agent.call("batch_list", limit=100), []
        while True:
            check(told)
            seen += [item["id"] for item in told["items"]]
            if told["next"] is None:
                break
            told = await agent.follow(told["next"])
        assert seen == ids[::-1]


async def test_a_problem_with_many_errors_fits(autojump_clock: Any) -> None:
    """Of more errors than fit, those that fit are told, with how many there are besides."""
    errors = [{"pointer": f"/targets/{n}/url", "code": "type", "detail": "must be " * 30} for n in range(200)]
    service = Service()
    service.answer = lambda _method, _path: (422, {"code": "bad_request", "detail": "no", "errors": errors})
    async with agent_of(service) as agent:
        told = await agent.tell("batch_submit", {"targets": ["x"]})
        check(told)
        problem = told.problem("bad_request")
        assert problem["errors"] == errors[: len(problem["errors"])]
        assert problem["errors_left_out"] == 200 - len(problem["errors"]) > 0


async def test_half_a_character_does_not_break_an_answer(autojump_clock: Any) -> None:
    """A lone surrogate, which no UTF-8 can hold, comes out as a question mark."""
    service = Service()
    view = {"items": [{"idx": 0, "x": "a\ud800b"}], "next_cursor": None, "settled": True}
    service.answer = lambda _method, _path: (200, view)
    async with agent_of(service) as agent:
        told = await agent.call("batch_results", job_id="x")
        assert told["items"] == [{"idx": 0, "x": "a?b"}]


STEADY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""On a busy machine an example may take any time."""

TREES = st.recursive(
    st.none() | st.integers() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@STEADY
@given(text=st.text(), room=st.integers(0, 60))
def test_the_longest_part_is_the_longest(text: str, room: int) -> None:
    """As many characters as fit the room in JSON, and not one less."""
    count = longest_part(text, room)
    assert len(text_of(text[:count])) - 2 <= room
    assert count == len(text) or count >= room or len(text_of(text[: count + 1])) - 2 > room


@STEADY
@given(
    items=st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=50)), max_size=8),
    budget=st.integers(30, 400),
)
def test_how_many_items_fit_is_counted_right(items: list[Any], budget: int) -> None:
    """So many items fit the page, and one more does not, but for the comma that the last has not."""
    view = {"items": items, "next": None}
    count = how_many(view, items, budget)
    assert count == 0 or fits({**view, "items": items[:count]}, budget)
    assert count == len(items) or not fits({**view, "items": items[: count + 1]}, budget - 1)


@STEADY
@given(rest=st.dictionaries(st.sampled_from(["meta", "result", "url", "error"]), TREES))
def test_what_is_shortened_is_the_same_kind(rest: dict[str, Any]) -> None:
    """Shortening cuts texts and lists and keeps every name; the next step is never cut."""
    step = {"tool": "x", "arguments": {"url": "y" * 500}}
    assert shortened(rest).keys() == rest.keys()
    assert lean({**rest, "next": step}, LEAST)["next"] == step
    assert fitting_problem({**rest}, DEFAULT) == rest
