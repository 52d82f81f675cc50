"""Prometheus metrics of a runner: `open_runner(…, hooks=PrometheusHooks(registry))`.

Needs the extra `metrics`; importing this without it says so. `METRICS` lists every metric.
"""

try:
    from sift_batch._observe.metrics import METRICS, Metric, PrometheusHooks
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "prometheus_client":
        raise
    raise ImportError(
        "sift_batch.metrics needs prometheus-client; install it with: pip install 'sift-batch[metrics]'",
        name="prometheus_client",
    ) from error

__all__ = ["METRICS", "Metric", "PrometheusHooks"]
