"""Which problems are there? The one registry of codes, and what each of the three doors says about it.

HTTP, command line and MCP tell the same problem in their own words: a path, a command, a tool. The fetch's
codes are here too, since `POST /v1/fetch` answers with them. How a problem becomes a response is
`_problems`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Kind(NamedTuple):
    """One code: its status, whether the same request can succeed later, and what to do about it."""

    status: int
    retryable: bool
    title: str
    http: str
    cli: str
    mcp: str


_AGAIN: Final = "try again later"
_ELSEWHERE: Final = "leave this target out, or use another URL"
_LOOK: Final = "look at the page's own server; the request itself is in order"

# fmt: off
_DOOR: Final = {
    "unauthorized": Kind(
        401, False, "No valid key", "send `Authorization: Bearer KEY`",
        "the service does not know the key of --key-file or SIFT_BATCH_KEY; ask its operator for one",
        "start the server with a valid key"),
    "auth_failures": Kind(
        429, True, "Too many requests without a valid key", "wait, then send a valid key",
        "wait, then give a valid key", "wait, then start the server with a valid key"),
    "unknown_host": Kind(
        421, False, "Not a name of this service", "use a loopback address, or start with --server-name NAME",
        "start the service with --server-name NAME", "start the service with --server-name NAME"),
    "unknown_path": Kind(
        404, False, "No such path", "GET /v1/batch lists your jobs",
        "the service does not know this call; compare versions",
        "the service does not know this call; compare versions"),
    "method_not_allowed": Kind(
        405, False, "Method not allowed", "the header Allow lists the methods",
        "the service does not know this call; compare versions",
        "the service does not know this call; compare versions"),
    "malformed_request": Kind(
        400, False, "Malformed HTTP request", "send HTTP/1.1 as RFC 9112 writes it",
        "something between here and the service breaks requests",
        "something between here and the service breaks requests"),
    "request_timeout": Kind(
        408, True, "The request came too slowly", "send the request in one go",
        _AGAIN, _AGAIN),
    "headers_too_large": Kind(
        431, False, "The request's head is too large", "send fewer and shorter headers",
        "shorten the key or the address", "shorten the key or the address"),
    "http_version": Kind(
        505, False, "HTTP version not supported", "use HTTP/1.1",
        "use a service address that speaks HTTP/1.1", "use a service address that speaks HTTP/1.1"),
    "not_implemented": Kind(
        501, False, "Not implemented", "send a plain method and no transfer coding but chunked",
        "the service does not know this call; compare versions",
        "the service does not know this call; compare versions"),
    "server_busy": Kind(
        503, True, "Too many connections", "wait as Retry-After says, then try again", _AGAIN, _AGAIN),
    "internal": Kind(
        500, True, "Internal error", "try again; if it stays, tell the operator",
        "try again; if it stays, look at the service's log", "try again once; then tell the user"),
}

_BODY: Final = {
    "body_too_large": Kind(
        413, False, "The body is too large", "send fewer targets in one job",
        "submit fewer targets at once", "call batch_submit with fewer targets"),
    "media_type": Kind(
        415, False, "The body must be JSON", "send `Content-Type: application/json` and no Content-Encoding",
        "the service does not take this body; compare versions",
        "the service does not take this body; compare versions"),
    "bad_json": Kind(
        400, False, "The body is not JSON as this service reads it",
        "send one JSON value in UTF-8: no duplicate names, NaN, NUL or lone surrogates, at most 16 levels",
        "check the line's JSON", "check the arguments' JSON"),
    "bad_request": Kind(
        422, False, "The request has bad values", "`errors` lists each by its place",
        "correct what is named", "correct what `errors` names"),
    "no_targets": Kind(
        422, False, "A job needs at least one target", "send a URL in `targets`",
        "name a URL, or a file with -f", "give batch_submit at least one target"),
    "too_many_targets": Kind(
        422, False, "More targets than one job may have",
        "send the rest when this job has ended, or have the operator raise engine.targets_per_job",
        "submit the rest when this job has ended (`--wait`), use `sift-batch run`, or have the operator "
        "raise engine.targets_per_job",
        "call batch_submit with fewer targets, and with the rest when that job has ended"),
}

_JOBS: Final = {
    "unknown_job": Kind(
        404, False, "No such job", "GET /v1/batch lists your jobs",
        "`sift-batch list` shows your jobs", "batch_list shows your jobs"),
    "unknown_target": Kind(
        404, False, "No such target", "a job's targets are counted from 0",
        "a job's targets are counted from 0", "a job's targets are counted from 0"),
    "gone": Kind(
        410, False, "The job is gone", "submit its targets again",
        "submit its targets again", "call batch_submit with its targets again"),
    "not_finished": Kind(
        409, True, "The target is not finished", "wait with GET /v1/batch/{id}?wait=25",
        "`sift-batch watch ID` waits for it", "batch_wait waits for it"),
    "job_live": Kind(
        409, True, "The job has not settled", "wait for it with ?wait=25, or cancel it first",
        "wait for it with `sift-batch watch ID`, or cancel it first",
        "call batch_wait or batch_cancel first"),
    "caller_busy": Kind(
        429, True, "You have as many live jobs as you may have", "wait for the job in `job_id`, or cancel it",
        "wait for the job that is named, or cancel it", "call batch_wait for the job in `job_id`"),
    "jobs_busy": Kind(
        429, True, "The service has as many live jobs as it may have", _AGAIN, _AGAIN, _AGAIN),
    "gate_busy": Kind(
        429, True, "No slot came free in time", "try again as Retry-After says, or submit it as a job",
        "try again, or submit it as a job", "try again, or call batch_submit"),
    "store_unavailable": Kind(
        503, True, "The store can't be used now", "nothing has changed; try again as Retry-After says",
        "nothing has changed; try again later, and look at the disk", "nothing has changed; try again later"),
}

_TARGETS: Final = {
    "refused": Kind(403, False, "This target may not be fetched", _ELSEWHERE, _ELSEWHERE, _ELSEWHERE),
    "robots": Kind(403, False, "The site's robots.txt forbids it", _ELSEWHERE, _ELSEWHERE, _ELSEWHERE),
    "blocked": Kind(403, False, "The site forbids it", _ELSEWHERE, _ELSEWHERE, _ELSEWHERE),
    "page_not_found": Kind(
        404, False, "The site has no such page", "check the URL, or set `recover`",
        "check the URL, or use --recover", "check the URL, or set recover"),
    "page_gone": Kind(
        410, False, "The page was removed", "set `recover` for an archived copy",
        "use --recover for an archived copy", "set recover for an archived copy"),
    "auth_required": Kind(502, False, "The page needs a login", _ELSEWHERE, _ELSEWHERE, _ELSEWHERE),
    "http_error": Kind(502, False, "The site answered with an error", _LOOK, _LOOK, _LOOK),
    "too_large": Kind(
        413, False, "The page is too large", "choose a part with pages, grep, question or jq",
        "choose a part with --pages, --grep, --question or --jq",
        "choose a part with pages, grep, question or jq"),
    "unsupported_type": Kind(
        415, False, "This kind of page can't be given in this mode", "use another `mode`",
        "use another --mode", "use another mode"),
    "bad_option": Kind(
        422, False, "An option does not fit", "correct the option that is named",
        "correct the option that is named", "correct the option that is named"),
    "busy": Kind(429, True, "The site asks for patience", _AGAIN, _AGAIN, _AGAIN),
    "timeout": Kind(504, True, "The fetch took too long", _AGAIN, _AGAIN, _AGAIN),
    "dns": Kind(
        502, True, "The site's name can't be looked up", "check the name, or try again later",
        "check the name, or try again later", "check the name, or try again later"),
    "connect": Kind(502, True, "The site can't be reached", _AGAIN, _AGAIN, _AGAIN),
    "tls": Kind(502, False, "The site's certificate is not valid", _LOOK, _LOOK, _LOOK),
    "protocol": Kind(502, True, "The site broke off or broke the protocol", _AGAIN, _AGAIN, _AGAIN),
    "redirect_loop": Kind(502, False, "The site redirects too often", _LOOK, _LOOK, _LOOK),
    "server_error": Kind(502, True, "The site has an error of its own", _AGAIN, _AGAIN, _AGAIN),
    "extract_failed": Kind(
        502, False, "The page can't be read", "set `mode` to raw", "use --mode raw", "set mode to raw"),
}
# fmt: on

KINDS: Final[Mapping[str, Kind]] = MappingProxyType({**_DOOR, **_BODY, **_JOBS, **_TARGETS})
"""Every code."""

TARGET_CODES: Final = frozenset({*_TARGETS, "internal"})
"""Those of the fetch: about a target, whatever the request was."""
