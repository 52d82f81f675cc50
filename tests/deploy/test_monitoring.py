"""Do the alerts and the dashboard ask for what the service has? And do the alerts do what they say?"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sift_batch.metrics import METRICS
from sift_batch.service._metrics import SERVICE_METRICS, exported_names

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus" / "alerts.yml"
ALERT_TESTS = DEPLOY / "prometheus" / "alerts_test.yml"
SCRAPE = DEPLOY / "prometheus" / "scrape.yml"
BOARD = DEPLOY / "grafana" / "sift-batch.json"
RUNBOOK = Path(__file__).parents[2] / "docs" / "operations.md"

PROMTOOL = shutil.which("promtool")
needs_promtool = pytest.mark.skipif(
    PROMTOOL is None, reason="promtool is not installed (apt-get install prometheus)"
)

# Labels that Prometheus itself adds to a series.
FOUND: dict[str, tuple[str, ...]] = {"instance": (), "job": ()}


def rules() -> list[dict[str, Any]]:
    """Give all alert rules."""
    (group,) = yaml.safe_load(ALERTS.read_text("utf-8"))["groups"]
    return list(group["rules"])


def board() -> dict[str, Any]:
    """Give the dashboard."""
    return dict(json.loads(BOARD.read_text("utf-8")))


def asked_of_the_board() -> Iterator[str]:
    """Give every query of the dashboard, with what Grafana puts into them."""
    for panel in board()["panels"]:
        for target in panel.get("targets", []):
            yield target["expr"].replace("$__rate_interval", "1m").replace("$instance", ".*")
    for variable in board()["templating"]["list"]:
        if variable["type"] == "query":
            yield re.sub(r"label_values\((\w+), (\w+)\)", r"count by (\2) (\1)", variable["definition"])


def queries() -> list[str]:
    """Give every query that is shipped."""
    return [*(rule["expr"] for rule in rules()), *asked_of_the_board()]


def labels_of(series: str) -> dict[str, tuple[str, ...]]:
    """Give a series' labels and their values; none are listed where any value can be."""
    name = re.sub(r"_(bucket|sum|count)$", "", series)
    if name in SERVICE_METRICS:
        labels = dict(SERVICE_METRICS[name].labels)
    else:
        metric = METRICS[name]
        labels = {metric.label: metric.values} if metric.label else {}
    return {**FOUND, **labels, **({"le": ()} if series.endswith("_bucket") else {})}


def test_every_metric_exists() -> None:
    """Every metric that an alert or a panel names is exported by the service, or is Prometheus's `up`."""
    named = {name for query in queries() for name in series_of(query)}

    assert len(named) > 25
    assert named <= exported_names()


def series_of(query: str) -> list[str]:
    """Give the names of our series in a query, without the values of labels, which may be anything."""
    return [str(name) for name in re.findall(r"\bsift_batch_\w+", re.sub(r'"[^"]*"', '""', query))]


def matchers(query: str) -> Iterator[tuple[str, str, str, str]]:
    """Give series, label, operator and value of every matcher of a query."""
    for series, inner in re.findall(r'(\w+)\{((?:[^"}]|"[^"]*")*)\}', query):
        for label, operator, value in re.findall(r'(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"', inner):
            yield series, label, operator, value


def test_every_label_and_value_exists() -> None:
    """Every label that is matched is one of its metric, and every match finds one of its values."""
    seen = 0
    for query in queries():
        for series, label, operator, value in matchers(query):
            if series == "up":
                continue
            labels = labels_of(series)
            assert label in labels, (series, label)
            fits = value if operator in ("=~", "!~") else re.escape(value)
            parts = fits.split("|") if labels[label] else []
            for part in parts:
                assert any(re.fullmatch(part, known) for known in labels[label]), (series, label, part)
            seen += 1
    assert seen > 30


def test_every_label_that_is_kept_exists() -> None:
    """A label after `by` or `on` is one of a metric in the same query."""
    for query in queries():
        known = {label for name in series_of(query) for label in labels_of(name)}
        for inner in re.findall(r"\b(?:by|on)\s*\(([^)]*)\)", query):
            assert {label.strip() for label in inner.split(",")} <= known, query


def test_every_alert_is_explained() -> None:
    """Each alert has a section of its own in the runbook, which its annotation names, and no other has."""
    text = RUNBOOK.read_text("utf-8")
    sections = re.findall(r"^#+ (SiftBatch\w+)$", text, re.MULTILINE)
    alerts = [rule["alert"] for rule in rules()]

    assert sorted(sections) == sorted(alerts)
    for rule in rules():
        assert rule["annotations"]["runbook"] == f"docs/operations.md#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("page", "ticket")


def test_every_alert_has_fired_and_kept_quiet() -> None:
    """The rules' own tests see each alert fire at least once, and not fire at least once."""
    cases = [
        case
        for test in yaml.safe_load(ALERT_TESTS.read_text("utf-8"))["tests"]
        for case in test["alert_rule_test"]
    ]
    alerts = {rule["alert"] for rule in rules()}

    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} >= alerts


def promtool(*arguments: str) -> None:
    """Run promtool, which must be content."""
    done = subprocess.run(
        [str(PROMTOOL), *arguments], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.real
def test_the_rules_are_valid() -> None:
    """`promtool check rules` finds nothing."""
    promtool("check", "rules", str(ALERTS))


@needs_promtool
@pytest.mark.real
def test_the_rules_do_what_they_say() -> None:
    """`promtool test rules` sees every alert fire when it should and stay quiet when it should not."""
    promtool("test", "rules", str(ALERT_TESTS))


@needs_promtool
@pytest.mark.real
def test_the_example_is_a_configuration(tmp_path: Path) -> None:
    """`promtool check config` takes what is to be added to prometheus.yml, beside the rules."""
    shutil.copy(SCRAPE, tmp_path / "prometheus.yml")
    shutil.copy(ALERTS, tmp_path / "sift-batch-alerts.yml")
    promtool("check", "config", str(tmp_path / "prometheus.yml"))


@needs_promtool
@pytest.mark.real
def test_every_panel_asks_a_valid_question(tmp_path: Path) -> None:
    """Prometheus can read each query of the dashboard."""
    rules = [
        {"record": f"panel:{number}", "expr": query} for number, query in enumerate(asked_of_the_board())
    ]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}), "utf-8")
    promtool("check", "rules", str(file))


def test_the_panels_lie_side_by_side() -> None:
    """No panel covers another, none is wider than the page, and no two have one number."""
    taken: set[tuple[int, int]] = set()
    panels = board()["panels"]
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in panels}) == len(panels)


def test_the_dashboard_belongs_to_nobody() -> None:
    """It names no data source of somebody's own: it asks for one, and every panel uses that."""
    for panel in board()["panels"]:
        if panel["type"] != "row":
            assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            assert panel["description"]


def test_every_metric_is_shown() -> None:
    """Each metric of the service is on the dashboard."""
    shown = " ".join(asked_of_the_board())
    assert [name for name in (*METRICS, *SERVICE_METRICS) if name not in shown] == []
