"""What does the application tell of its requests? Nothing that a client sent: outcomes, times, counts.

The methods do nothing: `_metrics` and `_events_log` do what they like of it.
"""

from ._asgi import Scope


class Traffic:
    """Plain functions, called as things happen. What they raise must not cost a client its answer."""

    def answered(self, scope: Scope, status: int | None, seconds: float, *, restricted: bool) -> None:
        """A request was answered with `status` (None: its client left before) after `seconds`."""

    def refused(self, code: str) -> None:
        """A submit was refused before the engine saw it, with this problem."""

    def stranger(self) -> None:
        """A request came without a valid key."""

    def failed(self, error: Exception, scope: Scope, *, restricted: bool) -> None:
        """A request ended in an error of our own. The error's text may hold anything."""


class Both(Traffic):
    """Tells two."""

    def __init__(self, first: Traffic, second: Traffic) -> None:
        self._each = (first, second)

    def answered(self, scope: Scope, status: int | None, seconds: float, *, restricted: bool) -> None:
        for one in self._each:
            one.answered(scope, status, seconds, restricted=restricted)

    def refused(self, code: str) -> None:
        for one in self._each:
            one.refused(code)

    def stranger(self) -> None:
        for one in self._each:
            one.stranger()

    def failed(self, error: Exception, scope: Scope, *, restricted: bool) -> None:
        for one in self._each:
            one.failed(error, scope, restricted=restricted)
