"""The rulebook: what is a target, and a job, now?

Two small tables say every move there is. A pair (state, event) that is not in its table is not a
move: `move_job` and `move_target` raise `IllegalMove`, which names both. Nothing else in the
package compares states to decide where to go next; SQL guards are made from these tables too
(`job_states_before`), so that the store and the engine can't disagree.

The theory. A job is *live* until it is *terminal*, and it becomes terminal exactly once, because no
row of the table leaves a terminal state. Being *settled* is a second fact beside the state: a
cancelled or timed-out job may still have one fetch in flight, whose result is stored when it comes.
A target is fetched while it is `running`; only a target that never finished goes back to `pending`.

The chart in docs/architecture.md is drawn from these tables, and a test compares them.
Next room: `_engine/drain.py`, which walks one job through them.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class JobState(enum.StrEnum):
    """State of a job: `queued → running → done / partial / failed / cancelled`."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    PARTIAL = "partial"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def live(self) -> bool:
        """True while the job is queued or running."""
        return self in _LIVE

    @property
    def terminal(self) -> bool:
        """True once the job has ended, for whatever reason; it then never changes again."""
        return self not in _LIVE


class TargetState(enum.StrEnum):
    """State of one target: `pending → running → done / failed`."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class JobEvent(enum.StrEnum):
    """What can happen to a job."""

    START = "start"
    CANCEL = "cancel"
    TIMEOUT = "timeout"
    RESTART = "restart"
    LAST_ALL_DONE = "last target stored, all done"
    LAST_ALL_FAILED = "last target stored, all failed"
    LAST_MIXED = "last target stored, some failed"


class TargetEvent(enum.StrEnum):
    """What can happen to a target."""

    START = "start"
    SUCCEED = "succeed"
    FAIL = "fail"
    PUT_BACK = "put back"


_LIVE: Final = frozenset({JobState.QUEUED, JobState.RUNNING})

JOB_MOVES: Final[Mapping[tuple[JobState, JobEvent], JobState]] = MappingProxyType(
    {
        (JobState.QUEUED, JobEvent.START): JobState.RUNNING,
        (JobState.QUEUED, JobEvent.CANCEL): JobState.CANCELLED,
        (JobState.QUEUED, JobEvent.RESTART): JobState.FAILED,
        # A rerun whose targets were all carried over has nothing to start.
        (JobState.QUEUED, JobEvent.LAST_ALL_DONE): JobState.DONE,
        (JobState.RUNNING, JobEvent.CANCEL): JobState.CANCELLED,
        (JobState.RUNNING, JobEvent.TIMEOUT): JobState.FAILED,
        (JobState.RUNNING, JobEvent.RESTART): JobState.FAILED,
        (JobState.RUNNING, JobEvent.LAST_ALL_DONE): JobState.DONE,
        (JobState.RUNNING, JobEvent.LAST_ALL_FAILED): JobState.FAILED,
        (JobState.RUNNING, JobEvent.LAST_MIXED): JobState.PARTIAL,
    }
)

TARGET_MOVES: Final[Mapping[tuple[TargetState, TargetEvent], TargetState]] = MappingProxyType(
    {
        (TargetState.PENDING, TargetEvent.START): TargetState.RUNNING,
        (TargetState.RUNNING, TargetEvent.SUCCEED): TargetState.DONE,
        (TargetState.RUNNING, TargetEvent.FAIL): TargetState.FAILED,
        (TargetState.RUNNING, TargetEvent.PUT_BACK): TargetState.PENDING,
    }
)

REUSABLE: Final = frozenset({JobState.QUEUED, JobState.RUNNING, JobState.DONE, JobState.PARTIAL})
"""States in which a job answers an equal submit; a failed or cancelled one never does."""


class IllegalMove(Exception):
    """A pair of state and event that is not in its table: a fault of the engine, never of a caller."""


def move_job(state: JobState, event: JobEvent) -> JobState:
    """Return the state that `event` leads to, or raise `IllegalMove` naming both."""
    try:
        return JOB_MOVES[state, event]
    except KeyError:
        raise IllegalMove(f"no job move from {state.value!r} by {event.value!r}") from None


def move_target(state: TargetState, event: TargetEvent) -> TargetState:
    """Return the state that `event` leads to, or raise `IllegalMove` naming both."""
    try:
        return TARGET_MOVES[state, event]
    except KeyError:
        raise IllegalMove(f"no target move from {state.value!r} by {event.value!r}") from None


def job_states_before(event: JobEvent) -> tuple[JobState, ...]:
    """Return the states from which `event` is a move, in the table's order."""
    return tuple(state for (state, move) in JOB_MOVES if move is event)


def last_target_event(total: int, failed: int) -> JobEvent:
    """Return what the storing of the last of `total` targets means when `failed` of them failed."""
    if failed == 0:
        return JobEvent.LAST_ALL_DONE
    return JobEvent.LAST_ALL_FAILED if failed == total else JobEvent.LAST_MIXED
