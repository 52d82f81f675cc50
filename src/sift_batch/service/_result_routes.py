"""What did the targets give? Pages of results, and one target whole or in parts.

A page is planned from what is known without results, so that no more is read than is sent, and no more
is held in memory than there is room for. Results as a stream of lines are `_lines`'.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sift_batch import TargetState, TargetStatus

from ._lines import send_lines, wants_lines
from ._parts import part_of
from ._problems import Problem
from ._reading_routes import PAGE_DEFAULT, PAGE_LIMIT, start_of
from ._request import Request
from ._response import Response, json_response
from ._room import bytes_of
from ._schema_types import TargetPart, TargetView
from ._submissions import MAX_CHARS
from ._views import FINISHED, job_path, over_budget, page, runs, step, target_view

_PAGE_CHARS: Final = 4 * 2**20
"""A page ends early before it has more than that, whatever its limit."""


class _Plan(NamedTuple):
    chosen: list[int]
    too_long: TargetStatus | None
    """The first target of the page, if its content alone is over the budget."""
    next_start: int | None


async def results(request: Request) -> Response | None:
    """`GET /v1/batch/{id}/results`."""
    content_type = wants_lines(request.header(b"accept"))
    query = request.query("status", "limit", "cursor", "max_chars", "follow")
    status = query.choice("status", TargetState)
    limit = query.whole("limit", least=1, most=PAGE_LIMIT, default=PAGE_DEFAULT) or PAGE_DEFAULT
    budget = query.whole("max_chars", least=1, most=MAX_CHARS)
    follow = query.flag("follow", "1")
    if content_type is None and follow:
        query.refuse("follow", "goes with Accept: application/jsonl")
    for name in ("limit", "cursor", "max_chars") if content_type is not None else ():
        if query.has(name):
            query.refuse(name, "does not go with Accept: application/jsonl")
    query.check()
    (job_id,) = request.args
    if content_type is not None:
        await send_lines(request, job_id, content_type, status=status, follow=follow)
        return None
    asked = f"{job_path(job_id, 'results')}?status={status or ''}"
    start = await start_of(request, job_id, asked, query.text("cursor"))
    return await _page(request, job_id, asked=asked, start=start, status=status, limit=limit, budget=budget)


async def target(request: Request) -> Response:
    """`GET /v1/batch/{id}/targets/{idx}`: when it is finished, or the job has settled."""
    query = request.query("offset", "max_chars")
    offset = query.whole("offset", most=10**9, default=0) or 0
    max_chars = query.whole("max_chars", least=1, most=MAX_CHARS)
    query.check()
    job_id, text = request.args
    found = await request.touched(job_id)
    idx = _index(text)
    if idx is None or idx >= len(found.targets):
        raise Problem("unknown_target", next_step=step("GET", job_path(job_id, "targets")))
    if found.targets[idx].status not in FINISHED and not found.job.settled:
        seconds = request.view(found)["poll_after"]
        path = f"{job_path(job_id)}?wait=25&until=change"
        raise Problem("not_finished", retry_after=seconds, next_step=step("GET", path))
    await request.reserve(bytes_of(found.targets[idx : idx + 1]))
    read = await request.runner.status(job_id, start=idx, stop=idx + 1, caller=request.caller)
    if read is None:
        raise await request.missing(job_id)
    view = target_view(read.targets[0], settled=read.job.settled)
    in_parts = query.has("offset") or query.has("max_chars")
    return request.answer(_part(view, offset, max_chars) if in_parts else view)


async def _page(
    request: Request,
    job_id: str,
    *,
    asked: str,
    start: int,
    status: TargetState | None,
    limit: int,
    budget: int | None,
) -> Response:
    found = await request.touched(job_id)
    settled = found.job.settled
    plan = plan_page(found.targets, start, status=status, limit=limit, budget=budget, settled=settled)
    more = None
    if plan.next_start is not None:
        more = request.shared.cursors.make(request.caller, asked, str(plan.next_start))
    if plan.too_long is not None and budget is not None:
        first = over_budget(plan.too_long, job_id, budget)
        return json_response(page([first], more, settled=settled))
    await request.reserve(bytes_of(found.targets[idx] for idx in plan.chosen))
    items = await _read(request, job_id, plan.chosen, settled=settled)
    return request.answer(page(items, more, settled=settled))


def plan_page(
    targets: Sequence[TargetStatus],
    start: int,
    *,
    status: TargetState | None,
    limit: int,
    budget: int | None,
    settled: bool,
) -> _Plan:
    """Choose the targets of a page that begins at `start`, and where the next one begins.

    While the job is not settled, a page ends before the first target that is not finished, and there is
    always a next one.
    """
    left = _PAGE_CHARS if budget is None else min(budget, _PAGE_CHARS)
    chosen: list[int] = []
    for item in targets[start:]:
        if item.status not in FINISHED and not settled:
            return _Plan(chosen, None, item.idx)
        state = item.status if item.status in FINISHED else TargetState.PENDING
        if status not in (None, state):
            continue
        if len(chosen) == limit:
            return _Plan(chosen, None, item.idx)
        if item.chars > left and (chosen or budget is not None):
            if chosen:
                return _Plan(chosen, None, item.idx)
            return _Plan([], item, _after(item.idx, len(targets), settled=settled))
        chosen.append(item.idx)
        left -= item.chars
    return _Plan(chosen, None, _after(len(targets) - 1, len(targets), settled=settled))


def _after(idx: int, total: int, *, settled: bool) -> int | None:
    return None if settled and idx + 1 >= total else idx + 1


async def _read(request: Request, job_id: str, chosen: list[int], *, settled: bool) -> list[TargetView]:
    """Read the results of chosen targets; runs of neighbours in one step each."""
    views: list[TargetView] = []
    for start, stop in runs(chosen, most=len(chosen)):
        read = await request.runner.status(job_id, start=start, stop=stop, caller=request.caller)
        if read is None:
            raise await request.missing(job_id)
        views += [target_view(item, settled=settled) for item in read.targets]
    return views


def _index(text: str) -> int | None:
    """The index that a path names; as a number is written, no other way."""
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or (text[0] == "0" and text != "0"):
        return None
    return int(text)


def _part(view: TargetView, offset: int, max_chars: int | None) -> TargetPart:
    result, rest = view["result"], None
    if result is not None:
        content, rest = part_of(result["content"], offset, max_chars)
        result = {"content": content, "meta": result["meta"]}
    return {**view, "result": result, "next_offset": rest}
