"""The messenger of `signals.py`: hooks and log hear everything, and can't break anything."""

from typing import Any

import pytest

from sift_batch import CallerClass, Hooks, Job, JobState
from sift_batch._engine.signals import Signals


class Log:
    """An event log that keeps its events."""

    debug_enabled = True

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def bind(self, **fields: Any) -> "Log":
        """Return itself: the tests here look at the events."""
        return self

    def event(self, name: str, **fields: Any) -> None:
        """Keep one event."""
        self.events.append((name, fields))


def _job(status: JobState, caller_class: CallerClass = CallerClass.FLEET) -> Job:
    return Job(
        id="0" * 32,
        caller="c",
        caller_class=caller_class,
        status=status,
        settled=True,
        error="",
        targets_total=3,
        targets_done=2,
        targets_failed=1,
        version=1,
        created_at=1,
        started_at=1,
        finished_at=1,
        lease=1,
        nbytes=1,
        rerun_of=None,
    )


class Faulty(Hooks):
    """Hooks of which two raise."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def depth(self, live: int) -> None:
        """Raise."""
        raise self.error

    def stored(self, nbytes: int) -> None:
        """Raise."""
        raise self.error


def test_a_faulty_hook_is_logged_once() -> None:
    """However often a hook raises, one warning names it and the kind of its error, never its text."""
    log = Log()
    signals = Signals(Faulty(ValueError("secret")), log)
    for _ in range(5):
        signals.call("depth", 1)
        signals.call("stored", 1)
        signals.call("in_flight", 1)
    assert log.events == [
        ("hook.failed", {"hook": "depth", "error": "ValueError"}),
        ("hook.failed", {"hook": "stored", "error": "ValueError"}),
    ]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), BaseException()])
def test_a_hook_ends_nothing(error: BaseException) -> None:
    """Whatever a hook raises, an exit that it asks for included, ends with its call."""
    log = Log()
    Signals(Faulty(error), log).call("depth", 1)
    assert log.events == [("hook.failed", {"hook": "depth", "error": type(error).__name__})]


def test_without_hooks_nothing_is_measured() -> None:
    """Without hooks nothing is called, and the store's steps need not be timed."""
    signals = Signals(None, Log())
    signals.call("depth", 1)
    assert not signals.measured
    assert Signals(Hooks(), Log()).measured


@pytest.mark.parametrize("status", [state for state in JobState if state.terminal])
@pytest.mark.parametrize("caller_class", list(CallerClass))
@pytest.mark.parametrize("seconds", [5.0, None])
def test_an_end_is_told_in_full(status: JobState, caller_class: CallerClass, seconds: float | None) -> None:
    """Each end is told with the job; its seconds only if they are known and nobody is restricted."""
    told: list[tuple[str, Any]] = []

    class Heard(Hooks):
        def job(self, outcome: str) -> None:
            told.append(("job", outcome))

        def job_seconds(self, seconds: float) -> None:
            told.append(("job_seconds", seconds))

        def ended(self, job: Job) -> None:
            told.append(("ended", job))

    log, job = Log(), _job(status, caller_class)
    Signals(Heard(), log).ended(job, seconds)
    timed = seconds is not None and caller_class is CallerClass.FLEET
    assert told == [("job", status.value), *([("job_seconds", seconds)] if timed else []), ("ended", job)]
    assert log.events == [
        ("job.ended", {"outcome": status.value, "error": "", "targets": 3, "done": 2, "failed": 1})
    ]
