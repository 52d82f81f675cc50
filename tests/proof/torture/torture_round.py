"""One round: the play on a store, with what the plan wants to go wrong; then two restarts and the checks.

Everything runs in one `trio.run` with a seeded schedule and a mock clock. With a store in memory a plan
gives the same round every time; with one in a file the threads' own time remains, so a step's number is
nearly the same moment. Next: `torture_sweep.py`, which plays round after round.
"""

import contextlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import trio
import trio.testing
from deterministic import deterministic
from torture_book import Book, count_tasks, new_book
from torture_check import (
    check_calls,
    check_memory,
    check_rows,
    check_story,
    check_told,
    settled_rows,
)
from torture_fetch import TornFetch
from torture_plan import FATAL, Plan
from torture_stage import QUIET, Rows, Stage, striking
from torture_store import TornStore
from torture_strike import Scopes, Strike

from sift_batch import Config, Gate, Store, StoreError, open_runner, open_store
from sift_batch.testing import ScriptedFetch, ThreadAutojumpClock, WallClock

_START = 1_700_000_000.0
_KEEP = Config(ttl=inf, max_bytes=2**40)

Opener = Callable[[], AbstractAsyncContextManager[Store]]


@dataclass(slots=True)
class Round:
    """What became of a plan. `fired`: whether all that it wanted to go wrong did."""

    plan: Plan
    book: Book
    fired: bool = False
    # Which operations, ways and strikes came about; and how many there were to choose from.
    struck: list[str] = field(default_factory=list)
    operations: list[str] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    fetches: int = 0
    error: BaseException | None = None

    @property
    def findings(self) -> list[str]:
        """What does not hold, each once."""
        return list(dict.fromkeys(self.book.findings))


def run_round(plan: Plan, path: Path | None = None) -> Round:
    """Play one round; a plan for a file needs a `path` at which there is none yet."""
    result = Round(plan, new_book(WallClock(_START)))
    before = _open_files(), _threads()
    clock: trio.abc.Clock = (
        ThreadAutojumpClock() if plan.where == "file" else trio.testing.MockClock(autojump_threshold=0)
    )
    with deterministic(plan.seed):
        trio.run(_main, result, path, clock=clock)
    book = result.book
    if _open_files() != before[0]:
        book.find("left", f"{_open_files() - before[0]} open files")
    if _threads() > before[1]:
        book.find("left", "a thread of the store")
    check_calls(book, total=2, per_host=1)
    check_told(book, lossy=plan.lossy)
    check_story(book)
    return result


async def _main(result: Round, path: Path | None) -> None:
    if result.plan.where == "memory":
        async with open_store(":memory:") as store:

            @asynccontextmanager
            async def same() -> AsyncIterator[Store]:
                try:
                    yield store
                finally:
                    # A `release` that was refused leaves the owner; leaving a store in a file ends that.
                    with trio.CancelScope(shield=True):
                        await store.release(store._owner or "")  # type: ignore[attr-defined]

            await _lives(result, same, lambda: contextlib.nullcontext(store._inline._connection))  # type: ignore[attr-defined]
    else:
        assert path is not None
        file = path
        await _lives(result, lambda: open_store(file), lambda: _reading(file))


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Look into a store's file, beside whoever has it open; None while there is none."""
    if not path.exists():
        yield None
        return
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


async def _lives(result: Round, opener: Opener, rows: Rows) -> None:
    """Play in a first life of the store, then look whether a second and a third show the same."""
    book = result.book
    for _ in range(3):
        await trio.lowlevel.checkpoint()  # a clock may have a task of its own, which comes now
    tasks = count_tasks()
    await _first_life(result, opener, rows)
    await trio.lowlevel.checkpoint()
    if count_tasks() != tasks:
        book.find("left", f"{count_tasks() - tasks} tasks")
    before: dict[str, list[Any]] = {}
    with rows() as connection:
        if connection is not None:
            check_rows(book, connection)
            before = settled_rows(connection)
    dumps = []
    for life in (2, 3):
        async with opener() as store:
            await _reopen(book, store, life)
        with rows() as connection:
            check_rows(book, connection, settled=True)
            if connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
                book.find("file", "the integrity check fails")
            book.history.audit(connection, life)
            dumps.append(settled_rows(connection))
    if any(dumps[0].get(job_id) != kept for job_id, kept in before.items()):
        book.find("I2", "a settled job looks different after a restart")
    if dumps[0] != dumps[1]:
        book.find("restart", "a second restart changed something")


async def _reopen(book: Book, store: Store, life: int) -> None:
    watched: Any = TornStore(store, {}, book)
    before = len(book.told.ends)
    async with open_runner(
        watched, ScriptedFetch(), _KEEP, hooks=book.told, now=book.clock, log=QUIET
    ) as runner:
        restarted = [job.id for job in book.told.ends[before:]]
        book.history.note("opened", life=life, restarted=restarted)
        for job in await runner.jobs():
            if not job.settled:
                book.find("restart", "a job is not settled after a restart")
        book.history.note("closing", life=life)
    book.history.note("closed", life=life)


async def _first_life(result: Round, opener: Opener, rows: Rows) -> None:
    plan, book = result.plan, result.book
    scopes, gate = Scopes(), Gate(total=2, per_host=1)
    fetch = TornFetch(book, dict(plan.fetch))
    stage = Stage(plan, book, scopes, gate, fetch, rows)
    strikes: list[Strike] = []
    error: BaseException | None = None
    try:
        with scopes.open("runner"), striking(plan, scopes, stage, strikes):
            async with opener() as store:
                await stage.live(store)
        # A Ctrl-C that came at the very end waits for this.
        await trio.lowlevel.checkpoint()
    except BaseException as exc:  # noqa: ASYNC103 - judged below
        error = exc
    result.error = error  # noqa: ASYNC104
    if book.fatal_at is not None and not plan.store and trio.current_time() > book.fatal_at:
        book.find("exit", "a fetch ended the program, and others had time to go on")
    torn = stage.torn
    result.operations = torn.calls if torn is not None else []
    hit = torn.struck if torn is not None else []
    struck = [what for (what, _), strike in zip(plan.strikes, strikes, strict=True) if strike.struck]
    result.struck = [*hit, *fetch.struck, *struck]
    result.fetches = fetch.count
    result.steps = [strike.steps for strike in strikes]
    result.fired = (
        len(hit) == len(plan.store)
        and len(fetch.struck) == len(plan.fetch)
        and all(strike.struck for strike in strikes)
    )
    _judge_exit(result, error, hit, interrupted="signal" in struck)
    check_memory(book, stage.runner, gate)


def _judge_exit(result: Round, error: BaseException | None, hit: list[str], *, interrupted: bool) -> None:
    """Check how the runner's block ended: only what the plan wants to come out may come out."""
    plan, book = result.plan, result.book
    wanted = book.fatal_at is not None
    struck = {kind for number, kind in plan.store if number <= len(result.operations)} & FATAL
    if error is None:
        if wanted or interrupted or struck:
            book.find("exit", "what must end the program came to nothing")
    elif isinstance(error, StoreError):
        if "acquire" not in hit:
            book.find("exit", f"the block ended with {error!r}")
    elif not plan.fatal or not _only_fatal(error):
        book.find("exit", f"the block ended with {error!r}")
    elif wanted and not (interrupted or struck) and isinstance(error, BaseExceptionGroup):
        book.find("exit", "what a fetch raised to end the program came out in a group")


def _only_fatal(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_only_fatal, error.exceptions))
    return isinstance(error, KeyboardInterrupt | SystemExit)


def _open_files() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.exists() else 0


def _threads() -> int:
    return sum("sift_batch" in thread.name for thread in threading.enumerate())
