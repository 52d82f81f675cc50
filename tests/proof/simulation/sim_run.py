"""How does a plan come true? The whole engine on a mock clock, from the first opening to the last look.

One `trio.run`, one seed, no threads, no real time. Lives follow one another on the same rows; callers come
and go; when all have done their part, the store and the pages are well again and everything must come to an
end by itself. Then nothing may be left: no task, no slot, no live job, and opening again changes nothing.
Next room: `simulate.py`, the program, and `sim_shrink.py`, for a story that went wrong.
"""

import logging
import math
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

import trio
import trio.testing
from deterministic import deterministic
from history import HistoryRules, check_history
from sim_clients import Clients
from sim_hosts import Fetches
from sim_plan import Plan
from sim_rest import Pulse
from sim_store import SimStore
from sim_watch import Violation, Watch
from sim_world import Life, SimHooks, World

import sift_batch._engine.intake
import sift_batch._engine.runner
from sift_batch import Caller, Config, Result, StoreError, Target, open_runner, open_store

_PATIENCE: Final = 400_000.0
"""Virtual seconds in which everything must have come to its end, once all is well again."""


@dataclass(slots=True)
class Report:
    """What a run came to. `cpu` is in seconds, `hours` are virtual."""

    seed: int
    tempo: str
    violations: list[Violation]
    digest: str
    story: list[str]
    hours: float = 0.0
    cpu: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)


def run_plan(plan: Plan) -> Report:
    """Let a plan come true and return what it came to."""
    watch = Watch()
    began = time.process_time()
    report = Report(plan.seed, plan.tempo, watch.violations, "", [])
    with deterministic(plan.schedule), _known_ids(plan.schedule):
        try:
            report.hours = trio.run(
                _Stage(plan, watch).run, clock=trio.testing.MockClock(autojump_threshold=0)
            )
        except BaseException as exc:
            if isinstance(exc, KeyboardInterrupt):
                raise
            # What the run ended by may be a consequence; a violation that came before says more.
            if not watch.violations:
                watch.violations.append(Violation("raised", _described(exc), 0.0))
    report.digest, report.story = watch.digest(), watch.story()
    report.counts, report.cpu = watch.counts, time.process_time() - began
    return report


class _Stage:
    """One run."""

    def __init__(self, plan: Plan, watch: Watch) -> None:
        self._plan = plan
        self._watch = watch
        self._over = False

    async def run(self) -> float:
        """Play the plan; return the virtual hours that it took."""
        self._world = world = World(self._plan, self._watch)
        pulse = Pulse(world)
        root = trio.lowlevel.current_root_task()
        before = _tasks(root)
        trio.lowlevel.add_instrument(pulse)
        try:
            with self._watch.stop:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._lives)
                    with trio.move_on_after(self._plan.length + _PATIENCE) as limit:
                        await self._callers()
                        await self._calm()
                    if limit.cancelled_caught:
                        self._watch.wrong("quiet", f"not over after {_PATIENCE:,} s: {self._state()}")
                    self._over = True
                    world.end_life("leave", "for the last time")
                await self._last_look()
        finally:
            trio.lowlevel.remove_instrument(pulse)
        if not self._watch.violations and _tasks(root) != before:
            self._watch.wrong("left.tasks", f"there are {_tasks(root) - before} tasks more than before")
        if not self._watch.violations:
            self._check_history()
        return trio.current_time() / 3_600

    async def _callers(self) -> None:
        clients = Clients(self._world)
        async with trio.open_nursery() as nursery:
            for action in self._plan.actions:
                nursery.start_soon(clients.act, action)

    async def _calm(self) -> None:
        """All is well again: everything must come to its end."""
        world = self._world
        world.calm = True
        world.armed.clear()
        while True:
            await world.opened.wait()
            life = world.life
            if life is None or life.runner is None:
                continue
            try:
                await life.runner.drain()
            except trio.ClosedResourceError:
                await trio.sleep(1)  # a page has ended this life
                continue
            await trio.testing.wait_all_tasks_blocked()
            if not life.ending:
                break
        if any(not row.settled for row in world.ledger.jobs.values()):
            self._watch.wrong("quiet", f"drained, and not all have settled: {self._state()}")

    def _state(self) -> str:
        rows = self._world.ledger.jobs.values()
        return ", ".join(f"{self._watch.label(row.id)} {row.status}" for row in rows if not row.settled)

    # ---- one life after another

    async def _lives(self) -> None:
        world, number = self._world, 0
        while not self._over:
            copy, world.copy = world.copy, None
            async with self._rows(copy) as rows:
                while not self._over and world.copy is None:
                    number += 1
                    await trio.sleep(await self._one_life(number, rows))
                if self._over and not self._watch.violations:
                    await self._once_more(rows)

    @asynccontextmanager
    async def _rows(self, copy: Any) -> AsyncIterator[Any]:
        """Give a store in memory, with the rows of a copy."""
        async with open_store(":memory:") as store:
            if copy is not None:
                copy.backup(store._inline._connection)  # type: ignore[attr-defined]
                copy.close()
            self._locks = trio.Lock(), trio.Lock()
            yield store

    async def _one_life(self, number: int, rows: Any) -> float:
        """Live one life; return how long to stay down afterwards."""
        world, plan = self._world, self._plan
        store = SimStore(rows, self._locks, world, plan.jitter, f"jitter {plan.seed} {number}", plan.config)
        fetches = Fetches(
            plan,
            world.visits,
            self._watch,
            world.history,
            world.gates,
            world.may_fetch,
            world.exits,
            world.closing,
        )
        world.history.note("clock", wall=world.wall(), jump=0)
        world.life = life = Life(
            number, store, fetches, world.gates, SimHooks(world, plan.hooks == "raising")
        )
        try:
            with life.around:
                await self._inside(life)
        except StoreError:
            self._watch.say("world", "the store does not let itself be opened")
            return 1.0
        except _BodyError:
            if life.how != "raise":
                self._watch.wrong(
                    "life.raised", f"an error of the block came out after {life.how or 'nothing'}"
                )
        except SystemExit:
            self._watch.say("world", "a fetch has ended the program")
            self._watch.count("restarts")
        finally:
            if world.opened.is_set():
                world.opened = trio.Event()
            life.open = False
            life.gates.batch.clear()
        if not life.dead:
            self._left(life)
            world.history.note("closed", life=number)
            world.history.audit(store.connection, number)
        return life.down

    async def _inside(self, life: Life) -> None:
        world = self._world
        hooks = None if self._plan.hooks == "none" else life.hooks
        config = Config(**self._plan.config)
        store: Any = life.store  # its operations come from `__getattr__`
        async with open_runner(
            store, life.fetches.fetch, config, hooks=hooks, now=world.clock, log=_SILENT
        ) as life.runner:
            life.looked = trio.current_time()
            life.open = True
            failed = [row.id for row in world.ledger.jobs.values() if row.error == "restart"]
            world.history.note("opened", life=life.number, failed=failed)
            self._watch.say("world", f"opened, life {life.number}")
            world.opened.set()
            await life.end.wait()
            if not life.dead:
                world.history.note("closing", life=life.number)
            if life.how == "raise":
                raise _BodyError

    def _left(self, life: Life) -> None:
        """What must hold when a life has ended and was not killed."""
        runner, wrong = life.runner, self._watch.wrong
        if runner is None:
            return
        if life.store.pending:
            return  # a caller from outside is still being answered
        life.store.comparison.audit("closing")
        if life.fetches.open:
            wrong("left.fetch", f"the runner is closed, and fetches are open: {len(life.fetches.open)}")
        if runner._closing._shields or runner._roster._coming or runner._roster.in_flight:
            wrong("left.memory", "something is left in the memory of a closed runner")

    # ---- the end

    async def _once_more(self, rows: Any) -> None:
        """Open a runner on what is left: it changes nothing."""
        connection = rows._inline._connection
        before = list(connection.iterdump())
        fetch = self._world.gates.gate.batch(_no_fetch)
        async with open_runner(rows, fetch, Config(ttl=math.inf), now=self._world.clock, log=_SILENT):
            await trio.testing.wait_all_tasks_blocked()
        if list(connection.iterdump()) != before:
            self._watch.wrong("restart.again", "opening once more has changed the rows")

    async def _last_look(self) -> None:
        world = self._world
        life = world.life
        assert life is not None
        assert life.runner is not None
        if len(life.runner._roster) or life.runner._feeds._feeds:
            self._watch.wrong("left.memory", "a closed runner still remembers a job")
        # Holds and promises are over by then.
        await trio.sleep_until(max([trio.current_time(), *world.gates.held_until.values()]) + 2)
        world.gates.end()

    def _check_history(self) -> None:
        config, gate = self._plan.config, self._plan.gate
        rules = HistoryRules(
            total=gate["total"],
            per_host=gate["per_host"],
            ttl=config["ttl"],
            max_bytes=config["max_bytes"],
            workers=min(config["workers"], config["workers_limit"]),
            jobs_total=config["jobs_total"],
            jobs_per_caller=config["jobs_per_caller"],
        )
        # An audit sees the row of a job that has lapsed and was not swept yet, which one rule takes for a
        # return; the other does not know that a removal is forgotten when the clock jumps by a week. The
        # model has both exactly.
        without = {"resurrected", "unreadable"}
        for text in check_history(self._world.history.events, rules, without=without):
            self._watch.wrong(f"history: {text.partition(',')[0]}", text)


async def _no_fetch(caller: Caller, target: Target) -> Result:
    raise AssertionError("nothing was submitted")


class _BodyError(Exception):
    """What a block raises in a plan."""


def _silent() -> logging.Logger:
    # Not `getLogger`: it belongs to nobody and is registered nowhere.
    logger = logging.Logger("simulation", logging.CRITICAL)  # noqa: LOG001
    logger.addHandler(logging.NullHandler())
    return logger


_SILENT: Final = _silent()


@contextmanager
def _known_ids(seed: int) -> Iterator[None]:
    """Let the ids of jobs and owners follow from the seed."""
    ids = random.Random(f"ids {seed}")
    known = SimpleNamespace(token_hex=lambda n: ids.randbytes(n).hex())
    modules: list[Any] = [sift_batch._engine.intake, sift_batch._engine.runner]
    real = modules[0].secrets
    for module in modules:
        module.secrets = known
    try:
        yield
    finally:
        for module in modules:
            module.secrets = real


def _tasks(task: Any) -> int:
    return 1 + sum(_tasks(child) for nursery in task.child_nurseries for child in nursery.child_tasks)


def _described(exc: BaseException) -> str:
    if isinstance(exc, BaseExceptionGroup):
        return f"{type(exc).__name__}({', '.join(_described(item) for item in exc.exceptions)})"
    trace, place = exc.__traceback__, ""
    while trace is not None:
        place = f"{trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{exc!r} at {place}"
