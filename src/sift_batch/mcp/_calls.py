"""What does a tool do? A request or two to the service, and what comes back as one answer that fits.

Pages are asked for as large as they may be; when names, quotes and escapes make one too long, it is asked
for again with as many items as fit, so that its cursor is right. Next: `_serve`, which speaks the protocol.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import trio

from .._client import Answer, Client, ServiceProblem, Unreachable
from ..service._parts import part_of
from ._arguments import BadArguments, View, read_arguments
from ._fit import DEFAULT, MOST, fits, fitting_problem, how_many, longest_part, shortened
from ._steps import (
    bad_arguments_view,
    job_answer,
    own_problem,
    problem_view,
    step_of,
    tool_step,
    unreachable_view,
)
from ._tools import TOOLS

Progress = Callable[[int, int, str], Awaitable[None]]
"""Told of targets that are finished, of all, and a word about it."""

_JOBS: Final = "/v1/batch"
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,100}", re.ASCII)
_WAIT: Final = 25
_SETTLE: Final = 10.0  # for the answer itself, after the time that was waited


class Refused(Exception):
    """A problem that is found before any request is made. `view` is what the agent is told."""

    def __init__(self, view: View) -> None:
        super().__init__("refused")
        self.view = view


class Calls:
    """The tools over one client. Any number of calls may go at once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tools: Mapping[str, Callable[[View], Awaitable[View]]] = {
            "batch_submit": self._submit,
            "batch_targets": self._targets,
            "batch_results": self._results,
            "batch_read": self._read,
            "batch_rerun": self._rerun,
            "batch_cancel": self._cancel,
            "batch_list": self._list,
            "fetch": self._fetch,
        }

    async def call(
        self, tool: str, given: Mapping[str, Any], progress: Progress | None = None
    ) -> tuple[View, bool]:
        """Return a tool's answer, and whether it went well; a problem is an answer too.

        If cancelled, a job goes on as it is; a `fetch` ends.
        """
        arguments: View = {}
        try:
            arguments = read_arguments(TOOLS[tool].schema, given)
            if tool == "batch_wait":
                return await self._wait(arguments, progress), True
            return await self._tools[tool](arguments), True
        except BadArguments as bad:
            view = bad_arguments_view(bad)
        except Refused as refused:
            view = refused.view
        except ServiceProblem as problem:
            view = problem_view(problem, _meant(tool, arguments))
        except Unreachable as error:
            view = unreachable_view(error)
        return fitting_problem(view, _budget(arguments)), False

    async def _get(self, path: str, **query: Any) -> Answer:
        asked = {name: value for name, value in query.items() if value is not None}
        return await self._client.call("GET", f"{path}?{urlencode(asked)}" if asked else path)

    async def _submit(self, arguments: View) -> View:
        return _job_of(await self._client.call("POST", _JOBS, arguments))

    async def _rerun(self, arguments: View) -> View:
        return _job_of(await self._client.call("POST", _path(arguments, "rerun")))

    async def _cancel(self, arguments: View) -> View:
        return _job_of(await self._client.call("POST", _path(arguments, "cancel")))

    async def _wait(self, arguments: View, progress: Progress | None) -> View:
        path, seconds = _path(arguments), arguments.get("seconds", _WAIT)
        if progress is None:
            return _job_of(await self._waited(path, seconds))
        # Each change is told. What is told never goes back, as the protocol has it.
        deadline = trio.current_time() + seconds
        answer, told = await self._get(path), -1
        while True:
            view = answer.json()
            told = await _tell(view, told, progress)
            left = int(deadline - trio.current_time())
            if view["settled"] or left < 1:
                return _job_of(answer)
            etag = answer.headers.get("etag", "")
            found = await self._waited(f"{path}&until=change", left, {"if-none-match": etag} if etag else {})
            answer = answer if found.status == 304 else found

    async def _waited(self, path: str, seconds: int, headers: Mapping[str, str] | None = None) -> Answer:
        first, _, rest = path.partition("&")
        asked = f"{first}?wait={seconds}" + (f"&{rest}" if rest else "")
        return await self._client.call("GET", asked, headers=headers or {}, seconds=seconds + _SETTLE)

    async def _targets(self, arguments: View) -> View:
        query = {name: arguments.get(name) for name in ("status", "cursor")}
        path = _path(arguments, "targets")
        return await self._page("batch_targets", path, arguments, query)

    async def _results(self, arguments: View) -> View:
        query = {name: arguments.get(name) for name in ("status", "cursor")}
        path = _path(arguments, "results")
        return await self._page(
            "batch_results", path, arguments, {**query, "max_chars": _budget(arguments)}
        )

    async def _list(self, arguments: View) -> View:
        query = {name: arguments.get(name) for name in ("status", "cursor")}
        return await self._page("batch_list", _JOBS, arguments, query)

    async def _page(self, tool: str, path: str, arguments: View, query: View) -> View:
        budget = _budget(arguments)
        limit = arguments.get("limit", TOOLS[tool].schema["properties"]["limit"]["default"])
        while True:
            page = (await self._get(path, limit=limit, **query)).json()
            view = _page_view(tool, page, arguments)
            if fits(view, budget):
                return view
            items = view["items"]
            if len(items) < 2:
                return _too_long(view, arguments, budget)
            limit = min(max(how_many(view, items, budget), 1), len(items) - 1)

    async def _read(self, arguments: View) -> View:
        budget, offset = _budget(arguments), arguments.get("offset", 0)
        path = _path(arguments, "targets", str(arguments["idx"]))
        chars = budget
        while True:
            part = (await self._get(path, offset=offset, max_chars=chars)).json()
            view = _part_view(part, arguments)
            if fits(view, budget):
                return view
            if part["result"] is None:
                return _part_view(shortened(part), arguments)
            bare = _with_content(view, "")
            if not fits(bare, budget // 2):
                # What is known of the page takes too much of the room: the content comes first.
                view = _with_content(shortened(bare), part["result"]["content"])
                if fits(view, budget):
                    return view
                bare = _with_content(view, "")
            room = budget - len_of(bare)
            fit = longest_part(part["result"]["content"], room)
            if fit >= chars or fit < 1:
                return shortened(view)  # type: ignore[no-any-return]
            chars = fit

    async def _fetch(self, arguments: View) -> View:
        budget = _budget(arguments)
        body = {name: arguments[name] for name in ("url", "options") if name in arguments}
        view = (await self._client.call("POST", "/v1/fetch", {**body, "max_chars": budget})).json()
        ...
        return view


def _path(arguments: View, *parts: str) -> str:
    job_id = arguments["job_id"]
    if not _ID.fullmatch(job_id):
        # It would be another path, or none: the service does not know such a job either.
        raise Refused(own_problem("unknown_job", next=tool_step("batch_list")))
    return "/".join((_JOBS, quote(job_id, safe=""), *parts))
