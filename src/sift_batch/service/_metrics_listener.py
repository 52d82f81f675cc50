"""How does Prometheus get the metrics? A second listener with one page, and nothing else on it.

No key: whoever may reach the listener may read it. What the metrics are is `_metrics`' business.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Final

import trio
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, choose_encoder, generate_latest

from ._addressed import Names
from ._asgi import Receive, Scope, Send
from ._limits import ServerLimits
from ._problems import Problem
from ._response import Response, send_response
from ._router import not_allowed

LIMITS: Final = ServerLimits(connections=16, body_bytes=0, grace_seconds=1.0)
"""A few readers, who send nothing and wait for one page."""

_PATH: Final = b"/metrics"
_GET: Final[Mapping[str, None]] = {"GET": None}


class MetricsApp:
    """The ASGI application of the second listener. `look` is awaited before the metrics are written."""

    def __init__(
        self, registry: CollectorRegistry, names: Names, look: Callable[[], Awaitable[object]]
    ) -> None:
        self._registry, self._names, self._look = registry, names, look
        # Written in a thread: some thousand lines would hold all requests up. One reader at a time.
        self._threads = trio.CapacityLimiter(1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            raise RuntimeError("only http is served")
        try:
            response = await self._answer(scope)
        except Problem as problem:
            response = problem.response()
        await send_response(send, response)

    async def _answer(self, scope: Scope) -> Response:
        if not self._names.has(scope["headers"]):
            raise Problem("unknown_host")
        if scope["raw_path"] != _PATH:
            raise Problem("unknown_path", hint="the metrics are at GET /metrics")
        if scope["method"] not in ("GET", "HEAD"):
            raise not_allowed(_GET)
        await self._look()
        accept = b", ".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1")
        return await trio.to_thread.run_sync(
            self._page, accept, limiter=self._threads, thread_name="sift-batch metrics"
        )

    def _page(self, accept: str) -> Response:
        try:
            encoder, content_type = choose_encoder(accept)
            body = encoder(_Shown(self._registry))
        except (TypeError, ValueError):  # an odd version in the header
            body, content_type = generate_latest(_Shown(self._registry)), CONTENT_TYPE_PLAIN_0_0_4
        return Response(200, body, ((b"content-type", content_type.encode("latin-1")),))


class _Shown(CollectorRegistry):
    """A registry without the times at which its series began: as text they are metrics of their own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._all = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._all.collect():
            shown = Metric(metric.name, metric.documentation, metric.type, metric.unit)
            shown.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield shown
