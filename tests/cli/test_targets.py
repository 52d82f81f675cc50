"""What the input says: lines, JSON objects, and how much memory they may take."""

import io
import json
import tracemalloc
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch._model.values import Options, Target
from sift_batch.cli.targets import BadLine, Targets, parse_line, read_targets
from sift_batch.fetch import check_target

KEYS = {"url", "options", *(field.name for field in fields(Options))}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def _read(data: bytes, urls=(), defaults=None):
    complaints = []
    with Targets() as targets:
        bad = read_targets(
            targets,
            urls,
            io.BytesIO(data),
            defaults or {},
            check_target,
            lambda *complaint: complaints.append(complaint),
        )
        return list(targets), bad, complaints


def _add(targets, urls, file, defaults):
    """Add targets that are all good."""
    assert read_targets(targets, urls, file, defaults, check_target, lambda *_: None) == 0


def _reason(raw: bytes) -> str:
    """What is wrong with a line; "" for a good one."""
    try:
        parse_line(raw, {}, check_target)
    except BadLine as error:
        return error.reason
    return ""


@given(st.binary(max_size=200))
def test_no_line_breaks_the_reader(raw):
    """Any bytes are a target, nothing, or a `BadLine` whose reason is printable ASCII."""
    reason = _reason(raw)
    assert reason.isascii()
    assert reason.isprintable()


@given(st.text(max_size=100), st.text(max_size=100))
def test_no_object_breaks_the_reader(key, value):
    """Any JSON object is a target or a `BadLine`."""
    for entry in ({"url": value}, {"url": "http://a.example.org/", "options": {key: value}}, {key: value}):
        assert _reason(json.dumps(entry).encode()).isascii()


@given(st.dictionaries(st.text().filter(lambda key: key not in KEYS), json_values, max_size=4))
def test_other_keys_come_back_as_they_were(extra):
    """Whatever else a line holds is given back unchanged."""
    line = json.dumps({"url": "http://a.example.org/", **extra}).encode() + b"\n"
    items, bad, _ = _read(line)
    assert bad == 0
    assert (items[0].extra or {}) == extra


def test_targets_come_back_in_order_with_place_line_and_options():
    """Targets of arguments come before those of the file; each can be read again and again."""
    data = b'\n{"url": "http://c.example.org/", "options": {"mode": "raw", "context": false}}'
    with Targets() as targets:
        read_targets(
            targets,
            ["http://a.example.org/"],
            io.BytesIO(data),
            {"mode": "text"},
            check_target,
            lambda *_: None,
        )
        for _ in range(2):
            first, second = targets
            assert (first.idx, first.target, first.line) == (
                0,
                Target("http://a.example.org/", Options(mode="text")),
                None,
            )
            assert (second.idx, second.line) == (1, 2)
            assert second.target.options == Options(mode="raw", context=False)


def test_two_readers_don_t_disturb_each_other():
    """Iterators over the same targets keep their own places."""
    with Targets() as targets:
        _add(targets, [f"http://a.example.org/{n}" for n in range(9)], None, {})
        for one, other in zip(targets, targets, strict=True):
            assert one.target == other.target


def test_the_default_mode_has_one_name():
    """A line that asks for markdown is the same target as one that asks for nothing."""
    line = b'{"url": "http://a.example.org/", "options": {"mode": "markdown"}}'
    items, _, _ = _read(line, ["http://a.example.org/"])
    assert items[0].target == items[1].target


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\n\n", b" \t\r\n"])
def test_line_ends_and_blanks_round_a_line_don_t_matter(ending):
    """Lines may end in LF or CRLF and have blanks at either end; a BOM is not part of the first."""
    items, bad, _ = _read(
        b"\xef\xbb\xbf  http://a.example.org/"
        + ending
        + b"# http://no.example.org/"
        + ending
        + b"http://b.example.org/"
    )
    assert bad == 0
    assert [item.target.url for item in items] == ["http://a.example.org/", "http://b.example.org/"]


def test_a_comment_is_skipped_whatever_it_holds():
    """Bytes that are no UTF-8, a NUL, a length without end: after a # nobody reads them."""
    long = b" # " + b"x" * (2**21)
    lines = [b"# caf\xe9", b"\t#\x00", long, b"http://example.org/", b"#\xff\xfe"]
    items, bad, complaints = _read(b"\n".join(lines))
    assert (bad, complaints) == (0, [])
    assert [(item.target.url, item.line) for item in items] == [("http://example.org/", 4)]


def test_a_utf16_file_is_named_line_by_line():
    """A file in UTF-16 is bad input, not a crash."""
    items, bad, complaints = _read("http://a.example.org/\nhttp://b.example.org/\n".encode("utf-16"))
    assert items == []
    assert bad == len(complaints) > 0


@pytest.mark.slow
def test_many_lines_take_no_memory():
    """Thirty thousand targets take less memory than half of them would as Python objects."""
    lines = [b"http://host%d.example.org/some/longer/path/%d\n" % (n % 50, n) for n in range(30_000)]
    data = io.BytesIO(b"".join(lines))
    del lines
    tracemalloc.start()
    try:
        with Targets() as targets:
            assert read_targets(targets, (), data, {}, check_target, lambda *_: None) == 0
            assert sum(1 for _ in targets) == 30_000
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5 * 2**20


def test_a_line_s_own_options_win():
    """The defaults hold only for what a line's own options leave out."""
    line = b'{"url": "http://a.example.org/", "options": {"mode": "html"}}\nhttp://b.example.org/'
    items, _, _ = _read(line, defaults={"mode": "raw"})
    assert [item.target.options.mode for item in items] == ["html", "raw"]


@pytest.mark.parametrize("name", [field.name for field in fields(Options)])
def test_an_option_beside_options_is_refused(name):
    """A key with the name of an option is a mistake, and the line says where it belongs."""
    line = json.dumps({"url": "http://a.example.org/", name: None, "options": {}}).encode()
    assert _reason(line) == f'put "{name}" into "options"'


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"mod": "raw"}, 'did you mean "mode"?'),
        ({"Question": "x"}, 'did you mean "question"?'),
        ({"secret": 1}, "the known ones are context"),
        ({"mode" * 500: 1}, "the known ones are context"),
        ({"mode": 1}, '"mode" in "options" must be a string'),
        ({"pages": None}, '"pages" in "options" must be a string'),
        ({"context": "yes"}, '"context" in "options" must be true, false or null'),
        ({"recover": 1}, '"recover" in "options" must be true or false'),
    ],
)
def test_a_bad_option_is_named(options, reason):
    """What is wrong with an option is said with its name, and an unknown one's own name is not repeated."""
    said = _reason(json.dumps({"url": "http://a.example.org/", "options": options}).encode())
    assert reason in said
    assert "Question" not in said
    assert "secret" not in said
    assert len(said) < 200
