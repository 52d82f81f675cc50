"""What does `sift-batch cancel` do? Ends one job, and says how far it came."""

from .job_text import checked_view, ended_text
from .remote import Session, job_path, talk
from .remote_flags import Remote


def cancel_command(job_id: str, remote: Remote) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        answer = await session.client.call("POST", job_path(job_id, "/cancel"))
        view = checked_view(answer.json())
        if session.as_json:
            await session.output.value(view)
        else:
            await session.output.lines([ended_text(view)])
        if view.get("already_ended") is True:
            session.screen.note("the job had ended already")
        return 0

    return talk(remote, work)
