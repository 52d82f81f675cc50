"""Log: which events there are, at which level, to which logger, and never anything of a target."""

import io
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import structlog
import trio
from flow_desk import ALICE, BOB, CAROL, START, Lines, drained, running, targets
from trio.testing import MockClock

from sift_batch import (
    Caller,
    Config,
    Hooks,
    Options,
    Result,
    Runner,
    Target,
    TargetError,
    open_runner,
    open_store,
)
from sift_batch._observe.events import EVENTS
from sift_batch.testing import FaultyStore, ScriptedFetch, WallClock

SECRETS = ("s3cret", "h0st", "0pt-ion", "c0ntent", "err0r", "h1nt", "c0de")


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    logger = logging.getLogger("sift_batch")
    before = logger.level, list(logger.handlers), logger.propagate
    yield
    logger.level, logger.handlers, logger.propagate = before[0], before[1], before[2]
    structlog.reset_defaults()


def _secret_targets(count: int) -> list[Target]:
    return [Target(f"http://s3cret@h0st.test/{n}", Options(grep="0pt-ion")) for n in range(count)]


async def _everything(log: Any, caller: Caller = ALICE) -> Runner:
    """Let everything happen that is ever logged."""
    clock = WallClock(START)

    class Faulty(Hooks):
        def job(self, outcome: str) -> None:
            raise ValueError("http://s3cret@h0st.test/")

    async def stubborn(caller: Caller, target: Target) -> Result:
        with trio.CancelScope(shield=True):
            await trio.sleep(500)
        return Result("c0ntent")

    fetch = ScriptedFetch(latency=1, busy={1: 2})
    fetch.fail("http://s3cret@h0st.test/2", TargetError("err0r", hint="h1nt", code="c0de"))
    fetch.fail("http://s3cret@h0st.test/3", ValueError("err0r http://s3cret@h0st.test/"))
    fetch.answer("http://stuck.h0st.test/", stubborn)
    config = Config(
        workers=9,
        ttl=1_000,
        max_bytes=3_000,
        job_timeout=700,
        target_timeout=50,
        jobs_per_caller=9,
        sweep_every=10,
    )
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner, 2, times=2, operations={"record"})
        async with open_runner(store, fetch, config, hooks=Faulty(), now=clock, log=log) as runner:
            first = await runner.submit(caller, _secret_targets(5))
            await runner.submit(caller, _secret_targets(5))
            await drained(runner, first.id)
            store.fail(2, operations={"lapsed"})
            await trio.sleep(30)
            stuck = await runner.submit(caller, [Target("http://stuck.h0st.test/")])
            await trio.sleep(100)
            await runner.cancel(stuck.id)
            await runner.wait(stuck.id)
            await runner.delete(stuck.id)
            fetch.answer("http://big.h0st.test/", Result("c0ntent" * 1_000))
            await runner.wait((await runner.submit(caller, [Target("http://big.h0st.test/")])).id)
            await trio.sleep(1)
            clock.jump(5_000)
            await trio.sleep(11)
            fetch.hang("http://last.h0st.test/")
            await runner.submit(caller, [Target("http://last.h0st.test/")])
            await fetch.wait_started(8)
        async with open_runner(inner, fetch, config, now=clock, log=log) as runner:
            pass
    return runner


async def test_every_event_is_registered_at_its_level(autojump_clock: MockClock) -> None:
    """Job events are info, target events debug, trouble and faults warnings; all fields are registered."""
    log = Lines()
    await _everything(log)
    seen = {name for _, name, _ in log.events}
    assert seen >= {
        "runner.opened",
        "runner.closing",
        "runner.closed",
        "workers.clamped",
        "job.created",
        "job.reused",
        "job.started",
        "job.ended",
        "job.settled",
        "job.deleted",
        "target.started",
        "target.busy",
        "target.stored",
        "store.trouble",
        "store.swept",
        "store.evicted",
        "hook.failed",
        "fetch.stuck",
    }
    for level, name, fields in log.events:
        spec = EVENTS[name]
        assert level == logging.getLevelName(spec.level).lower()
        assert set(fields) <= set(spec.fields)
        assert None not in fields.values()
        family = name.split(".")[0]
        assert level == {"job": "info", "runner": "info", "target": "debug"}.get(family, level)
    assert {level for level, name, _ in log.events if name == "store.trouble"} == {"warning"}


async def test_nothing_of_a_target_is_ever_logged(autojump_clock: MockClock) -> None:
    """No line holds any part of a URL, option, error, hint, result or caller, for any class of caller."""
    for caller in (ALICE, CAROL):
        log = Lines()
        await _everything(log, caller)
        for event in log.events:
            text = json.dumps(event[2]) + repr(event)
            assert not any(secret in text for secret in (*SECRETS, caller.name)), text


async def test_events_of_a_job_carry_its_id(autojump_clock: MockClock) -> None:
    """Every job and target event names its job; the counts at the end are those of the job."""
    log = Lines()
    fetch = ScriptedFetch(fail=[1])
    async with running(fetch, log=log) as runner:
        submission = await runner.submit(ALICE, targets(3))
        await runner.wait(submission.id)
    lines = [fields for _, name, fields in log.events if name.split(".")[0] in {"job", "target"}]
    assert {fields["job_id"] for fields in lines} == {submission.id}
    (ended,) = log.of("job.ended")
    assert {key: ended[key] for key in ("outcome", "targets", "done", "failed", "error")} == {
        "outcome": "partial",
        "targets": 3,
        "done": 3,
        "failed": 1,
        "error": "",
    }
    assert [(fields["idx"], fields["outcome"]) for fields in log.of("target.stored")] == [
        (0, "done"),
        (1, "failed"),
        (2, "done"),
    ]


async def test_a_restricted_caller_leaves_fewer_lines(autojump_clock: MockClock) -> None:
    """Of a restricted job no target, no failure and no time is logged."""
    log = Lines()
    fetch = ScriptedFetch(fail=[1], busy={0: 1})
    async with running(fetch, log=log) as runner:
        await runner.wait((await runner.submit(CAROL, targets(3))).id)
    assert not [name for _, name, _ in log.events if name.startswith("target.")]
    (ended,) = log.of("job.ended")
    assert "failed" not in ended
    assert "done" not in ended


async def test_one_warning_for_a_spell_of_trouble(autojump_clock: MockClock) -> None:
    """While the store refuses one step again and again, one warning with the job's id says so."""
    log = Lines()
    async with open_store(":memory:") as inner:
        store = FaultyStore(inner, 1, times=6, operations={"record"})
        async with open_runner(store, ScriptedFetch(), log=log) as runner:
            submission = await runner.submit(ALICE, targets(2))
            await runner.wait(submission.id)
    (trouble,) = log.of("store.trouble")
    assert trouble == {"job_id": submission.id, "step": "record", "error": "StoreError"}


# ---- which logger


async def _one_job(**keywords: Any) -> None:
    async with open_store(":memory:") as store:
        async with open_runner(store, ScriptedFetch(), **keywords) as runner:
            await runner.wait((await runner.submit(ALICE, targets(1))).id)


async def test_without_a_log_and_structlog_the_standard_logger_is_used(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """`log=None` without a configured structlog logs to `logging`'s `sift_batch`, at the levels set there."""
    assert not structlog.is_configured()
    with caplog.at_level(logging.INFO, "sift_batch"):
        await _one_job()
    assert {record.name for record in caplog.records} == {"sift_batch"}
    events = [record.getMessage().split()[0] for record in caplog.records]
    assert events == [
        "runner.opened",
        "job.created",
        "job.started",
        "job.ended",
        "job.settled",
        "runner.closing",
        "runner.closed",
    ]


async def test_without_a_log_a_configured_structlog_is_used(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """`log=None` with a structlog that the application has configured goes through its processors alone."""
    seen: list[Mapping[str, Any]] = []

    def keep(logger: object, method: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
        seen.append(dict(event, level=method))
        raise structlog.DropEvent

    structlog.configure(processors=[keep])
    with caplog.at_level(logging.DEBUG, "sift_batch"):
        await _one_job()
    assert caplog.records == []
    assert {"runner.opened", "job.created", "target.stored", "runner.closed"} <= {
        line["event"] for line in seen
    }


async def test_nothing_is_printed(autojump_clock: MockClock, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is ever printed to standard output, whatever is configured."""
    await _one_job()
    logging.getLogger("sift_batch").setLevel(logging.DEBUG)
    await _one_job()
    async with running(ScriptedFetch(fail=[0]), workers=9) as runner:
        await runner.wait((await runner.submit(BOB, targets(2))).id)
    assert capsys.readouterr().out == ""


async def test_no_logging_is_configured(autojump_clock: MockClock) -> None:
    """A runner adds no handler, sets no level and leaves structlog unconfigured."""
    logger = logging.getLogger("sift_batch")
    before = (logger.level, list(logger.handlers), logger.propagate, list(logging.getLogger().handlers))
    await _one_job()
    assert (logger.level, logger.handlers, logger.propagate, logging.getLogger().handlers) == before
    assert not structlog.is_configured()
    assert logging.raiseExceptions
    assert sys.excepthook is not None


@pytest.mark.parametrize("kind", ["logger", "adapter", "structlog", "wrapped"])
async def test_a_given_log_is_used(kind: str, autojump_clock: MockClock) -> None:
    """A given standard logger, adapter or structlog logger gets the events."""
    stream = io.StringIO()
    logger = _logger()
    logger.addHandler(logging.StreamHandler(stream))
    log: Any = logger
    if kind == "adapter":
        log = logging.LoggerAdapter(logger, {})
    elif kind == "structlog":
        log = structlog.wrap_logger(
            structlog.WriteLogger(stream), processors=[structlog.processors.JSONRenderer()]
        )
    elif kind == "wrapped":
        log = structlog.wrap_logger(
            logger,
            processors=[structlog.processors.JSONRenderer()],
            wrapper_class=structlog.stdlib.BoundLogger,
        )
    await _one_job(log=log)
    for event in ("runner.opened", "job.created", "target.stored", "job.ended", "runner.closed"):
        assert event in stream.getvalue()


def _logger() -> logging.Logger:
    # Not one of the process's loggers: nothing of it is left behind.
    return logging.Logger("application", logging.DEBUG)  # noqa: LOG001


class Raising:
    """A logger that raises at every call, by whatever name."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def log(*args: object, **keywords: object) -> None:
            raise self.error

        return log


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        OSError(28, "No space left on device"),
        GeneratorExit(),
        RecursionError(),
        TargetError("x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_logger_that_raises_changes_nothing(error: BaseException, autojump_clock: MockClock) -> None:
    """A logger that raises at every call never ends the runner: everything else happens as without it."""
    await _everything(Raising(error))


async def test_a_handler_that_raises_changes_nothing(autojump_clock: MockClock) -> None:
    """A standard logger whose handler or filter raises never ends the runner."""

    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise RuntimeError("broken handler")

    logger = _logger()
    logger.addHandler(Broken())
    await _everything(logger)


async def test_a_log_that_is_no_logger_changes_nothing(autojump_clock: MockClock) -> None:
    """An object in place of a logger loses the events and breaks nothing."""
    await _everything(object())
