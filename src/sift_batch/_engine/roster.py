"""Which jobs are live here, and what is each of them doing right now?

The store knows what survives; this is what only this process knows of a job: its caller's
credentials, its cancel scope, whether a fetch of it is in flight, what it waits for. An entry goes
when its job has settled, so memory does not grow with the jobs that were. It decides nothing.
"""

import math
from collections.abc import Callable

import trio

from .._model.events import EventLog
from .._model.lifecycle import JobEvent
from .._model.values import Caller, CallerClass


class LiveJob:
    """A job that is live, or terminal with a fetch in flight."""

    __slots__ = (
        "asked_for",
        "attempt_deadline",
        "caller",
        "deadline",
        "draining",
        "ended",
        "expiring",
        "fetched",
        "fetching",
        "id",
        "in_flight",
        "log",
        "queued",
        "reason",
        "refusals",
        "refused_since",
        "scope",
        "settled",
        "since",
        "started",
        "stopped",
        "stops",
        "stops_over",
        "stored_here",
        "submitted",
        "targets_left",
        "warned",
    )

    def __init__(self, job_id: str, caller: Caller, log: EventLog, submitted: float) -> None:
        self.id = job_id
        self.caller = caller
        self.log = log
        self.submitted = submitted
        # Stored, and not begun by a worker yet; whether a worker asks the store for it.
        self.queued = False
        self.asked_for = False
        # Written by the drain: whether a worker has it, since when (Trio's clock), its one cancel
        # scope, whether a fetch or the store of its result is under way, whether it is the fetch (and
        # until when that may go), and whether there was one at all.
        self.draining = False
        self.started = math.inf
        self.deadline = math.inf
        self.scope: trio.CancelScope | None = None
        self.in_flight = False
        self.fetching = False
        self.fetched = False
        self.attempt_deadline = math.inf
        self.stored_here = 0
        self.targets_left = 0
        # Written by whoever ends the job from outside: how many try to at this moment (no target
        # starts meanwhile), and what came of it.
        self.stops = 0
        self.stops_over = trio.lowlevel.ParkingLot()
        self.stopped: JobEvent | None = None
        # What the store has said of it: terminal, and settled.
        self.ended = False
        self.settled = False
        # Written by the timekeeper: it acts once on each.
        self.expiring = False
        self.warned = False
        # Why the job waits, for `progress`, and the unix second in which that began.
        self.reason = ""
        self.since: int | None = None
        # How many steps of it the store refuses at this moment, and since when; goes before the reason.
        self.refusals = 0
        self.refused_since: int | None = None

    @property
    def restricted(self) -> bool:
        """Whether logs and metrics must say less of this job."""
        return self.caller.caller_class is CallerClass.RESTRICTED

    def wait_for(self, reason: str, since: int | None) -> None:
        """Note why the job waits from now on; "" when it does not."""
        self.reason = reason
        self.since = since

    def stop_over(self) -> None:
        """Note that one try to end the job from outside is over."""
        self.stops -= 1
        if not self.stops:
            self.stops_over.unpark_all()


class Roster:
    """The live jobs, by id."""

    def __init__(
        self, depth_changed: Callable[[int], None], in_flight_changed: Callable[[int], None]
    ) -> None:
        self._depth_changed = depth_changed
        self._in_flight_changed = in_flight_changed
        # Jobs whose submit is on its way to the store, and jobs that are stored. A worker may begin
        # one before the task that submitted it has run again, so both can be found.
        self._coming: dict[str, LiveJob] = {}
        self._jobs: dict[str, LiveJob] = {}
        self._live = 0
        self.in_flight = 0
        self.changed = trio.lowlevel.ParkingLot()

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def live(self) -> int:
        """How many jobs are queued or running."""
        return self._live

    def jobs(self) -> list[LiveJob]:
        """Return the jobs that are live or unsettled."""
        return list(self._jobs.values())

    def get(self, job_id: object) -> LiveJob | None:
        """Return the job if it is stored, and live or unsettled."""
        return self._jobs.get(job_id) if isinstance(job_id, str) else None

    def next_queued(self) -> LiveJob | None:
        """Return the first queued job that no worker asks for; the store has the last word."""
        return next((job for job in self._jobs.values() if job.queued and not job.asked_for), None)

    def find(self, job_id: object) -> LiveJob | None:
        """Return the job as `get` does, or while its submit is on its way."""
        return self._coming.get(job_id) or self.get(job_id) if isinstance(job_id, str) else None

    def expect(self, job: LiveJob) -> None:
        """Note a job whose submit is on its way."""
        self._coming[job.id] = job

    def forget(self, job: LiveJob) -> None:
        """Drop a job whose submit came to nothing."""
        self._coming.pop(job.id, None)

    def stored(self, job_id: str) -> LiveJob | None:
        """Note that a job is stored; the second one to note it changes nothing."""
        job = self._coming.pop(job_id, None)
        if job is None:
            return self._jobs.get(job_id)
        job.queued = True
        self._jobs[job_id] = job
        self._live += 1
        self._tell_depth()
        return job

    def ended(self, job: LiveJob) -> None:
        """Note that a job became terminal; noting it twice changes nothing."""
        if not job.ended:
            job.ended = True
            self._live -= 1
            self.changed.unpark_all()
            self._tell_depth()

    def settled(self, job: LiveJob) -> None:
        """Drop a job that settled, or was lost: from here on only the store knows it."""
        job.settled = True
        self._jobs.pop(job.id, None)
        self.changed.unpark_all()
        # The task that ended the job from outside may run after the one that settled it.
        self.ended(job)

    def left(self, job: LiveJob) -> None:
        """Note that no worker has the job any more."""
        job.draining = False
        self.changed.unpark_all()

    def fetch_began(self, job: LiveJob, deadline: float) -> None:
        """Note that a fetch of the job is called, and until when it may go on."""
        job.in_flight = job.fetching = True
        job.attempt_deadline = deadline
        job.warned = False
        self.in_flight += 1
        self._in_flight_changed(self.in_flight)

    def fetch_ended(self, job: LiveJob) -> None:
        """Note that the fetch has come back; what it gave may still have to be stored."""
        job.fetching = False
        self.in_flight -= 1
        self._in_flight_changed(self.in_flight)

    def _tell_depth(self) -> None:
        self._depth_changed(self._live)
