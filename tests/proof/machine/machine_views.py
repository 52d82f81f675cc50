"""What does a reader see of a job, in plain values? Once for the model, once for the engine.

`version` is left out: the machine follows it from read to read. Next: `machine_rules`.
"""

from typing import Any

from machine_shelf import Facts, ModelJob, ModelTarget

from sift_batch import Job, Options, TargetStatus


def model_job(job: ModelJob) -> dict[str, Any]:
    """Return what the model says of a job."""
    return {
        "id": job.id,
        "caller": job.caller,
        "caller_class": "restricted" if job.restricted else "fleet",
        "status": job.status,
        "settled": job.settled,
        "error": job.error,
        "targets_total": len(job.targets),
        "targets_done": sum(target.finished for target in job.targets),
        "targets_failed": sum(target.status == "failed" for target in job.targets),
        "created_at": job.created_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "lease": job.lease,
        "nbytes": job.nbytes,
        "rerun_of": job.rerun_of,
    }


def engine_job(job: Job) -> dict[str, Any]:
    """Return what a reader got of a job."""
    names = (
        "id", "settled", "error", "targets_total", "targets_done", "targets_failed", "caller",
        "created_at", "started_at", "finished_at", "lease", "nbytes", "rerun_of",
    )  # fmt: skip
    view = {name: getattr(job, name) for name in names}
    return view | {"caller_class": job.caller_class.value, "status": job.status.value}


def model_target(idx: int, target: ModelTarget) -> dict[str, Any]:
    """Return what the model says of a target."""
    facts = target.facts if target.finished else Facts()
    return {
        "idx": idx,
        "url": target.url,
        "options": dict(target.options),
        "status": target.status,
        "result": None if facts.content is None else (facts.content, dict(facts.meta)),
        "error": facts.error,
        "hint": facts.hint,
        "code": facts.code,
        "http_status": facts.http_status,
        "retryable": facts.retryable,
        "chars": len(facts.content or ""),
    }


def engine_target(target: TargetStatus) -> dict[str, Any]:
    """Return what a reader got of a target."""
    empty = Options()
    names = ("mode", "question", "pages", "grep", "jq", "context", "recover")
    options = {name: getattr(target.options, name) for name in names}
    return {
        "idx": target.idx,
        "url": target.url,
        "options": {name: value for name, value in options.items() if value != getattr(empty, name)},
        "status": target.status.value,
        "result": None if target.result is None else (target.result.content, dict(target.result.meta)),
        "error": target.error,
        "hint": target.hint,
        "code": target.code,
        "http_status": target.http_status,
        "retryable": target.retryable,
        "chars": target.chars,
    }
