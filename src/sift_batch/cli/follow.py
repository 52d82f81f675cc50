"""How is a job followed until it has settled, whatever the network does meanwhile?

By the service's events; where they break off, from where they broke off, until the service has been away
for too long. What is seen is handed on; nothing is shown here. Next: `job_text`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from .._client import ServiceProblem, Unreachable
from .job_text import checked_view
from .remote import Session, job_path
from .screen import Screen

AWAY_SECONDS: Final = 60.0
"""A service that was reached once may be away so long."""

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 5.0
# A stream that has held so long was a good one, even if nothing new came.
_STEADY_SECONDS: Final = 10.0


class Patience:
    """How long a service is waited for that was reached before."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._pause = _FIRST_PAUSE
        # Since when it is away, and since when it answers again; None while it is not so.
        self._away: float | None = None
        self._back: float | None = None

    def answered(self) -> None:
        """Take note that it answers. That alone proves little: it may break off at the same place again."""
        if self._back is None:
            self._back = trio.current_time()
            if self._away is not None:
                self._screen.note("the service answers again")

    def moved_on(self) -> None:
        """Take note that it said something new."""
        self._away, self._pause = None, _FIRST_PAUSE

    async def pause(self, error: Unreachable | ServiceProblem) -> None:
        """Wait before the next try. Raises `error` when no try will help, or too many did not."""
        now = trio.current_time()
        if self._back is not None and now - self._back > _STEADY_SECONDS:
            self.moved_on()
        self._back = None
        if isinstance(error, ServiceProblem) and error.code == "unauthorized":
            raise _taken_out(error)
        if not _may_pass(error) or (self._away is not None and now - self._away > AWAY_SECONDS):
            raise error
        if self._away is None:
            self._away = now
            self._screen.note(f"the service went away; trying again for {AWAY_SECONDS:.0f} s")
        await trio.sleep(self._pause)
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


def _taken_out(error: ServiceProblem) -> ServiceProblem:
    """Return what to say of a key that opened the door before, and does not now."""
    said = {"detail": "The service knows this key no more", "hint": "ask its operator for another one"}
    return ServiceProblem(error.status, {**error.view, **said})


def _may_pass(error: Unreachable | ServiceProblem) -> bool:
    if isinstance(error, Unreachable):
        return error.transient
    return error.status == 503


async def follow(
    session: Session,
    job_id: str,
    on_job: Callable[[dict[str, Any]], Awaitable[object]],
    on_target: Callable[[dict[str, Any]], Awaitable[object]],
) -> dict[str, Any]:
    """Return the view of a job once it has settled; hand on each view and each finished target before.

    The service must have been reached before: it may go away for a minute, as when it starts again.
    Raises `Unreachable` when it does not come back, and `ServiceProblem`, as for a job that is gone.
    """
    following = _Following(session, job_id, on_job, on_target)
    while True:
        try:
            view = await following.once()
        except (Unreachable, ServiceProblem) as error:
            await following.patience.pause(error)
        else:
            if view is not None:
                return view
            # It said that it stops, or ended the stream early: give it time to.
            await following.patience.pause(Unreachable("the service stops", transient=True))


class _Following:
    def __init__(
        self,
        session: Session,
        job_id: str,
        on_job: Callable[[dict[str, Any]], Awaitable[object]],
        on_target: Callable[[dict[str, Any]], Awaitable[object]],
    ) -> None:
        self._session, self._job_id = session, job_id
        self._on_job, self._on_target = on_job, on_target
        self._last = ""  # the id to go on after
        self._told: set[object] = set()  # targets that were handed on: after a gap all come again
        self.patience = Patience(session.screen)

    async def once(self) -> dict[str, Any] | None:
        """Read one stream of events to its end; return the settled job, None if it has not settled."""
        async with self._session.client.events(job_path(self._job_id, "/events"), last=self._last) as events:
            async for event in events:
                self.patience.answered()
                if event.name == "shutdown":
                    return None
                if event.name in ("job", "end"):
                    view = checked_view(event.data)
                    await self._on_job(view)
                    if event.name == "end":
                        return view
                elif event.name == "target" and event.data.get("idx") not in self._told:
                    self._told.add(event.data.get("idx"))
                    await self._on_target(event.data)
                if event.id not in ("", self._last):
                    self._last = event.id
                    self.patience.moved_on()
        # No event at all: nothing has changed since the last one, which is so once the job has settled.
        view = checked_view(await self._session.get(job_path(self._job_id)))
        await self._on_job(view)
        return view if view["settled"] else None
