"""The metrics of a runner: complete from the start, and with label values from closed sets alone."""

import subprocess
import sys
import textwrap
from dataclasses import dataclass
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from sift_batch._model.errors import TargetError
from sift_batch._model.hooks import Hooks
from sift_batch.metrics import METRICS, PrometheusHooks

URL = "https://atlas.kestrel.example/orchid"


@dataclass
class Counts:
    """A gate's counts."""

    total: int = 8
    in_use: int = 3
    waiting_interactive: int = 1
    waiting_batch: int = 5


class Gate:
    """A gate that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def statistics(self) -> Counts:
        """Return the counts."""
        self.asked += 1
        return Counts()


def samples(registry: CollectorRegistry) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return every exported sample, but for the times of creation."""
    families = text_string_to_metric_families(generate_latest(registry).decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    """Return one sample."""
    return registry.get_sample_value("sift_batch_" + name, labels)


def call_everything(hooks: PrometheusHooks, text: Any) -> None:
    """Call every hook, with `text` wherever one takes a word."""
    hooks.job(text)
    hooks.target(TargetError(text, code=text), 0.5, 0)
    hooks.target(ValueError(text), 0.5, 0)
    hooks.target(None, 0.5, 1_000)
    hooks.target_restricted(failed=True)
    hooks.job_seconds(3.0)
    hooks.queued(1.0)
    hooks.depth(2)
    hooks.in_flight(1)
    hooks.busy(text, 2.0)
    hooks.refused(text)
    hooks.store(text, 0.01)
    hooks.store_error(text)
    hooks.stored(4_096)
    hooks.swept(2)
    hooks.evicted(1, 100)


def test_every_series_exists_from_the_start() -> None:
    """No series appears because of what was fetched: a new registry has the same ones as a used one."""
    registry = CollectorRegistry()
    hooks = PrometheusHooks(registry, gate=Gate())
    before = samples(registry)
    for text in (URL, "done", "gate", "timeout", "", 3, None, b"x"):
        call_everything(hooks, text)
    assert samples(registry).keys() == before.keys()
    assert sum(before.values()) == 8 + 3 + 1 + 5


def test_labels_are_from_the_documented_sets() -> None:
    """Every metric and label value that is exported is in `METRICS`, whatever words the hooks were given."""
    registry = CollectorRegistry()
    call_everything(PrometheusHooks(registry, gate=Gate()), URL)
    seen = set()
    for name, labels in samples(registry):
        base = next(b for b in METRICS if name == b or name.startswith(b + "_"))
        seen.add(base)
        metric = METRICS[base]
        labels = tuple(pair for pair in labels if pair[0] != "le")
        assert [key for key, _ in labels] == ([metric.label] if metric.label else [])
        assert all(word in metric.values for _, word in labels)
    assert seen == set(METRICS)


def test_two_runs_with_other_targets_have_equal_metrics() -> None:
    """Two runs that differ only in targets and in unforeseen words give the same metrics, byte for byte."""
    shown = []
    for text in (URL, "https://other.example/"):
        registry = CollectorRegistry()
        call_everything(PrometheusHooks(registry), text)
        shown.append(samples(registry))
    assert shown[0] == shown[1]


def test_hooks_become_metrics() -> None:
    """Each hook moves its metric, by what it was told."""
    registry = CollectorRegistry()
    hooks = PrometheusHooks(registry)
    hooks.job("created")
    hooks.target(TargetError("x", code="dns"), 0.5, 0)
    hooks.target(TargetError("x", code="kestrel"), 0.5, 0)
    hooks.target(ValueError("x"), 0.5, 0)
    hooks.target(None, 1.5, 1_000)
    hooks.job_seconds(3.0)
    hooks.queued(1.0)
    hooks.depth(2)
    hooks.in_flight(1)
    hooks.busy("gate", 2.0)
    hooks.refused("caller_busy")
    hooks.store("record", 0.01)
    hooks.store_error("record")
    hooks.stored(4_096)
    hooks.swept(2)
    hooks.evicted(1, 100)
    assert value(registry, "jobs_total", outcome="created") == 1
    assert value(registry, "targets_total", outcome="failed") == 3
    assert value(registry, "targets_total", outcome="done") == 1
    for code, count in {"dns": 1, "other": 1, "internal": 1, "timeout": 0}.items():
        assert value(registry, "target_errors_total", code=code) == count
    assert value(registry, "target_seconds_sum") == 3.0
    assert value(registry, "result_bytes_count") == 1
    assert value(registry, "result_bytes_sum") == 1_000
    assert value(registry, "job_seconds_sum") == 3.0
    assert value(registry, "queue_seconds_sum") == 1.0
    assert value(registry, "live_jobs") == 2
    assert value(registry, "inflight_targets") == 1
    assert value(registry, "busy_seconds_sum", reason="gate") == 2.0
    assert value(registry, "refused_total", reason="caller_busy") == 1
    assert value(registry, "store_seconds_count", operation="record") == 1
    assert value(registry, "store_errors_total", operation="record") == 1
    assert value(registry, "store_bytes") == 4_096
    assert value(registry, "swept_jobs_total") == 2
    assert value(registry, "evicted_jobs_total") == 1
    assert value(registry, "evicted_bytes_total") == 100


def test_restricted_targets_are_only_counted() -> None:
    """A restricted caller's target changes `targets_total` and nothing else."""
    registry = CollectorRegistry()
    hooks = PrometheusHooks(registry)
    before = samples(registry)
    hooks.target_restricted(failed=False)
    after = samples(registry)
    changed = {key for key in after if after[key] != before[key]}
    assert changed == {("sift_batch_targets_total", (("outcome", "done"),))}


def test_the_gate_is_read_when_metrics_are_rendered() -> None:
    """The gate is asked at each rendering, not when the hooks are made, and without one it has no metrics."""
    registry = CollectorRegistry()
    gate = Gate()
    PrometheusHooks(registry, gate=gate)
    assert gate.asked == 0
    assert value(registry, "gate_limit") == 8
    assert value(registry, "gate_in_use") == 3
    assert value(registry, "gate_waiting", kind="interactive") == 1
    assert value(registry, "gate_waiting", kind="batch") == 5
    other = CollectorRegistry()
    PrometheusHooks(other)
    assert value(other, "gate_limit") is None


def test_one_registry_takes_one() -> None:
    """A second `PrometheusHooks` on the same registry is a `ValueError`; on another registry it is fine."""
    registry = CollectorRegistry()
    PrometheusHooks(registry, gate=Gate())
    with pytest.raises(ValueError, match="Duplicated"):
        PrometheusHooks(registry)
    PrometheusHooks(CollectorRegistry())


def test_every_hook_is_counted() -> None:
    """Each method of `Hooks` is overridden, but for `ended`, of which `job` tells all that is counted."""
    names = {name for name in vars(Hooks) if not name.startswith("_")}
    assert {name for name in names if name not in vars(PrometheusHooks)} == {"ended"}


def test_a_missing_extra_says_which() -> None:
    """Without prometheus-client, importing `sift_batch.metrics` names the extra to install."""
    source = """
        import sys
        sys.modules["prometheus_client"] = None
        try:
            import sift_batch.metrics
        except ImportError as error:
            assert "sift-batch[metrics]" in error.msg, error.msg
        else:
            raise AssertionError
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(source)], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
