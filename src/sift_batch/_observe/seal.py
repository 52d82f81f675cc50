"""How is a whole process kept from saying a target aloud, whichever library speaks?

`seal_logging` is for programs, on request: the service and the command line call it first of all. The
engine as a library never does. It replaces what the process uses to speak of itself: the record factory and
the root handler of `logging`, the hooks for uncaught errors, the warnings, and structlog's configuration.
It can't reach a `print`, a handler that reads `extra=` attributes, or a thread's name in the process table.
"""

import contextlib
import logging
import sys
import threading
import types
from collections.abc import MutableMapping
from typing import Any, Final

from .events import LEVEL_NAMES, allow_list
from .exceptions import current_or, describe, log_call_place
from .harmless import logger_name
from .lines import finished_line
from .redact import redact_urls
from .service_events import ALL_EVENTS

_SEALED: Final = "_sift_batch_sealed"


class _Line(str):
    """A finished line, told from any text that others may put into a record."""

    __slots__ = ()


def seal_logging() -> None:
    """Make everything that this process logs, warns of or dies of free of targets. Idempotent.

    From now on standard error gets one JSON line for each log record, structlog event, warning and
    uncaught error. A record of the standard `logging` keeps its level, its logger's name (if that is a
    module's) and the place of the call; its message and arguments never enter it, so other
    handlers, stock formatters too, have nothing to show. Errors are told by type and place.
    Events of structlog pass the engine's registry, or `redact_urls` if they are an application's own.

    Replaces the root logger's handlers and structlog's configuration. The level of structlog's events is
    that of the logger `sift_batch` if one is set, else INFO. Call it first, before libraries are imported:
    a structlog logger that was used before and caches itself stays as it was.
    """
    logging.setLogRecordFactory(_sealed_record)
    logging.raiseExceptions = False
    logging.lastResort = None
    logging.captureWarnings(True)
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if type(handler) is not SealedHandler:
            root.removeHandler(handler)
    if not root.handlers:
        root.addHandler(SealedHandler())
    sys.excepthook = _on_uncaught
    threading.excepthook = _on_uncaught_in_thread
    sys.unraisablehook = _on_unraisable
    _seal_structlog()


def unsealed_handlers() -> list[logging.Handler]:
    """Return the handlers that are not the seal's own, on the root and on every logger.

    They get sealed records, but one that reads the attributes given as `extra=` can still tell them. A
    `NullHandler` tells nothing and is not listed.
    """
    loggers: list[object] = [logging.getLogger(), *logging.Logger.manager.loggerDict.values()]
    return [
        handler
        for logger in loggers
        if isinstance(logger, logging.Logger)
        for handler in logger.handlers
        if type(handler) not in (SealedHandler, logging.NullHandler)
    ]


class SealedHandler(logging.Handler):
    """Writes sealed records to standard error. Never formats, and reads nothing else of a record."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line that the record factory made, or a constant one for any other record."""
        line = record.__dict__.get(_SEALED)
        if type(line) is not _Line:
            line = _foreign_line("other", record.__dict__.get("levelno"), "unknown", None)
        write_line(line)


def write_line(line: str) -> None:
    """Write one finished line to the standard error of this moment; a closed or broken one is no fault."""
    with contextlib.suppress(Exception):
        # One call for text and line end, so that lines of several threads don't mix.
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


def _foreign_line(name: str, level: object, site: str, error: BaseException | None) -> _Line:
    fields: dict[str, object] = {"event": "foreign", "logger": name, "site": site}
    if error is not None:
        fields["exc"] = describe(error)
    return _Line(finished_line(_level_name(level), fields))


def _level_name(level: object) -> str:
    return LEVEL_NAMES.get(level, "notset") if type(level) is int else "notset"


def _sealed_record(
    name: str,
    level: int,
    fn: str,
    lno: int,
    msg: object,
    args: object,
    exc_info: object,
    func: str | None = None,
    sinfo: str | None = None,
    **kwargs: object,
) -> logging.LogRecord:
    """Make a record that holds nothing of what was logged: the same whoever owns the handler."""
    known = logger_name(name) if type(name) is str else "other"
    # Only the first name of a dotted one: the rest may have been chosen at run time.
    known = known.partition(".")[0] if known != "py.warnings" else known
    site = log_call_place(fn, lno)
    line = _foreign_line(known, level, site, current_or(exc_info))
    module, _, number = site.rpartition(":")
    record = logging.LogRecord(known, level if type(level) is int else 0, "", 0, line, None, None)
    if module:
        record.module, record.lineno = module, int(number)
    record.threadName = record.processName = "sealed"
    if hasattr(record, "taskName"):
        record.taskName = None
    record.__dict__[_SEALED] = line
    return record


def _on_uncaught(
    kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None
) -> None:
    _write_uncaught("uncaught", error)


def _on_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if not issubclass(args.exc_type, SystemExit):
        _write_uncaught("uncaught.thread", args.exc_value)


def _on_unraisable(unraisable: "sys.UnraisableHookArgs") -> None:
    _write_uncaught("uncaught.unraisable", unraisable.exc_value)


def _write_uncaught(event: str, error: BaseException | None) -> None:
    fields: dict[str, object] = {"event": event}
    if error is not None:
        fields["exc"] = describe(error)
    write_line(finished_line("critical", fields))


def _seal_structlog() -> None:
    # Imported here: an embedding program that never seals doesn't pay for it.
    import structlog

    level = logging.getLogger("sift_batch").level or logging.INFO
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _sealed_event],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        context_class=dict,
        logger_factory=_LineLogger,
        cache_logger_on_first_use=False,
    )


def _sealed_event(logger: Any, method_name: str, event_dict: MutableMapping[str, Any]) -> str:
    """Return the finished line of a structlog event: the last processor, and the renderer too."""
    event = event_dict.get("event")
    spec = ALL_EVENTS.get(event) if type(event) is str else None
    if spec is not None:
        allowed = allow_list(spec, dict(event_dict))
        if allowed is None:
            raise sys.modules["structlog"].DropEvent
        return finished_line(LEVEL_NAMES[spec.level], {"event": event, **allowed})
    clean = redact_urls(logger, method_name, event_dict)
    for taken in ("timestamp", "level"):
        clean.pop(taken, None)
    level = "error" if method_name == "exception" else method_name
    return finished_line(level if level in LEVEL_NAMES.values() else "notset", clean)


class _LineLogger:
    """What structlog calls with a finished line; every method writes it."""

    def __init__(self, *args: object) -> None:
        """Take the arguments of `get_logger`, and forget them: a name could be a host's."""

    def write(self, line: str) -> None:
        write_line(line)

    debug = info = warning = warn = error = critical = fatal = exception = msg = log = write
