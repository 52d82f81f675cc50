"""What should the engine say? Its contract, played with dicts and lists, by somebody who never saw its code.

No Trio, no SQL, nothing of the package: a model that shared code with what it judges would share its
faults. It knows two clocks that are moved from outside: `wall`, for stored times, and `t`, for waits.
Nothing here happens by itself but what a timer does, in `advance`. What the contract leaves open is
marked by `unsure`; the machine then lets time pass until it is certain. How jobs are kept and removed is
in `machine_shelf`. Next: `machine_world`, the real thing.
"""

import math
from typing import Any, Final

from machine_shelf import Facts, ModelJob, ModelTarget, Rules, Shelf

Start = tuple[str, int, int]
"""One start of a fetch: job, index, number of the try."""

_MOST_BACKOFF: Final = 60.0
_LEAST_APART: Final = 0.1
_NOT_YET: Final = "pending"


class Model(Shelf):
    """A runner and its store, as the contract has them."""

    def __init__(self, rules: Rules, wall: float, t: float) -> None:
        super().__init__(rules, wall, t)
        # Every start of a fetch that there should have been, in all lives.
        self.starts: list[Start] = []

    # ---- what a caller asks for

    def submit(self, caller: str, targets: tuple[Any, ...], max_age: float | None) -> tuple[str, str]:
        """Return what a submit gives: "create", "reused" with an id, or why it is refused."""
        if not targets:
            return "no_targets", ""
        if len(targets) > self.rules.targets_per_job:
            return "too_many", ""
        for job in reversed(self.jobs.values()):
            if (
                (job.caller, job.key) == (caller, targets)
                and self.visible(job)
                and self._answers(job, max_age)
            ):
                job.lease = max(job.lease, self.now)
                self._after_submit()
                return "reused", job.id
        return self._over_caps(caller) or ("create", "")

    def _answers(self, job: ModelJob, max_age: float | None) -> bool:
        if job.status in ("failed", "cancelled"):
            return False
        if job.live or max_age is None:
            return True
        assert job.finished_at is not None
        return max(self.now - job.finished_at, 0) < max_age

    def _over_caps(self, caller: str) -> tuple[str, str] | None:
        live = [job for job in self.jobs.values() if job.live]
        own = [job for job in live if job.caller == caller]
        refusal = None
        if len(own) >= self.rules.jobs_per_caller:
            refusal = "caller_busy", own[-1].id
        elif len(live) >= self.rules.jobs_total:
            refusal = "jobs_busy", ""
        if refusal is not None:
            # Whether a refused submit counts as one, after which is swept, is not said.
            self.unsure |= self.untidy
        return refusal

    def create(self, job_id: str, caller: str, restricted: bool, targets: tuple[Any, ...]) -> None:
        """Add the job that a submit stored."""
        self.jobs[job_id] = ModelJob(
            job_id, caller, restricted, targets, [ModelTarget(*target) for target in targets], self.now
        )
        self._after_submit()
        self._fill_workers()

    def rerun(self, caller: str, job_id: str) -> tuple[str, str]:
        """Return what a rerun gives: "unknown", "unsettled", "caller_busy", "jobs_busy" or "create"."""
        source = self.find(job_id, caller)
        if source is None:
            return "unknown", ""
        if not source.settled:
            return "unsettled", ""
        return self._over_caps(caller) or ("create", "")

    def create_again(self, job_id: str, source_id: str) -> None:
        """Add the job that a rerun stored: the `done` targets come along."""
        source = self.jobs[source_id]
        job = ModelJob(
            job_id,
            source.caller,
            source.restricted,
            source.key,
            [target.carried() for target in source.targets],
            self.now,
            rerun_of=source_id,
        )
        self.jobs[job_id] = job
        if job.next_pending is None:
            job.status, job.settled = "done", True
            job.started_at = job.finished_at = self.now
            self._settled()
        self._after_submit()
        self._fill_workers()

    def cancel(self, job_id: str, caller: str | None) -> bool:
        """Cancel a job; False for an unknown or terminal one."""
        job = self.jobs.get(job_id)
        if job is None or not job.live or caller not in (None, job.caller):
            return False
        self._stop(job, "cancelled", "")
        return True

    def delete(self, job_id: str, caller: str | None) -> bool:
        """Remove a settled job; False for any other."""
        job = self.find(job_id, caller)
        if job is None or not job.settled:
            return False
        self.remove(job, "deleted")
        # What a restricted job leaves behind is wiped at once, maybe with a sweep.
        self.unsure |= job.restricted and self.untidy
        return True

    def touch(self, job_id: str, caller: str | None) -> None:
        """Move a lease to now, never backwards."""
        job = self.find(job_id, caller)
        if job is not None:
            job.lease = max(job.lease, self.now)

    # ---- what a fetch gives

    @property
    def flying(self) -> list[ModelJob]:
        """The jobs that have a fetch in flight."""
        return [job for job in self.jobs.values() if job.phase == "flight"]

    @property
    def waiting(self) -> list[ModelJob]:
        """The jobs that wait out a busy answer."""
        return [job for job in self.jobs.values() if job.phase == "busy"]

    def finish(self, job: ModelJob, facts: Facts, *, closing: bool = False) -> None:
        """Store what the fetch of a job gave, and go on."""
        target = job.targets[job.cursor]
        target.take(facts)
        job.lease = max(job.lease, self.now)
        job.changed()
        job.phase = ""
        ended = not job.live
        if not ended and job.next_pending is None:
            failed = sum(target.status == "failed" for target in job.targets)
            job.status = "done" if not failed else "failed" if failed == len(job.targets) else "partial"
            job.finished_at, ended = self.now, True
        if ended:
            job.settled = True
            self._settled()
        else:
            job.cursor = job.next_pending or 0
            job.targets[job.cursor].status = "running"
        if closing:
            return
        if not ended:
            self._start(job, 1)
        self._fill_workers()

    def busy(self, job: ModelJob, retry_after: float | None, ready: bool, reason: str) -> None:
        """Let a job wait, or fail its target when it was busy for long enough."""
        job.answers += 1
        left = math.inf if reason == "gate" else self.rules.retry_for - job.spent
        if left < 1e-6:
            self.finish(job, self.rules.too_busy)
            return
        backoff = min(self.rules.retry_wait * 2 ** (job.answers - 1), _MOST_BACKOFF)
        valid = retry_after is not None and math.isfinite(retry_after) and retry_after > 0
        wait = retry_after if valid and retry_after is not None else backoff
        if ready and retry_after is None:
            wait = math.inf
        job.phase, job.reason, job.ready = "busy", reason, ready
        job.wait_began, job.due = self.t, self.t + max(min(wait, left), _LEAST_APART)

    def told(self, job: ModelJob) -> None:
        """Let the `ready` of a waiting job return."""
        apart = 0.0 if job.reason == "gate" else _LEAST_APART
        job.due = min(job.due, max(self.t, job.wait_began + apart))
        if job.due <= self.t:
            self._try_again(job)

    def put_back(self, job: ModelJob) -> None:
        """Settle a job that was ended meanwhile, as its fetch comes back busy."""
        job.targets[job.cursor].status = _NOT_YET
        job.phase, job.settled = "", True
        job.lease = max(job.lease, self.now)
        job.changed()
        self._settled()
        self._fill_workers()

    def _try_again(self, job: ModelJob) -> None:
        if job.reason != "gate":
            job.spent += self.t - job.wait_began
        self._start(job, job.number + 1)

    def _start(self, job: ModelJob, number: int) -> None:
        if number == 1:
            job.spent, job.answers = 0.0, 0
        job.number, job.phase = number, "flight"
        job.due = self.t + self.rules.target_timeout
        self.starts.append((job.id, job.cursor, number))

    def _fill_workers(self) -> None:
        for job in self.jobs.values():
            if sum(bool(other.phase) for other in self.jobs.values()) >= self.rules.workers:
                return
            if job.status == "queued":
                job.status, job.started_at = "running", self.now
                job.changed()
                job.cursor = job.next_pending or 0
                job.targets[job.cursor].status = "running"
                job.deadline = self.t + self.rules.job_timeout
                self._start(job, 1)

    def _stop(self, job: ModelJob, status: str, error: str) -> None:
        job.status, job.error, job.finished_at = status, error, self.now
        job.lease = max(job.lease, self.now)
        job.changed()
        if job.phase == "flight":
            return
        if job.phase:
            job.targets[job.cursor].status = _NOT_YET
            job.changed(maybe=True)  # in the step of the cancel, or in one of its own
        job.phase, job.settled = "", True
        self._settled()
        self._fill_workers()

    # ---- time and restarts

    def advance(self, seconds: float) -> None:
        """Let `seconds` of Trio's clock pass, enough for a sweep, with all that its timers do."""
        end = self.t + seconds
        self.sweep()
        while (job := self._next_due(end)) is not None:
            if job.live and job.deadline <= job.due:
                self.t = job.deadline
                self._stop(job, "failed", "timeout")
                continue
            self.t = job.due
            if job.phase == "flight":
                self.finish(job, self.rules.timeout)
            else:
                self._try_again(job)
        self.t = end
        # The last sweep may have been before the last of these.
        self.unsure = self.untidy

    def timer_within(self, seconds: float) -> bool:
        """Whether a wait, a fetch or a job comes to the end of its time so soon."""
        return self._next_due(self.t + seconds) is not None

    def _next_due(self, end: float) -> ModelJob | None:
        due = [
            (min(job.due, job.deadline if job.live else math.inf), number, job)
            for number, job in enumerate(self.jobs.values())
            if job.phase
        ]
        first = min(due, default=None, key=lambda item: item[:2])
        return first[2] if first is not None and first[0] <= end else None

    def close(self, last: Facts | None) -> None:
        """Close the runner; with `last`, each fetch in flight gives that before its grace is over."""
        for job in self.flying if last is not None else ():
            assert last is not None
            self.finish(job, last, closing=True)

    def reopen(self) -> None:
        """Open the next runner on the store."""
        for job in self.jobs.values():
            running = [target for target in job.targets if target.status == "running"]
            if job.live or not job.settled or running:
                job.changed()
            for target in running:
                target.status = _NOT_YET
            if job.live:
                job.status, job.error = "failed", "restart"
                job.finished_at = job.lease = self.now
            job.cut_short = job.cut_short or not job.settled
            job.phase, job.settled = "", True
        self.unsure = self.untidy

    def _settled(self) -> None:
        # Once over the budget, what has lapsed is looked at too, or it is not: only time makes it certain.
        if self.nbytes > self.rules.max_bytes:
            self.unsure |= self.untidy and any(self.stale(job) for job in self.jobs.values())
            self.sweep()

    def _after_submit(self) -> None:
        self.sweep_lapsed()
        self.unsure |= self.untidy
