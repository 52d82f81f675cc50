"""Fuzzing as CI runs it: the same inputs each time. `fuzz_run.py` runs others, and more, led by coverage."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fuzz_parsers
import pytest
from fuzz_bytes import store_bytes, template
from fuzz_parsers import PARSERS, SEEDS
from fuzz_rows import COLUMNS, stored_rows
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

FIXED = settings(derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))


def _near(seeds: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Anything, and seeds with a piece cut out and something put in."""
    small = st.sampled_from([seed for seed in seeds if len(seed) < 10_000])
    changed = st.builds(
        lambda seed, place, cut, put: seed[:place] + put + seed[place + cut :],
        small,
        st.integers(0, 60),
        st.integers(0, 8),
        st.one_of(st.binary(max_size=12), st.text(max_size=6).map(str.encode), small),
    )
    return st.one_of(st.binary(max_size=200), st.text(max_size=80).map(str.encode), changed)


@pytest.mark.parametrize("name", PARSERS)
def test_no_bytes_break_a_parser(name: str) -> None:
    """Each parser keeps its properties for seeds, for what is near them, and for anything."""
    parser = PARSERS[name]
    for seed in SEEDS[name]:
        parser(seed)

    @settings(FIXED, max_examples=600)
    @given(_near(SEEDS[name]))
    def near(data: bytes) -> None:
        parser(data)

    near()


@pytest.fixture(scope="module")
def whole() -> Iterator[Path]:
    """A store file that is as it should be."""
    with template() as path:
        yield path


@pytest.mark.real
def test_no_bytes_of_a_store_file_break_a_reader(whole: Path) -> None:
    """A store file with any of its bytes changed gives values or a `StoreError`, and is left as it was."""
    for seed in range(30):
        store_bytes(whole, seed)


_COLUMN = st.integers(0, len(COLUMNS) - 1)
_CONTENT = st.one_of(
    st.binary(max_size=12),
    st.sampled_from(
        [b"", b"[" * 2_000, b'{"content":1,"meta":[]}', b"running", b"\xff\xfe", b"1e999", b"-1"]
    ),
)


@settings(FIXED, max_examples=8)
@given(st.lists(st.tuples(_COLUMN, st.integers(0, 5), _CONTENT), min_size=1, max_size=2))
@example([(COLUMNS.index(("batch_target", "options")), 0, b"[" * 2_000)])
@example([(COLUMNS.index(("batch_target", "result")), 1, b'{"content":"\\ud800","meta":{}}')])
def test_no_row_of_a_store_breaks_a_runner(lines: list[tuple[int, int, bytes]]) -> None:
    """Whatever a column holds: each answer is of its type or a `StoreError`; the runner goes on."""
    stored_rows(b"\n".join(bytes([column, kind]) + raw.replace(b"\n", b" ") for column, kind, raw in lines))


@pytest.mark.parametrize("column", ["options", "error", "hint", "url"])
def test_text_that_is_damaged_harms_nobody(column: str) -> None:
    """Text that is no UTF-8, no JSON or nested without end is a `StoreError`, or a value."""
    place = COLUMNS.index(("batch_target", column))
    for kind, raw in ((3, b"\xff\xfe\x00"), (0, b"[" * 2_000), (0, b'{"mode":5,"x":1e999}'), (0, b"NaN")):
        stored_rows(bytes([place, kind]) + raw)


def _raises(*_: object) -> Any:
    raise IndexError("planted")


@pytest.mark.parametrize(
    ("name", "planted", "fault"),
    [
        ("host_key", "host_key", lambda url: str(url).rpartition("//")[2][:255]),
        ("host_key", "host_key", _raises),
        ("stored_json", "options_from", lambda text: {}),
        ("stored_json", "result_from", lambda blob: blob),
        ("lines", "parse_line", _raises),
        ("lines", "read_targets", lambda *given: given[-1]("line", 1, "caf\u00e9") or 1),
        ("retry_after", "retry_after", lambda value, now: float(len(value))),
        ("retry_after", "seconds", lambda value: value),
        ("redact", "redact_urls", lambda logger, name, event: event),
    ],
)
def test_the_fuzzer_sees(
    name: str, planted: str, fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parser that breaks its promise is found out by what a fuzzer begins with."""
    monkeypatch.setattr(fuzz_parsers, planted, fault)
    with pytest.raises((AssertionError, IndexError)):
        _feed_seeds(name)


def _feed_seeds(name: str) -> None:
    for seed in SEEDS[name]:
        PARSERS[name](seed)
