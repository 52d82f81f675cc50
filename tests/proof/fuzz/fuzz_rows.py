"""Can what stands in a store's rows hurt whoever reads it? Columns that were damaged, or written to hurt.

A job is drained, its rows and those of a live job are changed behind everybody's back, and then everything
that a runner can be asked is asked: by the runner that is open, and by the next one. Each answer must be a
value of the promised types or an error of the contract, and the runner must go on: a job of somebody else's
is taken as ever. On a mock clock and a store in memory. Next: `fuzz_bytes`, one level down.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio
import trio.testing

from sift_batch import (
    Caller,
    Config,
    Job,
    JobState,
    JobStatus,
    Options,
    Result,
    Runner,
    StoreError,
    Submission,
    SubmitError,
    Target,
    TargetStatus,
    open_runner,
    open_store,
)
from sift_batch.testing import ScriptedFetch

COLUMNS: Final = (
    *(
        ("batch_job", name)
        for name in (
            "id", "caller", "caller_class", "idem_key", "status", "owner", "error", "targets_total",
            "targets_done", "created_at", "started_at", "finished_at", "lease", "nbytes", "rerun_of",
            "targets_failed", "settled", "version",
        )
    ),
    *(
        ("batch_target", name)
        for name in (
            "job_id", "idx", "url", "options", "status", "error", "hint", "code", "http_status", "retryable",
            "chars", "nbytes", "result",
        )
    ),
)  # fmt: skip
"""Every column that a reader or a step looks at."""

_ALICE, _BOB = Caller("alice"), Caller("bob")
_CONFIG: Final = Config(
    jobs_per_caller=9, jobs_total=99, workers=2, ttl=1_000, max_bytes=400, sweep_every=500
)
_NOW: Final = 1_700_000_000
_LONG: Final = 2_000.0

_MOST_CALLS: Final = 10_000
"""So often a store may be asked in one life; a loop that never ends is told by that."""

Damage = tuple[str, str, str, Any]
"""A table, a column, SQL for the value ("?" or a cast of it), and what is bound to it."""


def damage_of(data: bytes) -> list[Damage]:
    """Return what bytes make of rows: each line is one column's new value, by its first two bytes."""
    found: list[Damage] = []
    for line in data.split(b"\n")[:4]:
        if len(line) < 2:
            continue
        table, column = COLUMNS[line[0] % len(COLUMNS)]
        found.append((table, column, *_value(line[1] % 6, line[2:])))
    return found


def _value(kind: int, raw: bytes) -> tuple[str, Any]:
    if kind == 0:
        return "?", raw.decode(errors="replace")
    if kind == 1:
        return "?", raw
    if kind == 2:
        return "?", int.from_bytes(raw[:8].ljust(8, b"\0"), "little", signed=True)
    if kind == 3:
        return "CAST(? AS TEXT)", raw  # whatever the bytes are: no UTF-8 it may be
    if kind == 4:
        return "?", float(len(raw)) * 1e300 if raw[:1] != b"-" else -float(len(raw)) / 7
    return "NULL", None


def _apply(store: Any, damages: list[Damage]) -> int:
    """Damage rows; return how many were."""
    connection, changed = store._inline._connection, 0
    for table, column, text, value in damages:
        bound = () if text == "NULL" else (value,)
        # One row and not all of them: columns that must be unique stay so. What the schema refuses is no
        # damage that there could be.
        changed += connection.execute(
            f"UPDATE OR IGNORE {table} SET {column} = {text} WHERE rowid = "
            f"(SELECT rowid FROM {table} ORDER BY rowid LIMIT 1 OFFSET ?)",
            (*bound, len(damages) % 3),
        ).rowcount
    return changed


class _Counted:
    """A store that counts how often it is asked, and refuses when that is too often."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._store, name)

        async def counted(*args: Any, **named: Any) -> Any:
            self.calls += 1
            if self.calls > _MOST_CALLS and name != "release":
                await trio.lowlevel.checkpoint()
                raise StoreError("this was asked far too often")
            return await call(*args, **named)

        return counted


def check_job(job: Any) -> None:
    """Check that a job is made of what its type says."""
    assert type(job) is Job
    for name in ("id", "caller", "error"):
        assert type(getattr(job, name)) is str, name
    for name in (
        "targets_total", "targets_done", "targets_failed", "version", "created_at", "lease", "nbytes",
    ):  # fmt: skip
        assert type(getattr(job, name)) is int, name
    for name in ("started_at", "finished_at"):
        assert type(getattr(job, name)) in (int, type(None)), name
    assert type(job.rerun_of) in (str, type(None))


def check_target(target: Any) -> None:
    """Check that a target is made of what its type says."""
    assert type(target) is TargetStatus
    for name in ("url", "error", "hint", "code"):
        assert type(getattr(target, name)) is str, name
    for name in ("idx", "chars"):
        assert type(getattr(target, name)) is int, name
    assert type(target.options) is Options
    assert type(target.http_status) in (int, type(None))
    if target.result is not None:
        assert type(target.result) is Result
        assert type(target.result.content) is str
        assert type(target.result.meta) is dict


def _check(value: Any) -> None:
    if isinstance(value, Job):
        check_job(value)
    elif isinstance(value, JobStatus):
        check_job(value.job)
        for target in value.targets:
            check_target(target)
    elif isinstance(value, TargetStatus):
        check_target(value)
    elif isinstance(value, list):
        for item in value:
            _check(item)


async def _ask(ask: Callable[[], Awaitable[Any]]) -> None:
    """Ask; only what the contract names may come out, within virtual days."""
    with trio.move_on_after(_LONG):
        # The last: a job that the damage took from this runner will not settle here.
        with contextlib.suppress(StoreError, SubmitError, LookupError, trio.ClosedResourceError):
            _check(await ask())


async def ask_everything(runner: Runner, ids: list[str]) -> None:
    """Ask a runner all that it can be asked about these jobs."""
    await _ask(runner.jobs)
    for state in JobState:
        await _ask(lambda state=state: runner.jobs("alice", status=state))  # type: ignore[misc]
    for job_id in ids:
        asks: list[Callable[[], Awaitable[Any]]] = [
            lambda: runner.job(job_id),  # noqa: B023 - asked at once
            lambda: runner.status(job_id, caller="alice"),  # noqa: B023
            lambda: runner.status(job_id, results=False),  # noqa: B023
            lambda: runner.gone(job_id, caller="alice"),  # noqa: B023
            lambda: runner.jobs(before=job_id),  # noqa: B023
            lambda: _read_stream(runner.watch(job_id)),  # noqa: B023
            lambda: _read_stream(runner.results(job_id)),  # noqa: B023
            lambda: runner.touch(job_id),  # noqa: B023
            lambda: runner.rerun(_ALICE, job_id),  # noqa: B023
            lambda: runner.cancel(job_id),  # noqa: B023
            lambda: runner.wait(job_id),  # noqa: B023
        ]
        for ask in asks:
            await _ask(ask)
    await _ask(runner.check)
    await _ask(lambda: runner.submit(_ALICE, [Target("http://h.test/1")]))
    await trio.sleep(2 * _CONFIG.sweep_every)
    for job_id in ids:
        await _ask(lambda job_id=job_id: runner.delete(job_id))  # type: ignore[misc]


async def _read_stream(stream: Any) -> list[Any]:
    async with stream as items:
        return [item async for item in items]


async def _lives(runner: Runner) -> None:
    """A job of somebody else's is taken and listed, or refused by the store; nothing else, and at once.

    It may wait for ever: a damaged job that can't be begun is offered again and again, by each worker.
    """
    with trio.fail_after(_LONG):
        with contextlib.suppress(StoreError):
            taken = await runner.submit(_BOB, [Target("http://other.test/")], max_age=0)
            assert type(taken) is Submission
            assert type(taken.id) is str
        with contextlib.suppress(StoreError):
            for job in await runner.jobs("bob"):
                check_job(job)


async def damaged(damages: list[Damage], *, later: bool) -> int:
    """Damage rows under an open runner, or (`later`) between two runners; ask both everything.

    What is returned is how many rows were damaged: those that the schema lets be.
    """
    clock, changed = [float(_NOW)], 0
    fetch = ScriptedFetch(latency=1, hang=["http://h.test/hang"])
    async with open_store(":memory:") as store:
        counted: Any = _Counted(store)
        async with open_runner(counted, fetch, _CONFIG, now=lambda: clock[0]) as runner:
            done = await runner.submit(_ALICE, [Target("http://h.test/a", Options(mode="raw"))] * 2)
            await runner.wait(done.id)
            live = await runner.submit(_ALICE, [Target("http://h.test/hang")])
            queued = await runner.submit(_ALICE, [Target("http://h.test/b"), Target("http://h.test/c")])
            ids = [done.id, live.id, queued.id]
            if not later:
                changed = _apply(store, damages)
                await ask_everything(runner, ids)
                await _lives(runner)
                fetch.release()
                await trio.sleep(100)
        if later:
            changed = _apply(store, damages)
        clock[0] += 10
        again: Any = _Counted(store)
        try:
            async with open_runner(again, ScriptedFetch(), _CONFIG, now=lambda: clock[0]) as runner:
                await ask_everything(runner, ids)
                clock[0] += 2_000
                await trio.sleep(100)
                await _lives(runner)
        except StoreError:
            pass  # of the restart step: it comes out of `open_runner`
        for asked in (counted, again):
            assert asked.calls <= _MOST_CALLS, "the store is asked for ever"
    return changed


def stored_rows(data: bytes) -> None:
    """Damage rows as `data` says, under a runner and between two."""
    damages = damage_of(data)
    if not damages:
        return
    for later in (False, True):
        run_damaged(damages, later=later)


def run_damaged(damages: list[Damage], *, later: bool) -> int:
    """Run `damaged` to its end; return how many rows were damaged."""
    return trio.run(lambda: damaged(damages, later=later), clock=_clock())


def _clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)
