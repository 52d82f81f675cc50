"""Do the tables of the documentation say what the code says?"""

import inspect
import logging
import math
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import sift_batch
from sift_batch import Config, Gate
from sift_batch._observe.events import ENGINE_CODES, EVENTS
from sift_batch.fetch import FetchConfig
from sift_batch.metrics import METRICS
from sift_batch.service._service_config import ServiceConfig

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
LIMITS = ROOT / "docs" / "limits-and-settings.md"
UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20}
GATE_DEFAULTS = {
    name: parameter.default
    for name, parameter in inspect.signature(Gate).parameters.items()
    if parameter.default is not parameter.empty
}
CONFIG_DEFAULTS = {item.name: item.default for item in fields(Config)}


def table(page: Path, *head: str) -> list[list[str]]:
    """Give the rows of the one table of a page that has this head."""
    row = r"\| (.*) \|\n"
    found = re.findall(
        rf"^\| {re.escape(' | '.join(head))} \|\n\|[-|]+\|\n((?:\|.*\|\n)+)",
        page.read_text(encoding="utf-8") + "\n",
        re.MULTILINE,
    )
    assert len(found) == 1, f"tables with the head {head}: {len(found)}"
    return [
        [cell.strip() for cell in line.split(" | ")]
        for line in re.findall(row, found[0].replace("|  |", "| - |"))
    ]


def plain(cell: str) -> str:
    """Give a name without its code marks."""
    return cell.strip("`")


def number(cell: str) -> float:
    """Give the number of a cell such as `64 MiB` or `14,400`."""
    amount, _, unit = cell.replace(",", "").partition(" ")
    return float(amount) * UNITS[unit or "bytes"]


def test_readme_limits() -> None:
    """The README's table of limits has the defaults of `Config` and `Gate`."""
    told = {
        plain(setting): number(default)
        for _, default, setting in table(README, "limit", "default", "setting")
    }
    known = CONFIG_DEFAULTS | GATE_DEFAULTS
    assert told == {name: known[name] for name in told}
    # One setting limits nothing that a user meets.
    assert set(known) - set(told) == {"sweep_every"}


def test_readme_counts_its_limits() -> None:
    """The README says how many of its limits are fields of `Config`."""
    settings = [plain(row[2]) for row in table(README, "limit", "default", "setting")]
    assert [name for name in settings if name in CONFIG_DEFAULTS] == settings[:13]
    assert [name for name in settings if name in GATE_DEFAULTS] == settings[13:]
    assert len(settings) == 13 + 3


def test_settings() -> None:
    """The table of settings has every field of `Config` with its default, and whether 0 and infinity go."""
    rows = table(LIMITS, "field", "default", "unit", "zero", "infinite", "what it does")
    assert {plain(row[0]): number(row[1]) for row in rows} == CONFIG_DEFAULTS
    for name, _, _, zero, infinite, _ in rows:
        assert accepted(plain(name), 0) == (zero == "yes"), name
        assert accepted(plain(name), math.inf) == (infinite == "yes"), name


def accepted(field: str, value: Any) -> bool:
    """Say whether `Config` takes a value."""
    try:
        Config(**{field: value})
    except ValueError:
        return False
    return True


def test_gate_settings() -> None:
    """The table of the gate's arguments has each of them with its default."""
    rows = table(LIMITS, "argument", "default", "unit", "what it does")
    assert {plain(row[0]): number(row[1]) for row in rows} == GATE_DEFAULTS


def test_fetch_settings() -> None:
    """The table of the pipeline's settings has each of them, and the default of each that is a number."""
    rows = table(LIMITS, "setting", "default", "unit", "what it does")
    defaults = {item.name: item.default for item in fields(FetchConfig)}
    assert [plain(row[0]) for row in rows] == list(defaults)
    numbers = {
        name: value
        for name, value in defaults.items()
        if isinstance(value, int | float) and value is not False
    }
    assert {plain(row[0]): number(row[1]) for row in rows if plain(row[0]) in numbers} == numbers


def test_service_settings() -> None:
    """The table of the service's settings has each of them, and the default of each that is a number."""
    rows = table(LIMITS, "service setting", "default", "unit", "what it does")
    defaults = {item.name: item.default for item in fields(ServiceConfig)}
    assert {plain(row[0]) for row in rows} == set(defaults)
    for name, default, *_ in rows:
        value = defaults[plain(name)]
        assert default == ("none" if value in (None, ()) else str(value).removesuffix(".0")), name


def test_errors() -> None:
    """The table of errors has every exception of the package with its base."""
    public = [getattr(sift_batch, name) for name in sift_batch.__all__]
    errors = [item for item in public if isinstance(item, type) and issubclass(item, BaseException)]
    rows = table(LIMITS, "error", "base", "when")
    assert {plain(row[0]): plain(row[1]) for row in rows} == {
        error.__name__: error.__base__.__name__ for error in errors if error.__base__
    }


def test_engine_codes() -> None:
    """The table of codes has the engine's own, and no other."""
    assert [plain(row[0]) for row in table(LIMITS, "code", "meaning")] == list(ENGINE_CODES)


def test_events() -> None:
    """The table of log events has every event with its level, its fields, and which of them are fleet's."""
    told = {
        plain(name): (level, fields)
        for name, level, fields, _ in table(LIMITS, "event", "level", "fields", "what happened")
    }
    known = {
        name: (
            logging.getLevelName(event.level).lower() + (", fleet only" if event.of_target else ""),
            ", ".join(f"(`{key}`)" if key in event.for_fleet else f"`{key}`" for key in event.fields),
        )
        for name, event in EVENTS.items()
    }
    assert told == known


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_is_used(name: str) -> None:
    """No event is in the table that nothing in the package ever logs."""
    package = Path(sift_batch.__file__).parent
    sources = [path for path in package.rglob("*.py") if path.name != "events.py"]
    assert any(f'"{name}"' in path.read_text(encoding="utf-8") for path in sources)


def test_metrics() -> None:
    """The table of metrics has every metric with its kind, its label and what it says."""
    rows = table(LIMITS, "metric", "kind", "label", "what it says")
    assert [[plain(name), kind, plain(label).strip("-"), text] for name, kind, label, text in rows] == [
        [name, metric.kind, metric.label, metric.text] for name, metric in METRICS.items()
    ]


def test_label_values() -> None:
    """The table of labels has every value that each label can have."""
    told = {}
    for which, values in table(LIMITS, "label", "values"):
        label, _, names = which.partition(" of ")
        for name in names.split(", "):
            told["sift_batch_" + plain(name)] = (plain(label), tuple(map(plain, values.split(", "))))
    assert told == {name: (metric.label, metric.values) for name, metric in METRICS.items() if metric.label}
