"""When nothing moves: does memory agree with the rows, and is everything that should go on on its way?

Trio's loop tells when no task can run before time passes. In that moment there is no "not yet": whoever has
not been woken will not be, a job that nobody works on is forgotten, and a count that is wrong stays wrong.
Here is also where a story's sudden ends strike, between two turns. Next room: `sim_clients.py`.
"""

from typing import Any

import trio
from sim_world import Life, World

_MOMENT = 1e-6


class Pulse(trio.abc.Instrument):
    """Feels every turn of the run loop."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._runner: Any = trio._core._run.GLOBAL_RUN_CONTEXT.runner
        self._turns_here, self._here = 0, 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count down to what is to happen at some turn."""
        for armed in self._world.armed:
            if "turns" in armed:
                armed["turns"] -= 1
                if armed["turns"] < 0:
                    self._world.armed.remove(armed)
                    self._world.end_life(armed["how"], "between two turns", armed["down"])
                    return

    def before_io_wait(self, timeout: float) -> None:
        """Look at everything if nothing moves."""
        world = self._world
        world.watch.count("turns")
        now = trio.current_time()
        if self._here == now:
            self._turns_here += 1
            if self._turns_here == 20_000:
                world.watch.wrong("endless", "20,000 turns of the run loop without any time passing")
                # Or it would never end: whoever turns in circles may be shielded until its grace is over.
                self._runner.clock.jump(3_600)
        else:
            self._turns_here, self._here = 0, now
        if self._runner.runq or self._runner.deadlines.next_deadline() <= now or world.watch.violations:
            return
        world.watch.count("rests")
        try:
            rest(world)
        except Exception as exc:
            # Trio would log it and go on without this instrument.
            world.watch.wrong("simulation", f"looking at a rest failed: {exc!r}")


def rest(world: World) -> None:
    """Check everything that must hold while nothing moves."""
    life = world.life
    # Of a runner that closes nobody comes any more, and of a job that is being ended neither.
    coming = life is not None and not life.ending
    world.gates.rest(life.fetches.loose if life is not None and coming else None)
    if life is None or life.dead or life.runner is None:
        return
    if life.ending and life.runner._closing.begun:
        life.closed_at_rest = True
    if life.store.pending:
        return
    _memory(world, life)
    if not life.closed_at_rest:
        _drains(world, life)
        _upkeep(world, life)
    _waiting(world, life)


def _memory(world: World, life: Life) -> None:
    """Counts in memory, and what the hooks were told, equal the rows."""
    assert life.runner is not None
    ledger, watch = world.ledger, world.watch
    live, nbytes = len(ledger.live), ledger.nbytes
    flying = len(life.fetches.open)
    if not life.runner._closing.over:
        found = life.runner.statistics()
        counts = (found.queued + found.running, found.in_flight, found.stored_bytes)
        if counts != (live, flying, nbytes):
            watch.wrong("memory.counts", f"statistics has {counts} and must have {(live, flying, nbytes)}")
        queued = sum(row.status == "queued" for row in ledger.live)
        if found.queued != queued:
            watch.wrong("memory.queued", f"statistics has {found.queued} queued, there are {queued}")
    if life.runner._roster._coming:
        watch.wrong("memory.coming", "a submit is noted as on its way, and none is")
    # A job that somebody tries to end, again and again, is let go when that is over.
    unsettled = {row.id for row in ledger.jobs.values() if not row.settled}
    unsettled |= {job for (op, job), (_, at) in life.trouble.items() if op == "stop"}
    if not life.closed_at_rest and {job.id for job in life.runner._roster.jobs()} - unsettled:
        watch.wrong("memory.roster", "a job that has settled is still in memory")
    if world.plan.hooks == "none":
        return
    told = (life.hooks.live, life.hooks.flying, life.hooks.nbytes)
    if told != (live, flying, nbytes):
        watch.wrong(
            "hooks.counts", f"hooks were told {told} and must have been told {(live, flying, nbytes)}"
        )
    for row in ledger.jobs.values():
        if not row.live and row.id not in world.told_ended:
            watch.wrong("hooks.ended", f"no hook was told that {watch.label(row.id)} has ended")


def _drains(world: World, life: Life) -> None:
    """Every live job is fetched, waits for something that will come, or stands in line behind such."""
    config, watch, now = world.plan.config, world.watch, trio.current_time()
    waiting = {job for (job, _), known in life.fetches.tries.items() if known.waiting}
    running = {row.id for row in world.ledger.live if row.status == "running"}
    troubled = {job for (op, job), (_, at) in life.trouble.items() if now <= at + 30 + _MOMENT}
    stopping = {job for job, number in life.stops.items() if number}
    drained = 0
    for row in world.ledger.jobs.values():
        if row.settled or row.status == "queued":
            continue
        drained += 1
        name = watch.label(row.id)
        if row.id not in life.fetches.open and row.id not in troubled | stopping:
            if row.live and row.id not in waiting:
                watch.wrong("drain.idle", f"{name} is {row.status}, and nothing happens to it")
            if not row.live:
                watch.wrong("drain.unsettled", f"{name} is {row.status}, not settled, and nobody settles it")
        late = now > life.began.get(row.id, now) + config["job_timeout"] + _MOMENT
        if row.live and late and row.id not in troubled:
            watch.wrong("drain.timeout", f"{name} is running although its time is up")
    life.fetches.late(running)
    # A worker stays with a job for as long as the store refuses to end it from outside.
    unsettled = {row.id for row in world.ledger.jobs.values() if not row.settled}
    drained += sum(
        op == "stop" and job not in unsettled and now <= at + 30 + _MOMENT
        for (op, job), (_, at) in life.trouble.items()
    )
    begins = any(op == "begin" and now <= at + 30 + _MOMENT for (op, _), (_, at) in life.trouble.items())
    queued = [row for row in world.ledger.live if row.status == "queued"]
    if queued and drained < min(config["workers"], config["workers_limit"]) and not begins:
        watch.wrong("drain.worker", f"{watch.label(queued[0].id)} is queued, and a worker has nothing to do")


def _upkeep(world: World, life: Life) -> None:
    """The sweeper looks when it must, and the budget is kept after each job that settles."""
    config, watch, now = world.plan.config, world.watch, trio.current_time()
    if now > life.looked + config["sweep_every"] + _MOMENT and ("lapsed", "") not in life.trouble:
        watch.wrong("upkeep.sweep", f"nobody has looked for lapsed jobs since {life.looked}")
    if not world.over_budget:
        return
    world.over_budget = False
    settled = sum(bool(row.settled) for row in world.ledger.jobs.values())
    refused = any(op in ("lapsed", "sweep", "evict") for op, _ in life.trouble)
    if world.ledger.nbytes > config["max_bytes"] and settled > 1 and not refused:
        watch.wrong("upkeep.budget", f"{world.ledger.nbytes} bytes are stored after a job has settled")


def _waiting(world: World, life: Life) -> None:
    """Nobody waits for what has come, or for what can't come any more."""
    now = trio.current_time()
    troubled = {job for (_, job), (_, at) in life.trouble.items() if now <= at + 30 + _MOMENT}
    stopping = {job for job, number in life.stops.items() if number}
    unsettled = {row.id for row in world.ledger.jobs.values() if not row.settled}
    for wait in world.waiting.values():
        what, job = wait["what"], wait["job"]
        row = world.ledger.jobs.get(job)
        name = f"{wait['who']}'s {what} of {world.watch.label(job)}"
        if wait["life"] is not life:
            if not (wait["life"].dead or wait["life"].store.pending):
                world.watch.wrong("wait.closed", f"{name} goes on, and its runner was left")
            continue
        if what == "drain":
            over = not unsettled
        elif row is None or row.settled:
            over = True
        elif what == "watch":
            over = row.version != wait["seen"]
        elif what == "results":
            left = row.pages[wait["seen"] :]
            over = not left or left[0].status in ("done", "failed")
        else:
            over = False
        if over:
            world.watch.wrong("wait.lost", f"{name} goes on, and what it waits for has come")
        alive = life.fetches.open.keys() | troubled | stopping
        if life.closed_at_rest and not alive & (unsettled if what == "drain" else {job}):
            world.watch.wrong("wait.closing", f"{name} goes on, and the job will not settle here")
