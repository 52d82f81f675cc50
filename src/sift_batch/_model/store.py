"""What a store must do: few operations, each one atomic step.

The engine talks to a `Store` and never to SQL, so that another database can take SQLite's place; the
suite `sift_batch.testing.check_store` says whether it may. What every operation promises:

- It happens whole or not at all. A return means that it happened and, where durability matters,
  that it survives; `trio.Cancelled` and any exception mean that nothing happened.
- What it can't do is a `StoreError`. A refusal that belongs to the rules is a value, not an error.
- Time is passed in: `now` in whole unix seconds. A store has no clock.
- A step that changes a job is guarded twice: by the state that it expects, and by the `owner` token
  of the runner that the job belongs to. A runner that lost a job changes nothing.
- Steps happen one after another, in the order in which they were asked for.

A job is *lapsed* when it is settled and `now - lease > ttl`, where a lease that lies ahead of `now`
by more than `ttl` counts as `now`. Lapsed jobs are invisible to every read and step but `lapsed`,
`sweep`, `evict` and `gone`.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .lifecycle import JobEvent, JobState, TargetState
from .values import Caller, Job, JobStatus, Target


class Caps(NamedTuple):
    """How many live jobs there may be: of one caller, and in all."""

    per_caller: int
    total: int


class NewJob(NamedTuple):
    """A job to be stored: `queued`, with `created_at` and `lease` now."""

    id: str
    caller: Caller
    targets: Sequence[Target]


class Created(NamedTuple):
    """A job was stored. It is terminal already when a rerun had nothing left to fetch."""

    job: Job


class Reused(NamedTuple):
    """An equal job was there; its lease was bumped."""

    job_id: str


class CallerBusy(NamedTuple):
    """Refused: the caller has as many live jobs as it may have; `job_id` is the newest of them."""

    job_id: str


class _Refusal:
    """A refusal that has nothing to add: two of one kind are equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class JobsBusy(_Refusal):
    """Refused: there are as many live jobs as there may be in all."""

    __slots__ = ()


class UnknownJob(_Refusal):
    """Refused: the job to run again is unknown, lapsed, or another caller's."""

    __slots__ = ()


class UnsettledJob(_Refusal):
    """Refused: the job to run again has not settled yet."""

    __slots__ = ()


SubmitOutcome = Created | Reused | CallerBusy | JobsBusy
RerunOutcome = Created | CallerBusy | JobsBusy | UnknownJob | UnsettledJob


class Outcome(NamedTuple):
    """What is to be stored of one target.

    `result` is UTF-8 JSON `{"content": …, "meta": …}`, or None for a failed target; `chars` are the
    code points of its content. All text is free of lone surrogates.
    """

    status: TargetState
    result: bytes | None = None
    chars: int = 0
    error: str = ""
    hint: str = ""
    code: str = ""
    http_status: int | None = None
    retryable: bool = False


class Work(NamedTuple):
    """A job that was started, and what of it is to be fetched, in order; the first is `running`."""

    job: Job
    targets: Sequence[tuple[int, Target]]


class Recorded(NamedTuple):
    """What became of a job as one of its targets was stored.

    `nbytes` is what was added to the stored bytes. `job` is the job as it is now if this step
    settled it, else None: then its next target is `running`. `ended` says whether this step made it
    terminal; otherwise it had been ended from outside.
    """

    nbytes: int
    job: Job | None
    ended: bool


class Removed(NamedTuple):
    """A job that was taken out of the store, whole."""

    job_id: str
    nbytes: int
    restricted: bool


class Restarted(NamedTuple):
    """What `acquire` found: the jobs it failed, and the totals to start counting from."""

    failed: Sequence[Job]
    stored_bytes: int


class Lapsed(NamedTuple):
    """Which jobs have lapsed (some of them, if there are many), and the oldest lease of the others."""

    job_ids: Sequence[str]
    oldest_lease: int | None


class Reads(Protocol):
    """The pure reads. `caller` narrows each to that caller's jobs, in the same look-up."""

    async def job(self, job_id: str, *, caller: str | None, now: int, ttl: float) -> Job | None:
        """Return the job, or None."""

    async def status(
        self,
        job_id: str,
        *,
        caller: str | None,
        now: int,
        ttl: float,
        results: bool,
        start: int,
        stop: int | None,
    ) -> JobStatus | None:
        """Return the job and its targets with `start <= idx < stop`, in order, or None.

        Without `results` every target's `result` is None, and no result is read from the disk.
        """

    async def jobs(
        self,
        *,
        caller: str | None,
        status: JobState | None,
        before: str | None,
        limit: int,
        now: int,
        ttl: float,
    ) -> list[Job] | None:
        """Return at most `limit` jobs, newest submission first; None if `before` is unknown.

        With `before`, only jobs that were submitted before that one.
        """

    async def gone(self, job_id: str, *, caller: str, now: int, ttl: float) -> str | None:
        """Return why a job of `caller` is gone: "ttl", "budget", "deleted"; None if not known.

        A lapsed job that was not swept yet is gone by "ttl". At most 10,000 jobs are remembered,
        for 7 days; jobs of restricted callers never.
        """


class Store(Reads, Protocol):
    """The ledger of one runner."""

    async def acquire(self, owner: str, *, now: int) -> Restarted:
        """Make the runner with this token the store's owner, and put right what the last one left.

        In one step: live jobs become `failed` with the error `restart`, `finished_at` and `lease`
        now; targets left `running` go back to `pending`; every terminal job is settled. Doing it
        again changes nothing. Raises `StoreInUseError`, having changed nothing, while there is
        another owner, in any process. No step below works without an owner.
        """

    async def release(self, owner: str) -> None:
        """Give the ownership back. Never raises for an owner that has none."""

    async def submit(
        self, owner: str, new: NewJob, *, now: int, ttl: float, caps: Caps, max_age: float | None
    ) -> SubmitOutcome:
        """Find an equal job, else check the caps, else store the job and all its targets.

        An equal job is the newest unlapsed one of that caller with the same idempotency key that is
        queued, running, done or partial; with `max_age`, a done or partial one only while
        `now - finished_at < max_age`. It is bumped (`lease` now, never backwards).
        """

    async def rerun(
        self, owner: str, new_id: str, source_id: str, *, caller: Caller, now: int, ttl: float, caps: Caps
    ) -> RerunOutcome:
        """Store a new job of a settled job's targets, the `done` ones carried over with results.

        `rerun_of` and the idempotency key are the source's. Nothing left to fetch: the job is
        `done`, settled, finished now.
        """

    async def begin(self, owner: str, *, now: int) -> Work | None:
        """Start the queued job that was submitted first and mark its first target running."""

    async def record(
        self, owner: str, job_id: str, idx: int, outcome: Outcome, *, now: int
    ) -> Recorded | None:
        """Store target `idx`, bump count, bytes, lease and version, and mark the next one running.

        The last one ends the job. A job that was ended from outside is settled and nothing more is
        marked. None, and nothing stored, unless the target is `running` and the job the owner's.
        """

    async def stop(
        self,
        owner: str,
        job_id: str,
        event: JobEvent,
        *,
        caller: str | None,
        now: int,
        in_flight: bool,
        error: str = "",
    ) -> Job | None:
        """End a live job from outside (`CANCEL`, `TIMEOUT`); None for any other, or another caller's.

        With `in_flight` the job is left unsettled, and `record` or `settle` settles it. Without, a
        target that was marked running goes back to `pending` and the job is settled in this step.
        """

    async def settle(self, owner: str, job_id: str, *, now: int) -> Job | None:
        """Settle a job that was ended from outside, its running target back to `pending`.

        None, and nothing changed, for a job that is live, settled, or not the owner's.
        """

    async def touch(self, owner: str, job_id: str, *, caller: str | None, now: int, ttl: float) -> bool:
        """Set the lease to now, never backwards. False for a job that is not there (any more)."""

    async def delete(
        self, owner: str, job_id: str, *, caller: str | None, now: int, ttl: float
    ) -> Removed | None:
        """Remove a settled job; None for any other."""

    async def lapsed(self, *, now: int, ttl: float) -> Lapsed:
        """Say whether anything has lapsed. A read: no transaction is begun for it."""

    async def sweep(self, owner: str, job_id: str, *, now: int, ttl: float) -> Removed | None:
        """Remove one job if it is lapsed (still), else None.

        A lease that lies ahead of `now` by more than `ttl` is set to `now`: a clock that was wrong
        for a while gives no job more than a `ttl` once it is right again.
        """

    async def evict(self, owner: str, *, max_bytes: int, now: int, ttl: float) -> Removed | None:
        """While the stored jobs are over `max_bytes`: remove the settled one with the oldest lease.

        Then in order of submission. The settled job with the newest lease stays, whatever its size.
        """

    async def erase(self, owner: str) -> bool:
        """Wipe from the log what removed jobs of restricted callers left there; False: try again."""

    async def check(self, owner: str, *, now: int) -> None:
        """Write and read back; raise `StoreError` when that can't be done."""
