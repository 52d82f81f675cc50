"""Who is let in, and what goes out when something fails? The ASGI application: the door of all routes.

In this order: is the request meant for us, is it a path that is open to all, who sends it, which route is
it. Whatever a route raises ends here as a problem; nothing of an exception's text goes out.
"""

import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing, suppress
from typing import Final

import trio

from sift_batch import Caller, CallerClass, Config, Gate, Runner, StoreError

from ._addressed import Names
from ._asgi import Message, Receive, Scope, Send
from ._attempts import Attempts
from ._callers import Callers, Taken
from ._cursors import KEY_BYTES, Cursors
from ._health import Health
from ._leases import Leases
from ._pages import PATHS, page_at
from ._places import counts
from ._problems import Problem, problem_of_status
from ._refusal import BodyRefused, ClientGone
from ._request import BEARER, Request, Resources, unauthorized
from ._response import Response, send_response
from ._room import Held, SharedRoom
from ._router import find_route, not_allowed
from ._service_config import ServiceConfig
from ._submissions import Fetcher
from ._traffic import Traffic
from ._waiting import OpenRequest, OpenRequests

_GET: Final[Mapping[str, None]] = {"GET": None}
_LIVE: Final = b"/healthz"
_READY: Final = b"/readyz"
_OPEN: Final = frozenset({_LIVE, _READY, *PATHS})
_BATCH: Final = b"/v1/batch"
_DEFAULTS: Final = ServiceConfig()
_FOR_OTHERS: Final = 8
"""One in so many connections is kept free of each caller's requests: its streams shut nobody else out."""

OnError = Callable[[Exception], object]
"""A plain function. The text of what it gets may hold anything: log the type and the place, no more."""


def make_app(
    runner: Runner,
    fetcher: Fetcher,
    gate: Gate,
    callers: Callers,
    service: ServiceConfig = _DEFAULTS,
    *,
    config: Config,
    cursor_key: bytes | None = None,
    on_error: OnError | None = None,
    traffic: Traffic | None = None,
) -> "ServiceApp":
    """Return the service as an ASGI application, for `serve(app, ..., answers=server_answer)`.

    `config` is the runner's. `fetcher` is what `sift_batch.fetch.open_fetcher` gives, behind `gate`.
    With a `cursor_key` of 32 bytes, cursors outlive the process; without, they end with it. `on_error` is
    told of what was answered with a 500, or cut an answer off; a client hears nothing of it. `traffic`
    is told of every request.
    """
    return ServiceApp(
        Resources(
            runner=runner,
            fetcher=fetcher,
            gate=gate,
            config=config,
            limits=service.limits(),
            cursors=Cursors(cursor_key if cursor_key is not None else secrets.token_bytes(KEY_BYTES)),
            leases=Leases(runner),
            room=SharedRoom(service.inflight_bytes),
            open=OpenRequests(max(1, service.connections - service.connections // _FOR_OTHERS)),
        ),
        callers,
        names=Names((service.host, *service.server_name)),
        attempts=Attempts(service.auth_failures_per_minute),
        on_error=on_error,
        traffic=traffic or Traffic(),
    )


class ServiceApp:
    """The application. Made by `make_app`; call `stop` when the service stops, `revoke` when keys go."""

    def __init__(
        self,
        shared: Resources,
        callers: Callers,
        *,
        names: Names,
        attempts: Attempts,
        on_error: OnError | None,
        traffic: Traffic,
    ) -> None:
        self._shared, self._callers = shared, callers
        self._names, self._attempts, self._on_error, self._traffic = names, attempts, on_error, traffic
        self.health = Health(shared.runner)
        """What the health paths say."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            # The server has no other kind; another server closes what is refused here.
            raise RuntimeError("only http is served")

    def stop(self) -> None:
        """End every wait and stream, and those to come; `/readyz` says no from now on."""
        self.health.stop()
        self._shared.open.stop()

    def revoke(self, taken: Taken) -> None:
        """End the waits and streams of whoever is let in no more. Their jobs are the caller's business."""
        self._shared.open.revoke(callers=taken.callers, keys=taken.keys)

    def revoked(self, callers: frozenset[str]) -> bool:
        """Return whether requests of callers that were let in no more have not ended yet."""
        return self._shared.open.revoked(callers)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen, began = _Seen(), trio.current_time()
        counts(scope, for_somebody=False)  # until it is held open for its caller

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen.status = message["status"]
            if seen.open is None:
                await send(message)
            else:
                await seen.open.send(message, send)

        try:
            with seen.until_sent:
                response = await self._answered(scope, receive, sending, seen)
                # A stream that broke off has begun its answer already: it is cut, and nothing is put into it.
                if response is not None and seen.status is None:
                    await send_response(sending, response)
        except BodyRefused as refusal:
            seen.status = seen.status or refusal.status
            raise
        finally:
            with suppress(Exception):  # a count that fails must not cost the client its answer
                seconds = trio.current_time() - began
                self._traffic.answered(scope, seen.status, seconds, restricted=seen.restricted)

    async def _answered(self, scope: Scope, receive: Receive, send: Send, seen: "_Seen") -> Response | None:
        """Return the answer, or the problem in place of one; None when a route has sent its own."""
        try:
            return await self._answer(scope, receive, send, seen)
        except Problem as problem:
            self._refused(scope, problem)
            return problem.response()
        except BodyRefused as refusal:
            self._refused(scope, problem_of_status(refusal.status))
            raise
        except ClientGone:
            raise
        except StoreError:
            # What can't be read may be one damaged row: whether the store works, a look at it says.
            if scope["method"] not in ("GET", "HEAD"):
                self.health.trouble()
            return Problem("store_unavailable").response()
        except trio.ClosedResourceError:
            return Problem("store_unavailable", "the service stops").response()
        except Exception as error:
            with suppress(Exception):  # a log that fails must not cost the client its answer
                self._traffic.failed(error, scope, restricted=seen.restricted)
                if self._on_error is not None:
                    self._on_error(error)
            return Problem("internal").response()

    def _refused(self, scope: Scope, problem: Problem) -> None:
        if scope["raw_path"] == _BATCH and scope["method"] == "POST":
            with suppress(Exception):
                self._traffic.refused(problem.code)

    async def _answer(self, scope: Scope, receive: Receive, send: Send, seen: "_Seen") -> Response | None:
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        if not self._names.has(headers):
            raise Problem("unknown_host")
        path: bytes = scope["raw_path"]
        if path in _OPEN:
            if scope["method"] not in ("GET", "HEAD"):
                raise not_allowed(_GET)
            return await self._open(path, scope["query_string"], receive, seen)
        caller = self._find(scope, headers)
        seen.restricted = caller.caller_class is CallerClass.RESTRICTED
        route, args = find_route(path, scope["method"])
        opened = self._enter(caller, receive, seen)
        counts(scope, for_somebody=True)
        held = seen.until_sent.enter_context(closing(Held(self._shared.room, caller.name)))
        request = Request(scope, send, caller, args, opened, self._shared, held)
        response = await route(request)
        if response is not None:
            request.check_allowed()
        return response

    async def _open(self, path: bytes, query: bytes, receive: Receive, seen: "_Seen") -> Response:
        if path == _LIVE:
            return self.health.live()
        if path == _READY:
            return await self.health.ready()
        self._enter(None, receive, seen)
        return await page_at(path, query)

    def _enter(self, caller: Caller | None, receive: Receive, seen: "_Seen") -> OpenRequest:
        """Hold the request open until its answer is out: an answer that nobody takes keeps a connection."""
        if self._shared.open.full(caller):
            raise Problem("server_busy", "you have as many requests open as one caller may have")
        seen.open = seen.until_sent.enter_context(self._shared.open.enter(caller, receive))
        return seen.open

    def _find(self, scope: Scope, headers: list[tuple[bytes, bytes]]) -> Caller:
        keys = [value for name, value in headers if name == b"authorization"]
        caller = self._callers.find(keys)
        if caller is not None:
            return caller
        with suppress(Exception):
            self._traffic.stranger()
        client = scope.get("client")
        # Who sends no key tries none.
        seconds = self._attempts.failed(client[0] if client else "") if keys else None
        if seconds is not None:
            raise Problem("auth_failures", retry_after=seconds, headers=[BEARER])
        raise unauthorized()


class _Seen:
    """What is known of a request while it is answered."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.restricted = False
        self.open: OpenRequest | None = None
        self.until_sent = ExitStack()
        """What it holds until its answer is out."""


async def _lifespan(receive: Receive, send: Send) -> None:
    """Nothing is opened here: what the application uses is open before it is made, and closed after."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
