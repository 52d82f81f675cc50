"""What `encode.py` makes of results: bytes that any reader can read, within the limits."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch import Result
from sift_batch._engine.encode import BadResult, cut, encode_result, http_status

_any_text = st.text(st.characters(exclude_categories=()))
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


def _clean(text: str) -> str:
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


@given(_any_text, st.integers(1, 60))
def test_a_cut_is_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    """`cut` gives a beginning that fits in UTF-8, and one more character would not fit."""
    kept = cut(text, limit)
    clean = _clean(text)
    assert clean.startswith(_clean(kept))
    assert len(_clean(kept).encode()) <= limit
    assert len(kept) == len(text) or len(clean[: len(kept) + 1].encode()) > limit


@given(_any_text, st.integers(1, 60))
def test_content_fits_its_limit(text: str, limit: int) -> None:
    """Stored content has at most `limit` bytes and is marked if and only if it was cut."""
    outcome = encode_result(Result(text), limit)
    assert outcome.result is not None
    stored = json.loads(outcome.result)
    assert len(stored["content"].encode()) <= limit
    assert len(stored["content"]) == outcome.chars
    assert stored["meta"] == ({} if stored["content"] == _clean(text) else {"truncated": True})


@given(_any_text, st.dictionaries(st.text(), _json, max_size=4))
def test_a_result_comes_back(content: str, meta: dict[str, Any]) -> None:
    """Whatever JSON can hold is stored as strict JSON in UTF-8 and reads as it was."""
    outcome = encode_result(Result(content, meta), 10**9)
    assert outcome.result is not None

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    assert json.loads(outcome.result, parse_constant=refuse) == {"content": _clean(content), "meta": meta}


@pytest.mark.parametrize(
    "value", [object(), b"", {1}, 1j, float("nan"), float("inf"), {1: 1}, 10**5_000], ids=range(8)
)
@pytest.mark.parametrize("depth", [0, 1, 10])
def test_what_json_cannot_hold_is_found_at_any_depth(value: object, depth: int) -> None:
    """A value that JSON can't hold makes a `BadResult` wherever in the meta it stands, and is never shown."""
    for _ in range(depth):
        value = [value] if depth % 2 else {"k": value}
    with pytest.raises(BadResult, match="JSON") as caught:
        encode_result(Result("x", {"k": value}), 10**9)
    assert str(caught.value) == "the result's meta holds what JSON can't hold"


@given(st.one_of(st.integers(), st.text(), st.none(), st.floats(), st.booleans()))
def test_an_http_status_has_three_digits(value: object) -> None:
    """Only an `int` from 100 to 999 is an HTTP status."""
    found = http_status(value)
    assert found == (value if type(value) is int and 100 <= value <= 999 else None)
