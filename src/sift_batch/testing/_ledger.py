"""What does every rule of a store need? An owned store, and jobs brought to the state in question.

No rule is checked here. The clock is a number that each call may give; ids run against the order of
submission, so that a store that sorts by id is found out.
"""

import json
from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

from .._model.idem import canonical_options, scrub
from .._model.lifecycle import JobEvent, JobState, TargetState
from .._model.store import Caps, Created, NewJob, Outcome, Recorded, RerunOutcome, Store, SubmitOutcome, Work
from .._model.values import Caller, CallerClass, Job, JobStatus, Target, TargetStatus
from ._rules import present, same

T0: Final = 1_000_000
TTL: Final = 100.0
CAPS: Final = Caps(per_caller=1_000, total=1_000)
OWNER: Final = "owner-1"
ALICE: Final = Caller("alice")
BOB: Final = Caller("bob")
SECRET: Final = Caller("carol", caller_class=CallerClass.RESTRICTED)

_FIRST_ID: Final = 2**64


def done(content: str = "text", **meta: object) -> Outcome:
    """Return the outcome of a target that was fetched."""
    blob = json.dumps({"content": content, "meta": meta}, ensure_ascii=False).encode()
    return Outcome(status=TargetState.DONE, result=blob, chars=len(content))


FAILED: Final = Outcome(
    status=TargetState.FAILED,
    error="no such page ü",
    hint="look elsewhere",
    code="page_not_found",
    http_status=404,
    retryable=True,
)


def outcome_bytes(outcome: Outcome) -> int:
    """Return what an outcome adds to the stored bytes."""
    return len(outcome.result or b"") + len(outcome.error.encode()) + len(outcome.hint.encode())


def target_bytes(targets: Iterable[Target]) -> int:
    """Return the stored bytes of targets that have no outcome yet."""
    return sum(len((scrub(item.url) + canonical_options(item.options)).encode()) for item in targets)


def series(*urls: str) -> list[Target]:
    """Return targets without options."""
    return [Target(url) for url in urls]


def created(outcome: SubmitOutcome | RerunOutcome) -> Job:
    """Return the job that a submit or a rerun made; any other outcome breaks the rule."""
    if not isinstance(outcome, Created):
        raise AssertionError(f"no job was made, but {outcome!r} returned")
    return outcome.job


class Ledger:
    """A store in the hands of one owner, and short ways to bring jobs along."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._ids = 0

    def new_id(self) -> str:
        """Return an id that no job has; each one sorts before the last."""
        self._ids += 1
        return f"{_FIRST_ID - self._ids:032x}"

    async def submit(
        self,
        *urls: str,
        targets: Sequence[Target] | None = None,
        caller: Caller = ALICE,
        now: int = T0,
        ttl: float = TTL,
        caps: Caps = CAPS,
        max_age: float | None = None,
    ) -> SubmitOutcome:
        """Submit these targets under a new id."""
        new = NewJob(id=self.new_id(), caller=caller, targets=series(*urls) if targets is None else targets)
        return await self.store.submit(OWNER, new, now=now, ttl=ttl, caps=caps, max_age=max_age)

    async def queued(self, *urls: str, caller: Caller = ALICE, now: int = T0) -> Job:
        """Submit these targets and return the new job."""
        outcome = await self.submit(*urls, caller=caller, now=now)
        return created(outcome)

    async def begin(self, now: int = T0) -> Work:
        """Start the next queued job, which must be there."""
        work = await self.store.begin(OWNER, now=now)
        return present(work, "begin finds no queued job although there is one")

    async def running(self, *urls: str, caller: Caller = ALICE, now: int = T0) -> Job:
        """Submit these targets and start the job; nothing else may be queued."""
        job = await self.queued(*urls, caller=caller, now=now)
        work = await self.begin(now)
        same(work.job.id, job.id, "the job that was begun")
        return work.job

    async def record(
        self, job_id: str, idx: int, outcome: Outcome | None = None, *, now: int = T0
    ) -> Recorded | None:
        """Store one target, by default as done."""
        return await self.store.record(OWNER, job_id, idx, done() if outcome is None else outcome, now=now)

    async def ended(
        self, *urls: str, caller: Caller = ALICE, now: int = T0, outcomes: Sequence[Outcome] = ()
    ) -> Job:
        """Bring a job of these targets to its end, by default all done; nothing else may be queued."""
        job = await self.running(*urls, caller=caller, now=now)
        recorded: Recorded | None = None
        for idx, outcome in enumerate(outcomes or [done()] * len(urls)):
            recorded = await self.record(job.id, idx, outcome, now=now)
        last = present(recorded, "the record of a running target returns None")
        return present(last.job, "the last target does not end its job")

    async def stop(
        self,
        job_id: str,
        event: JobEvent = JobEvent.CANCEL,
        *,
        caller: str | None = None,
        now: int = T0,
        in_flight: bool = False,
        error: str = "",
    ) -> Job | None:
        """End a job from outside, by default by a cancel with nothing in flight."""
        return await self.store.stop(
            OWNER, job_id, event, caller=caller, now=now, in_flight=in_flight, error=error
        )

    async def stopped(
        self,
        job_id: str,
        event: JobEvent = JobEvent.CANCEL,
        *,
        now: int = T0,
        in_flight: bool = False,
        error: str = "",
    ) -> Job:
        """End a live job from outside and return it."""
        job = await self.stop(job_id, event, now=now, in_flight=in_flight, error=error)
        return present(job, "a live job can't be stopped")

    async def job(self, job_id: str, *, caller: str | None = None, now: int = T0) -> Job | None:
        """Read a job."""
        return await self.store.job(job_id, caller=caller, now=now, ttl=TTL)

    async def there(self, job_id: str, *, now: int = T0) -> Job:
        """Read a job that must be there."""
        job = await self.job(job_id, now=now)
        return present(job, "a job that should be there can't be read")

    async def status(
        self, job_id: str, *, results: bool = True, start: int = 0, stop: int | None = None
    ) -> JobStatus:
        """Read a job that must be there, with its targets."""
        status = await self.store.status(
            job_id, caller=None, now=T0, ttl=inf, results=results, start=start, stop=stop
        )
        return present(status, "the status of a job that should be there can't be read")

    async def targets(self, job_id: str) -> tuple[TargetStatus, ...]:
        """Read the targets of a job that must be there."""
        return (await self.status(job_id)).targets

    async def states(self, job_id: str) -> list[str]:
        """Read the states of a job's targets."""
        return [target.status.value for target in await self.targets(job_id)]

    async def jobs(
        self,
        *,
        caller: str | None = None,
        status: JobState | None = None,
        before: str | None = None,
        limit: int = 100,
        now: int = T0,
    ) -> list[str] | None:
        """List jobs by id."""
        found = await self.store.jobs(
            caller=caller, status=status, before=before, limit=limit, now=now, ttl=TTL
        )
        return None if found is None else [job.id for job in found]

    async def everything(self) -> list[JobStatus]:
        """Read all there is, lapsed or not: equal before and after means that nothing changed."""
        found = await self.store.jobs(caller=None, status=None, before=None, limit=10**6, now=T0, ttl=inf)
        return [await self.status(job.id) for job in found or ()]
