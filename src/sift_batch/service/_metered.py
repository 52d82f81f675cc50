"""Where do the metrics come from and go to? Their registry and their listener, if the service has any.

What is counted is `_metrics`', the page is `_metrics_listener`'s. Neither is imported without a registry:
they need the extra `metrics`.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import trio

from sift_batch import Gate

from ._addressed import Names
from ._callers import Callers
from ._health import Health
from ._listening import Listeners, open_listening
from ._problems import server_answer
from ._server import serve
from ._settings import Settings

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ._metrics import ServiceMetrics


class Metered:
    """The metrics of a service, and where they are to be had."""

    def __init__(
        self, metrics: "ServiceMetrics", registry: "CollectorRegistry", listeners: Listeners, names: Names
    ) -> None:
        self.metrics, self.listeners = metrics, listeners
        self._registry, self._names = registry, names

    def server(
        self, health: Health, callers: Callers, fetcher: Any, *, stop: trio.Event
    ) -> Callable[..., Awaitable[None]]:
        """Return what gives the metrics on the second listener until `stop` is set: for `nursery.start`."""
        from ._metrics_listener import LIMITS, MetricsApp

        def kills() -> Mapping[str, int]:
            # A fetch that stands in for the pipeline has no workers.
            ended: Mapping[str, int] = fetcher.statistics().ended if hasattr(fetcher, "statistics") else {}
            return ended

        async def look() -> None:
            self.metrics.is_ready(await health.is_ready())

        self.metrics.watch(callers_ok=lambda: callers.problem is None, kills=kills)
        app = MetricsApp(self._registry, self._names, look)
        return partial(serve, app, self.listeners.all, stop=stop, limits=LIMITS, answers=server_answer)


@asynccontextmanager
async def open_metered(
    registry: "CollectorRegistry | None", settings: Settings, gate: Gate
) -> AsyncGenerator[Metered | None]:
    """Make the metrics on `registry` and listen for who wants them; None without a registry.

    Raises `AddressError`, and `ValueError` for a registry that has a service's metrics already.
    """
    if registry is None:
        yield None
        return
    from ._metrics import ServiceMetrics

    metrics = ServiceMetrics(registry, gate=gate, max_bytes=settings.engine.max_bytes)
    service = settings.service
    names = Names((service.metrics_host, *service.server_name))
    async with open_listening("metrics_port", service.metrics_host, service.metrics_port) as listeners:
        yield Metered(metrics, registry, listeners, names)
