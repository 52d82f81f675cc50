"""How is a client told what went wrong? As a problem document (RFC 9457), the same members each time.

A route raises a `Problem`; the door turns it into the response. Nothing in one is the text of an
exception or a value of the request: places, codes and our own words only. The codes are `_codes`'.
"""

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ._codes import KINDS
from ._refusal import Answer
from ._response import SECURITY_HEADERS, Header, Response, json_bytes
from ._schema_types import ProblemMore, ProblemView, Step

_BY_STATUS: Final = {
    400: "malformed_request",
    408: "request_timeout",
    413: "body_too_large",
    431: "headers_too_large",
    500: "internal",
    501: "not_implemented",
    503: "server_busy",
    505: "http_version",
}
"""What the server itself answers, before or instead of the application."""

_RETRY_AFTER: Final = {"server_busy": 1, "store_unavailable": 5, "jobs_busy": 10, "caller_busy": 5}


class BadItem(NamedTuple):
    """One thing that is wrong: a JSON pointer (`?name` in the query), a short code, what is allowed."""

    pointer: str
    code: str
    detail: str


class Problem(Exception):
    """Raised where a request ends badly.

    `detail` is said about this one occurrence, `hint` instead of the code's own. `retry_after` is
    seconds. `more` has members that only this code has, such as `limit`.
    """

    def __init__(
        self,
        code: str,
        detail: str = "",
        *,
        hint: str = "",
        retry_after: float | None = None,
        next_step: Step | None = None,
        errors: Sequence[BadItem] = (),
        headers: Sequence[Header] = (),
        retryable: bool | None = None,
        more: ProblemMore | None = None,
    ) -> None:
        super().__init__(code)
        kind = KINDS[code]
        self.code, self.status, self.errors, self.headers = code, kind.status, tuple(errors), tuple(headers)
        self.detail = detail or kind.title
        self.hint = hint or kind.http
        self.retryable = kind.retryable if retryable is None else retryable
        seconds = _RETRY_AFTER.get(code) if retry_after is None else retry_after
        self.retry_after = None if seconds is None else max(1, math.ceil(seconds))
        self.next_step = next_step
        self.more: ProblemMore = more or {}

    def view(self) -> ProblemView:
        """The members of the document."""
        return {
            "type": f"urn:problem-type:sift-batch:{self.code}",
            "title": KINDS[self.code].title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "retryable": self.retryable,
            "retry_after": self.retry_after,
            "hint": self.hint,
            "next": self.next_step,
            "errors": [
                {"pointer": item.pointer, "code": item.code, "detail": item.detail} for item in self.errors
            ],
            **self.more,
        }

    def response(self) -> Response:
        """The answer that it is."""
        headers = [(b"content-type", b"application/problem+json"), *self.headers]
        if self.retry_after is not None:
            headers.append((b"retry-after", b"%d" % self.retry_after))
        return Response(self.status, json_bytes(self.view()) + b"\n", headers)


def problem(code: str, **members: Any) -> Response:
    """The response of a problem; `members` are those of `Problem`."""
    return Problem(code, **members).response()


def problem_of_status(status: int) -> Problem:
    """The problem of a refusal that only has a status."""
    return Problem(_BY_STATUS.get(status, "internal"))


def server_answer(status: int) -> Answer:
    """What the server tells a client when it says no by itself: for `serve(answers=...)`."""
    response = problem_of_status(status).response()
    return Answer((*SECURITY_HEADERS, *response.headers), response.body)
