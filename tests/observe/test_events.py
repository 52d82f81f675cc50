"""What the engine can say, and how it reaches whatever logger the application has."""

import logging
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest
import structlog

from sift_batch._model.lifecycle import JobState
from sift_batch._model.values import CallerClass
from sift_batch._observe.events import ENGINE_CODES, EVENTS, allow_list, job_id, seconds, site, whole, word
from sift_batch._observe.log import BoundEventLog, open_event_log
from sift_batch._observe.redact import redact_urls

JOB = "0123456789abcdef0123456789abcdef"
URL = "https://atlas.kestrel.example/orchid"


class Text(str):
    """A subclass of str."""

    __slots__ = ()


class Number(int):
    """A subclass of int."""


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (whole, [0, 1, 2**53], [-1, 2**53 + 1, 10**31, True, 1.0, "1", None, Number(1)]),
        (seconds, [0, 0.5, 3], [-0.1, float("nan"), True, "1", None]),
        (word("done", "failed"), ["done"], ["", "Done", URL, Text("done"), 1, None, b"done"]),
        (job_id, [JOB], [JOB.upper(), JOB[:-1], JOB + "0", "b_" + JOB, Text(JOB), URL, JOB + "\n", None]),
        (
            site,
            [f"{__name__}:12", "unknown"],
            ["atlas.kestrel:443", f"{__name__}:x", "a", Text("unknown"), None],
        ),
    ],
)
def test_checks_admit_exactly_their_values(check: Any, good: list[Any], bad: list[Any]) -> None:
    """A check gives back what the field can have and None for everything else, lookalikes included."""
    assert [check(value) for value in good] == good
    assert [check(value) for value in bad] == [None] * len(bad)


def test_an_endless_time_is_a_large_one() -> None:
    """An infinite time is logged as 1e12 seconds, since JSON has no infinity."""
    assert seconds(float("inf")) == 1e12


def test_names_outside_the_known_set_are_other() -> None:
    """A code, an error's type or a step that nobody listed is `other`, and never shown."""
    spec = EVENTS["target.stored"]
    assert allow_list(spec, {"code": "kestrel"}) == {"code": "other"}
    assert allow_list(spec, {"code": Text("timeout")}) == {"code": "other"}
    for code in (*ENGINE_CODES, "page_not_found", ""):
        assert allow_list(spec, {"code": code}) == {"code": code}
    assert allow_list(EVENTS["hook.failed"], {"hook": "kestrel", "error": "AtlasError"}) == {
        "hook": "other",
        "error": "other",
    }


def test_states_of_the_engine_are_words() -> None:
    """The engine's own enumerations count as their plain texts."""
    out = allow_list(EVENTS["job.ended"], {"outcome": JobState.PARTIAL})
    assert out == {"outcome": "partial"}
    assert type(out["outcome"]) is str


def test_fields_are_walked_by_the_registry() -> None:
    """An unregistered field is dropped; a refused value becomes None and is counted."""
    given = {"job_id": URL, "targets": True, "url": URL, URL: 1, "rejected_fields": URL}
    assert allow_list(EVENTS["job.created"], given) == {"job_id": None, "targets": None, "rejected_fields": 2}


def test_restricted_callers_lines_say_less() -> None:
    """Bound to a restricted caller, a log says nothing of single targets, counts of failures or reasons."""
    for caller_class in ("restricted", CallerClass.RESTRICTED):
        given = {"caller_class": caller_class, "job_id": JOB, "outcome": "failed", "targets": 3}
        more = {"idx": 1, "seconds": 1.5, "code": "dns", "error": "timeout", "failed": 2, "done": 3}
        assert allow_list(EVENTS["job.ended"], {**given, **more}) == {
            "job_id": JOB,
            "outcome": "failed",
            "targets": 3,
        }
        for name in ("target.started", "target.stored", "target.busy"):
            assert allow_list(EVENTS[name], {**given, **more}) is None


class Capture:
    """A logger with structlog's methods that keeps what it gets."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def __getattr__(self, level: str) -> Any:
        if level not in ("debug", "info", "warning"):
            raise AttributeError(level)
        return lambda event, **fields: self.lines.append((level, event, fields))


def say_everything(log: BoundEventLog) -> None:
    """Log one event of each level."""
    log.event("job.created", job_id=JOB, targets=3)
    log.event("target.started", job_id=JOB, idx=0, attempt=1)
    log.event("store.trouble", step="record", error="SQLITE_FULL")


def test_structlog_gets_events_and_fields() -> None:
    """A structlog logger gets each event at its level with its fields as keywords."""
    logger = Capture()
    say_everything(open_event_log(logger))
    assert logger.lines == [
        ("info", "job.created", {"job_id": JOB, "targets": 3}),
        ("debug", "target.started", {"job_id": JOB, "idx": 0, "attempt": 1}),
        ("warning", "store.trouble", {"step": "record", "error": "SQLITE_FULL"}),
    ]


@pytest.mark.parametrize("adapt", [lambda logger: logger, lambda logger: logging.LoggerAdapter(logger, {})])
def test_standard_loggers_get_constant_messages(adapt: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A standard logger gets one constant message for each event, with the values as its arguments."""
    logger = logging.getLogger("an.application")
    with caplog.at_level(logging.DEBUG, "an.application"):
        say_everything(open_event_log(adapt(logger)))
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("INFO", f"job.created job_id={JOB} targets=3"),
        ("DEBUG", f"target.started job_id={JOB} idx=0 attempt=1"),
        ("WARNING", "store.trouble step=record error=SQLITE_FULL"),
    ]
    assert caplog.records[0].msg == "job.created job_id=%(job_id)s targets=%(targets)s"


def test_bound_fields_are_on_every_event() -> None:
    """A bound log's events carry its fields where they have them; the log it came from does not change."""
    logger = Capture()
    log = open_event_log(logger)
    log.bind(job_id=JOB).event("job.settled")
    log.bind(job_id=JOB).event("runner.closed", live=0)
    log.event("runner.closed", live=0)
    assert [fields for _, _, fields in logger.lines] == [{"job_id": JOB}, {"live": 0}, {"live": 0}]


def test_an_unregistered_event_tells_its_place() -> None:
    """An event that is not registered becomes `log.rejected` with the place of the call alone."""
    logger = Capture()
    open_event_log(logger).event("fetched " + URL, url=URL)
    level, event, fields = logger.lines[0]
    assert (level, event) == ("warning", "log.rejected")
    assert fields["site"].startswith(__name__ + ":")


@pytest.mark.parametrize("adapter", ["structlog", "standard"])
@pytest.mark.parametrize("error", [ValueError, RecursionError, GeneratorExit, BaseException])
def test_a_logger_that_raises_is_ignored(adapter: str, error: type[BaseException]) -> None:
    """Whatever a logger raises, an event does not."""

    class Raising:
        def info(self, event: str, **fields: Any) -> None:
            raise error(URL)

    class RaisingHandler(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise error(URL)

    log: Any = Raising()
    if adapter == "standard":
        log = logging.getLogger("test.raises")
        log.addHandler(RaisingHandler())
    open_event_log(log).event("job.settled", job_id=JOB)


@pytest.mark.parametrize(
    "error",
    [KeyboardInterrupt(), SystemExit(1), BaseExceptionGroup("", [ValueError(), KeyboardInterrupt()])],
)
def test_a_logger_ends_nothing(error: BaseException) -> None:
    """Whatever a logger raises, an exit that it asks for included, ends with the event."""

    class Ends:
        def info(self, event: str, **fields: Any) -> None:
            raise error

    open_event_log(Ends()).event("job.settled", job_id=JOB)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
@pytest.mark.parametrize("kind", ["native", "stdlib", "generic", "lazy", "standard"])
def test_whether_debug_is_on_is_known(kind: str, level: int, capsys: pytest.CaptureFixture[str]) -> None:
    """`debug_enabled` says what the logger itself says, and asking logs nothing."""
    standard = logging.getLogger("test.asked")
    standard.setLevel(level)
    filtering = structlog.make_filtering_bound_logger(level)
    loggers: dict[str, Any] = {
        "native": lambda: structlog.wrap_logger(structlog.PrintLogger(), [], filtering).bind(),
        "lazy": lambda: structlog.wrap_logger(structlog.PrintLogger(), [], filtering),
        "stdlib": lambda: structlog.wrap_logger(standard, [], structlog.stdlib.BoundLogger),
        "generic": lambda: structlog.wrap_logger(standard, [], structlog.BoundLogger),
        "standard": lambda: standard,
    }
    log = open_event_log(loggers[kind]())
    # A generic logger can't be asked: it would log the question.
    assert log.debug_enabled is (level == logging.DEBUG or kind == "generic")
    assert capsys.readouterr() == ("", "")


def test_an_event_that_is_off_costs_little() -> None:
    """A debug event on a log without debug returns before anything is checked, copied or written."""
    logger = logging.getLogger("test.quiet")
    logger.setLevel(logging.INFO)
    log = open_event_log(logger).bind(job_id=JOB)
    best = min(_time_of(log) for _ in range(5))
    assert best < 5e-6  # far above what it takes, so that a busy machine does not fail it


def _time_of(log: BoundEventLog) -> float:
    began = time.perf_counter()
    for _ in range(1_000):
        log.event("target.stored", idx=1, outcome="done", seconds=0.5, code="")
    return (time.perf_counter() - began) / 1_000


def test_the_engines_events_pass_redact_urls_unchanged() -> None:
    """An application that puts `redact_urls` in its chain loses nothing of the engine's events."""
    for name, spec in EVENTS.items():
        given: dict[str, Any] = {
            "job_id": JOB,
            "outcome": "failed",
            "reason": "retry_after",
            "code": "page_not_found",
        }
        given |= {"step": "begin", "error": "SQLITE_IOERR_WRITE", "hook": "job_seconds", "site": "unknown"}
        given |= dict.fromkeys(["idx", "targets", "live", "asked"], 3) | {"caller_class": "fleet"}
        if name == "job.ended":
            given["error"] = "restart"
        event = {"event": name, **(allow_list(spec, given) or {})}
        assert redact_urls(None, "info", dict(event)) == event


def program(source: str) -> subprocess.CompletedProcess[str]:
    """Run a program of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_an_unconfigured_program_prints_nothing() -> None:
    """With neither logging nor structlog configured, info events go nowhere and nothing imports structlog."""
    done = program(
        """
        import sys
        from sift_batch._observe.log import open_event_log
        open_event_log().event("job.settled", job_id="0" * 32)
        assert "structlog" not in sys.modules
        import structlog
        open_event_log().event("job.settled", job_id="0" * 32)
        """
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_configured_structlog_is_used() -> None:
    """Once the application has configured structlog, a log that is opened after that writes to it."""
    done = program(
        """
        import structlog
        from sift_batch._observe.log import open_event_log
        before = open_event_log()
        structlog.configure(processors=[structlog.processors.KeyValueRenderer()])
        before.event("runner.closed", live=1)
        open_event_log().event("runner.closed", live=2)
        """
    )
    assert (done.stdout, done.stderr) == ("live=2 event='runner.closed'\n", "")


def test_a_factory_without_names_is_used() -> None:
    """A configured structlog whose logger factory takes no name gets the events too."""
    done = program(
        """
        import structlog
        from sift_batch._observe.log import open_event_log
        render = structlog.processors.KeyValueRenderer()
        structlog.configure(processors=[render], logger_factory=lambda: structlog.PrintLogger())
        open_event_log().event("runner.closed", live=2)
        """
    )
    assert (done.stdout, done.stderr) == ("live=2 event='runner.closed'\n", "")


def test_import_configures_nothing() -> None:
    """Importing every module of the package's logging leaves the process's logging as it was."""
    done = program(
        """
        import logging, sys, threading
        def hooks():
            return logging.getLogRecordFactory(), sys.excepthook, threading.excepthook, sys.unraisablehook
        before = hooks()
        import sift_batch._observe.log, sift_batch._observe.redact, sift_batch._observe.seal
        assert before == hooks()
        assert not logging.getLogger().handlers and not logging.getLogger("sift_batch").handlers
        assert logging.raiseExceptions and logging.lastResort and "structlog" not in sys.modules
        """
    )
    assert done.returncode == 0, done.stderr
