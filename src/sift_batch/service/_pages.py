"""What may anybody read without a key? Static pages: the dashboard, the documentation, their files.

The same bytes for everyone, put together once. Only the paths in `PATHS` are open, and every other path
needs a key, so the files of a page are told by the query of its own path: `/?dashboard.js`. Any other query
of an open path gives the page itself. What the pages may load and run is this service's alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Final, NamedTuple

import trio

from ._response import Response, security_headers

_SECURITY: Final = security_headers(
    b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    b"img-src 'self' data:; frame-ancestors 'none'"
)


class _Page(NamedTuple):
    """What a page is, where its bytes come from, and whether it is one that loads and runs files."""

    content_type: bytes
    read: Callable[[], bytes]
    runs: bool = False


def _file(name: str) -> Callable[[], bytes]:
    return lambda: files(__package__).joinpath("web", name).read_bytes()


def _openapi() -> bytes:
    # Putting these together takes a moment that a start need not wait for.
    from ._openapi import openapi_bytes

    return openapi_bytes()


def _docs() -> bytes:
    from ._openapi import docs_html

    return docs_html()


_HTML: Final = b"text/html; charset=utf-8"
_CSS: Final = b"text/css; charset=utf-8"
_SCRIPT: Final = b"text/javascript; charset=utf-8"
_SCRIPTS: Final = (
    "dashboard.js",
    "dashboard-service.js",
    "dashboard-jobs.js",
    "dashboard-page.js",
    "dashboard-list.js",
    "dashboard-new.js",
    "dashboard-job.js",
    "dashboard-target.js",
)
_PAGES: Final[Mapping[tuple[bytes, bytes], _Page]] = {
    (b"/", b""): _Page(_HTML, _file("dashboard.html"), runs=True),
    **{(b"/", name.encode()): _Page(_SCRIPT, _file(name)) for name in _SCRIPTS},
    (b"/", b"dashboard.css"): _Page(_CSS, _file("dashboard.css")),
    (b"/docs", b""): _Page(_HTML, _docs, runs=True),
    (b"/docs", b"docs.css"): _Page(_CSS, _file("docs.css")),
    (b"/openapi.json", b""): _Page(b"application/json", _openapi),
    (b"/llms.txt", b""): _Page(b"text/plain; charset=utf-8", _file("llms.txt")),
}
_MADE: Final[dict[tuple[bytes, bytes], Response]] = {}
PATHS: Final = frozenset(path for path, _ in _PAGES)
"""The open paths, beside those of health."""


async def page_at(path: bytes, query: bytes) -> Response:
    """Return the page at one of `PATHS`. It is made at the first request, in a thread."""
    name = path, query if (path, query) in _PAGES else b""
    if name not in _MADE:
        _MADE[name] = await trio.to_thread.run_sync(_response, *name)
    return _MADE[name]


def _response(path: bytes, query: bytes) -> Response:
    page = _PAGES[path, query]
    response = Response(200, page.read(), ((b"content-type", page.content_type),))
    return replace(response, security=_SECURITY) if page.runs else response
