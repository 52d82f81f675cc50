"""What goes through the pipe, and what is not believed of it."""

import json
import time
from contextlib import suppress

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


counts = st.integers(0, 2**53 - 1)
passages = st.fixed_dictionaries(
    {
        "lines": st.lists(counts, min_size=2, max_size=2),
        "score": st.floats(0, 1e6),
        "headings": st.lists(st.text(), max_size=3),
    },
    optional={"page": counts},
)
all_facts = st.fixed_dictionaries(
    {},
    optional={
        "title": st.text(),
        "hint": st.text(),
        "chars": counts,
        "matches": counts,
        "truncated": st.booleans(),
        "code": st.sampled_from(["empty", "no_match", "truncated"]),
        "encoding": st.just("base64"),
        "pages": st.fixed_dictionaries({"total": counts, "given": counts}),
        "passages": st.lists(passages, max_size=3),
    },
)


@given(st.text(), all_facts)
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
    error = answer(_frames.error_answer(ReadError("refused", "no", hint="so", reason="content_mismatch")))
    assert isinstance(error, FetchError)
    assert (error.code, error.message, error.hint) == ("refused", "no", "so")
    assert error.reason == "content_mismatch"


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
    passage = {"lines": [1, 2], "score": 1.5, "headings": ["h" * 2**17]}
    facts = {"title": "t" * 2**20, "passages": [passage] * 50, "chars": 3}
    reading = answer(_frames.reading_answer(Reading("abc", facts), LIMIT))
    assert reading.content == "abc"
    assert reading.facts["title"] == "t" * 500
    assert len(reading.facts["passages"]) == 20
    assert reading.facts["chars"] == 3
    facts["passages"] = [passage | {"headings": ["h" * 2**17] * 20}] * 20
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


def _passage(**given) -> bytes:
    passage = {"lines": [1, 2], "score": 1.5, "headings": [], **given}
    return json.dumps({"kind": "reading", "facts": {"passages": [passage]}}).encode()


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
    "an unknown fact": b'{"kind": "reading", "facts": {"x": 1}}',
    "chars below zero": b'{"kind": "reading", "facts": {"chars": -1}}',
    "matches of endless digits": b'{"kind": "reading", "facts": {"matches": ' + b"9" * 400 + b"}}",
    "an unknown word for a code": b'{"kind": "reading", "facts": {"code": "fine"}}',
    "another encoding": b'{"kind": "reading", "facts": {"encoding": "rot13"}}',
    "a flag that is a number": b'{"kind": "reading", "facts": {"truncated": 1}}',
    "pages that are no counts": b'{"kind": "reading", "facts": {"pages": {"total": -1, "given": 1}}}',
    "pages with more": b'{"kind": "reading", "facts": {"pages": {"total": 1, "given": 1, "x": 1}}}',
    "a passage that is a text": b'{"kind": "reading", "facts": {"passages": ["x"]}}',
    "a passage without lines": b'{"kind": "reading", "facts": {"passages": [{"score": 1, "headings": []}]}}',
    "a passage with more": _passage(x=1),
    "a passage of three lines": _passage(lines=[1, 2, 3]),
    "a passage with lines below zero": _passage(lines=[-1, 2]),
    "a passage with a score below zero": _passage(score=-0.5),
    "a passage with a page that is a text": _passage(page="1"),
    "a passage with headings that are numbers": _passage(headings=[1]),
    "a URL of its own": b'{"kind": "reading", "facts": {"url": "https://example.com/"}}',
    "a status of its own": b'{"kind": "reading", "facts": {"http_status": 200}}',
    "an unknown code": json.dumps({**ERROR, "code": "fine"}).encode(),
    "a code that is a list": json.dumps({**ERROR, "code": ["busy"]}).encode(),
    "the code of what a network does": json.dumps({**ERROR, "code": "dns"}).encode(),
    "the code of what a site does": json.dumps({**ERROR, "code": "busy"}).encode(),
    "a reason without a refusal": json.dumps({**ERROR, "reason": "content_mismatch"}).encode(),
    "a refusal without a reason": json.dumps({**ERROR, "code": "refused"}).encode(),
    "a refusal of the guard's": json.dumps(
        {**ERROR, "code": "refused", "reason": "special_address"}
    ).encode(),
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
    "name",
    [
        "url",
        "http_status",
        "bytes_wire",
        "bytes_decoded",
        "redirects",
        "fetched_at",
        "elapsed_seconds",
        "tries",
        "recovered",
        "archived_at",
        "original",
        "etag",
        "last_modified",
    ],
)
@pytest.mark.parametrize("value", ["x", 1, True, None, [], {}])
def test_what_is_known_of_the_way_is_not_a_workers_to_say(name, value):
    """A page that took its worker over can't claim to have come from elsewhere, or from an archive."""
    with pytest.raises(_frames.BadFrame):
        _frames.parse_answer(json.dumps({"kind": "reading", "facts": {name: value}}).encode(), b"")


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


def test_a_passage_that_an_honest_worker_sends_is_believed():
    """What the rows above spoil is whole without it."""
    assert isinstance(_frames.parse_answer(_passage(page=3), b""), Reading)


@pytest.mark.parametrize(
    "filler",
    [
        b"[],",
        b"{},",
        b'"",',
        b"1e5,",
        b'"\\u0000",',
        b'{"a":[]},',
        b'{"lines":[1,2],"score":1,"headings":[]},',
    ],
)
def test_the_costliest_answer_is_parsed_within_a_loops_patience(filler):
    """The largest header takes far less than the 20 ms that a loop may stall."""
    items = filler * ((_frames.ANSWER_LIMIT - 100) // len(filler))
    header = b'{"kind": "reading", "facts": {"passages": [' + items.rstrip(b",") + b"]}}"
    assert len(header) <= _frames.ANSWER_LIMIT
    fastest = min(_seconds(header) for _ in range(5))
    assert fastest < 0.02


def _seconds(header: bytes) -> float:
    start = time.process_time()
    with suppress(_frames.BadFrame):
        _frames.parse_answer(header, b"")
    return time.process_time() - start
