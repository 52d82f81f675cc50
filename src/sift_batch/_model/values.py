"""The values that travel between the rooms: what a caller gives and what a reader gets.

All are frozen. None of them shows a target in its `repr`: a value that ends up in a log line or a
traceback by mistake must not give a URL away (docs/security.md, RED-21).
"""

import enum
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .lifecycle import JobState, TargetState

_NAME_LIMIT: Final = 1_024


class CallerClass(enum.StrEnum):
    """How discreetly a caller's work is treated: logs and metrics of a restricted caller say less."""

    FLEET = "fleet"
    RESTRICTED = "restricted"


@dataclass(frozen=True, slots=True, repr=False)
class Caller:
    """Who submits.

    Only `name` and `caller_class` are stored with a job; `workspace` and `key_sha256` are given to
    the fetch and forgotten with the process, which is why jobs are never resumed after a restart.

    Raises `ValueError` for a name that is empty, longer than 1,024 characters, or holds NUL or a
    surrogate, and `TypeError` for one that is no `str`.
    """

    name: str
    workspace: str = ""
    key_sha256: str = ""
    caller_class: CallerClass = CallerClass.FLEET

    def __post_init__(self) -> None:
        check_caller_name(self.name)
        object.__setattr__(self, "caller_class", CallerClass(self.caller_class))

    def __repr__(self) -> str:
        return "Caller(...)"


def check_caller_name(name: object) -> None:
    """Raise `ValueError` or `TypeError`, saying what to do, unless `name` can name a caller."""
    if not isinstance(name, str):
        raise TypeError(f"a caller's name must be a str, not {type(name).__name__}")
    if not name:
        raise ValueError("a caller's name must not be empty; give the caller a name")
    if len(name) > _NAME_LIMIT:
        raise ValueError(
            f"a caller's name must have at most {_NAME_LIMIT:,} characters, this one has {len(name):,}"
        )
    if "\0" in name or any("\ud800" <= char <= "\udfff" for char in name):
        raise ValueError("a caller's name must not hold NUL or a surrogate; use plain text")


def caller_name(caller: object) -> str | None:
    """Return the name to look a caller's jobs up by; None for no caller in particular.

    A text that can name no caller becomes "", which owns no job, so that it is answered by the same
    look-up as any other. Raises `TypeError` for what is neither a `Caller` nor a name.
    """
    if caller is None:
        return None
    if isinstance(caller, Caller):
        return caller.name
    try:
        check_caller_name(caller)
    except ValueError:
        return ""
    except TypeError:
        kind = type(caller).__name__
        raise TypeError(f"caller must be a Caller or its name, not {kind}") from None
    return str(caller)


_TEXT_OPTIONS: Final = ("mode", "question", "pages", "grep", "jq")


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Options:
    """How one target is to be fetched and what of it is wanted.

    The engine stores options, counts them into the idempotency key and hands them to the fetch;
    what they mean is the fetch's business.
    """

    mode: str = ""
    question: str = ""
    pages: str = ""
    grep: str = ""
    jq: str = ""
    context: bool | None = None
    recover: bool = False

    def __post_init__(self) -> None:
        for name in _TEXT_OPTIONS:
            value = getattr(self, name)
            if type(value) is not str and not isinstance(value, str):
                raise TypeError(f"option {name} must be a str, not {type(value).__name__}")
        if self.context is not None and type(self.context) is not bool:
            raise TypeError(f"option context must be a bool or None, not {type(self.context).__name__}")
        if type(self.recover) is not bool:
            raise TypeError(f"option recover must be a bool, not {type(self.recover).__name__}")

    def __repr__(self) -> str:
        return "Options(...)"


NO_OPTIONS: Final = Options()


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """One URL with its options. The engine never looks into the URL."""

    url: str
    options: Options = NO_OPTIONS

    def __post_init__(self) -> None:
        if not isinstance(self.url, str):
            raise TypeError(f"a target's url must be a str, not {type(self.url).__name__}")
        if not isinstance(self.options, Options):
            raise TypeError(f"a target's options must be Options, not {type(self.options).__name__}")

    def __repr__(self) -> str:
        return "Target(...)"


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """What a fetch gives for one target: text, and facts about it that JSON can hold."""

    content: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "Result(...)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as it was stored at one moment. Times are unix seconds; `nbytes` counts stored bytes.

    `settled` is true once the job is terminal and no fetch of it is still in flight. `version`
    rises by one with each stored change that a reader can see (a moved lease is none).
    """

    id: str
    caller: str
    caller_class: CallerClass
    status: JobState
    settled: bool
    error: str
    targets_total: int
    targets_done: int
    targets_failed: int
    version: int
    created_at: int
    started_at: int | None
    finished_at: int | None
    lease: int
    nbytes: int
    rerun_of: str | None


@dataclass(frozen=True, slots=True, repr=False)
class TargetStatus:
    """One target of a job as it was stored at one moment.

    `chars` counts the code points of a stored result's content, whether or not `result` was asked
    for. `code`, `hint`, `http_status` and `retryable` say more about a failure.
    """

    idx: int
    url: str
    options: Options
    status: TargetState
    result: Result | None
    error: str
    hint: str
    code: str
    http_status: int | None
    retryable: bool
    chars: int

    def __repr__(self) -> str:
        return "TargetStatus(...)"


class Submission(NamedTuple):
    """What a submit gives: the job's id, and whether a job that was already there answers."""

    id: str
    reused: bool


class JobStatus(NamedTuple):
    """A job and its targets, read in one step."""

    job: Job
    targets: tuple[TargetStatus, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """Why a live job waits, and how fast it goes. Seconds are Trio's.

    `reason` is one of "", "queue", "gate", "host", "retry_after", "store"; `since` the unix second
    at which that wait began; `pace` the seconds that a target has taken so far; `eta` the seconds
    to completion that follow from it. None where it can't be known yet.
    """

    reason: str
    since: int | None
    pace: float | None
    eta: float | None


@dataclass(frozen=True, slots=True)
class RunnerStatistics:
    """A runner at one moment, from memory.

    `workers` that may drain at the same time; jobs `queued` and `running`; targets `in_flight`;
    bytes of all stored jobs; whether removed rows of a restricted caller still wait to be wiped
    from the write-ahead log.
    """

    workers: int
    queued: int
    running: int
    in_flight: int
    stored_bytes: int
    erasure_pending: bool


class Attempt(NamedTuple):
    """Which call of the fetch this is: the job, the target's index, and its number from 1."""

    job_id: str
    idx: int
    number: int


attempt: Final[ContextVar[Attempt]] = ContextVar("sift_batch.attempt")
"""Set in the context in which a fetch runs; unset everywhere else."""

FetchFunc = Callable[[Caller, Target], Awaitable[Result]]
"""The work on one target. It may return a `Result`, or raise `TargetError`, `RetryLater` or anything."""
