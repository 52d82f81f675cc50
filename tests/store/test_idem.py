"""When are two submits the same? The key, its canonical JSON, and the rows that hold it."""

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sift_batch import Options, Target
from sift_batch._model.idem import canonical_json, canonical_options, idem_key, scrub
from sift_batch._store.rows import options_from, target_row

VECTORS = json.loads(Path(__file__).with_name("idem_vectors.json").read_text())

ANY_TEXT = st.text(st.characters())
TEXT_OPTIONS = ("mode", "question", "pages", "grep", "jq")
OPTIONS = st.builds(
    Options,
    **dict.fromkeys(TEXT_OPTIONS, ANY_TEXT),
    context=st.none() | st.booleans(),
    recover=st.booleans(),
)
TARGETS = st.lists(st.builds(Target, ANY_TEXT, OPTIONS), max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_vectors(vector: dict[str, Any]) -> None:
    """The keys of an older implementation's rows stay what they are."""
    targets = [Target(item["url"], Options(**item["options"])) for item in vector["targets"]]
    assert canonical_json(targets) == vector["canonical"]
    assert idem_key(vector["caller"], targets) == vector["idem_key"]


# A second writer of the canonical form, a character at a time, that shares no code with the first.

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _text(text: str) -> str:
    out = ""
    for char in text:
        if 0xD800 <= ord(char) < 0xE000:
            out += "\ufffd"
        elif char in SHORT:
            out += SHORT[char]
        elif ord(char) < 0x20 or char in "<>&\u2028\u2029":
            out += f"\\u{ord(char):04x}"
        else:
            out += char
    return f'"{out}"'


def _options(options: Options) -> str:
    members = [f'"{name}":{_text(getattr(options, name))}' for name in TEXT_OPTIONS if getattr(options, name)]
    if options.context is not None:
        members.append('"context":' + ("true" if options.context else "false"))
    if options.recover:
        members.append('"recover":true')
    return "{" + ",".join(members) + "}"


def _series(targets: list[Target]) -> str:
    return "[" + ",".join(f'{{"url":{_text(t.url)},"options":{_options(t.options)}}}' for t in targets) + "]"


@given(TARGETS)
@example([Target("\ud83d\ude00\x7f\u2028<&>\0\b\f")])
def test_canonical_json_is_what_the_model_writes(targets: list[Target]) -> None:
    """The canonical JSON equals a second, independent writer's, byte for byte."""
    assert canonical_json(targets) == _series(targets)
    for target in targets:
        assert canonical_options(target.options) == _options(target.options)


@given(st.text(st.characters(exclude_categories=["Cs"])), TARGETS)
def test_the_key_is_the_hash_of_name_nul_and_json(name: str, targets: list[Target]) -> None:
    """The key is the hex SHA-256 of name, NUL and canonical JSON."""
    wanted = hashlib.sha256(name.encode() + b"\0" + _series(targets).encode()).hexdigest()
    assert idem_key(name, targets) == wanted


@given(OPTIONS)
def test_stored_options_are_read_back(options: Options) -> None:
    """Options are read back as they were given, but for lone surrogates."""
    back = options_from(canonical_options(options))
    for name in TEXT_OPTIONS:
        assert getattr(back, name) == scrub(getattr(options, name))
    assert (back.context, back.recover) == (options.context, options.recover)


@given(ANY_TEXT, OPTIONS)
def test_a_row_can_be_bound_and_counts_its_bytes(url: str, options: Options) -> None:
    """A target's columns are text that UTF-8 holds, and their bytes are counted right."""
    _, stored_url, stored_options, nbytes = target_row(0, Target(url, options))
    assert len((stored_url + stored_options).encode()) == nbytes


@given(JSON.map(json.dumps) | st.text())
@example('{"mode": "\\ud800", "context": 1, "recover": null, "other": {}}')
def test_odd_stored_options_are_options_or_a_value_error(text: str) -> None:
    """Whatever stands in the column: options come out of it, or a ValueError."""
    with contextlib.suppress(ValueError):
        assert isinstance(options_from(text), Options)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"mode": ' * 100_000, "9" * 5_000], ids=len)
def test_absurd_stored_options_are_a_value_error(text: str) -> None:
    """Text that JSON itself chokes on is a ValueError like any other."""
    with pytest.raises(ValueError):  # noqa: PT011 - whichever it is, it is one
        options_from(text)


@given(ANY_TEXT)
def test_scrubbed_text_is_utf8(text: str) -> None:
    """Scrubbed text can be encoded, has the same length, and differs in surrogates alone."""
    clean = scrub(text)
    clean.encode()
    assert len(clean) == len(text)
    for before, after in zip(text, clean, strict=True):
        assert after == ("\ufffd" if "\ud800" <= before <= "\udfff" else before)
