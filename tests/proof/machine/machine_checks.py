"""Does every reader get what the model says? What is compared after each step of the machine.

Nothing is done here to the engine, but for reading. Next: `machine_rules`, the steps.
"""

from typing import Any

from hypothesis.stateful import RuleBasedStateMachine, invariant
from machine_host import Host
from machine_model import Model
from machine_shelf import ModelJob
from machine_views import engine_job, engine_target, model_job, model_target
from machine_world import Follower, World


class Checked(RuleBasedStateMachine):
    """A machine that compares the engine with the model after each step."""

    host: Host
    world: World
    model: Model
    # The version of each job as it was read last, how often it had changed, and what was seen then.
    seen: dict[str, tuple[int, list[int], Any]]

    @invariant()
    def all_agree(self) -> None:
        """After each step everything that can be read is as the model says."""
        self._nothing_was_fetched_that_should_not_be()
        self._readers_get_what_the_model_says()
        self._why_a_live_job_waits()
        self._followers_get_everything_once()

    def _nothing_was_fetched_that_should_not_be(self) -> None:
        """Targets start in order, one a job at a time, again only when busy, never when cancelled."""
        assert sorted(self.world.starts) == sorted(self.model.starts)
        flying = {(job.id, job.cursor): job.number for job in self.model.flying}
        assert {key: call.number for key, call in self.world.calls.items()} == flying

    def _readers_get_what_the_model_says(self) -> None:
        """Jobs, targets, results and totals are the model's."""
        ids = list(self.model.jobs)
        jobs, statuses, totals = self.host.call(self.world.read_all, ids)
        listed = self.model.listed(None)
        assert [engine_job(job) for job in jobs] == [model_job(job) for job in listed]
        for job_id, status in zip(ids, statuses, strict=True):
            expected = self.model.find(job_id, None)
            if expected is None:
                assert status is None
                continue
            assert status is not None
            view = model_job(expected), [model_target(*pair) for pair in enumerate(expected.targets)]
            assert (engine_job(status.job), [engine_target(target) for target in status.targets]) == view
            self._check_version(expected, status.job.version, view)
        live = [job for job in self.model.jobs.values() if job.live]
        queued = sum(job.status == "queued" for job in live)
        assert (totals.queued, totals.running) == (queued, len(live) - queued)
        assert totals.in_flight == len(self.model.flying)
        assert totals.stored_bytes == self.model.nbytes

    def _check_version(self, job: ModelJob, version: int, view: Any) -> None:
        """The version rises by one with each change that a reader can see, and with nothing else."""
        before, changes, seen = self.seen.get(job.id, (version, list(job.changes), view))
        least, most = (now - then for now, then in zip(job.changes, changes, strict=True))
        assert before + least <= version <= before + most
        unleased = [{**found[0], "lease": 0} | {"targets": found[1]} for found in (seen, view)]
        assert (version == before) == (unleased[0] == unleased[1])
        self.seen[job.id] = version, list(job.changes), view

    def _why_a_live_job_waits(self) -> None:
        """`progress` names the reason of the wait."""
        for job in self.model.jobs.values():
            progress = self.world.runner.progress(job.id)
            if not job.live:
                assert progress is None
                continue
            reason = "queue" if job.status == "queued" else job.reason if job.phase == "busy" else ""
            assert progress is not None
            assert progress.reason == reason

    def _followers_get_everything_once(self) -> None:
        """Who follows a job has what is finished of it, in order, and its end only with the job's."""
        for follower in list(self.world.followers):
            self._check_follower(follower)
            if follower.end is not None:
                self.world.followers.remove(follower)

    def _check_follower(self, follower: Follower) -> None:
        if not follower.known:
            assert (follower.got, follower.end) == ([], "")
            return
        gone = follower.job_id in self.model.removed
        job = self.model.removed[follower.job_id][0] if gone else self.model.jobs[follower.job_id]
        if follower.end == "ClosedResourceError":
            assert job.cut_short
        elif follower.end == "LookupError":
            # Settled and evicted at once: told of the loss, never of a short stream.
            assert gone
            assert follower.kind != "wait"
            return
        else:
            assert (follower.end == "") == job.settled
        if follower.kind == "results":
            expected = []
            for idx, target in enumerate(job.targets):
                if target.finished:
                    expected.append(model_target(idx, target))
                elif not job.settled or follower.end:
                    break
            assert [engine_target(target) for target in follower.got] == expected
        elif follower.kind == "watch":
            versions = [status.job.version for status in follower.got]
            assert versions == sorted(set(versions))
            if not follower.end:
                assert engine_job(follower.got[-1].job) | {"lease": 0} == model_job(job) | {"lease": 0}
        elif follower.end == "":
            (given,) = follower.got
            assert engine_job(given) | {"lease": 0} == model_job(job) | {"lease": 0}
