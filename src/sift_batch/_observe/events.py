"""What can the engine say, and with which fields?

The registry: each event has a level and fields, each field a check. There is no free text: a field is a
bounded number, a truth value, a word of a closed set, a job id, or a place in the code. So whatever is
handed over, a target can't get into a line. Nothing here knows a logger. Next: `log`, which sends events,
and `lines`, which writes them in a sealed process.
"""

import logging
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from sift_batch._model.lifecycle import JobState, TargetState
from sift_batch._model.values import CallerClass

Value = str | int | float | bool
Check = Callable[[object], Value | None]
"""Gives the value as it may be logged, or None if it is none that the field can have."""

_OURS: Final = (JobState, TargetState, CallerClass)
_JOB_ID: Final = re.compile(r"[0-9a-f]{32}")
_PLACE: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_.]{0,120}):[0-9]{1,6}|unknown")
_MOST: Final = 2**53
_LONGEST: Final = 1e12


def whole(value: object) -> Value | None:
    """Check a count: an int from 0 to 2**53, and no bool."""
    return value if type(value) is int and 0 <= value <= _MOST else None


def seconds(value: object) -> Value | None:
    """Check a time: 0 or more, cut at 1e12 since JSON knows no infinity."""
    if type(value) not in (int, float) or not isinstance(value, int | float):
        return None
    return None if math.isnan(value) or value < 0 else min(value, _LONGEST)


def word(*words: str) -> Check:
    """Make a check for a closed set; everything else is refused."""
    allowed = frozenset(words)

    def check(value: object) -> Value | None:
        text = _plain(value)
        return text if text is not None and text in allowed else None

    return check


def name(names: Iterable[str]) -> Check:
    """Make a check for an open set of which a closed part is shown; everything else is `other`."""
    allowed = frozenset(names)

    def check(value: object) -> Value | None:
        text = _plain(value)
        return text if text is not None and text in allowed else "other"

    return check


def job_id(value: object) -> Value | None:
    """Check a job's id: 32 hex digits in lower case."""
    return value if type(value) is str and _JOB_ID.fullmatch(value) else None


def site(value: object) -> Value | None:
    """Check a place in the code, `module:line`, of a module that is loaded."""
    match = _PLACE.fullmatch(value) if type(value) is str else None
    if match is None or (match[1] is not None and match[1] not in sys.modules):
        return None
    return match[0]


def _plain(value: object) -> str | None:
    if type(value) is str:
        return value
    # Members of our own closed sets; any other subclass of str may lie in comparisons.
    return str.__str__(value) if type(value) in _OURS and isinstance(value, str) else None


_SQLITE: Final = """
ABORT ABORT_ROLLBACK AUTH BUSY BUSY_RECOVERY BUSY_SNAPSHOT BUSY_TIMEOUT CANTOPEN CANTOPEN_CONVPATH
CANTOPEN_DIRTYWAL CANTOPEN_FULLPATH CANTOPEN_ISDIR CANTOPEN_NOTEMPDIR CANTOPEN_SYMLINK CONSTRAINT
CONSTRAINT_CHECK CONSTRAINT_FOREIGNKEY CONSTRAINT_NOTNULL CONSTRAINT_PRIMARYKEY CONSTRAINT_ROWID
CONSTRAINT_UNIQUE CORRUPT CORRUPT_INDEX CORRUPT_SEQUENCE ERROR ERROR_SNAPSHOT FORMAT FULL INTERNAL INTERRUPT
IOERR IOERR_ACCESS IOERR_BEGIN_ATOMIC IOERR_BLOCKED IOERR_CHECKRESERVEDLOCK IOERR_CLOSE IOERR_COMMIT_ATOMIC
IOERR_CORRUPTFS IOERR_DATA IOERR_DELETE IOERR_DELETE_NOENT IOERR_DIR_CLOSE IOERR_DIR_FSYNC IOERR_FSTAT
IOERR_FSYNC IOERR_GETTEMPPATH IOERR_LOCK IOERR_MMAP IOERR_NOMEM IOERR_RDLOCK IOERR_READ IOERR_ROLLBACK_ATOMIC
IOERR_SEEK IOERR_SHMLOCK IOERR_SHMMAP IOERR_SHMOPEN IOERR_SHMSIZE IOERR_SHORT_READ IOERR_TRUNCATE
IOERR_UNLOCK IOERR_WRITE LOCKED LOCKED_SHAREDCACHE MISMATCH MISUSE NOLFS NOMEM NOTADB NOTFOUND PERM PROTOCOL
RANGE READONLY READONLY_CANTINIT READONLY_CANTLOCK READONLY_DBMOVED READONLY_DIRECTORY READONLY_RECOVERY
READONLY_ROLLBACK SCHEMA TOOBIG
"""
_TYPES: Final = """
ArithmeticError AssertionError AttributeError BaseException BaseExceptionGroup BlockingIOError
BrokenPipeError BrokenResourceError BufferError BusyResourceError CancelledError ClosedResourceError
ConnectionAbortedError ConnectionError ConnectionRefusedError ConnectionResetError DataError DatabaseError
EOFError EndOfChannel Exception ExceptionGroup FileExistsError FileNotFoundError FloatingPointError
GeneratorExit IllegalMove ImportError IndexError IntegrityError InterfaceError InternalError InterruptedError
IsADirectoryError KeyError LookupError MemoryError ModuleNotFoundError NameError NotADirectoryError
NotImplementedError NotSupportedError OSError OperationalError OverflowError PermissionError
ProcessLookupError ProgrammingError RecursionError ReferenceError RetryLater RunFinishedError RuntimeError
StopAsyncIteration StopIteration StoreError StoreInUseError StoreVersionError SubmitError SyntaxError
SystemError TargetError TimeoutError TooSlowError TrioInternalError TypeError UnboundLocalError
UnicodeDecodeError UnicodeEncodeError UnicodeError ValueError WouldBlock ZeroDivisionError
"""
SQLITE_NAMES: Final = frozenset("SQLITE_" + item for item in _SQLITE.split())
ERROR_TYPES: Final = frozenset(_TYPES.split())
ENGINE_CODES: Final = ("timeout", "busy", "bad_result", "internal")
FETCH_CODES: Final = (
    "refused",
    "robots",
    "blocked",
    "page_not_found",
    "page_gone",
    "auth_required",
    "http_error",
    "too_large",
    "unsupported_type",
    "bad_option",
    "dns",
    "connect",
    "tls",
    "protocol",
    "redirect_loop",
    "server_error",
    "extract_failed",
)
CODES: Final = (*ENGINE_CODES, *FETCH_CODES)
"""The codes of failed targets that are shown by name; any other is `other`."""
BUSY_REASONS: Final = ("gate", "host", "retry_after")
HOOKS: Final = (
    "job",
    "target",
    "target_restricted",
    "job_seconds",
    "ended",
    "queued",
    "depth",
    "in_flight",
    "busy",
    "refused",
    "store",
    "stored",
    "swept",
    "evicted",
)
STORE_STEPS: Final = (
    "acquire",
    "release",
    "submit",
    "rerun",
    "begin",
    "record",
    "stop",
    "settle",
    "touch",
    "delete",
    "lapsed",
    "sweep",
    "evict",
    "erase",
    "check",
    "job",
    "status",
    "jobs",
    "gone",
)


@dataclass(frozen=True, slots=True)
class Event:
    """One registered event. Fields `for_fleet` are left out for a restricted caller.

    An event `of_target` is not logged for a restricted caller at all.
    """

    level: int
    fields: Mapping[str, Check]
    for_fleet: frozenset[str] = frozenset()
    of_target: bool = False


def event(level: int, *, fleet: str = "", of_target: bool = False, **fields: Check) -> Event:
    """Make a registered event; `fleet` names, with blanks between, what a restricted caller's has not."""
    return Event(level, MappingProxyType(fields), frozenset(fleet.split()), of_target)


_CLASS: Final = word("fleet", "restricted")
_ERROR: Final = name(SQLITE_NAMES | ERROR_TYPES | {""})
_JOB_OUTCOME: Final = word("done", "partial", "failed", "cancelled")

EVENTS: Final[Mapping[str, Event]] = MappingProxyType(
    {
        "job.created": event(logging.INFO, job_id=job_id, targets=whole, caller_class=_CLASS),
        "job.reused": event(logging.INFO, job_id=job_id, caller_class=_CLASS),
        "job.started": event(logging.INFO, job_id=job_id),
        "job.ended": event(
            logging.INFO,
            fleet="error done failed",
            job_id=job_id,
            outcome=_JOB_OUTCOME,
            error=word("", "restart", "timeout"),
            targets=whole,
            done=whole,
            failed=whole,
        ),
        "job.settled": event(logging.INFO, job_id=job_id),
        "job.deleted": event(logging.INFO, job_id=job_id),
        "runner.opened": event(logging.INFO, workers=whole, restarted=whole),
        "runner.closing": event(logging.INFO, live=whole, in_flight=whole, grace=seconds),
        "runner.closed": event(logging.INFO, live=whole),
        "store.swept": event(logging.INFO, jobs=whole),
        "store.evicted": event(logging.INFO, jobs=whole),
        "target.started": event(logging.DEBUG, of_target=True, job_id=job_id, idx=whole, attempt=whole),
        "target.stored": event(
            logging.DEBUG,
            of_target=True,
            job_id=job_id,
            idx=whole,
            outcome=word("done", "failed"),
            seconds=seconds,
            code=name((*CODES, "")),
        ),
        "target.busy": event(
            logging.DEBUG, of_target=True, job_id=job_id, idx=whole, reason=word(*BUSY_REASONS), wait=seconds
        ),
        "store.trouble": event(logging.WARNING, job_id=job_id, step=name(STORE_STEPS), error=_ERROR),
        "hook.failed": event(logging.WARNING, hook=name(HOOKS), error=_ERROR),
        "workers.clamped": event(logging.WARNING, asked=whole, limit=whole),
        "fetch.stuck": event(logging.WARNING, job_id=job_id),
        "job.lost": event(logging.WARNING, job_id=job_id),
        "log.rejected": event(logging.WARNING, site=site),
    }
)
LEVEL_NAMES: Final[Mapping[int, str]] = MappingProxyType(
    {10: "debug", 20: "info", 30: "warning", 40: "error", 50: "critical"}
)


def allow_list(spec: Event, given: Mapping[str, object]) -> dict[str, Value | None] | None:
    """Return the fields of `spec` as they may be logged, or None if nothing may.

    Walks the registered fields and never the given ones. A value that its check refuses becomes
    None, and `rejected_fields` counts them. `caller_class="restricted"` among the given leaves out what
    a restricted caller's line may not say.
    """
    restricted = _plain(given.get("caller_class")) == CallerClass.RESTRICTED.value
    if restricted and spec.of_target:
        return None
    fields: dict[str, Value | None] = {}
    rejected = 0
    for key, check in spec.fields.items():
        if key not in given or (restricted and key in spec.for_fleet):
            continue
        value = fields[key] = check(given[key])
        rejected += value is None
    if rejected:
        fields["rejected_fields"] = rejected
    return fields
