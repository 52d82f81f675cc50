"""What does each route do, in words and in forms? One description for each route of the router's table.

A route without one can't be written down, and a test fails. The words are here; bounds come from the code
(`_openapi_parts`), forms from the types of the views and bodies.
"""

from collections.abc import Mapping
from typing import Final

from ._openapi_parts import (
    BODY_CODES,
    CURSOR,
    EVENTS,
    FOLLOW,
    IF_NONE_MATCH,
    JOB_CODES,
    JOB_COUNT,
    JOB_STATUS,
    JSON,
    LAST_EVENT,
    LINES,
    OFFSET,
    PAGE_CHARS,
    PART_CHARS,
    TARGET_COUNT,
    TARGET_PROBLEMS,
    TARGET_STATUS,
    UNTIL,
    WAIT,
    Answer,
    Operation,
)
from ._schema_orders import BatchOrder, FetchOrder
from ._schema_types import (
    CancelView,
    Event,
    JobView,
    LimitsView,
    Page,
    PageTarget,
    ResultView,
    TargetPart,
    TargetRow,
    TargetView,
)

_BUSY: Final = frozenset({"caller_busy", "jobs_busy", "too_many_targets"})
_SUBMIT: Final = Operation(
    name="submitBatch",
    tag="jobs",
    summary="Submit a job",
    about="The answer comes once the job is stored, and before anything is fetched. A live job with the "
    "same targets and options is joined; so is one that is `done` or `partial`, unless it ended more"
    " than `max_age` seconds ago. Which options a page takes, and whether a jq program or a pattern "
    "is sound, is checked for each target: `errors` names every bad one by its place.",
    body=BatchOrder,
    answers=(
        Answer(
            status=202,
            about="A new job.",
            kinds={JSON: JobView},
            sure=("Location", "Retry-After"),
        ),
        Answer(
            status=200,
            about="A job that was there already. Where targets of it failed, `next` is its rerun.",
            kinds={JSON: JobView},
            headers=("Retry-After",),
            sure=("Location", "Idempotent-Replayed"),
        ),
    ),
    problems=BODY_CODES | _BUSY | {"no_targets"},
)

_LIST: Final = Operation(
    name="listBatches",
    tag="jobs",
    summary="List your jobs",
    about="Newest first, and nobody else's. Listing does not keep a job alive.",
    parameters=(JOB_STATUS, JOB_COUNT, CURSOR),
    answers=(Answer(status=200, about="A page of jobs.", kinds={JSON: Page[JobView]}),),
)

_JOB: Final = Operation(
    name="getBatch",
    tag="jobs",
    summary="See how a job is, or wait for it",
    about="It never holds content. With `wait` the answer comes when the job has settled, or when the time"
    " is over; with `until=change` as well, at the next change. `until` needs `wait`. A 304 does not"
    " keep the job alive; an answer with a body does.",
    parameters=(WAIT, UNTIL, IF_NONE_MATCH),
    answers=(
        Answer(
            status=200,
            about="The job as it is now.",
            kinds={JSON: JobView},
            headers=("ETag", "Retry-After"),
            sure=("ETag",),
        ),
        Answer(status=304, about="It is as you know it.", kinds={}, headers=("ETag",), sure=("ETag",)),
    ),
    problems=JOB_CODES,
)

_DELETE: Final = Operation(
    name="deleteBatch",
    tag="jobs",
    summary="Delete a job and its results",
    about="Only once it has settled: cancel it first. It is safe to repeat.",
    answers=(Answer(status=204, about="It is gone.", kinds={}),),
    problems=JOB_CODES | {"job_live"},
)

_TARGETS: Final = Operation(
    name="listTargets",
    tag="results",
    summary="List all targets of a job",
    about="In input order, in whatever state, without content.",
    parameters=(TARGET_STATUS, TARGET_COUNT, CURSOR),
    answers=(Answer(status=200, about="A page of targets.", kinds={JSON: Page[TargetRow]}),),
    problems=JOB_CODES,
)

_RESULTS: Final = Operation(
    name="listResults",
    tag="results",
    summary="Read what the targets gave",
    about="In input order. While the job is not settled, a page ends before the first target that is not "
    "finished, and there is always a `next_cursor`; null means settled and complete. Once settled, a"
    " target that was never fetched is there too, as `pending` with `not_fetched`: every target "
    "comes exactly once. With `Accept: application/jsonl` or `application/x-ndjson` each target is a"
    " line: those that are finished now, or with `follow=1` all until the job has settled, with "
    "a space every 15 seconds while none comes. Lines take `status` and `follow` only; `follow` is for "
    "lines only.",
    parameters=(TARGET_STATUS, TARGET_COUNT, CURSOR, PAGE_CHARS, FOLLOW),
    answers=(
        Answer(
            status=200,
            about="A page of results, or lines: the schema is that of each line.",
            kinds={JSON: Page[PageTarget], **dict.fromkeys(LINES, TargetView)},
            headers=("X-Accel-Buffering",),
        ),
    ),
    problems=JOB_CODES,
)

_TARGET: Final = Operation(
    name="getTarget",
    tag="results",
    summary="Read one target, whole or in parts",
    about="Once it is finished, also if it failed, or once the job has settled. With `offset` or "
    "`max_chars` the answer has a part of the content, and `next_offset`: the parts, put together, "
    "are the content.",
    parameters=(OFFSET, PART_CHARS),
    answers=(Answer(status=200, about="The target.", kinds={JSON: TargetPart}),),
    problems=JOB_CODES | {"unknown_target", "not_finished"},
)

_EVENTS_ROUTE: Final = Operation(
    name="followBatch",
    tag="results",
    summary="Follow a job live",
    about="Server-sent events, until the job has settled. Whoever comes back with Last-Event-ID has missed"
    " nothing. A comment every 15 seconds keeps the line open.",
    parameters=(LAST_EVENT,),
    answers=(
        Answer(
            status=200,
            about="The events: the schema is that of each one.",
            kinds={EVENTS: Event},
            headers=("X-Accel-Buffering",),
            sure=("X-Accel-Buffering",),
        ),
        Answer(status=204, about="It has settled, and Last-Event-ID is its last version.", kinds={}),
    ),
    problems=JOB_CODES,
)

_CANCEL: Final = Operation(
    name="cancelBatch",
    tag="jobs",
    summary="Cancel a job",
    about="No target of it is begun any more; what was fetched stays. It is safe to repeat.",
    answers=(Answer(status=200, about="The job as it is now.", kinds={JSON: CancelView}),),
    problems=JOB_CODES,
)

_RERUN: Final = Operation(
    name="rerunBatch",
    tag="jobs",
    summary="Fetch what failed or was not fetched",
    about="A new job with the same targets: those that are done are carried over, all others are fetched. "
    "While a rerun of this job is live, the answer is that one; with nothing left to fetch, the job "
    "itself.",
    answers=_SUBMIT.answers,
    problems=JOB_CODES | _BUSY | {"job_live"},
)

_FETCH: Final = Operation(
    name="fetchNow",
    tag="now",
    summary="Fetch one page now",
    about="Through the same pipeline as a job's targets, and before them; nothing is stored. It waits up "
    "to 5 seconds for a slot, and answers within 55. A problem that is about the page and not about "
    "the request has `origin` and `http_status`.",
    body=FetchOrder,
    answers=(Answer(status=200, about="What the page gave.", kinds={JSON: ResultView}),),
    problems=BODY_CODES | TARGET_PROBLEMS | {"gate_busy"},
)

_LIMITS: Final = Operation(
    name="getLimits",
    tag="now",
    summary="See what you may do, and what you have",
    about="Your own; nothing of all callers together.",
    answers=(Answer(status=200, about="The limits.", kinds={JSON: LimitsView}),),
)

_BATCH: Final = ("v1", "batch")
_ONE: Final = (*_BATCH, "*")
DESCRIBED: Final[Mapping[tuple[str, ...], Mapping[str, Operation]]] = {
    _BATCH: {"POST": _SUBMIT, "GET": _LIST},
    _ONE: {"GET": _JOB, "DELETE": _DELETE},
    (*_ONE, "targets"): {"GET": _TARGETS},
    (*_ONE, "targets", "*"): {"GET": _TARGET},
    (*_ONE, "results"): {"GET": _RESULTS},
    (*_ONE, "events"): {"GET": _EVENTS_ROUTE},
    (*_ONE, "cancel"): {"POST": _CANCEL},
    (*_ONE, "rerun"): {"POST": _RERUN},
    ("v1", "fetch"): {"POST": _FETCH},
    ("v1", "limits"): {"GET": _LIMITS},
}
"""The description of each route, by its path and method."""


def _open(name: str, summary: str, *kinds: str, about: str = "") -> Operation:
    answer = Answer(status=200, about=summary + ".", kinds=dict.fromkeys(kinds, str))
    return Operation(name=name, tag="open", summary=summary, about=about, answers=(answer,), open=True)


_READY: Final = Operation(
    name="ready",
    tag="open",
    summary="Whether it can take work",
    about="No details, for anybody.",
    answers=(
        Answer(status=200, about="`ready`", kinds={"text/plain": str}),
        Answer(status=503, about="`not ready`", kinds={"text/plain": str}),
    ),
    open=True,
)

OPEN: Final[Mapping[str, Operation]] = {
    "/healthz": _open("live", "Whether the process lives", "text/plain"),
    "/readyz": _READY,
    "/": _open(
        "dashboard",
        "The dashboard",
        *("text/html", "text/javascript", "text/css"),
        about="Its files: `/?dashboard.js`, `/?dashboard.css`.",
    ),
    "/docs": _open(
        "docs",
        "This description, for people",
        *("text/html", "text/css"),
        about="Its file: `/docs?docs.css`.",
    ),
    "/openapi.json": _open("openapi", "This description", JSON),
    "/llms.txt": _open("agents", "How an agent uses this service", "text/plain"),
}
"""The paths that need no key. A query that names no file of a page is passed over."""
