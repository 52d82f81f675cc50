"""Do the two tables say every move there is, and no other?"""

from enum import Enum
from itertools import product

import pytest

from sift_batch import JobState, TargetState
from sift_batch._model.lifecycle import (
    JOB_MOVES,
    REUSABLE,
    TARGET_MOVES,
    IllegalMove,
    JobEvent,
    TargetEvent,
    job_states_before,
    last_target_event,
    move_job,
    move_target,
)


@pytest.mark.parametrize(("state", "event"), [*product(JobState, JobEvent)])
def test_every_job_move(state: JobState, event: JobEvent) -> None:
    """A job moves as the table says; any other pair raises IllegalMove naming both."""
    if (state, event) in JOB_MOVES:
        assert move_job(state, event) is JOB_MOVES[state, event]
        return
    with pytest.raises(IllegalMove) as caught:
        move_job(state, event)
    _names_both(caught.value, state, event)


@pytest.mark.parametrize(("state", "event"), [*product(TargetState, TargetEvent)])
def test_every_target_move(state: TargetState, event: TargetEvent) -> None:
    """A target moves as the table says; any other pair raises IllegalMove naming both."""
    if (state, event) in TARGET_MOVES:
        assert move_target(state, event) is TARGET_MOVES[state, event]
        return
    with pytest.raises(IllegalMove) as caught:
        move_target(state, event)
    _names_both(caught.value, state, event)


def _names_both(error: IllegalMove, *names: Enum) -> None:
    for name in names:
        assert repr(name.value) in str(error)


def test_no_move_leaves_a_terminal_state() -> None:
    """A terminal job and a finished target never move again."""
    assert not [state for state, _ in JOB_MOVES if state.terminal]
    assert not {state for state, _ in TARGET_MOVES} & {TargetState.DONE, TargetState.FAILED}


def test_every_state_is_live_or_terminal() -> None:
    """Queued and running jobs are live, all others terminal, and none is both."""
    assert {state for state in JobState if state.live} == {JobState.QUEUED, JobState.RUNNING}
    for state in JobState:
        assert state.live is not state.terminal


def test_every_state_can_be_reached() -> None:
    """Each state is the end of some walk from the first one."""
    for first, moves in ((JobState.QUEUED, JOB_MOVES), (TargetState.PENDING, TARGET_MOVES)):
        reached: set[Enum] = {first}
        for _ in moves:
            reached |= {after for (before, _), after in moves.items() if before in reached}
        assert reached == set(type(first))


def test_cancelled_comes_from_a_cancel_alone() -> None:
    """No event but a cancel leads to `cancelled`, and a cancel leads nowhere else."""
    for (_, event), after in JOB_MOVES.items():
        assert (event is JobEvent.CANCEL) == (after is JobState.CANCELLED)


@pytest.mark.parametrize("event", JobEvent)
def test_the_states_before_an_event_are_the_tables(event: JobEvent) -> None:
    """The states that SQL guards name are those of the table."""
    assert set(job_states_before(event)) == {state for state, move in JOB_MOVES if move is event}


@pytest.mark.parametrize(
    ("total", "failed", "state"),
    [
        (1, 0, JobState.DONE),
        (1, 1, JobState.FAILED),
        (3, 0, JobState.DONE),
        (3, 1, JobState.PARTIAL),
        (3, 2, JobState.PARTIAL),
        (3, 3, JobState.FAILED),
    ],
)
def test_how_a_job_ends(total: int, failed: int, state: JobState) -> None:
    """All done is done, all failed is failed, anything between partial."""
    assert move_job(JobState.RUNNING, last_target_event(total, failed)) is state


def test_tables_can_not_be_changed() -> None:
    """The tables are read-only, so that no part of a program can bend the rules for another."""
    for table in (JOB_MOVES, TARGET_MOVES):
        with pytest.raises(TypeError):
            table[next(iter(table))] = None  # type: ignore[index]


def test_a_failed_or_cancelled_job_answers_no_submit() -> None:
    """Reusable are the live states, done and partial."""
    assert set(JobState) - REUSABLE == {JobState.FAILED, JobState.CANCELLED}
