"""What does `sift-batch rerun` do? Begins a job with what is missing of another. Next: `begun`."""

from typing import Final

import trio

from .._client import Answer, ServiceProblem
from .begun import tell_begun
from .job_text import checked_view, exit_code
from .remote import Session, job_path, talk
from .remote_flags import Remote

_SETTLE_SECONDS: Final = 600.0
"""The fetch in flight of a job that has ended is waited for so long: twice what a target may take."""
_ONE_WAIT: Final = 25
_PAUSE: Final = 0.2
_LIVE: Final = ("queued", "running")


def rerun_command(job_id: str, *, wait: bool, remote: Remote) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        session.job_id = job_id
        answer = await _begin(session, job_id)
        view = checked_view(answer.json())
        note = ""
        if view["id"] == job_id and not exit_code(view):
            note = "all targets are done; there is nothing left to fetch"
        elif answer.status == 200:
            note = "a rerun is under way already; this is its id"
        return await tell_begun(session, view, note, wait=wait)

    return talk(remote, work)


async def _begin(session: Session, job_id: str) -> Answer:
    """Ask for the rerun; of a job that was cancelled just now, once its fetch in flight is finished."""
    try:
        return await session.client.call("POST", job_path(job_id, "/rerun"))
    except ServiceProblem as problem:
        if problem.code != "job_live":
            raise
        refused = problem
    if not await _settles(session, job_id):
        raise refused
    return await session.client.call("POST", job_path(job_id, "/rerun"))


async def _settles(session: Session, job_id: str) -> bool:
    """Wait for the end of a job's last fetch. False at once for a live job, and if it takes too long."""
    view = checked_view(await session.get(job_path(job_id)))
    if view["status"] in _LIVE:
        return False
    if not view["settled"]:
        session.screen.note(f"the job is {view['status']}; waiting for the fetch of it that is in flight")
        session.interrupted = "no rerun was begun"
    end = trio.current_time() + _SETTLE_SECONDS
    while not view["settled"] and trio.current_time() < end:
        view = checked_view(await session.get(job_path(job_id, f"?wait={_ONE_WAIT}")))
        if not view["settled"]:
            await trio.sleep(_PAUSE)  # it may be that the service answers at once
    session.interrupted = ""
    return bool(view["settled"])
