"""What does somebody see who waits for a job? A bar on a terminal, and lines where they are asked for.

Next: `follow`, which says what happens.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import trio

from .._client import ServiceProblem, Unreachable
from .follow import follow
from .job_text import advice_text, checked_view, doing_text, ended_text, exit_code, progress_text, target_text
from .output import ReaderLeft
from .plan import Refused
from .remote import Session, job_path

_DRAW_EVERY: Final = 0.2
_LOOK_EVERY: Final = 5.0
_FAILURES_SHOWN: Final = 10

Say = Callable[[str, dict[str, Any]], Awaitable[object]]
"""Gets what changed: a line for people, and the view of the job or of the target that it is about."""


async def wait_settled(session: Session, job_id: str, *, say: Say | None = None) -> dict[str, Any]:
    """Return the view of a job once it has settled; meanwhile show how it goes.

    In the end, the screen is told what failed and what to do about it; and how the job ended, if there is
    no `say`. Raises what `follow` raises.
    """
    first = checked_view(await session.get(job_path(job_id)))
    session.unread = exit_code(first)
    session.interrupted = f"the job goes on; `sift-batch watch {job_id}` follows it, `cancel` ends it"
    watcher = _Watcher(session, job_id, say)
    with session.screen.progress(first["targets"]["total"], 0):
        view = await watcher.settle(first)
    session.interrupted, session.unread = "", exit_code(view)
    watcher.tell_end(view)
    return view


class _Watcher:
    def __init__(self, session: Session, job_id: str, say: Say | None) -> None:
        self._session, self._job_id, self._say = session, job_id, say
        # All that was told already. Written by `_on_job` and `_on_target` alone.
        self._finished, self._failed = 0, 0
        self._line, self._doing = "", ""
        self._failures: list[str] = []
        self._failure: Exception | None = None

    async def settle(self, first: dict[str, Any]) -> dict[str, Any]:
        view = first
        if not first["settled"] or not first["targets"]["failed"]:
            await self._on_job(first)
        if first["settled"] and not first["targets"]["failed"]:
            return first
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._draw)
            nursery.start_soon(self._look, nursery.cancel_scope)
            try:
                view = await follow(self._session, self._job_id, self._on_job, self._on_target)
            except (Unreachable, ServiceProblem, ReaderLeft, Refused) as error:
                self._failure = error
            nursery.cancel_scope.cancel()
        # Out of the nursery first: there it would be wrapped in a group.
        if self._failure is not None:
            raise self._failure
        return view

    def tell_end(self, view: dict[str, Any]) -> None:
        screen = self._session.screen
        if self._say is None:
            screen.note(ended_text(view))
        if screen.is_terminal:
            for text in self._failures:
                screen.note(text)
            if (further := view["targets"]["failed"] - len(self._failures)) > 0:
                screen.note(f"… and {further} more; `sift-batch results {view['id']}` has all")
        if advice := advice_text(view):
            screen.note(advice)

    async def _on_job(self, view: dict[str, Any]) -> None:
        targets = view["targets"]
        finished = targets["done"] + targets["failed"]
        if finished < self._finished:
            return  # an answer that was overtaken
        for n in range(finished - self._finished):
            self._session.screen.advance(failed=n < targets["failed"] - self._failed)
        self._finished, self._failed = finished, targets["failed"]
        self._doing = doing_text(view)
        line = ended_text(view) if view["settled"] else progress_text(view)
        if line != self._line:
            self._line = line
            if self._say is not None:
                await self._say(line, view)

    async def _on_target(self, view: dict[str, Any]) -> None:
        if view.get("status") != "failed":
            return
        text = target_text(view)
        if len(self._failures) < _FAILURES_SHOWN:
            self._failures.append(text)
        if self._say is not None:
            await self._say(text, view)

    async def _draw(self) -> None:
        while True:
            self._session.screen.tick(self._doing)
            await trio.sleep(_DRAW_EVERY)

    async def _look(self, scope: trio.CancelScope) -> None:
        """Look at the job now and then: why it waits is no change of the job, and no event."""
        while True:
            await trio.sleep(_LOOK_EVERY)
            # Whether the service is there is `follow`'s business.
            with suppress(Unreachable, ServiceProblem):
                view = checked_view(await self._session.get(job_path(self._job_id)))
                if view["settled"]:
                    continue
                try:
                    await self._on_job(view)
                except (ReaderLeft, Refused) as error:
                    self._failure = error
                    scope.cancel()
