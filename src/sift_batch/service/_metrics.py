"""How is the service doing, for Prometheus? What it counts beside the engine, on the same registry.

Labels are from closed sets and hold no caller, job, host or key. Requests of restricted callers add
nothing to `http_seconds`: their times and statuses would tell how their targets did. Next:
`_metrics_listener`, which gives the page; `sift_batch.metrics`, which has the engine's part.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

import sift_batch
from sift_batch import Gate
from sift_batch.logs import held_back
from sift_batch.metrics import METRICS, PrometheusHooks

from ._asgi import Scope
from ._codes import KINDS
from ._pages import PATHS
from ._router import ROUTES, pattern_of
from ._traffic import Traffic

OTHER: Final = "other"
GONE: Final = "gone"
"""In place of a status: the client left before there was one."""

METHODS: Final = ("GET", "HEAD", "POST", "DELETE", OTHER)
KILLS: Final = ("timeout", "memory", "crashed", "cancelled")
_SUCCESSES: Final = (200, 202, 204, 304)
_MAKING_JOBS: Final = ("/v1/batch", "/v1/batch/{id}/rerun")
_ALARMING: Final = ("500", "503")
_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 60.0)
_BODY_REFUSALS: Final = frozenset(
    {"no_targets", "too_many_targets", "bad_json", "bad_request", "body_too_large", "media_type"}
)


def _pattern(parts: tuple[str, ...]) -> str:
    names = iter(("{id}", "{idx}"))
    return "/" + "/".join(next(names) if part == "*" else part for part in parts)


_PATTERNS: Final[Mapping[tuple[str, ...], str]] = {parts: _pattern(parts) for parts in ROUTES}
_OPEN: Final = {path: path.decode() for path in sorted({b"/healthz", b"/readyz", *PATHS})}
PATTERNS: Final = (*_PATTERNS.values(), *_OPEN.values(), OTHER)
"""Every route as the label has it."""

CODES: Final = (
    *sorted({str(code) for code in (*_SUCCESSES, *(k.status for k in KINDS.values()))}),
    GONE,
    OTHER,
)
"""Every status as the label has it."""


@dataclass(frozen=True, slots=True)
class ServiceMetric:
    """One metric of the service: its kind, what it says, and its labels with all their values."""

    kind: str
    text: str
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    buckets: tuple[float, ...] = ()


SERVICE_METRICS: Final[Mapping[str, ServiceMetric]] = MappingProxyType(
    {
        "sift_batch_http_seconds": ServiceMetric(
            "histogram",
            "Seconds from a request's head to the end of its answer; not of restricted callers",
            {"method": METHODS, "route": PATTERNS, "code": CODES},
            _BUCKETS,
        ),
        "sift_batch_auth_failures_total": ServiceMetric("counter", "Requests without a valid key"),
        "sift_batch_worker_kills_total": ServiceMetric(
            "counter",
            "Worker processes that read pages and were ended; not of restricted callers",
            {"reason": KILLS},
        ),
        "sift_batch_log_tripwire_total": ServiceMetric(
            "counter", "Log lines that looked like they hold an address and were held back; must stay 0"
        ),
        "sift_batch_store_max_bytes": ServiceMetric("gauge", "Bytes that stored jobs may have in all"),
        "sift_batch_callers_reload_ok": ServiceMetric(
            "gauge", "1 while the callers file as it is now is in force"
        ),
        "sift_batch_ready": ServiceMetric("gauge", "1 while work can be taken in, as /readyz says"),
        "sift_batch_build_info": ServiceMetric(
            "gauge", "Always 1; the version is its label", {"version": (sift_batch.__version__,)}
        ),
    }
)
"""Every metric that a service exports beside those of `sift_batch.metrics.METRICS`."""


def exported_names() -> frozenset[str]:
    """Return the name of every series that a service exports, a histogram's three and not its own."""
    kinds = {name: metric.kind for name, metric in METRICS.items()}
    kinds |= {name: metric.kind for name, metric in SERVICE_METRICS.items()}
    return frozenset(
        name + suffix
        for name, kind in kinds.items()
        for suffix in (("_bucket", "_count", "_sum") if kind == "histogram" else ("",))
    )


class ServiceMetrics(Traffic):
    """The metrics of one service on `registry`, the engine's among them: `hooks` is for its runner."""

    def __init__(self, registry: CollectorRegistry, *, gate: Gate, max_bytes: int) -> None:
        self.hooks = PrometheusHooks(registry, gate=gate)
        self._http = _histogram("http_seconds", registry)
        for route, methods in _served().items():
            for method, codes in methods.items():
                for code in (*codes, *_ALARMING):
                    self._http.labels(method, route, code)
        self._strangers = Counter(*_named("auth_failures_total"), registry=registry)
        self._ready = Gauge(*_named("ready"), registry=registry)
        Gauge(*_named("store_max_bytes"), registry=registry).set(max_bytes)
        name, text = _named("build_info")
        Gauge(name, text, ["version"], registry=registry).labels(sift_batch.__version__).set(1)
        self._seen = _Seen()
        registry.register(self._seen)

    def watch(self, *, callers_ok: Callable[[], bool], kills: Callable[[], Mapping[str, int]]) -> None:
        """Read these when the metrics are written: is the callers file in force, which workers were ended."""
        self._seen.callers_ok, self._seen.kills = callers_ok, kills

    def is_ready(self, ready: bool) -> None:
        """Set whether work can be taken in."""
        self._ready.set(ready)

    def answered(self, scope: Scope, status: int | None, seconds: float, *, restricted: bool) -> None:
        """Time a request, unless a restricted caller sent it."""
        if restricted:
            return
        method = scope["method"] if scope["method"] in METHODS else OTHER
        code = GONE if status is None else str(status)
        labels = (method, route_of(scope["raw_path"]), code if code in CODES else OTHER)
        self._http.labels(*labels).observe(seconds)

    def refused(self, code: str) -> None:
        """Count a submit that the engine never saw."""
        if code in _BODY_REFUSALS:
            self.hooks.refused(code)

    def stranger(self) -> None:
        """Count a request without a valid key."""
        self._strangers.inc()


def route_of(raw_path: bytes) -> str:
    """Return the route of a path as the label has it: its variable parts by name, else `other`."""
    if raw_path in _OPEN:
        return _OPEN[raw_path]
    pattern = pattern_of(raw_path)
    return OTHER if pattern is None else _PATTERNS[pattern]


def _served() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Which answers are everyday, by route and method: their series are there from the start."""
    served: dict[str, dict[str, tuple[str, ...]]] = {_OPEN[path]: {"GET": ("200",)} for path in _OPEN}
    served |= {
        label: {method: ("204",) if method == "DELETE" else ("200",) for method in ROUTES[parts]}
        for parts, label in _PATTERNS.items()
    }
    for label in _MAKING_JOBS:
        served[label] = {**served[label], "POST": ("200", "202")}
    return {**served, OTHER: {"GET": ("401", "404")}}


def _named(short: str) -> tuple[str, str]:
    name = "sift_batch_" + short
    return name, SERVICE_METRICS[name].text


def _histogram(short: str, registry: CollectorRegistry) -> Histogram:
    metric = SERVICE_METRICS["sift_batch_" + short]
    return Histogram(*_named(short), list(metric.labels), registry=registry, buckets=metric.buckets)


class _Seen:
    """Reads what is counted elsewhere, when the metrics are written."""

    def __init__(self) -> None:
        self.callers_ok: Callable[[], bool] = lambda: True
        self.kills: Callable[[], Mapping[str, int]] = dict

    def describe(self) -> Iterator[Any]:
        """Give the names alone."""
        yield GaugeMetricFamily(*_named("callers_reload_ok"))
        yield CounterMetricFamily(*_named("log_tripwire_total"))
        yield CounterMetricFamily(*_named("worker_kills_total"), labels=["reason"])

    def collect(self) -> Iterator[Any]:
        """Give them with their values of this moment."""
        yield GaugeMetricFamily(*_named("callers_reload_ok"), value=self.callers_ok())
        yield CounterMetricFamily(*_named("log_tripwire_total"), value=held_back())
        killed, kills = CounterMetricFamily(*_named("worker_kills_total"), labels=["reason"]), self.kills()
        for reason in KILLS:
            killed.add_metric([reason], kills.get(reason, 0))
        yield killed
