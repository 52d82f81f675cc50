"""What does `sift-batch delete` do? Removes one job."""

from .remote import Session, job_path, talk
from .remote_flags import Remote


def delete_command(job_id: str, remote: Remote) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        await session.client.call("DELETE", job_path(job_id))
        if session.as_json:
            await session.output.value({"id": job_id, "deleted": True})
        else:
            session.screen.note("deleted")
        return 0

    return talk(remote, work)
