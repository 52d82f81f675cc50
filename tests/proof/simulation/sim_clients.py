"""What do the callers do, and is what they are told true?

Each action of the plan is a task of its own. It asks the runner of the present life, and compares the answer
with the model: what was acknowledged is there, what is read is one's own, a stream gives each change in
order and ends with the end. Callers leave when they have had enough. Next room: `sim_run.py`.
"""

import math
from typing import Any, Final

import trio
from history import digest_of
from sim_around import Surroundings, leave
from sim_plan import Action, Facts
from sim_story import RESTRICTED
from sim_world import Life, World

from sift_batch import (
    Caller,
    CallerClass,
    Options,
    Runner,
    StoreError,
    SubmitError,
    Target,
)

_CLOSED: Final = (trio.ClosedResourceError,)
_REFUSED: Final = (SubmitError, StoreError, LookupError)
_METHODS: Final = {"job": "_job_read", "watch": "_watch_job"}
_QUIET: Final = ("slot", "hold", "jump", "end")


def caller_of(name: str) -> Caller:
    """Return the caller of this name."""
    kind = CallerClass.RESTRICTED if name == RESTRICTED else CallerClass.FLEET
    return Caller(name, workspace="w", key_sha256="k", caller_class=kind)


class Clients:
    """Everybody outside the runner."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._watch = world.watch
        self._around = Surroundings(world)
        self._lives: dict[Runner, Life] = {}
        self._asked: dict[int, Life] = {}

    async def act(self, action: Action) -> None:
        """Do one action when its time has come."""
        await trio.sleep_until(action.at)
        if action.what in _QUIET:
            await self._around.act(action)
            return
        world = self._world
        await world.opened.wait()
        while (life := world.life) is None or life.runner is None or not world.opened.is_set():
            await world.opened.wait()
        with trio.CancelScope() as scope:
            life.scopes.add(scope)
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(leave, action, scope)
                    await self._call(action, life, life.runner)
                    nursery.cancel_scope.cancel()
            finally:
                life.scopes.discard(scope)

    async def _call(self, action: Action, life: Life, runner: Runner) -> None:
        world, history = self._world, self._world.history
        self._lives[runner] = self._asked[action.id] = life
        args = self._history_args(action)
        call = history.invoke(action.who, action.what, **args) if args is not None else None
        self._watch.count("actions")
        said = f"{action.what} {self._named(action)}".strip()
        self._watch.say(action.who, f"{said} …")
        try:
            told = await getattr(self, _METHODS.get(action.what, f"_{action.what}"))(action, runner)
        except _REFUSED as exc:
            if life.dead and call is not None:
                history.unknown(call)
            elif call is not None:
                history.fail(call, type(exc).__name__)
            self._watch.say(action.who, f"{said}: {type(exc).__name__}")
            return
        except _CLOSED:
            if call is not None:
                # A stream or a wait is cut short; every other call has done nothing.
                history.fail(call, "closed")
            self._closed(action, life)
            self._watch.say(action.who, f"{said}: closed")
            return
        except BaseException:
            if call is not None:
                history.unknown(call)
            self._watch.say(action.who, f"{said}: left")
            raise
        finally:
            world.waiting.pop(action.id, None)
        if call is not None and life.dead:
            history.unknown(call)
        elif call is not None:
            history.ok(call, **told)
        self._watch.say(action.who, f"{said}: {self._short(told)}")

    def _closed(self, action: Action, life: Life) -> None:
        if not (life.ending or life.dead or not life.open):
            self._watch.wrong("call.closed", f"{action.who}'s {action.what} says closed, and nothing closes")

    def _history_args(self, action: Action) -> Facts | None:
        if action.what in ("watch", "results", "drain", "check", "progress", "edge"):
            return None
        args: Facts = {"caller": None if action.args.get("anybody") else action.who}
        if action.what == "submit":
            restricted = action.who == RESTRICTED
            return args | {
                "caller": action.who,
                "restricted": restricted,
                # With other options it is another target.
                "targets": [url + action.args.get("mode", "") for url in action.args["targets"]],
                "max_age": action.args.get("max_age"),
            }
        if action.what in ("rerun", "gone"):
            args["caller"] = action.who
        return args if action.what == "jobs" else args | {"job": self._job(action)}

    def _job(self, action: Action) -> str:
        return self._world.jobs.get(int(action.args["job"]), "nowhere")

    def _named(self, action: Action) -> str:
        if "job" in action.args:
            job = self._job(action)
            return self._watch.label(job) if job != "nowhere" else "an unknown job"
        return " ".join(action.args["targets"]) if "targets" in action.args else ""

    def _short(self, told: Facts) -> str:
        shown = {name: self._watch.label(value) if name == "job" else value for name, value in told.items()}
        return " ".join(f"{name}={value}" for name, value in shown.items() if name not in ("targets", "ids"))

    def _caller(self, action: Action) -> str | None:
        return None if action.args.get("anybody") else action.who

    def _wrong(self, action: Action, text: str) -> None:
        # What a killed process has read is not compared with what came after it.
        if not self._asked[action.id].dead:
            self._watch.wrong(f"told.{action.what}", f"{action.who}'s {action.what} {text}")

    # ---- new jobs

    async def _submit(self, action: Action, runner: Runner) -> Facts:
        options = Options(mode=action.args.get("mode", ""))
        series = [Target(url, options) for url in action.args["targets"]]
        max_age = action.args.get("max_age")
        known = set(self._world.ledger.jobs)
        told = await runner.submit(caller_of(action.who), series, max_age=max_age)
        self._acknowledged(action, told.id, [target.url for target in series])
        if told.reused != (told.id in known) and told.reused and told.id not in self._world.ledger.jobs:
            self._wrong(action, "was given a job that is not there")
        return {"job": told.id, "reused": told.reused}

    async def _rerun(self, action: Action, runner: Runner) -> Facts:
        told = await runner.rerun(caller_of(action.who), self._job(action))
        row = self._world.ledger.jobs.get(told.id)
        self._acknowledged(action, told.id, None if row is None else [page.url for page in row.pages])
        facts: Facts = {"job": told.id}
        if row is not None:
            facts["total"] = len(row.pages)
            facts["carried"] = [idx for idx, page in enumerate(row.pages) if page.status == "done"]
        return facts

    def _acknowledged(self, action: Action, job_id: str, urls: list[str] | None) -> None:
        world = self._world
        world.jobs[action.id] = job_id
        row = world.ledger.jobs.get(job_id)
        if row is None:
            # Removed since, by a sweep, a delete or the budget; of restricted callers nothing is kept.
            if job_id not in world.ledger.gone and action.who != RESTRICTED:
                self._wrong(action, "was acknowledged, and the job is not there")
        elif [page.url for page in row.pages] != urls or row.caller != action.who:
            self._wrong(action, "was acknowledged, and the job is another one")

    # ---- one job

    async def _cancel(self, action: Action, runner: Runner) -> Facts:
        job = self._job(action)
        told = await runner.cancel(job, caller=self._caller(action))
        row = self._world.ledger.jobs.get(job)
        if told and row is not None and row.status != "cancelled":
            self._wrong(action, f"was acknowledged, and the job is {row.status}")
        return {"result": told}

    async def _delete(self, action: Action, runner: Runner) -> Facts:
        told = await runner.delete(self._job(action), caller=self._caller(action))
        if told and self._job(action) in self._world.ledger.jobs:
            self._wrong(action, "was acknowledged, and the job is there")
        return {"result": told}

    async def _touch(self, action: Action, runner: Runner) -> Facts:
        await runner.touch(self._job(action), caller=self._caller(action))
        return {}

    async def _status(self, action: Action, runner: Runner) -> Facts:
        told = await runner.status(self._job(action), caller=self._caller(action))
        if told is None:
            return {"found": False}
        self._own(action, told.job)
        targets = [
            [t.idx, t.status.value, None if t.result is None else digest_of(t.result.content), t.code]
            for t in told.targets
        ]
        return _facts(told.job) | {"targets": targets}

    async def _job_read(self, action: Action, runner: Runner) -> Facts:
        told = await runner.job(self._job(action), caller=self._caller(action))
        if told is None:
            return {"found": False}
        self._own(action, told)
        return _facts(told)

    async def _edge(self, action: Action, runner: Runner) -> Facts:
        """Read a job in the last second in which it can be read, or in the first in which it can't."""
        job, ttl = self._job(action), self._world.plan.config["ttl"]
        told = await runner.job(job, caller=self._caller(action))
        if told is None or not told.settled:
            return {}
        left = math.floor(told.lease + ttl) + action.args["late"] - self._world.wall()
        if not 0 < left <= self._world.plan.length:
            return {}
        await trio.sleep(left)
        again = await runner.job(job, caller=self._caller(action))
        return {"left": left, "found": again is not None}

    async def _jobs(self, action: Action, runner: Runner) -> Facts:
        told = await runner.jobs(self._caller(action))
        for job in told:
            self._own(action, job)
        return {"ids": [job.id for job in told]}

    def _own(self, action: Action, job: Any) -> None:
        if self._caller(action) not in (None, job.caller):
            self._wrong(action, f"shows a job of {job.caller}")

    async def _gone(self, action: Action, runner: Runner) -> Facts:
        return {"reason": await runner.gone(self._job(action), caller=action.who)}

    async def _check(self, action: Action, runner: Runner) -> Facts:
        await runner.check()
        return {}

    async def _progress(self, action: Action, runner: Runner) -> Facts:
        told = runner.progress(self._job(action), caller=self._caller(action))
        return {} if told is None else {"reason": told.reason}

    # ---- waiting

    def _waits(self, action: Action, runner: Runner, seen: int = 0) -> None:
        job = self._job(action) if "job" in action.args else ""
        facts = {
            "who": action.who,
            "what": action.what,
            "job": job,
            "life": self._lives[runner],
            "seen": seen,
        }
        self._world.waiting[action.id] = facts

    async def _wait(self, action: Action, runner: Runner) -> Facts:
        self._waits(action, runner)
        told = await runner.wait(self._job(action), caller=self._caller(action))
        if told is None:
            return {"found": False}
        self._own(action, told)
        if not told.settled:
            self._wrong(action, "returned before the job had settled")
        return {"found": True, "state": told.status.value, "settled": told.settled}

    async def _drain(self, action: Action, runner: Runner) -> Facts:
        self._waits(action, runner)
        await runner.drain()
        return {}

    async def _watch_job(self, action: Action, runner: Runner) -> Facts:
        versions: list[int] = []
        settled = broken = False
        async with runner.watch(self._job(action), caller=self._caller(action)) as statuses:
            self._waits(action, runner, -1)
            async for status in statuses:
                self._world.waiting.pop(action.id, None)
                self._own(action, status.job)
                if settled or (versions and status.job.version <= versions[-1]):
                    self._wrong(action, f"gives version {status.job.version} after {versions}")
                versions.append(status.job.version)
                settled = status.job.settled
                if len(versions) == action.args["break_after"]:
                    broken = True
                    break
                await trio.sleep(action.args["slow"])
                self._waits(action, runner, versions[-1])
        if versions and not settled and not broken:
            self._wrong(action, "ended before the job had settled")
        return {"versions": len(versions)}

    async def _results(self, action: Action, runner: Runner) -> Facts:
        given: list[int] = []
        broken = False
        job, start = self._job(action), action.args["start"]
        self._waits(action, runner, start)
        async with runner.results(job, start=start, caller=self._caller(action)) as targets:
            async for target in targets:
                self._world.waiting.pop(action.id, None)
                if target.idx < start or (given and target.idx <= given[-1]):
                    self._wrong(action, f"gives target {target.idx} after {given}")
                given.append(target.idx)
                row = self._world.ledger.jobs.get(job)
                if row is not None and row.pages[target.idx].status != target.status.value:
                    self._wrong(action, f"gives target {target.idx} as {target.status.value}")
                if len(given) == action.args["break_after"]:
                    broken = True
                    break
                await trio.sleep(action.args["slow"])
                self._waits(action, runner, given[-1] + 1)
        row = self._world.ledger.jobs.get(job)
        if row is not None and not broken and given:
            wanted = [
                n for n, page in enumerate(row.pages) if n >= start and page.status in ("done", "failed")
            ]
            if given != wanted:
                self._wrong(action, f"has given {given} and must have given {wanted}")
        return {"given": len(given)}


def _facts(job: Any) -> Facts:
    return {
        "found": True, "state": job.status.value, "settled": job.settled, "version": job.version,
        "total": job.targets_total, "done": job.targets_done, "failed": job.targets_failed,
        "lease": job.lease,
    }  # fmt: skip
