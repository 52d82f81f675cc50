"""How the engine says what happened: named events with typed fields, never free text.

The engine only knows this protocol. `_observe` has the registry of events and the loggers behind it,
so that a target can't reach a log line: there is no field that could hold one.
"""

from typing import Protocol


class EventLog(Protocol):
    """Takes events. It never raises, whatever the logger behind it does."""

    @property
    def debug_enabled(self) -> bool:
        """Whether debug events go anywhere: a hot path asks before it puts one together."""

    def bind(self, **fields: str | int | float | bool) -> "EventLog":
        """Return a log whose events carry these fields as well."""

    def event(self, name: str, **fields: str | int | float | bool) -> None:
        """Log one registered event at its registered level; an unregistered field is dropped."""
