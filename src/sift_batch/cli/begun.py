"""What is said of a job that was begun just now, and of its end, if that is waited for?

Next: `watcher`.
"""

import re
from typing import Any, Final

from .._client import Unreachable
from .job_text import exit_code
from .remote import Session
from .watcher import wait_settled

_ID: Final = re.compile("[0-9a-f]{32}")
"""What ids look like that a service makes."""


async def tell_begun(session: Session, view: dict[str, Any], note: str, *, wait: bool) -> int:
    """Print the job's id, wait for its end if asked to, and return the exit code.

    In JSON it is one object: the job as it is in the end. `note` says more about it, "" for nothing.
    """
    if not _ID.fullmatch(view["id"]):
        # A script goes on with what is printed here.
        raise Unreachable("the service's answer is not understood: the job in it has no id")
    if not session.as_json:
        await session.output.lines([view["id"]])
    if note:
        session.screen.note(note)
    if wait:
        view = await wait_settled(session, view["id"])
    if session.as_json:
        await session.output.value(view)
    return exit_code(view) if wait else 0
