"""How does the application hear of what happened, without being able to break it?

Hooks and log both belong to somebody else. Whatever they raise stays here; a hook's fault is logged
once for each hook, so that a fault in a busy place does not fill the log. Next room: none; every
room calls this one.
"""

from typing import Final

from trio.lowlevel import enable_ki_protection

from .._model.events import EventLog
from .._model.hooks import Hooks
from .._model.lifecycle import JobState
from .._model.values import CallerClass, Job

_OUTCOMES: Final = {
    JobState.DONE: "done",
    JobState.PARTIAL: "partial",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "cancelled",
}


class Signals:
    """Calls hooks and logs events."""

    def __init__(self, hooks: Hooks | None, log: EventLog) -> None:
        self._hooks = hooks
        self.log = log
        # Hooks that have raised already; each is logged once.
        self._faulty: set[str] = set()

    @property
    def measured(self) -> bool:
        """Whether anybody wants to know how long things take."""
        return self._hooks is not None

    @enable_ki_protection
    def call(self, hook: str, *values: object) -> None:
        """Call one hook by its name; never raises.

        Not even `SystemExit`: it would cut what the store has answered from what follows. A real Ctrl-C
        does not strike here, but at the next checkpoint.
        """
        if self._hooks is None:
            return
        try:
            getattr(self._hooks, hook)(*values)
        except BaseException as exc:  # noqa: ASYNC103 - hooks are no async code
            if hook not in self._faulty:
                self._faulty.add(hook)
                self.log.event("hook.failed", hook=hook, error=type(exc).__name__)

    def ended(self, job: Job, seconds: float | None) -> None:
        """Tell that a job became terminal, `seconds` after its submit (None: in an earlier process)."""
        outcome = _OUTCOMES[job.status]
        self.call("job", outcome)
        if seconds is not None and job.caller_class is not CallerClass.RESTRICTED:
            self.call("job_seconds", seconds)
        self.call("ended", job)
        self.log.bind(job_id=job.id, caller_class=job.caller_class.value).event(
            "job.ended",
            outcome=outcome,
            error=job.error,
            targets=job.targets_total,
            done=job.targets_done,
            failed=job.targets_failed,
        )
