"""Is the application ready, and has it put its things away? ASGI's lifespan, one task long.

Requests are `_connection`'s. An application without a lifespan is served all the same.
"""

from typing import Any

import trio

from ._asgi import App, Message


class StartupFailed(Exception):
    """The application could not start; what it raised, if anything, is `__cause__`."""

    def __init__(self) -> None:
        super().__init__("the application could not start")


class Lifespan:
    """Runs the application's lifespan beside its requests."""

    def __init__(self, app: App) -> None:
        self.state: dict[str, Any] = {}
        """What the application keeps for its requests: each gets a shallow copy."""
        self.failure: Exception | None = None
        """Why it could not start, or what it raised after it had."""
        self._app = app
        self._asked = False  # the application was told to start up
        self._refused = False  # it said that it can't
        self._up = False  # it said that it is ready
        self._settled, self._stop, self._done = trio.Event(), trio.Event(), trio.Event()

    async def run(self, serving: trio.CancelScope) -> None:
        """Run it to its end. Raises nothing but a cancel: an error is in `failure`, and ends `serving`."""
        scope = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}, "state": self.state}
        error: Exception | None = None
        try:
            await self._app(scope, self._receive, self._send)
        except Exception as raised:
            error = raised
        finally:
            self._done.set()
        if self._up:
            self.failure = error
            if error is not None:
                serving.cancel()
        elif self._refused:
            self.failure = StartupFailed()
            self.failure.__cause__ = error
        # Else it raised or returned at the sight of a lifespan: it has none, says ASGI.
        self._settled.set()

    async def wait_started(self) -> bool:
        """Wait until the application is up, or has no lifespan. False: it can't start, `failure` says why."""
        await self._settled.wait()
        return not self._refused

    async def shut_down(self, seconds: float) -> None:
        """Tell the application to put its things away, and wait at most `seconds` for it."""
        self._stop.set()
        with trio.move_on_after(seconds):
            await self._done.wait()

    async def _receive(self) -> Message:
        if not self._asked:
            self._asked = True
            await trio.lowlevel.checkpoint()
            return {"type": "lifespan.startup"}
        await self._stop.wait()
        return {"type": "lifespan.shutdown"}

    async def _send(self, message: Message) -> None:
        await trio.lowlevel.checkpoint()
        match message["type"]:
            case "lifespan.startup.complete" if not self._settled.is_set():
                self._up = True
                self._settled.set()
            case "lifespan.startup.failed":
                self._refused = True
            case "lifespan.shutdown.complete" | "lifespan.shutdown.failed":
                self._done.set()
            case _:
                raise RuntimeError("the application sent a message out of order")
