"""What does `sift-batch watch` do? Follows one job to its end. Next: `watcher`."""

import sys
from typing import Any

from .job_text import ended_text, exit_code
from .remote import Session, talk
from .remote_flags import Remote
from .watcher import wait_settled


def watch_command(job_id: str, remote: Remote) -> int:
    """Run the command and return its exit code."""

    async def work(session: Session) -> int:
        async def say(line: str, view: dict[str, Any]) -> None:
            if session.as_json:
                if "targets" in view:
                    await session.output.value(view)
            elif not (session.screen.draws and _is_terminal()):
                await session.output.lines([line])

        view = await wait_settled(session, job_id, say=say)
        if not session.as_json and session.screen.is_terminal and _is_terminal():
            await session.output.lines([ended_text(view)])
        return exit_code(view)

    return talk(remote, work)


def _is_terminal() -> bool:
    try:
        return sys.stdout is not None and sys.stdout.isatty()
    except (OSError, ValueError):
        return False
