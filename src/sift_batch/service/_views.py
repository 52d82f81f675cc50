"""What does a job, or a target, look like from outside? Views: plain values that JSON can hold.

They are made from what the engine gives and nothing else; no store is read here. Which of them an answer
has is the routes' business.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from sift_batch import Job, JobState, Progress, Result, TargetState, TargetStatus

from ._schema_types import Item, JobView, Page, PageTarget, ResultView, Step, TargetRow, TargetView, Waiting

JOBS: Final = "/v1/batch"
FINISHED: Final = frozenset({TargetState.DONE, TargetState.FAILED})
_LONGEST_POLL: Final = 30
_FIRST_POLL: Final = 2
_WAITING_POLL: Final = 5


def job_path(job_id: str, *parts: str) -> str:
    """The path of a job, or of something of it."""
    return "/".join((JOBS, job_id, *parts))


def time_text(seconds: float | None) -> str | None:
    """A unix time as RFC 3339 has it, UTC, whole seconds; None for none, and for one out of reach."""
    if seconds is None or not math.isfinite(seconds):
        return None
    try:
        return datetime.fromtimestamp(math.floor(seconds), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return None


def step(method: str, path: str, body: Mapping[str, Any] | None = None) -> Step:
    """What to send next."""
    return {"method": method, "path": path, "body": body}


def job_view(
    job: Job, *, running: int, progress: Progress | None, ttl: float, in_vain: bool | None = None
) -> JobView:
    """The view of a job; `running` of its targets are being fetched.

    `in_vain`: what failed is not worth another try; None if nobody has looked.
    """
    done = job.targets_done - job.targets_failed
    pending = job.targets_total - job.targets_done - running
    incomplete = job.settled and done < job.targets_total
    hint = _hint(job, unfetched=pending + running, in_vain=in_vain)
    waiting: Waiting | None = None
    if progress is not None and progress.reason:
        waiting = {"reason": progress.reason, "since": time_text(progress.since)}
    return {
        "id": job.id,
        "status": job.status.value,
        "settled": job.settled,
        "error": job.error,
        "hint": hint,
        "next": step("POST", job_path(job.id, "rerun")) if incomplete else None,
        "targets": {
            "total": job.targets_total,
            "pending": pending,
            "running": running,
            "done": done,
            "failed": job.targets_failed,
        },
        "created_at": time_text(job.created_at),
        "started_at": time_text(job.started_at),
        "finished_at": time_text(job.finished_at),
        "expires_at": None if job.status.live else time_text(job.lease + ttl),
        "stored_bytes": job.nbytes,
        "poll_after": poll_after(job, progress),
        "eta_seconds": None if progress is None or progress.eta is None else math.ceil(progress.eta),
        "waiting": waiting,
        "rerun_of": job.rerun_of,
        "links": {
            "self": job_path(job.id),
            "targets": job_path(job.id, "targets"),
            "results": job_path(job.id, "results"),
            "events": job_path(job.id, "events"),
            "cancel": job_path(job.id, "cancel"),
            "rerun": job_path(job.id, "rerun"),
        },
    }


def poll_after(job: Job, progress: Progress | None) -> int | None:
    """Seconds after which another look is worth it: about one target's time. None: it won't change."""
    if job.settled:
        return None
    if progress is None:
        return 1  # it has ended, and one fetch is still in flight
    if progress.pace is not None:
        return min(max(math.ceil(progress.pace), 1), _LONGEST_POLL)
    return _FIRST_POLL if progress.reason in ("", "queue") else _WAITING_POLL


def _hint(job: Job, *, unfetched: int, in_vain: bool | None) -> str:
    if job.error == "restart":
        return "the service was restarted meanwhile; a rerun fetches what is missing"
    if job.error == "timeout":
        return "the job took longer than a job may; a rerun fetches what is missing"
    if not job.settled:
        return "one fetch is still in flight" if job.status is JobState.CANCELLED else ""
    parts = []
    if job.targets_failed:
        parts.append(f"{job.targets_failed} failed")
    if unfetched:
        parts.append(f"{unfetched} not fetched")
    if not parts:
        return ""
    one = job.targets_failed + unfetched == 1
    if unfetched or in_vain is False:
        return f"{' and '.join(parts)}; a rerun fetches {'it' if one else 'them'}"
    if in_vain:
        return f"{parts[0]}, {'not' if one else 'none of them'} retryable: a rerun won't help"
    return f"{parts[0]}; a rerun helps if {'it is' if one else 'they are'} retryable"


def failed_in_vain(targets: Sequence[TargetStatus]) -> bool:
    """Whether nothing that failed is worth another try."""
    return not any(target.status is TargetState.FAILED and target.retryable for target in targets)


def running_in(targets: Sequence[TargetStatus]) -> int:
    """How many targets are being fetched."""
    return sum(target.status is TargetState.RUNNING for target in targets)


def target_view(target: TargetStatus, *, settled: bool) -> TargetView:
    """The view of a target.

    Code and hint of a done target are those of its meta: read it with its result.
    """
    status, code, hint, retryable = target.status, target.code, target.hint, target.retryable
    if target.result is not None and status is TargetState.DONE:
        code, hint = _note(target.result, "code"), _note(target.result, "hint")
        if not code and target.result.meta.get("truncated") is True:
            # Cut by the engine, which marks it and writes no more.
            code, hint = "truncated", f"only the first {target.chars:,} characters are kept"
    elif settled and status not in FINISHED:
        # It may have been in flight when the process ended: nothing fetches it now.
        status, code, retryable = TargetState.PENDING, "not_fetched", True
        hint = "the job ended before this target was fetched; a rerun fetches it"
    return {
        "idx": target.idx,
        "url": target.url,
        "status": status.value,
        "chars": target.chars,
        "result": None if target.result is None else result_view(target.result),
        "error": target.error,
        "code": code,
        "hint": hint,
        "retryable": retryable,
        "http_status": target.http_status,
    }


def target_row(target: TargetStatus, *, settled: bool) -> TargetRow:
    """The view of a target without `result`."""
    view = target_view(target, settled=settled)
    return {
        "idx": view["idx"],
        "url": view["url"],
        "status": view["status"],
        "chars": view["chars"],
        "error": view["error"],
        "code": view["code"],
        "hint": view["hint"],
        "retryable": view["retryable"],
        "http_status": view["http_status"],
    }


def result_view(result: Result) -> ResultView:
    """The view of a result."""
    return {"content": result.content, "meta": dict(result.meta)}


def over_budget(target: TargetStatus, job_id: str, max_chars: int) -> PageTarget:
    """The view of a target whose content does not fit the page, with how to read it in parts."""
    path = job_path(job_id, "targets", str(target.idx))
    return {
        **target_view(target, settled=False),
        "result": None,
        "code": "over_budget",
        "hint": f"{target.chars:,} characters do not fit; read it in parts, as `next` says",
        "next": step("GET", f"{path}?offset=0&max_chars={max_chars}"),
    }


def page(items: Sequence[Item], next_cursor: str | None, *, settled: bool) -> Page[Item]:
    """A page of a list."""
    return {"items": list(items), "next_cursor": next_cursor, "settled": settled}


def runs(chosen: Iterable[int], *, most: int) -> list[tuple[int, int]]:
    """Return neighbours among indexes in order, at most so many together: where each run starts and stops."""
    found: list[tuple[int, int]] = []
    for idx in chosen:
        if found and found[-1][1] == idx and idx - found[-1][0] < most:
            found[-1] = (found[-1][0], idx + 1)
        else:
            found.append((idx, idx + 1))
    return found


def _note(result: Result, name: str) -> str:
    value = result.meta.get(name, "")
    return value if isinstance(value, str) else ""
