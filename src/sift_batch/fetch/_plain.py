"""What does one target give over plain HTTP?

GET on HTTP/1.1 with the redirects followed here, one connection per hop, each hop in a slot of the
gate for the host it talks to. Every way a server can misbehave ends in a `TargetError` with a code
of a closed list and a text of our own, or in `RetryLater`. Not here: selecting from a page, PDF,
robots, archives, retries, and any guard on addresses. Next: `_reply`.
"""

import socket
import ssl
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import trio

from .._model.errors import RetryLater, TargetError
from .._model.values import Caller, FetchFunc, Options, Result, Target
from ._address import Address, BadURL, join, parse
from ._reply import HTML, Answer, Body, charset_label, check_type, failed, judge, media_type, too_large
from ._text import decode, page_text

if TYPE_CHECKING:
    import httpcore2

    from .._gate.gate import Gate

_MODES: Final = frozenset({"", "text", "html", "raw"})
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_HEADERS_LIMIT: Final = 256
_HEADER_BYTES_LIMIT: Final = 102_400
# Above this, turning bytes into text would hold up the event loop for a noticeable time.
_THREAD_FROM: Final = 131_072
_CHUNKS_PER_TURN: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limits:
    total_timeout: float
    connect_timeout: float
    redirects: int
    max_bytes: int


@asynccontextmanager
async def open_plain_fetch(
    gate: "Gate",
    *,
    total_timeout: float = 60.0,
    connect_timeout: float = 10.0,
    redirects: int = 5,
    max_bytes: int = 10 * 2**20,
) -> AsyncGenerator[FetchFunc]:
    """Give a fetch that gets pages over HTTP, in the batch class of `gate`.

    `total_timeout` seconds bound one call, redirects and body included; `connect_timeout` one
    connection. `max_bytes` bounds a body, both as it comes and unpacked. A 429, and a 503 with
    Retry-After, put a hold on the host and raise `RetryLater`. If cancelled, a call leaves no slot
    taken and no socket open. The fetch stands behind the gate by itself: don't wrap it again.

    It connects to whatever a URL names, private networks and this machine included.

    Raises `ImportError` when the extra `fetch` is not installed.
    """
    try:
        import httpcore2  # noqa: F401  # here, so that a missing extra shows before the first target
    except ImportError as error:
        raise ImportError("fetching needs the extra `fetch`: pip install 'sift-batch[fetch]'") from error
    limits = _Limits(
        total_timeout=total_timeout,
        connect_timeout=connect_timeout,
        redirects=redirects,
        max_bytes=max_bytes,
    )
    yield _PlainFetch(gate, limits).fetch


class _PlainFetch:
    def __init__(self, gate: "Gate", limits: _Limits) -> None:
        self._gate = gate
        self._limits = limits
        self._user_agent = f"sift-batch/{version('sift-batch')}"
        # Made at the first https target and shared: loading the certificates takes a while.
        self._tls: ssl.SSLContext | None = None
        # Threads of its own, so that slow pages never hold up anybody else's thread.
        self._threads = trio.CapacityLimiter(2)

    async def fetch(self, _caller: Caller, target: Target) -> Result:
        _check_options(target.options)
        began = trio.current_time()
        fetched_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with trio.move_on_after(self._limits.total_timeout) as deadline:
            with _own_errors():
                address, answer, passed = await self._follow(_parse(target.url), deadline)
        if deadline.cancelled_caught:
            raise failed("timeout", 504, "the page took too long", retryable=True)
        meta: dict[str, Any] = {"url": address.url, "http_status": answer.status}
        if len(answer.body) > _THREAD_FROM:
            content, facts = await trio.to_thread.run_sync(
                _read, answer, target.options.mode, limiter=self._threads
            )
        else:
            content, facts = _read(answer, target.options.mode)
        meta |= facts
        meta |= {
            "bytes_wire": answer.wire,
            "chars": len(content),
            "redirects": passed,
            "fetched_at": fetched_at,
            "elapsed_seconds": round(trio.current_time() - began, 3),
        }
        return Result(content, meta)

    async def _follow(
        self, address: Address, deadline: trio.CancelScope
    ) -> tuple[Address, Answer, list[str]]:
        passed: list[str] = []
        while True:
            # The first hop gives way at once. A later one waits for its host, so that the hops before
            # it are not fetched again; only when the time is up does the whole target wait its turn.
            patience = max(0.0, deadline.deadline - trio.current_time() - 0.05) if passed else 0.0
            async with self._gate.slot(address.url, patience=patience, batch=True):
                answer = await self._exchange(address)
                if answer.status not in _REDIRECTS or "location" not in answer.headers:
                    self._judge(address, answer)
                    return address, answer, passed
            passed.append(address.url)
            try:
                address = join(address, answer.headers["location"])
            except BadURL as error:
                raise failed("refused", 403, f"the page redirects to a bad URL: {error.reason}") from None
            if address.url in passed or len(passed) > self._limits.redirects:
                raise failed("redirect_loop", 502, "the page redirects too often")

    async def _exchange(self, address: Address) -> Answer:
        import httpcore2

        if address.scheme == "https" and self._tls is None:
            self._tls = httpcore2.default_ssl_context()
        headers: dict[bytes | str, bytes | str] = {
            "Host": address.authority,
            "Accept": "text/html, application/xhtml+xml, application/json, text/*;q=0.9, */*;q=0.5",
            "Accept-Encoding": "gzip",
            "User-Agent": self._user_agent,
            "Connection": "close",
        }
        url = httpcore2.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode(),
            port=address.port,
            target=address.target.encode(),
        )
        timeout = {"timeout": {"connect": self._limits.connect_timeout}}
        # A pool for this one exchange: a long-lived one loses a connection for ever when a call is
        # cancelled at the wrong moment, and would carry state from one caller to the next.
        async with httpcore2.AsyncConnectionPool(
            ssl_context=self._tls, max_connections=1, network_backend=httpcore2.TrioBackend()
        ) as pool:
            async with pool.stream("GET", url, headers=headers, extensions=timeout) as response:
                return await self._read_response(response)

    async def _read_response(self, response: "httpcore2.Response") -> Answer:
        status, found = response.status, response.headers
        size = sum(len(name) + len(value) for name, value in found)
        if (
            len(found) > _HEADERS_LIMIT
            or size > _HEADER_BYTES_LIMIT
            or status == HTTPStatus.SWITCHING_PROTOCOLS
        ):
            raise failed("protocol", 502, "the site's answer is malformed", retryable=True)
        headers = {name.decode("latin-1").lower(): value for name, value in reversed(found)}
        if not 200 <= status < 300 or status in (204, 205):
            return Answer(status, headers, b"", 0)
        check_type(media_type(headers))
        length = headers.get("content-length", b"")
        if length.isdigit() and (len(length) > 18 or int(length) > self._limits.max_bytes):
            raise too_large(self._limits.max_bytes)
        body = Body(headers.get("content-encoding", b""), self._limits.max_bytes)
        async with aclosing(response.aiter_stream()) as chunks:
            taken = 0
            async for chunk in chunks:
                body.feed(chunk)
                taken += 1
                if taken % _CHUNKS_PER_TURN == 0:
                    # One packet may hold thousands of tiny chunks, and none of them waits for anything.
                    await trio.lowlevel.checkpoint()
        return Answer(status, headers, body.close(), body.wire)

    def _judge(self, address: Address, answer: Answer) -> None:
        try:
            judge(answer, time.time())
        except RetryLater as busy:
            # Still in the slot, so that the next in line for this host finds the hold.
            if busy.retry_after is not None:
                self._gate.hold(address.url, busy.retry_after)
            raise


def _read(answer: Answer, mode: str) -> tuple[str, dict[str, Any]]:
    """Turn a body into text, with what is to be known about it."""
    kind, label = media_type(answer.headers), charset_label(answer.headers)
    is_html = kind in HTML
    text, charset = decode(answer.body, label, is_html=is_html)
    if "\0" in text:
        raise failed("unsupported_type", 415, "the page is no text, HTML or JSON")
    facts: dict[str, Any] = {"charset": charset}
    if kind:
        facts["content_type"] = kind
    if is_html:
        readable, title = page_text(text)
        if title:
            facts["title"] = title[:1_000]
        if mode in ("", "text"):
            text = readable
    return text, facts


def unsupported_option(options: Options) -> str:
    """Return the name of an option that this fetch can't honour as it is set; "" if there is none."""
    for name in ("jq", "grep", "pages", "question", "context", "recover"):
        if getattr(options, name):
            return name
    return "" if options.mode in _MODES else "mode"


def _check_options(options: Options) -> None:
    if name := unsupported_option(options):
        raise failed(
            "bad_option",
            422,
            f"this version can't do what the option {name!r} asks for",
            hint="leave the option out; mode may be text, html or raw",
        )


def _parse(url: str) -> Address:
    try:
        return parse(url)
    except BadURL as error:
        raise failed("refused", 403, error.reason) from None


@contextmanager
def _own_errors() -> Iterator[None]:
    """Turn whatever the HTTP library raises into an error of ours; its text could hold the target."""
    import httpcore2

    try:
        yield
    except (TargetError, RetryLater):
        raise
    except httpcore2.ConnectTimeout:
        raise failed("timeout", 504, "the site did not take the connection in time", retryable=True) from None
    except httpcore2.TimeoutException:
        raise failed("timeout", 504, "the site took too long", retryable=True) from None
    except httpcore2.ConnectError as error:
        causes = list(_causes(error))
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            raise failed("dns", 502, "the site's name has no address", retryable=True) from None
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            raise failed("tls", 502, "no secure connection to the site could be made") from None
        raise failed("connect", 502, "the site could not be reached", retryable=True) from None
    except (httpcore2.ProtocolError, httpcore2.NetworkError):
        message = "the site broke off, or its answer is malformed"
        raise failed("protocol", 502, message, retryable=True) from None
    except Exception:
        raise failed("internal", 500, "the fetch failed by a fault of its own", retryable=True) from None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Walk an error's causes, hidden ones too: the library raises `from None`."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
