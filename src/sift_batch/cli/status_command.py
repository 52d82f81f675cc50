"""What does `sift-batch status` do? Asks for one job and shows it."""

from typing import Final

import trio

from .job_text import checked_view, status_lines
from .remote import Session, job_path, talk
from .remote_flags import Remote

_ONE_WAIT: Final = 55
"""The service waits no longer in one answer."""


def status_command(job_id: str, wait: int, remote: Remote) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        end = trio.current_time() + wait
        while True:
            left = round(end - trio.current_time())
            query = f"?wait={min(left, _ONE_WAIT)}" if left > 0 else ""
            view = checked_view(await session.get(job_path(job_id, query)))
            if left <= _ONE_WAIT or view["settled"]:
                break
        if session.as_json:
            await session.output.value(view)
        else:
            await session.output.lines(status_lines(view))
        return 0

    return talk(remote, work)
