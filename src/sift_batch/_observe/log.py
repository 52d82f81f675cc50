"""How does an event of the engine reach the application's logger?

`open_event_log` decides once, when a runner is opened, which logger that is; nothing is decided or
configured on import, and nothing is ever printed by this package itself. Events are built from the
registry alone. Whatever the logger does, an event never raises. Next: `events` and
`service_events` for what can be said.
"""

import contextlib
import logging
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final, Protocol

from trio.lowlevel import enable_ki_protection

from .events import LEVEL_NAMES, Value, allow_list
from .exceptions import calling_place
from .service_events import ALL_EVENTS

LOGGER_NAME: Final = "sift_batch"


def open_event_log(log: object = None) -> "BoundEventLog":
    """Return the log that a runner writes its events to.

    `log` is a structlog logger, a `logging.Logger` or a `LoggerAdapter`. None means the logger
    `sift_batch` of structlog if the application has configured structlog by now, else that of the standard
    `logging`. Never raises.
    """
    sink: _Sink
    if log is None:
        # A structlog that was never imported can't have been configured, and importing it is slow.
        structlog = sys.modules.get("structlog")
        if structlog is not None and structlog.is_configured():
            sink = _StructlogSink(_named(structlog))
        else:
            sink = _StandardSink(logging.getLogger("sift_batch"))
    elif isinstance(log, logging.Logger | logging.LoggerAdapter):
        sink = _StandardSink(log)
    else:
        sink = _StructlogSink(log)
    return BoundEventLog(sink, {})


def _named(structlog: ModuleType) -> Any:
    named = structlog.get_logger(LOGGER_NAME)
    try:
        named.bind()
    except Exception:
        # An application's own logger factory need not take a name.
        return structlog.get_logger()
    return named


class _Sink(Protocol):
    def wants(self, level: int) -> bool: ...

    def write(self, level: int, event: str, fields: Mapping[str, Value | None]) -> None: ...


class BoundEventLog:
    """An event log with the fields that all its events carry; see `EventLog` for what it promises."""

    __slots__ = ("_bound", "_sink", "debug_enabled")

    # Set once, when bound: whether debug events are wanted. A job binds its log when it starts, so a
    # level that is changed later counts from the next job on.
    debug_enabled: bool

    def __init__(self, sink: _Sink, bound: Mapping[str, Value]) -> None:
        self._sink = sink
        self._bound = bound
        self.debug_enabled = True
        with contextlib.suppress(BaseException):
            self.debug_enabled = sink.wants(logging.DEBUG)

    def bind(self, **fields: Value) -> "BoundEventLog":
        """Return a log whose events carry these fields as well.

        With `caller_class="restricted"` its events say nothing of single targets, failures or times.
        """
        return BoundEventLog(self._sink, {**self._bound, **fields})

    @enable_ki_protection
    def event(self, name: str, **fields: Value) -> None:
        """Log one registered event at its registered level; an unregistered field is dropped.

        An unregistered event becomes `log.rejected` with the place of the call. Never raises, whatever the
        logger does; a real Ctrl-C does not strike in it, but at the next checkpoint.
        """
        spec = ALL_EVENTS.get(name)
        if spec is None:
            name, fields = "log.rejected", {"site": calling_place("sift_batch._observe.")}
            spec = ALL_EVENTS[name]
        elif spec.level == logging.DEBUG and not self.debug_enabled:
            return
        with contextlib.suppress(BaseException):
            if spec.level != logging.DEBUG and not self._sink.wants(spec.level):
                return
            allowed = allow_list(spec, {**self._bound, **fields})
            if allowed is not None:
                self._sink.write(spec.level, name, allowed)


class _StandardSink:
    """Writes to the standard `logging`.

    The message is one constant text for each event, the values are its mapping of arguments: what
    groups records by message groups by event.
    """

    def __init__(self, logger: "logging.Logger | logging.LoggerAdapter[Any]") -> None:
        self._logger = logger

    def wants(self, level: int) -> bool:
        return self._logger.isEnabledFor(level)

    def write(self, level: int, event: str, fields: Mapping[str, Value | None]) -> None:
        if fields:
            message = " ".join([event, *(f"{key}=%({key})s" for key in fields)])
            self._logger.log(level, message, dict(fields))
        else:
            self._logger.log(level, event)


class _StructlogSink:
    """Writes to a structlog logger, or to anything with `info(event, **fields)` and the like."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger

    def wants(self, level: int) -> bool:
        # Only debug is worth the question; the rest is rare, and structlog drops it itself.
        if level != logging.DEBUG:
            return True
        # Binding gives a lazy proxy its real class. The question is looked up on the class, because
        # structlog's generic logger would take an unknown method for the name of a level and log it.
        bind = getattr(type(self._logger), "bind", None)
        bound = bind(self._logger) if bind is not None else self._logger
        for name in ("is_enabled_for", "isEnabledFor"):
            ask = getattr(type(bound), name, None)
            if ask is not None:
                return bool(ask(bound, level))
        return True

    def write(self, level: int, event: str, fields: Mapping[str, Value | None]) -> None:
        getattr(self._logger, LEVEL_NAMES[level])(event, **fields)
