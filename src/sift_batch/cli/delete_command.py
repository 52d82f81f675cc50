"""What does `sift-batch delete` do? Removes one job."""

from .._client import stranger
from .remote import Session, job_path, talk
from .remote_flags import Remote


def delete_command(job_id: str, remote: Remote) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        session.job_id = job_id
        answer = await session.client.call("DELETE", job_path(job_id))
        if answer.status != 204:
            raise stranger(answer.status)
        if session.as_json:
            await session.output.value({"id": job_id, "deleted": True})
        else:
            session.screen.note("deleted")
        return 0

    return talk(remote, work)
