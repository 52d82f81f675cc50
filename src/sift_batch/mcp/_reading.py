"""How is what a job has read in answers that fit? Pages of items, one target in parts, one page now.

A page is asked for as large as it may be; when names, quotes and escapes make it too long, it is asked for
again with as many items as fit, so that its cursor is right. Next: `_serve`.
"""

from typing import Any
from urllib.parse import urlencode

from .._client import Client
from ..service._parts import part_of
from ._arguments import View
from ._fit import DEFAULT, fits, how_many, lean, longest_part, shortened, text_of
from ._steps import JOBS, job_answer, job_path, step_of, tool_step
from ._tools import TOOLS


def budget_of(arguments: View) -> int:
    """Return how many characters an answer may hold."""
    budget: int = arguments.get("max_chars", DEFAULT)
    return budget


class Reading:
    """The tools that read, over one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def targets(self, arguments: View) -> View:
        """Answer `batch_targets`."""
        return await self._page("batch_targets", job_path(arguments, "targets"), arguments)

    async def results(self, arguments: View) -> View:
        """Answer `batch_results`."""
        path = job_path(arguments, "results")
        return await self._page("batch_results", path, arguments, max_chars=budget_of(arguments))

    async def jobs(self, arguments: View) -> View:
        """Answer `batch_list`."""
        return await self._page("batch_list", JOBS, arguments)

    async def read(self, arguments: View) -> View:
        """Answer `batch_read`."""
        budget = chars = budget_of(arguments)
        path = job_path(arguments, "targets", str(arguments["idx"]))
        while True:
            part = await self._get(path, offset=arguments.get("offset", 0), max_chars=chars)
            view = _part_view(part, arguments, budget)
            if fits(view, budget) or view["result"] is None:
                return view
            content = view["result"]["content"]
            room = budget - len(text_of(_with_content(view, "")))
            # A part of fewer characters begins like this one; how they are written is known, so it fits.
            chars = min(max(longest_part(content, room), 1), chars - 1)

    async def fetch(self, arguments: View) -> View:
        """Answer `fetch`."""
        budget = budget_of(arguments)
        target: View = {name: arguments[name] for name in ("url", "options") if name in arguments}
        answer = await self._client.call("POST", "/v1/fetch", {**target, "max_chars": budget})
        return _fetched_view(answer.json(), target, budget)

    async def _get(self, path: str, **query: Any) -> View:
        asked = urlencode({name: value for name, value in query.items() if value is not None})
        answer = await self._client.call("GET", f"{path}?{asked}")
        view: View = answer.json()
        return view

    async def _page(self, tool: str, path: str, arguments: View, **query: Any) -> View:
        budget = budget_of(arguments)
        limit = arguments.get("limit", TOOLS[tool].schema["properties"]["limit"]["default"])
        query |= {name: arguments.get(name) for name in ("status", "cursor")}
        while True:
            view = _page_view(tool, await self._get(path, limit=limit, **query), arguments)
            items = view["items"]
            if fits(view, budget):
                return view
            if len(items) < 2:
                return view | {"items": [_fitting_item(tool, item, arguments) for item in items]}
            # At least one item less each time, whatever the service answers.
            limit = min(max(how_many(view, items, budget), 1), len(items) - 1)


def _page_view(tool: str, page: View, arguments: View) -> View:
    items = [job_answer(item) if tool == "batch_list" else _item_view(item) for item in page["items"]]
    following = None
    if page["next_cursor"] is not None:
        again = {**arguments, "cursor": page["next_cursor"]}
        # There is nothing on it yet: first something has to finish.
        waits = tool == "batch_results" and not items and not page["settled"]
        following = tool_step("batch_wait", job_id=arguments["job_id"]) if waits else tool_step(tool, **again)
    return {
        "items": items,
        "next_cursor": page["next_cursor"],
        "settled": page["settled"],
        "next": following,
    }


def _item_view(item: View) -> View:
    """Return a target as an agent is told it; one with a next step is too long for the page."""
    if "next" not in item:
        return item
    return item | {"hint": _too_long(item), "next": step_of(item["next"])}


def _too_long(item: View) -> str:
    # To read all of it may take dozens of calls, for one answer that a narrower target gives at once.
    return (
        f"{item['chars']:,} characters do not fit; read it in parts, as `next` says, or submit it again "
        "with question, grep, pages or jq"
    )


def _fitting_item(tool: str, item: View, arguments: View) -> View:
    """Return an item that is too long alone: without its content, and with how to read that."""
    if tool != "batch_results" or item["result"] is None:
        return shortened(item) | ({"next": item["next"]} if "next" in item else {})
    told = {
        "result": None,
        "code": "over_budget",
        "hint": _too_long(item),
        "next": _read_step(arguments, item["idx"], 0),
    }
    return shortened({**item, "result": None}) | told


def _read_step(arguments: View, idx: int, offset: int) -> View:
    asked = {name: arguments[name] for name in ("job_id", "max_chars") if name in arguments}
    return tool_step("batch_read", **asked, idx=idx, offset=offset)


def _part_view(part: View, arguments: View, budget: int) -> View:
    offset = part["next_offset"]
    following = None if offset is None else _read_step(arguments, part["idx"], offset)
    rest = {**part, "next": following}
    if part["result"] is None:
        return rest if fits(rest, budget) else shortened(rest)
    bare = lean(_with_content(rest, ""), budget)
    bare.setdefault("result", {"content": "", "meta": {}})
    return _with_content(bare, part["result"]["content"])


def _with_content(view: View, content: str) -> View:
    return {**view, "result": {**view["result"], "content": content}}


def _fetched_view(view: View, target: View, budget: int) -> View:
    content: str = view["content"]
    rest = {"content": "", "meta": view["meta"], "next": None}
    cut = view["meta"].get("truncated") is True
    if not cut and fits({**rest, "content": content}, budget):
        return {**rest, "content": content}
    again = tool_step("batch_submit", targets=[target])
    hint = "this is a part; narrow it with question, grep, pages or jq, or batch_submit and batch_read it"
    meta = {"truncated": True, "chars_total": len(content), **view["meta"], "code": "truncated", "hint": hint}
    rest = lean({**rest, "meta": meta, "next": again if fits(again, budget // 4) else None}, budget)
    room = budget - len(text_of({**rest, "content": ""}))
    if len(text_of(content)) - 2 > room:
        content, _ = part_of(content, 0, max(longest_part(content, room), 1))
    rest.setdefault("meta", {})
    return {**rest, "content": content}
