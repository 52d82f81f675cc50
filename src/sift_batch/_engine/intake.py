"""Is this series of targets sound, and what did the store make of it?

Everything that a submit and a rerun share: the checks before the store is asked, the job's entry in
memory (made before, since a worker may begin the job before the task that submitted it runs again), and
what is told and returned or raised after. It starts nothing: a worker is told that there is a job.
Next room: `workers.py`.
"""

import secrets
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Never

import trio
from trio.lowlevel import enable_ki_protection

from .._model.config import Config, check_number
from .._model.crash import crash_point
from .._model.errors import (
    CallerBusyError,
    JobsBusyError,
    NoTargetsError,
    StoreError,
    SubmitError,
    TooManyTargetsError,
)
from .._model.store import (
    CallerBusy,
    Created,
    JobsBusy,
    RerunOutcome,
    Reused,
    SubmitOutcome,
    UnknownJob,
    UnsettledJob,
)
from .._model.values import Caller, Job, Submission, Target
from .ledger import Ledger
from .roster import LiveJob, Roster
from .signals import Signals
from .upkeep import Upkeep


class Intake:
    """Takes new jobs in."""

    def __init__(
        self,
        config: Config,
        ledger: Ledger,
        roster: Roster,
        signals: Signals,
        upkeep: Upkeep,
        job_stored: Callable[[], None],
    ) -> None:
        self._limit = config.targets_per_job
        self._ledger = ledger
        self._roster = roster
        self._signals = signals
        self._upkeep = upkeep
        self._job_stored = job_stored

    @enable_ki_protection
    async def submit(self, caller: Caller, targets: Iterable[Target], max_age: float | None) -> Submission:
        """Check the series, store it or find an equal job: see `Runner.submit`."""
        if not isinstance(caller, Caller):
            raise TypeError(f"submit needs a Caller, not {type(caller).__name__}")
        if max_age is not None:
            check_number("max_age", max_age, whole=False, zero=True, infinite=True)
        series = self._checked(targets)
        live = self._expect(caller)
        try:
            outcome = await self._ledger.submit(live.id, caller, series, max_age)
        except BaseException as exc:
            self._not_stored(live, exc)
            raise
        return self._submitted(outcome, live)

    @enable_ki_protection
    async def rerun(self, caller: Caller, job_id: str) -> Submission:
        """Store a new job of an older one's targets: see `Runner.rerun`."""
        if not isinstance(caller, Caller):
            raise TypeError(f"rerun needs a Caller, not {type(caller).__name__}")
        live = self._expect(caller)
        try:
            outcome = await self._ledger.rerun(live.id, job_id, caller)
        except BaseException as exc:
            self._not_stored(live, exc)
            raise
        return self._submitted(outcome, live)

    def _checked(self, targets: Iterable[Target]) -> list[Target]:
        """Return the series as a list, or refuse it; no more than one too many is read."""
        if isinstance(targets, str | bytes | Target):
            # Looked at before the series is counted: a long text has more characters than the limit.
            raise TypeError(
                f"targets must be a series of Target, not {type(targets).__name__}: "
                "targets[0] would be a part of it"
            )
        limit = self._limit
        series = list(islice(targets, limit + 1))
        if not series:
            self._refuse("no_targets", NoTargetsError())
        if len(series) > limit:
            self._refuse("too_many_targets", TooManyTargetsError(limit))
        for index, target in enumerate(series):
            if not isinstance(target, Target):
                raise TypeError(f"targets[{index}] is {type(target).__name__} in place of a Target")
        return series

    def _refuse(self, reason: str, error: SubmitError) -> Never:
        self._signals.call("refused", reason)
        raise error

    def _expect(self, caller: Caller) -> LiveJob:
        job_id = secrets.token_hex(16)
        log = self._signals.log.bind(job_id=job_id, caller_class=caller.caller_class.value)
        live = LiveJob(job_id, caller, log, trio.current_time())
        live.wait_for("queue", self._ledger.now())
        self._roster.expect(live)
        return live

    def _not_stored(self, live: LiveJob, exc: BaseException) -> None:
        self._roster.forget(live)
        if isinstance(exc, StoreError):
            self._signals.call("refused", "store")

    def _submitted(self, outcome: SubmitOutcome | RerunOutcome, live: LiveJob) -> Submission:
        """Tell what the store made of a submit, and return or raise what the caller gets."""
        if isinstance(outcome, Created):
            crash_point("submit: not told yet")
            self._created(outcome.job, live)
            self._upkeep.after_submit()
            return Submission(outcome.job.id, reused=False)
        self._roster.forget(live)
        if isinstance(outcome, Reused):
            self._signals.call("job", "reused")
            live.log.bind(job_id=outcome.job_id).event("job.reused")
            self._upkeep.after_submit()
            return Submission(outcome.job_id, reused=True)
        if isinstance(outcome, CallerBusy):
            self._refuse("caller_busy", CallerBusyError(outcome.job_id))
        if isinstance(outcome, JobsBusy):
            self._refuse("jobs_busy", JobsBusyError())
        if isinstance(outcome, UnknownJob):
            raise LookupError("the job to run again is not there (any more)")
        assert isinstance(outcome, UnsettledJob)
        raise SubmitError("the job to run again has not settled yet; wait for it or cancel it")

    def _created(self, job: Job, live: LiveJob) -> None:
        self._upkeep.add_bytes(job.nbytes)
        if job.settled:
            # A rerun with nothing left to fetch: it was never live.
            self._roster.forget(live)
            self._upkeep.after_settle(job.lease)
        else:
            self._roster.stored(job.id)
            self._job_stored()
        self._signals.call("job", "created")
        live.log.event("job.created", targets=job.targets_total)
        if job.settled:
            self._signals.ended(job, 0.0)
