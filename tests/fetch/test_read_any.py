"""Whatever a server sends: a reading, or an error of ours."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from read_documents import URL, page, pdf

from sift_batch._model.values import Options
from sift_batch.fetch._document import Document, ReadError, Reading
from sift_batch.fetch._errors import CODES, REASONS
from sift_batch.fetch._read import read, readers

_TYPES = (
    "text/html",
    "application/xhtml+xml",
    "application/pdf",
    "application/octet-stream",
    "application/json",
    "application/feed+json",
    "application/rss+xml",
    "text/xml; charset=utf-16",
    "text/csv",
    "text/tab-separated-values",
    "text/markdown",
    "text/plain",
    "text/css",
    "image/png",
    "",
)
_LABELS = ("", "; charset=gb18030", "; charset=utf-7", "; charset=shift_jis")
_MODES = ("", "markdown", "text", "full", "html", "raw", "links", "meta")
_PDF = pdf(page("Hello there", "a second line"))
_PIECES = st.sampled_from(
    [
        b"<p>",
        b"<rss><channel><item>",
        b"<feed><entry><title>",
        b"<![CDATA[",
        b"&#0;",
        b"&x;",
        b'{"items": [{"title": "\\ud800"}]}',
        b"a,b\n",
        b'"',
        b"%PDF-1.4\n",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\0",
        b"[page 1 of 2]\n",
        b"# h\n\n",
        b"```\n",
        b"\xed\xa0\x80",
        b"\x83\x36\xc7\x39",
    ]
)


@st.composite
def _broken_pdf(draw):
    body = bytearray(_PDF)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(body) - 1))
        body[at : at + draw(st.integers(0, 9))] = draw(st.binary(max_size=9))
    return bytes(body)


_BODIES = (
    st.binary(max_size=200)
    | st.lists(st.binary(max_size=20) | _PIECES, max_size=12).map(b"".join)
    | _broken_pdf()
)
_OPTIONS = st.builds(
    Options,
    mode=st.sampled_from(_MODES),
    pages=st.sampled_from(("", "", "1", "-1", "0", "2-1", "9-")),
    grep=st.sampled_from(("", "", "a", "(", "^$")),
    question=st.sampled_from(("", "", "hello second", "...")),
    jq=st.sampled_from(("", "", ".", ".[]", "(")),
    context=st.sampled_from((None, True, False)),
)


def _outcome(document: Document, options: Options) -> Reading | ReadError:
    try:
        return read(document, options, result_max_bytes=300)
    except ReadError as error:
        return error


@pytest.mark.parametrize("fault", [ValueError("http://site.test/secret"), RecursionError(), KeyError("x")])
def test_a_fault_of_a_library_is_a_code(monkeypatch, fault):
    """Whatever a library raises becomes extract_failed, and nothing of its text comes out."""
    _fail_with(monkeypatch, fault)
    got = _outcome(Document(body=[b"x"], content_type="text/plain", url=URL), Options())
    assert isinstance(got, ReadError)
    assert got.code == "extract_failed"
    assert "site.test" not in got.message + got.hint + str(got)


def test_too_little_memory_passes(monkeypatch):
    """A process without memory says so itself: the error is not hidden."""
    _fail_with(monkeypatch, MemoryError())
    with pytest.raises(MemoryError):
        read(Document(body=[b"x"], content_type="text/plain", url=URL), Options(), result_max_bytes=300)


def _fail_with(monkeypatch, fault):
    def page(_document, _options):
        raise fault

    monkeypatch.setattr(readers, "page", page)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(_BODIES, st.sampled_from(_TYPES) | st.text(max_size=20), st.sampled_from(_LABELS), _OPTIONS)
def test_any_bytes_are_a_reading_or_an_error_of_ours(body, media, label, options):
    """No bytes under any type and options raise anything but ReadError, and what comes out can be stored."""
    document = Document(body=[body[:7], body[7:]], content_type=media + label, url=URL)
    got = _outcome(document, options)
    if isinstance(got, ReadError):
        assert got.code in CODES
        assert not got.reason or got.reason in REASONS
        assert (got.message + got.hint).isprintable()
        assert URL not in got.message + got.hint
        return
    assert len(got.content.encode()) <= 300
    assert got.facts["chars"] == len(got.content)
    json.dumps(dict(got.facts), allow_nan=False, ensure_ascii=False).encode()
    assert all(value is not None and value != "" for value in got.facts.values())
