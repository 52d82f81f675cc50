"""What goes through the pipe, and what is not believed of it."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch._model.values import Options
from sift_batch.fetch import _frames
from sift_batch.fetch._document import Document, ReadError, Reading
from sift_batch.fetch._errors import FetchError

LIMIT = 2**18
ERROR = {"kind": "error", "code": "bad_option", "message": "m", "hint": "", "reason": ""}


def answer(head_and_content: tuple[bytes, bytes]) -> object:
    """Take an answer apart as the application does."""
    head, content = head_and_content
    size = _frames.PREFIX.size
    header, body = _frames.sizes(head[:size], header_limit=_frames.ANSWER_LIMIT, body_limit=LIMIT)
    assert (len(head) - size, len(content)) == (header, body)
    return _frames.parse_answer(head[size:], content)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(min_size=30), json_values, max_size=4))
def test_a_reading_comes_out_as_it_went_in(content, facts):
    """Text and facts survive the pipe unchanged."""
    reading = answer(_frames.reading_answer(Reading(content, facts), LIMIT))
    assert isinstance(reading, Reading)
    assert (reading.content, dict(reading.facts)) == (content, facts)


def test_a_request_is_pieces_that_are_not_joined():
    """The body's own objects follow a small header."""
    pieces = [b"a" * 10, b"", b"b"]
    document = Document(body=pieces, content_type="text/html", url="https://example.com/ä")
    head, *body = _frames.read_request(document, Options(jq=".a", context=True, recover=True))
    assert all(given is piece for given, piece in zip(body, pieces, strict=True))
    header_size, body_size = _frames.sizes(head[:8], header_limit=_frames.REQUEST_LIMIT, body_limit=11)
    header = _frames.parse_request(head[8:])
    assert (header_size, body_size) == (len(head) - 8, 11)
    assert Options(**header["options"]) == Options(jq=".a", context=True, recover=True)
    assert (header["content_type"], header["url"]) == ("text/html", "https://example.com/ä")


def test_an_error_keeps_its_code_texts_and_reason():
    """What a reader raises is what the application gets."""
    error = answer(_frames.error_answer(ReadError("refused", "no", hint="do this", reason="encoding")))
    assert isinstance(error, FetchError)
    assert (error.code, error.message, error.hint, error.reason) == ("refused", "no", "do this", "encoding")


def test_half_a_surrogate_pair_in_the_content_is_replaced():
    """No store can keep one, so none leaves the worker."""
    assert answer(_frames.reading_answer(Reading("a\ud800b"), LIMIT)).content == "a?b"


def test_a_content_over_the_limit_is_too_large_and_not_sent():
    """A reader that forgot the limit fails as `too_large`, not as a broken worker."""
    assert answer(_frames.reading_answer(Reading("x" * LIMIT), LIMIT)).content == "x" * LIMIT
    with pytest.raises(ReadError) as caught:
        _frames.reading_answer(Reading("ä" * (LIMIT // 2) + "x"), LIMIT)
    assert caught.value.code == "too_large"


def test_facts_of_any_size_are_made_to_fit():
    """A title of a megabyte and a thousand passages do not fail the page."""
    facts = {"title": "t" * 2**20, "passages": [{"headings": ["h" * 2**17]}] * 50, "chars": 3}
    reading = answer(_frames.reading_answer(Reading("abc", facts), LIMIT))
    assert reading.content == "abc"
    assert reading.facts["title"] == "t" * 500
    assert len(reading.facts["passages"]) == 20
    assert reading.facts["chars"] == 3
    facts["passages"] = [{"headings": ["h" * 2**17] * 20}] * 20
    reading = answer(_frames.reading_answer(Reading("abc", facts), LIMIT))
    assert reading.facts == {"title": "t" * 500, "chars": 3}


@pytest.mark.parametrize(
    ("header", "body"), [(0, 0), (_frames.ANSWER_LIMIT + 1, 0), (2**32 - 1, 0), (10, LIMIT + 1)]
)
def test_a_length_above_the_limits_is_refused_before_anything_is_read(header, body):
    """No prefix makes the application wait for, or keep, more than the limits."""
    prefix = _frames.PREFIX.pack(header, body)
    with pytest.raises(_frames.BadFrame):
        _frames.sizes(prefix, header_limit=_frames.ANSWER_LIMIT, body_limit=LIMIT)


BAD = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "no object": b"[]",
    "null": b"null",
    "empty": b"{}",
    "an unknown kind": b'{"kind": "ok"}',
    "a kind that is no text": b'{"kind": ["reading"], "facts": {}}',
    "a plain kind with more": b'{"kind": "checked", "facts": {}}',
    "no facts": b'{"kind": "reading"}',
    "facts that are a list": b'{"kind": "reading", "facts": []}',
    "more than facts": b'{"kind": "reading", "facts": {}, "content": "x"}',
    "NaN": b'{"kind": "reading", "facts": {"x": NaN}}',
    "infinity": b'{"kind": "reading", "facts": {"x": -Infinity}}',
    "a number that becomes infinity": b'{"kind": "reading", "facts": {"x": 1e999}}',
    "a number of endless digits": b'{"kind": "reading", "facts": {"x": ' + b"9" * 5_000 + b"}}",
    "half a surrogate pair": b'{"kind": "reading", "facts": {"x": "\\ud800"}}',
    "half a surrogate pair as a name": b'{"kind": "reading", "facts": {"\\udfff": 1}}',
    "deep nesting": b'{"kind": "reading", "facts": {"x": ' + b"[" * 60_000 + b"]" * 60_000 + b"}}",
    "a title that is a number": b'{"kind": "reading", "facts": {"title": 1}}',
    "chars that are a text": b'{"kind": "reading", "facts": {"chars": "1"}}',
    "chars that are true": b'{"kind": "reading", "facts": {"chars": true}}',
    "passages that are an object": b'{"kind": "reading", "facts": {"passages": {}}}',
    "a URL of its own": b'{"kind": "reading", "facts": {"url": "https://example.com/"}}',
    "a status of its own": b'{"kind": "reading", "facts": {"http_status": 200}}',
    "an unknown code": json.dumps({**ERROR, "code": "fine"}).encode(),
    "a code that is a list": json.dumps({**ERROR, "code": ["busy"]}).encode(),
    "an unknown reason": json.dumps({**ERROR, "reason": "because"}).encode(),
    "no message": json.dumps({**ERROR, "message": ""}).encode(),
    "a message that is a number": json.dumps({**ERROR, "message": 1}).encode(),
    "a message without end": json.dumps({**ERROR, "message": "m" * 2_001}).encode(),
    "a hint with a terminal's escape": json.dumps({**ERROR, "hint": "\x1b[2J"}).encode(),
    "an error with facts": json.dumps({**ERROR, "facts": {}}).encode(),
    "an error without a hint": json.dumps({name: ERROR[name] for name in ERROR if name != "hint"}).encode(),
}


@pytest.mark.parametrize("name", BAD)
def test_an_answer_that_no_honest_worker_sends_is_not_believed(name):
    """Whatever is wrong with an answer, nothing of it becomes a value."""
    with pytest.raises(_frames.BadFrame):
        _frames.parse_answer(BAD[name], b"")


@pytest.mark.parametrize(
    ("header", "content"),
    [
        (b'{"kind": "reading", "facts": {}}', b"\xff"),
        (b'{"kind": "failed"}', b"x"),
        (json.dumps(ERROR).encode(), b"x"),
    ],
)
def test_a_content_that_is_no_text_or_belongs_to_nothing_is_not_believed(header, content):
    """Content is UTF-8, and only a reading has one."""
    with pytest.raises(_frames.BadFrame):
        _frames.parse_answer(header, content)


@pytest.mark.parametrize("filler", [b"[],", b"{},", b'"",', b"1e5,", b'"\\u0000",', b'{"a":[]},'])
def test_the_costliest_answer_is_parsed_within_a_loops_patience(filler):
    """The largest header takes far less than the 20 ms that a loop may stall."""
    items = filler * ((_frames.ANSWER_LIMIT - 100) // len(filler))
    header = b'{"kind": "reading", "facts": {"x": [' + items + b"1]}}"
    assert len(header) <= _frames.ANSWER_LIMIT
    fastest = min(_seconds(header) for _ in range(5))
    assert fastest < 0.02


def _seconds(header: bytes) -> float:
    start = time.process_time()
    _frames.parse_answer(header, b"")
    return time.process_time() - start
