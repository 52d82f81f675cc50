"""Does every reader get what the model says, whatever is done in whatever order?

A Hypothesis state machine: its rules do one thing to the engine (on a real store in a real file) and the
same thing to the model, and after each of them every reader's answer must equal the model's. Two fleet
callers and one restricted. Nothing happens between two rules. How it is run is in `machine_run`, how it is
shown to see faults in `test_machine`.
"""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio
from deterministic import deterministic
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from machine_checks import Checked
from machine_host import Host
from machine_model import Model
from machine_shelf import Facts
from machine_views import engine_job, engine_target, model_job, model_target
from machine_words import ANSWERS, BUSY, CALLERS, CONFIG, SERIES_OF_TARGETS, rules
from machine_world import Follower, World

from sift_batch import (
    CallerBusyError,
    JobsBusyError,
    JobState,
    NoTargetsError,
    Options,
    Result,
    RetryLater,
    Store,
    Submission,
    SubmitError,
    Target,
    TooManyTargetsError,
)

START = 1_700_000_000.5
A_SWEEP = CONFIG.sweep_every + 1

ANY = st.integers(0, 15)
"""Which of what there is, the newest first: taken modulo how many there are."""
WHO = st.integers(0, len(CALLERS) - 1)
SERIES = st.sampled_from(SERIES_OF_TARGETS)
AS = st.sampled_from(["own", "own", "any", "other"])
"""Who asks for a job: the caller whose it is, no caller in particular, or another one."""
DEEDS = ("touch", "resubmit", "rerun", "delete", "read")
AGES = st.sampled_from([None, None, None, 0, 100.0, 600.0])


def targets_of(series: tuple[Any, ...]) -> list[Target]:
    """Return a series of the model's as the engine takes it."""
    return [Target(url, Options(**dict(options))) for url, options in series]


class Machine(Checked):
    """The engine against the model. A test that plants a fault gives the engine another store or config."""

    wrap: Callable[[Store], Any] = staticmethod(lambda store: store)
    config = CONFIG

    def __init__(self) -> None:
        super().__init__()
        settings = rules()  # it asks the engine, in a run of its own: before ours begins
        self._held = contextlib.ExitStack()
        folder = self._held.enter_context(tempfile.TemporaryDirectory())
        self._held.enter_context(deterministic(0))
        self.host = Host()
        self._held.callback(self.host.close)
        self.world = World(Path(folder) / "jobs.sift", self.config, START)
        self.world.wrap = self.wrap
        self.model = Model(settings, START, self.host.time)
        # Every id there ever was, and what was submitted by whom.
        self.ids: list[str] = []
        self.submitted: list[tuple[int, tuple[Any, ...]]] = []
        self.seen = {}
        self.host.call(self.world.open, self.host.nursery)

    def teardown(self) -> None:
        """End the run, and leave nothing behind."""
        self._held.close()

    # ---- steps

    def _do(self, work: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Do one thing to the engine, at the model's moment."""
        self.model.t = self.host.time

        async def call() -> Any:
            return await work(*args, **named)

        return self.host.call(call)

    def _tell(self, work: Callable[[], object]) -> None:
        async def call() -> None:
            work()

        self._do(call)

    def _id(self, which: int) -> str:
        return self.ids[-1 - which % len(self.ids)]

    def _as(self, relation: str, job_id: str) -> str | None:
        job = self.model.jobs.get(job_id) or self.model.removed[job_id][0]
        others = [caller.name for caller in CALLERS if caller.name != job.caller]
        return {"own": job.caller, "any": None, "other": others[0]}[relation]

    def _make_sure(self) -> None:
        while self.model.unsure:
            self._pass(A_SWEEP)

    def _pass(self, seconds: float) -> None:
        self._do(trio.sleep, seconds)
        self.model.advance(seconds)

    # ---- new jobs

    @initialize(first=SERIES, second=SERIES, who=WHO)
    def begin(self, first: tuple[Any, ...], second: tuple[Any, ...], who: int) -> None:
        """Submit twice, so that there is something to play with."""
        self._submit(0, first, None)
        self._submit(who, second, None)

    @rule(who=WHO, series=SERIES, max_age=AGES)
    def submit(self, who: int, series: tuple[Any, ...], max_age: float | None) -> None:
        """Submit one of a few series."""
        self._submit(who, series, max_age)

    @rule(who=WHO)
    def crowd(self, who: int) -> None:
        """Let one caller submit as much as it may, and once more."""
        for series in SERIES_OF_TARGETS[:3]:
            self._submit(who, series, None)

    @precondition(lambda self: self.ids)
    @rule(which=ANY, max_age=AGES)
    def resubmit(self, which: int, max_age: float | None) -> None:
        """Submit what its caller submitted before."""
        who, series = self.submitted[-1 - which % len(self.submitted)]
        self._submit(who, series, max_age)

    def _submit(self, who: int, series: tuple[Any, ...], max_age: float | None) -> None:
        caller = CALLERS[who]
        answer, job_id = self._arrive(
            lambda: self.world.runner.submit(caller, targets_of(series), max_age=max_age)
        )
        expected = self.model.submit(caller.name, series, max_age)
        if expected == ("create", ""):
            assert answer == "create"
            self.ids.append(job_id)
            self.submitted.append((who, series))
            self.model.create(job_id, caller.name, caller.caller_class == "restricted", series)
        else:
            assert (answer, job_id) == expected
        self._make_sure()

    def _arrive(self, ask: Callable[[], Any]) -> tuple[str, str]:
        refusals: dict[type[Exception], str] = {
            NoTargetsError: "no_targets",
            TooManyTargetsError: "too_many",
            JobsBusyError: "jobs_busy",
            SubmitError: "unsettled",
            LookupError: "unknown",
        }
        try:
            given: Submission = self._do(ask)
        except CallerBusyError as exc:
            return "caller_busy", exc.job_id
        except (SubmitError, LookupError) as exc:
            return refusals[type(exc)], ""
        return "reused" if given.reused else "create", given.id

    @precondition(lambda self: self.ids)
    @rule(which=ANY, asked=AS)
    def rerun(self, which: int, asked: str) -> None:
        """Run a job again."""
        source = self._id(which)
        name = self._as(asked, source)
        caller = next(caller for caller in CALLERS if caller.name == name or name is None)
        answer = self._arrive(lambda: self.world.runner.rerun(caller, source))
        expected = self.model.rerun(caller.name, source)
        if expected == ("create", ""):
            assert answer[0] == "create"
            self.ids.append(answer[1])
            self.model.create_again(answer[1], source)
        else:
            assert answer == expected
        self._make_sure()

    # ---- what fetches give

    def _finish(self, which: int, answer: Callable[[], Any], facts: Facts) -> None:
        job = self.model.flying[which % len(self.model.flying)]
        self._tell(lambda: self.world.tell((job.id, job.cursor), answer))
        self.model.finish(job, facts)
        self._make_sure()

    @precondition(lambda self: self.model.flying)
    @rule(which=ANY, content=st.sampled_from(["", "x", "y" * 500]))
    def succeed(self, which: int, content: str) -> None:
        """Let a fetch return a small or a large result."""
        self._finish(which, lambda: Result(content), Facts(content))

    @precondition(lambda self: self.model.flying)
    @rule(which=ANY, answer=st.sampled_from(range(len(ANSWERS))))
    def finish(self, which: int, answer: int) -> None:
        """Let a fetch end in any of the other ways."""
        self._finish(which, *ANSWERS[answer])

    @precondition(lambda self: self.model.flying)
    @rule(which=ANY, busy=st.sampled_from(BUSY))
    def come_back_busy(self, which: int, busy: tuple[float | None, bool, str]) -> None:
        """Let a fetch come back busy."""
        job = self.model.flying[which % len(self.model.flying)]
        retry_after, ready, reason = busy
        told = self.world.ready_of(job.id) if ready else None

        def answer() -> Any:
            raise RetryLater(retry_after=retry_after, ready=told, reason=reason)

        self._tell(lambda: self.world.tell((job.id, job.cursor), answer))
        if job.live:
            self.model.busy(job, retry_after, ready, reason)
        else:
            self.model.put_back(job)
        self._make_sure()

    @precondition(lambda self: any(job.ready for job in self.model.waiting))
    @rule(which=ANY)
    def let_ready_return(self, which: int) -> None:
        """Tell a waiting target that another try makes sense."""
        jobs = [job for job in self.model.waiting if job.ready]
        job = jobs[which % len(jobs)]
        self._tell(self.world.ready[job.id].set)
        self.model.told(job)

    # ---- one job

    @precondition(lambda self: self.ids)
    @rule(which=ANY, asked=AS)
    def cancel(self, which: int, asked: str) -> None:
        """Cancel a job."""
        job_id = self._id(which)
        caller = self._as(asked, job_id)
        cancelled = self._do(self.world.runner.cancel, job_id, caller=caller)
        assert cancelled == self.model.cancel(job_id, caller)
        self._make_sure()

    @precondition(lambda self: self.ids)
    @rule(which=ANY, asked=AS)
    def delete(self, which: int, asked: str) -> None:
        """Delete a job."""
        job_id = self._id(which)
        caller = self._as(asked, job_id)
        deleted = self._do(self.world.runner.delete, job_id, caller=caller)
        assert deleted == self.model.delete(job_id, caller)
        self._make_sure()

    @precondition(lambda self: self.ids)
    @rule(which=ANY, asked=AS)
    def touch(self, which: int, asked: str) -> None:
        """Touch a job."""
        job_id = self._id(which)
        caller = self._as(asked, job_id)
        self._do(self.world.runner.touch, job_id, caller=caller)
        self.model.touch(job_id, caller)

    @precondition(lambda self: self.ids)
    @rule(which=ANY, asked=AS, start=st.integers(0, 3), stop=st.none() | st.integers(0, 4))
    def read(self, which: int, asked: str, start: int, stop: int | None) -> None:
        """Read one job as its caller or somebody else, from the runner and beside it; ask why it is gone."""
        job_id = self._id(which)
        caller = self._as(asked, job_id)
        expected = self.model.find(job_id, caller)
        for side in (self.world.runner, self.world.reader):
            job = self._do(side.job, job_id, caller=caller)
            status = self._do(side.status, job_id, start=start, stop=stop, caller=caller)
            if expected is None:
                assert job is None
                assert status is None
                continue
            assert engine_job(job) == engine_job(status.job) == model_job(expected)
            assert [engine_target(target) for target in status.targets] == [
                model_target(idx, target) for idx, target in enumerate(expected.targets)
            ][start:stop]
        for name in ("alice", "bob", "secretive", "nobody"):
            assert self._do(self.world.runner.gone, job_id, caller=name) == self.model.gone(job_id, name)

    @precondition(lambda self: self.ids)
    @rule(
        caller=st.sampled_from([None, *(caller.name for caller in CALLERS)]),
        status=st.none() | st.none() | st.sampled_from(list(JobState)),
        before=st.none() | ANY,
        limit=st.integers(1, 5),
        beside=st.booleans(),
    )
    def list_jobs(
        self, caller: str | None, status: JobState | None, before: int | None, limit: int, beside: bool
    ) -> None:
        """List jobs with all that a list may be narrowed by."""
        side: Any = self.world.reader if beside else self.world.runner
        before_id = None if before is None else self._id(before)
        expected = self.model.listed(caller, None if status is None else status.value)
        if before_id is not None:
            older = list(self.model.jobs)
            if self.model.find(before_id, caller) is None:
                with contextlib.suppress(LookupError):
                    self._do(side.jobs, caller, status=status, before=before_id, limit=limit)
                    raise AssertionError("a list that begins nowhere")
                return
            older = older[: older.index(before_id)]
            expected = [job for job in expected if job.id in older]
        given = self._do(side.jobs, caller, status=status, before=before_id, limit=limit)
        assert [engine_job(job) for job in given] == [model_job(job) for job in expected[:limit]]

    @precondition(lambda self: self.ids)
    @rule(which=ANY, asked=AS, kind=st.sampled_from(["wait", "results", "watch"]))
    def follow(self, which: int, asked: str, kind: str) -> None:
        """Let somebody read along from here on."""
        job_id = self._id(which)
        caller = self._as(asked, job_id)
        known = self.model.find(job_id, caller) is not None
        follower = Follower(kind, job_id, caller, known)
        self._tell(lambda: self.host.nursery.start_soon(self.world.follow, follower))

    # ---- clocks and lives

    @rule(seconds=st.sampled_from([A_SWEEP, 2 * A_SWEEP - 1, 3 * A_SWEEP - 2, 6 * A_SWEEP - 5]))
    def let_time_pass(self, seconds: float) -> None:
        """Let Trio's clock go on."""
        self._pass(seconds)
        self._make_sure()

    @rule(seconds=st.sampled_from([-3_000, -1_001, -500, -1, 0.5, 1, 500, 999, 1_001, 3_000]))
    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, forth or back."""
        self.world.wall += seconds
        self.model.wall += seconds

    @precondition(lambda self: any(job.settled for job in self.model.jobs.values()))
    @rule(which=ANY, over=st.sampled_from([-1, 0, 1, 1]), deed=st.sampled_from(DEEDS))
    def age(self, which: int, over: int, deed: str) -> None:
        """Let a job come to the very end of its time, and do something with it before it is swept."""
        settled = [job for job in self.model.jobs.values() if job.settled]
        job = settled[-1 - which % len(settled)]
        self.jump(job.lease + CONFIG.ttl + over - self.model.now)
        place = len(self.ids) - 1 - self.ids.index(job.id)
        if deed == "resubmit":
            who = next(who for who, caller in enumerate(CALLERS) if caller.name == job.caller)
            self._submit(who, job.key, None)
        elif deed == "read":
            self.read(which=place, asked="own", start=0, stop=None)
        else:
            getattr(self, deed)(which=place, asked="own")

    @rule(finish=st.booleans(), away=st.sampled_from([0, 0, 700, 1_100, -1_100]))
    def restart(self, finish: bool, away: float) -> None:
        """Close the runner and open another one, maybe later; what is in flight may end in the grace."""
        if self.model.timer_within(2.0):
            return  # what the grace would meet is no question of a restart
        answer, facts = ANSWERS[0]
        self._do(self.world.close, answer if finish else None)
        self.model.close(facts if finish else None)
        self.world.wall += away
        self.model.wall += away
        self._do(self.world.open, self.host.nursery)
        self.model.reopen()
        self._make_sure()
