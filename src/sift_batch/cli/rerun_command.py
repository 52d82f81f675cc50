"""What does `sift-batch rerun` do? Begins a job with what is missing of another. Next: `begun`."""

from .begun import tell_begun
from .job_text import checked_view, exit_code
from .remote import Session, job_path, talk
from .remote_flags import Remote


def rerun_command(job_id: str, *, wait: bool, remote: Remote) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        answer = await session.client.call("POST", job_path(job_id, "/rerun"))
        view = checked_view(answer.json())
        if view["id"] == job_id and not exit_code(view):
            session.screen.note("all targets are done; there is nothing left to fetch")
        elif answer.status == 200:
            session.screen.note("a rerun is under way already; this is its id")
        return await tell_begun(session, view, wait=wait)

    return talk(remote, work)
