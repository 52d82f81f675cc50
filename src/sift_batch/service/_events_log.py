"""What does the service say of itself in the log? Registered events, and counts where there could be many.

There is no line for a request: a log of requests would tell what callers do. What each event may hold is
decided by `sift_batch.logs`.
"""

from collections import Counter
from typing import Final

import trio

from sift_batch.logs import SERVER_TROUBLE, EventLog, failure

from ._asgi import Scope
from ._caller_entries import CallersProblem
from ._callers import Taken
from ._events import ServerEvent
from ._traffic import Traffic

_EVERY: Final = 60.0
_FETCH: Final = b"/v1/fetch"


class ServiceLog(Traffic):
    """Turns what happens into events of `log`. `watch` must run beside it."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        # Not yet told: requests without a valid key, and trouble of the server by kind.
        self._strangers = 0
        self._trouble: Counter[str] = Counter()

    def reloaded(self, problem: CallersProblem | None) -> None:
        """Say that the callers were read again, and where their file is wrong if it is."""
        if problem is None:
            self._log.event("callers.reloaded")
            return
        place = {"line": problem.line, "column": problem.column}
        known = {name: number for name, number in place.items() if number is not None}
        self._log.event("callers.refused", problem=problem.code, **known)

    def taken(self, taken: Taken) -> None:
        """Say how many callers and keys are let in no more."""
        self._log.event("callers.taken", callers=len(taken.callers), keys=len(taken.keys))

    def failed(self, error: Exception, scope: Scope, *, restricted: bool) -> None:
        """Say the type and the place of an error of our own.

        Of a restricted caller's request nothing but that it failed; of its interactive fetch not even
        that, since whether a fetch failed, and how, is about its target.
        """
        if not restricted:
            self._log.event("request.failed", **failure(error))
        elif scope["raw_path"] != _FETCH:
            self._log.event("request.failed", caller_class="restricted")

    def stranger(self) -> None:
        """Count a request without a valid key."""
        self._strangers += 1

    def server(self, event: ServerEvent) -> None:
        """Count trouble of the server; everything else it reports is everyday."""
        if event in SERVER_TROUBLE:
            self._trouble[event] += 1

    async def watch(self, *, every: float = _EVERY) -> None:
        """Tell what was counted, each `every` seconds, and once more when cancelled."""
        since = trio.current_time()
        try:
            while True:
                await trio.sleep(every)
                self._tell(since)
                since = trio.current_time()
        finally:
            self._tell(since)

    def _tell(self, since: float) -> None:
        if self._strangers:
            seconds = round(trio.current_time() - since, 3)
            self._log.event("auth.failures", failures=self._strangers, seconds=seconds)
            self._strangers = 0
        for kind, times in sorted(self._trouble.items()):
            self._log.event("server.trouble", kind=kind, times=times)
        self._trouble.clear()
