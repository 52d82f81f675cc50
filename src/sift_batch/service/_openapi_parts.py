"""Of what is the description of a route made? Parameters, headers, answers and problems, as values.

Bounds and names come from where the code has them. Which route has which is `_openapi_routes`' business,
how they are written down `_openapi`'s.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from sift_batch import JobState, TargetState

from ._codes import KINDS, TARGET_CODES
from ._job_routes import LIST_DEFAULT, LIST_LIMIT
from ._query import LARGEST
from ._reading_routes import MAX_WAIT, PAGE_DEFAULT, PAGE_LIMIT
from ._response import SECURITY_HEADERS
from ._schema_notes import JOB_ID, Note, Path

Kind = Any
"""A type that `_schema` knows."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A part of the query, or a header of the request; none must be given."""

    name: str
    kind: Kind
    about: str
    default: int | None = None
    where: str = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A good answer: its status, its kind for each media type, its headers (those in `sure` always)."""

    status: int
    about: str
    kinds: Mapping[str, Kind]
    headers: tuple[str, ...] = ()
    sure: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A route: what it does, what it takes, how it answers, and which problems it has of its own."""

    name: str
    tag: str
    summary: str
    about: str
    answers: tuple[Answer, ...]
    problems: frozenset[str] = frozenset()
    parameters: tuple[Parameter, ...] = ()
    body: Kind = None
    open: bool = False


JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
EVENTS: Final = "text/event-stream"
LINES: Final = ("application/jsonl", "application/x-ndjson")


# What the server says by itself, and what the door says before it looks for a route.
SERVER_CODES: Final = frozenset(
    {
        "malformed_request", "request_timeout", "body_too_large", "headers_too_large", "not_implemented",
        "server_busy", "http_version", "internal", "unknown_host",
    }
)  # fmt: skip
KEY_CODES: Final = frozenset({"unauthorized", "auth_failures", "store_unavailable", "bad_request"})
"""Those of every route that needs a key."""

JOB_CODES: Final = frozenset({"unknown_job", "gone", "unknown_path"})
BODY_CODES: Final = frozenset({"media_type", "bad_json"})
ROUTER_CODES: Final = frozenset({"method_not_allowed"})
"""Those that no route has: they say that there is none."""

TARGET_PROBLEMS: Final = TARGET_CODES

RETRY_AFTER_CODES: Final = frozenset(
    {
        "auth_failures", "server_busy", "store_unavailable", "jobs_busy", "caller_busy", "gate_busy", "busy",
        "not_finished",
    }
)  # fmt: skip
"""Problems that always say when to try again."""

MAY_RETRY_CODES: Final = RETRY_AFTER_CODES | {"job_live"}

_WHOLE = Annotated[int, Note(minimum=0, maximum=LARGEST)]
_FROM_ONE = Annotated[int, Note(minimum=1, maximum=LARGEST)]

CURSOR: Final = Parameter(
    "cursor",
    Annotated[str, Note(format="cursor", pattern=r"^[A-Za-z0-9_-]{23,300}$")],
    "`next_cursor` of the page before; only of the same list, asked in the same way by the same caller",
)
JOB_STATUS: Final = Parameter(
    "status", Annotated[str, Note(values=tuple(JobState))], "only jobs in this state"
)
TARGET_STATUS: Final = Parameter(
    "status", Annotated[str, Note(values=tuple(TargetState))], "only targets in this state"
)
JOB_COUNT: Final = Parameter(
    "limit", _FROM_ONE, f"at most so many; more than {LIST_LIMIT} is taken for {LIST_LIMIT}", LIST_DEFAULT
)
TARGET_COUNT: Final = Parameter(
    "limit", _FROM_ONE, f"at most so many; more than {PAGE_LIMIT} is taken for {PAGE_LIMIT}", PAGE_DEFAULT
)
WAIT: Final = Parameter(
    "wait",
    int,
    f"at most so many seconds for the job to settle; taken for 0 or {MAX_WAIT} where it lies beyond",
)
UNTIL: Final = Parameter(
    "until",
    Annotated[str, Note(values=("change",))],
    "with `wait`: only until the next change after the version in If-None-Match",
)
FOLLOW: Final = Parameter(
    "follow",
    Annotated[str, Note(values=("1",))],
    "with lines: go on as targets finish, until the job has settled",
)
PAGE_CHARS: Final = Parameter(
    "max_chars",
    _FROM_ONE,
    "at most so many characters of content, in whole targets; a first one that has more comes without its "
    "result, with `over_budget` and how to read it in parts",
)
PART_CHARS: Final = Parameter(
    "max_chars", _FROM_ONE, "at most so many characters of content, in whole blocks where that can be"
)
OFFSET: Final = Parameter("offset", _WHOLE, "skip so many characters: `next_offset` of the part before")
IF_NONE_MATCH: Final = Parameter(
    "If-None-Match",
    str,
    "the ETag that you have: while it is the job's, the answer is 304",
    where="header",
)
LAST_EVENT: Final = Parameter(
    "Last-Event-ID", str, "the last id that you have: the stream goes on from there", where="header"
)

_SURELY: Final = {name.decode().title(): value.decode() for name, value in SECURITY_HEADERS}
HEADERS: Final[Mapping[str, tuple[Kind, str]]] = {
    "Location": (Path, "the path of the job"),
    "Retry-After": (Annotated[int, Note(minimum=1)], "seconds"),
    "ETag": (
        Annotated[str, Note(pattern=r'^W/"[0-9]+"$')],
        "the version of the job: it changes with its state and its targets, not with its times and its pace",
    ),
    "Idempotent-Replayed": (
        Annotated[str, Note(values=("true",))],
        "nothing new was made: this job was there already",
    ),
    "X-Accel-Buffering": (Annotated[str, Note(values=("no",))], "asks a proxy to pass each piece on at once"),
    "WWW-Authenticate": (Annotated[str, Note(values=("Bearer",))], "how to send a key"),
    "Allow": (str, "the methods that the path has"),
    **{name: (Annotated[str, Note(values=(value,))], "on every answer") for name, value in _SURELY.items()},
}
"""Every header that an answer may have: its form, and what it says."""

ALWAYS: Final = tuple(_SURELY)
"""The headers of every answer; of the two pages, the policy is another one."""

PATH_PARTS: Final[tuple[tuple[str, Kind, str], ...]] = (
    ("id", Annotated[str, Note(pattern=JOB_ID)], "the id of a job"),
    ("idx", Annotated[int, Note(minimum=0, maximum=999_999_999)], "the place of a target in its job, from 0"),
)
"""What stands in the variable parts of a path, in their order."""


def statuses(codes: frozenset[str]) -> dict[int, list[str]]:
    """Return some codes by their status, both in order."""
    found: dict[int, list[str]] = {}
    for code in sorted(codes, key=lambda code: (KINDS[code].status, code)):
        found.setdefault(KINDS[code].status, []).append(code)
    return found
