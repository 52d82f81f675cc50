"""Which jobs were deleted just now? So that whoever deletes one again is told the same.

The store remembers it of most jobs, and of a restricted caller's nothing at all. What is kept here is an
id, in memory, for its own caller; it goes with the process.
"""

from typing import Final

_MOST: Final = 10_000


class Deleted:
    """The jobs that were deleted last, the oldest first."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._jobs: dict[tuple[str, str], None] = {}

    def add(self, caller: str, job_id: str) -> None:
        """Note that a job of this caller was deleted."""
        self._jobs[caller, job_id] = None
        if len(self._jobs) > self._most:
            del self._jobs[next(iter(self._jobs))]

    def has(self, caller: str, job_id: str) -> bool:
        """Return whether a job of this caller was."""
        return (caller, job_id) in self._jobs
