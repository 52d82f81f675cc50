"""What is there besides the runner: the rows, the model of them, the clock, the gate, one life after another.

A *life* is one runner on the store. It ends in an orderly way, by a cancelled scope, by an error in the
block, or by a kill: then the rows are copied as they are at that moment, the next life begins on the copy,
and nobody looks any more at what the old tasks still do to the old rows. Next room: `sim_rest.py`.
"""

import json
import sqlite3
from dataclasses import dataclass, field
from typing import Any, Final

import trio
from history import History
from sim_compare import READS
from sim_gate import GateWatch
from sim_hosts import Fetches, Key
from sim_model import Ledger, Row
from sim_plan import Facts, Plan
from sim_store import SimStore
from sim_watch import Watch

from sift_batch import Gate, Hooks, Job, Runner
from sift_batch.testing import WallClock

_MOMENT: Final = 1e-6
# The steps that may settle a job.
_SETTLE: Final = frozenset({"record", "settle", "stop", "rerun"})


class SimHooks(Hooks):
    """Hooks that keep what the rows must agree with, and may raise afterwards."""

    def __init__(self, world: "World", raising: bool) -> None:
        self._world = world
        self._raising = raising
        # Its process was killed: what it is told counts no more.
        self.dead = False
        self.live: int | None = None
        self.flying: int | None = None
        self.nbytes: int | None = None

    def _over(self) -> None:
        if self._raising:
            raise RuntimeError("a hook that raises")

    def depth(self, live: int) -> None:
        """Keep how many are live."""
        self.live = live
        self._over()

    def in_flight(self, n: int) -> None:
        """Keep how many are being fetched."""
        self.flying = n
        self._over()

    def stored(self, nbytes: int) -> None:
        """Keep how much is stored."""
        self.nbytes = nbytes
        self._over()

    def ended(self, job: Job) -> None:
        """Hear of an end: there is one for each job."""
        world = self._world
        if not self.dead:
            if job.id in world.told_ended:
                world.watch.wrong("hooks.ended", f"{world.watch.label(job.id)} has ended twice")
            world.told_ended.add(job.id)
        self._over()


@dataclass(slots=True, eq=False)
class Life:
    """One runner. `ending`: it was told to end; `closed_at_rest`: and everything has stood still since."""

    number: int
    store: SimStore
    fetches: Fetches
    gates: GateWatch
    hooks: SimHooks
    around: trio.CancelScope = field(default_factory=trio.CancelScope)
    end: trio.Event = field(default_factory=trio.Event)
    how: str = ""
    # For how long nothing is opened after it.
    down: float = 0.0
    runner: Runner | None = None
    open: bool = False
    ending: bool = False
    closed_at_rest: bool = False
    dead: bool = False
    # What of this life ends with it: scopes of calls that are under way.
    scopes: set[trio.CancelScope] = field(default_factory=set)
    began: dict[str, float] = field(default_factory=dict)
    # Steps that the store refused: how often in a row, and when last.
    trouble: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    looked: float = 0.0
    stops: dict[str, int] = field(default_factory=dict)


class World:
    """Everything, and the one who is told of each step of the store."""

    def __init__(self, plan: Plan, watch: Watch) -> None:
        self.plan = plan
        self.watch = watch
        self.clock = WallClock(plan.wall)
        self.history = History(clock=trio.current_time)
        self.ledger = Ledger(plan.config["ttl"])
        self.life: Life | None = None
        self.opened = trio.Event()
        self.copy: sqlite3.Connection | None = None
        self.calm = False
        # Jobs whose end was told to the hooks, or can't be told any more.
        self.told_ended: set[str] = set()
        # How often each page was asked for.
        self.visits: dict[str, int] = {}
        self.gates = self.new_gate()
        # Jobs by the action that submitted them; whoever waits, by what; and how a life is to end soon.
        self.jobs: dict[int, str] = {}
        self.waiting: dict[int, Facts] = {}
        self.armed: list[Facts] = []
        self.over_budget = False

    def new_gate(self) -> GateWatch:
        """Return a gate as the plan says, watched."""
        return GateWatch(Gate(**self.plan.gate), self.watch, **self.plan.gate)

    def wall(self) -> float:
        """Return the wall clock."""
        return self.clock()

    # ---- told by the store

    def refusal_of(self, op: str) -> str | None:
        """Return how the store must refuse this operation now, if it must."""
        if self.calm or op == "release":
            return None
        now = trio.current_time()
        for refusal in self.plan.refusals:
            ops = refusal["ops"]
            meant = ops in ("all", op) or (ops == "reads" if op in READS else ops == "writes")
            if meant and refusal["from"] <= now < refusal["until"]:
                share = refusal["share"]
                if share >= 1 or self.watch.counts.get("refusable", 0) % 2:
                    self.watch.count("refusable")
                    return str(refusal["error"])
                self.watch.count("refusable")
        return None

    def asked(self, store: SimStore, op: str, values: tuple[Any, ...]) -> None:
        """Hear that a step is asked for: one that was refused comes again when it must."""
        life = self.life
        if life is None or life.dead or life.store is not store or len(values) < 2:
            return
        job = str(values[1])
        if op == "stop":
            life.fetches.loose.add(job)
            life.stops[job] = life.stops.get(job, 0) + 1
        known = life.trouble.get((op, job))
        if known is not None and op in ("record", "settle"):
            times, at = known
            due = at + min(2.0 ** (times - 1), 30.0)
            if abs(trio.current_time() - due) > _MOMENT:
                text = f"{op} of {self.watch.label(job)} was refused at {at} and offered again"
                self.watch.wrong("offer.time", f"{text} at {trio.current_time()}, not at {due}")

    def answered(
        self, store: SimStore, op: str, values: tuple[Any, ...], answer: Any, error: BaseException | None
    ) -> None:
        """Hear that an operation is over for whoever asked."""
        life = self.life
        if life is None or life.dead or life.store is not store:
            return
        job = str(values[1]) if len(values) > 1 else ""
        if op == "stop":
            life.stops[job] -= 1
        if op in ("lapsed", "sweep", "evict", "erase"):
            life.looked = trio.current_time()
        if op == "begin" and answer is not None:
            # Its time counts from here: the runner has not heard of it before.
            life.began[answer.job.id] = trio.current_time()
        if error is None:
            if op != "begin":  # another worker may still wait to ask again
                life.trouble.pop((op, job), None)
        elif not isinstance(error, trio.Cancelled):
            times, _ = life.trouble.get((op, job), (0, 0.0))
            life.trouble[op, job] = (times + 1, trio.current_time())

    def stepping(self, op: str, before: bool) -> None:
        """Hear that a step is about to be done, or was done and is not answered yet. May kill."""
        for armed in self.armed:
            if "steps" in armed and armed["before"] == before and op not in READS:
                armed["steps"] -= 1
                if armed["steps"] < 0:
                    self.armed.remove(armed)
                    self.end_life(armed["how"], f"{'before' if before else 'after'} {op}", armed["down"])
                    return

    def stepped(self, op: str, row: Row | None, answer: Any, asked: Facts) -> None:
        """Hear what a step came to."""
        life = self.life
        assert life is not None
        values = asked["values"]
        if op == "evict":
            self.over_budget = False
        if row is not None:
            state = f"{row.status}{' settled' if row.settled else ''} {row.targets_done}/{len(row.pages)}"
            self.watch.say("store", f"{op} {self.watch.label(row.id)}: {state} v{row.version}")
            if op == "record":
                self._check_verdict(life, row, values[2], values[3])
            if row.settled:
                life.fetches.forget(row.id)
                life.trouble = {
                    key: value for key, value in life.trouble.items() if key[1] != row.id or key[0] == "stop"
                }
                if op in _SETTLE:
                    self.over_budget = self.ledger.nbytes > self.plan.config["max_bytes"]
        elif op == "acquire":
            self.watch.say("store", f"acquire: {len(answer.failed)} failed by the restart")

    def _check_verdict(self, life: Life, row: Row, idx: int, outcome: Any) -> None:
        kind, content = life.fetches.verdicts.pop((row.id, idx), ("nothing", None))
        wanted = "done" if kind == "done" else "failed"
        name = f"target {idx} of {self.watch.label(row.id)}"
        if outcome.status.value != wanted or kind == "nothing":
            self.watch.wrong("record.verdict", f"{name} is {outcome.status.value}, and its fetch was {kind}")
        if (
            kind in ("timeout", "too busy")
            and outcome.code != {"timeout": "timeout", "too busy": "busy"}[kind]
        ):
            self.watch.wrong("record.code", f"{name} has the code {outcome.code!r}, and its fetch was {kind}")
        if content is not None:
            stored = json.loads(outcome.result)
            if stored["content"] != content:
                self.watch.wrong("record.result", f"{name} has another result than its fetch gave")

    # ---- told by the fetches

    def may_fetch(self, key: Key) -> str:
        """Return why this target must not be fetched now, or nothing."""
        job, idx = key
        row, life = self.ledger.jobs.get(job), self.life
        if row is None or life is None:
            return "there is no such job"
        if life.closed_at_rest:
            return "the runner has begun to close"
        if row.status != "running":
            return f"the job is {row.status}"
        if row.pages[idx].status != "running":
            return f"the target is {row.pages[idx].status}"
        if any(page.status in ("pending", "running") for page in row.pages[:idx]):
            return "an earlier one is not stored"
        limit = life.began[job] + self.plan.config["job_timeout"]
        if trio.current_time() > limit + _MOMENT:
            return "the job's time is up"
        return ""

    # ---- the end of a life

    def end_life(self, how: str, why: str, down: float = 0.0) -> None:
        """End the present life, if it is not about to end already. Plain code: it may be called anywhere."""
        life = self.life
        if life is None or life.ending or not life.open:
            return
        if how == "kill" and life.store.busy:
            # The rows are ahead of the model for this turn: the next one will do as well.
            self.armed.append({"how": how, "turns": 0, "down": down})
            return
        self.watch.say("world", f"{how} {why}".strip())
        self.watch.count("restarts")
        life.ending, life.how, life.down = True, how, down
        if how == "kill":
            self._kill(life)
        elif how == "cancel":
            life.around.cancel()
            if self.plan.inside:
                for scope in life.scopes:
                    scope.cancel()
        life.end.set()

    def closing(self) -> bool:
        """Whether the present life is about to end."""
        return self.life is None or self.life.ending

    def exits(self) -> None:
        """Hear that a fetch is about to end the program."""
        if self.life is not None and not self.life.dead:
            self.life.ending, self.life.how = True, "exit"

    def _kill(self, life: Life) -> None:
        life.dead = life.store.dead = life.hooks.dead = True
        life.fetches.kill()
        self.copy = sqlite3.connect(":memory:")
        life.store.connection.backup(self.copy)
        self.history.note("killed", life=life.number)
        self.history.audit(self.copy, life.number)
        for scope in life.scopes:
            scope.cancel()
        life.around.cancel()
        self.gates.dead = True
        self.gates = self.new_gate()
        # Whatever had ended and was not told of will never be told of.
        self.told_ended.update(row.id for row in self.ledger.jobs.values() if not row.live)
