"""What of the engine's answers goes into a history?"""

from typing import Any

from history import digest_of

from sift_batch import Job, JobStatus


def result_facts(value: bool) -> dict[str, Any]:
    """Return what a history knows of a cancel or a delete."""
    return {"result": value}


def job_facts(job: Job | None) -> dict[str, Any]:
    """Return what a history knows of a job."""
    if job is None:
        return {"found": False}
    return {
        "found": True,
        "state": job.status.value,
        "settled": job.settled,
        "error": job.error,
        "version": job.version,
        "total": job.targets_total,
        "done": job.targets_done,
        "failed": job.targets_failed,
        "lease": job.lease,
    }


def wait_facts(job: Job | None) -> dict[str, Any]:
    """Return what a history knows of a job that was waited for."""
    if job is None:
        return {"found": False}
    return {"found": True, "state": job.status.value, "settled": job.settled}


def status_facts(found: JobStatus | None) -> dict[str, Any]:
    """Return what a history knows of a job and its targets."""
    if found is None:
        return {"found": False}
    targets = [
        [t.idx, t.status.value, None if t.result is None else digest_of(t.result.content), t.code]
        for t in found.targets
    ]
    return {**job_facts(found.job), "targets": targets}
