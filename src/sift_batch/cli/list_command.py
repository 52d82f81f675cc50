"""What does `sift-batch list` do? Reads all pages of the caller's jobs and shows them."""

from typing import Any, Final
from urllib.parse import urlencode

from .._client import ServiceProblem, Unreachable
from .job_text import checked_view
from .remote import Session, talk
from .remote_flags import Remote

_PAGE: Final = 100
_MOST: Final = 100_000
_HEAD: Final = f"{'ID':<32}  {'STATUS':<9}  {'DONE':>9}  {'FAILED':>6}  SUBMITTED"


def list_command(status: str | None, limit: int | None, remote: Remote) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        jobs = await _jobs(session, status, limit or _MOST)
        if session.as_json:
            await session.output.value({"items": jobs, "settled": all(view["settled"] for view in jobs)})
        elif jobs:
            await session.output.lines([_HEAD, *(_row(view) for view in jobs)])
        else:
            session.screen.note("there are no jobs" if status is None else f"there are no {status} jobs")
        return 0

    return talk(remote, work)


async def _jobs(session: Session, status: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the jobs, each once. The list may change while it is read: then it is read again."""
    for _ in range(3):
        try:
            return await _pages(session, status, limit)
        except ServiceProblem as problem:
            if problem.status != 422:
                raise
            # The job that a page ended with went meanwhile.
    return await _pages(session, status, _PAGE)


async def _pages(session: Session, status: str | None, limit: int) -> list[dict[str, Any]]:
    jobs: dict[str, dict[str, Any]] = {}
    query: dict[str, Any] = {"limit": min(limit, _PAGE)} | ({"status": status} if status else {})
    while len(jobs) < limit:
        page = await session.get(f"/v1/batch?{urlencode(query)}")
        if not isinstance(page, dict) or not isinstance(page.get("items"), list):
            raise Unreachable("what answers there does not answer as this version of sift-batch does")
        before = len(jobs)
        jobs |= {view["id"]: view for view in map(checked_view, page["items"])}
        cursor = page.get("next_cursor")
        if not isinstance(cursor, str) or len(jobs) == before:
            break
        query["cursor"] = cursor
    return list(jobs.values())[:limit]


def _row(view: dict[str, Any]) -> str:
    targets = view["targets"]
    done = f"{targets['done']}/{targets['total']}"
    failed = targets["failed"] or ""
    return f"{view['id']:<32}  {view['status']:<9}  {done:>9}  {failed:>6}  {view.get('created_at') or ''}"
