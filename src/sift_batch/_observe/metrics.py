"""How is a runner doing, for Prometheus?

`PrometheusHooks` turns what a runner tells its hooks into metrics on a registry of the application. Every
label value is from a closed set and exists from the start, so that a series never appears because of
what was fetched. No label holds a caller, a job or a host. Nothing global is touched. Needs the extra
`metrics`. Next: `_model/hooks.py` for when each hook is called.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily

from sift_batch._model.errors import TargetError
from sift_batch._model.hooks import Hooks

from .events import BUSY_REASONS, CODES, STORE_STEPS

OTHER: Final = "other"
JOB_OUTCOMES: Final = ("created", "reused", "done", "partial", "failed", "cancelled")
TARGET_OUTCOMES: Final = ("done", "failed")
REFUSALS: Final = ("no_targets", "too_many_targets", "caller_busy", "jobs_busy", "store")
GATE_KINDS: Final = ("interactive", "batch")

_SLOW: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_LONG: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1_800.0, 3_600.0, 7_200.0, 14_400.0)
_WAIT: Final = (0.1, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0, 60.0, 300.0, 600.0, 1_800.0)
_STEP: Final = (0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0)
_BYTES: Final = (256.0, 1_024.0, 4_096.0, 16_384.0, 65_536.0, 131_072.0, 262_144.0, 1_048_576.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its kind, what it says, its label if it has one, and the label's values."""

    kind: str
    text: str
    label: str = ""
    values: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS: Final = MappingProxyType(
    {
        "sift_batch_target_seconds": Metric(
            "histogram",
            "Seconds of fetching per stored target, without busy waits; fleet only",
            buckets=_SLOW,
        ),
        "sift_batch_job_seconds": Metric(
            "histogram", "Seconds from a job's submit to its end; fleet only", buckets=_LONG
        ),
        "sift_batch_queue_seconds": Metric(
            "histogram", "Seconds from a job's submit to its first fetch; fleet only", buckets=_LONG
        ),
        "sift_batch_busy_seconds": Metric(
            "histogram", "Seconds of one busy wait; fleet only", "reason", (*BUSY_REASONS, OTHER), _WAIT
        ),
        "sift_batch_store_seconds": Metric(
            "histogram", "Seconds of one step of the store", "operation", (*STORE_STEPS, OTHER), _STEP
        ),
        "sift_batch_result_bytes": Metric(
            "histogram", "Bytes of one stored result; fleet only", buckets=_BYTES
        ),
        "sift_batch_jobs_total": Metric(
            "counter", "Jobs that were created, reused or ended", "outcome", (*JOB_OUTCOMES, OTHER)
        ),
        "sift_batch_targets_total": Metric("counter", "Targets that were stored", "outcome", TARGET_OUTCOMES),
        "sift_batch_target_errors_total": Metric(
            "counter", "Targets that failed, by code; fleet only", "code", (*CODES, OTHER)
        ),
        "sift_batch_refused_total": Metric(
            "counter", "Submits that were refused", "reason", (*REFUSALS, OTHER)
        ),
        "sift_batch_swept_jobs_total": Metric("counter", "Lapsed jobs that a sweep removed"),
        "sift_batch_evicted_jobs_total": Metric("counter", "Jobs that the byte budget removed"),
        "sift_batch_evicted_bytes_total": Metric("counter", "Bytes that the byte budget removed"),
        "sift_batch_store_errors_total": Metric(
            "counter", "Steps of the store that failed", "operation", (*STORE_STEPS, OTHER)
        ),
        "sift_batch_live_jobs": Metric("gauge", "Jobs that are queued or running"),
        "sift_batch_inflight_targets": Metric("gauge", "Targets that are being fetched"),
        "sift_batch_store_bytes": Metric("gauge", "Bytes of all stored jobs"),
        "sift_batch_gate_in_use": Metric("gauge", "Slots of the gate in use; with gate= only"),
        "sift_batch_gate_limit": Metric("gauge", "Slots that the gate has; with gate= only"),
        "sift_batch_gate_waiting": Metric(
            "gauge", "Fetches that wait for the gate; with gate= only", "kind", GATE_KINDS
        ),
    }
)
"""Every metric that `PrometheusHooks` has, by its exported name."""


class GateCounts(Protocol):
    """The part of a gate's statistics that is exported."""

    @property
    def total(self) -> int:
        """Slots in all."""

    @property
    def in_use(self) -> int:
        """Slots in use."""

    @property
    def waiting_interactive(self) -> int:
        """Interactive fetches that wait."""

    @property
    def waiting_batch(self) -> int:
        """Batch fetches that wait."""


class GateLike(Protocol):
    """What is asked of `gate`: its statistics, from whichever thread renders the metrics."""

    def statistics(self) -> GateCounts:
        """Return the gate's counts at this moment."""


class PrometheusHooks(Hooks):
    """Hooks that count and time a runner's work on `registry`.

    With `gate`, the gate's slots and waiters are read when the metrics are rendered. One registry
    takes one of these: a second raises `ValueError`, as Prometheus does for any name that is taken.
    `METRICS` lists all names and label values. Restricted callers' targets are counted by outcome and
    add nothing to any time, size or code.

    The seconds of the store's steps come from a hook that doesn't say whether the step failed: whoever
    sees a failure may count it with `store_error`.
    """

    def __init__(self, registry: CollectorRegistry, *, gate: GateLike | None = None) -> None:
        self._histograms = {
            name: _Labelled(name, metric, _histogram(name, metric, registry))
            for name, metric in METRICS.items()
            if metric.kind == "histogram"
        }
        self._counters = {
            name: _Labelled(name, metric, _counter(name, metric, registry))
            for name, metric in METRICS.items()
            if metric.kind == "counter"
        }
        self._gauges = {
            name: Gauge(name, metric.text, registry=registry)
            for name, metric in METRICS.items()
            if metric.kind == "gauge" and not name.startswith("sift_batch_gate_")
        }
        if gate is not None:
            registry.register(_GateCollector(gate))

    def job(self, outcome: str) -> None:
        """Count a job that was created, reused or ended."""
        self._count("jobs_total", outcome)

    def target(self, error: Exception | None, seconds: float, result_bytes: int) -> None:
        """Count and time a stored target of a fleet caller."""
        self._count("targets_total", "done" if error is None else "failed")
        self._observe("target_seconds", seconds)
        if error is None:
            self._observe("result_bytes", result_bytes)
        else:
            self._count("target_errors_total", error_code(error))

    def target_restricted(self, failed: bool) -> None:
        """Count a stored target of a restricted caller, and nothing else of it."""
        self._count("targets_total", "failed" if failed else "done")

    def job_seconds(self, seconds: float) -> None:
        """Time a job from its submit to its end."""
        self._observe("job_seconds", seconds)

    def queued(self, seconds: float) -> None:
        """Time a job from its submit to its first fetch."""
        self._observe("queue_seconds", seconds)

    def depth(self, live: int) -> None:
        """Set the number of live jobs."""
        self._gauges["sift_batch_live_jobs"].set(live)

    def in_flight(self, n: int) -> None:
        """Set the number of targets that are being fetched."""
        self._gauges["sift_batch_inflight_targets"].set(n)

    def busy(self, reason: str, waited: float) -> None:
        """Time a busy wait."""
        self._observe("busy_seconds", waited, reason)

    def refused(self, reason: str) -> None:
        """Count a refused submit."""
        self._count("refused_total", reason)

    def store(self, operation: str, seconds: float) -> None:
        """Time a step of the store."""
        self._observe("store_seconds", seconds, operation)

    def store_error(self, operation: str) -> None:
        """Count a failed step of the store. No runner calls this; whoever wraps the store may."""
        self._count("store_errors_total", operation)

    def stored(self, nbytes: int) -> None:
        """Set the bytes of all stored jobs."""
        self._gauges["sift_batch_store_bytes"].set(nbytes)

    def swept(self, jobs: int) -> None:
        """Count lapsed jobs that were removed."""
        self._count("swept_jobs_total", by=jobs)

    def evicted(self, jobs: int, nbytes: int) -> None:
        """Count jobs and bytes that the budget removed."""
        self._count("evicted_jobs_total", by=jobs)
        self._count("evicted_bytes_total", by=nbytes)

    def _count(self, name: str, value: str = "", by: float = 1) -> None:
        child = self._counters["sift_batch_" + name].child(value)
        assert isinstance(child, Counter)
        child.inc(by)

    def _observe(self, name: str, amount: float, value: str = "") -> None:
        child = self._histograms["sift_batch_" + name].child(value)
        assert isinstance(child, Histogram)
        child.observe(amount)


def error_code(error: Exception) -> str:
    """Return the label value for a failed target: its code if that is one of `CODES`, else `other`.

    An error that is no `TargetError` was not foreseen by the fetch: `internal`.
    """
    if not isinstance(error, TargetError):
        return "internal"
    code = error.__dict__.get("code")
    return code if type(code) is str and code in CODES else OTHER


class _Labelled:
    """A metric with a child for each value of its label, all made at the start."""

    def __init__(self, name: str, metric: Metric, parent: Counter | Histogram) -> None:
        self._children = {"": parent} if not metric.label else {v: parent.labels(v) for v in metric.values}

    def child(self, value: str) -> Counter | Histogram:
        # A subclass of str may lie in comparisons; only plain ones are looked up.
        return self._children.get(value if type(value) is str else OTHER) or self._children[OTHER]


def _histogram(name: str, metric: Metric, registry: CollectorRegistry) -> Histogram:
    labels = [metric.label] if metric.label else []
    return Histogram(name, metric.text, labels, registry=registry, buckets=metric.buckets)


def _counter(name: str, metric: Metric, registry: CollectorRegistry) -> Counter:
    return Counter(name, metric.text, [metric.label] if metric.label else [], registry=registry)


class _GateCollector:
    """Reads a gate when the metrics are rendered."""

    def __init__(self, gate: GateLike) -> None:
        self._gate = gate

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Give the names alone, so that registering asks the gate nothing."""
        for name in ("in_use", "limit", "waiting"):
            yield self._family(name)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Give the gate's counts at this moment."""
        counts = self._gate.statistics()
        for name, value in (("in_use", counts.in_use), ("limit", counts.total)):
            family = self._family(name)
            family.add_metric([], value)
            yield family
        waiting = self._family("waiting")
        for kind, number in zip(GATE_KINDS, (counts.waiting_interactive, counts.waiting_batch), strict=True):
            waiting.add_metric([kind], number)
        yield waiting

    @staticmethod
    def _family(name: str) -> GaugeMetricFamily:
        full = "sift_batch_gate_" + name
        metric = METRICS[full]
        return GaugeMetricFamily(full, metric.text, labels=[metric.label] if metric.label else [])
