"""Which kind of document is this, and what does each mode give of it?"""

import base64
import json

import pytest
from read_documents import failure, page, pdf, reading, text_of

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
PDF = pdf(page("Hello"))


@pytest.mark.parametrize(
    ("header", "body", "kind"),
    [
        ("application/pdf", PDF, "pdf"),
        ("Application/PDF; charset=x", b"junk\n" + PDF, "pdf"),
        ("application/octet-stream", PDF, "pdf"),
        ("", PDF, "pdf"),
        ("application/octet-stream", b"plain text\r\n\ttab", "text"),
        ("application/octet-stream", "größe".encode(), "text"),
        ("binary/octet-stream", b"<html><p>x</p></html>", "text"),
        ("application/octet-stream", "größe".encode("latin-1"), "bytes"),
        ("application/octet-stream", b"a\0b", "bytes"),
        ("application/octet-stream", b"a\x01b", "bytes"),
        ("application/octet-stream", "\ufeffwide".encode("utf-16-le"), "bytes"),
        ("application/octet-stream", PNG, "bytes"),
        ("application/octet-stream", b" " * 1_024 + PDF, "bytes"),
        ("text/html", PDF, "bytes"),
        ("text/plain", PDF, "bytes"),
        ("application/zip", PDF, "bytes"),
        ("text/html", b"<p>x\0</p>", "bytes"),
        ("text/plain", b"a\0b", "text"),
        ("text/plain", b"a\0\x01b", "bytes"),
        ("text/plain", PNG, "bytes"),
        ("application/json", b'{"a": "\0"}', "bytes"),
        ("", b"a\0b", "bytes"),
        ("", b"\x01\x02\x03", "bytes"),
        ("", b"plain", "text"),
        ("nonsense", b"plain", "text"),
        ("", b"<html><p>x</p></html>", "text"),
        ("image/png", PNG, "bytes"),
        ("image/png", b"no NUL in it", "bytes"),
        ("application/zip", b"no NUL in it", "bytes"),
        ("text/html", "\ufeff<p>x</p>".encode("utf-16-le"), "html"),
        ("text/html", "\ufeff<p>\0</p>".encode("utf-16-le"), "bytes"),
        ("application/xhtml+xml", b"<html xmlns='http://www.w3.org/1999/xhtml'><p>x</p></html>", "html"),
        ("TEXT/HTML ; Charset=utf-8", b"<p>x</p>", "html"),
        ("application/vnd.x+json", b"[1]", "text"),
        ("text/css", b"a { }", "text"),
        ("application/javascript", b"a()", "text"),
        ("image/svg+xml", b"<svg/>", "text"),
    ],
)
def test_the_kind_is_what_header_and_bytes_agree_on(header, body, kind):
    """A header is not believed against the bytes, nor bytes against the header."""
    if kind == "bytes":
        assert failure(body, header).code == "unsupported_type"
        return
    content = text_of(body, header)
    assert kind == ("pdf" if content.startswith("[page 1 of 1]") else "html" if content == "x" else "text")


@pytest.mark.parametrize("header", ["application/pdf", "application/x-pdf"])
def test_a_pdf_that_is_none_is_refused(header):
    """A header that promises a PDF over other bytes is refused, but its bytes can be had."""
    error = failure("<p>not found</p>", header)
    assert (error.code, error.reason) == ("refused", "content_mismatch")
    assert text_of("x", header, mode="raw") == "eA=="
    assert json.loads(text_of("x", header, mode="meta")) == {"content_type": header, "bytes": 1}


@pytest.mark.parametrize("mode", ["", "markdown", "text", "full", "html", "links"])
def test_bytes_have_two_modes(mode):
    """An image has modes meta and raw, and the hint of every other one names them."""
    error = failure(PNG, "image/png", mode=mode)
    assert (error.code, error.message) == (
        "unsupported_type",
        "the document is an image without text to read",
    )
    assert "meta" in error.hint
    assert "raw" in error.hint


@pytest.mark.parametrize("mode", ["full", "html", "links"])
@pytest.mark.parametrize(
    ("header", "body"),
    [("text/plain", "x"), ("application/json", "{}"), ("text/csv", "a,b"), ("application/pdf", PDF)],
)
def test_modes_of_pages_are_for_pages(mode, header, body):
    """Modes full, html and links of what is no HTML are refused."""
    assert failure(body, header, mode=mode).code == "unsupported_type"


def test_a_text_without_a_type_is_read_like_one():
    """A text served as octet-stream can be chosen from, is no base64 in mode raw, and gives jq its JSON."""
    assert text_of(b"a: 1\nb: 2\n", "application/octet-stream", grep="b") == "2:b: 2"
    got = reading(b"a: 1\r\n", "application/octet-stream", mode="raw")
    assert got.content == "a: 1\r\n"
    assert "encoding" not in got.facts
    assert text_of(b'{"a": 1}\n{"a": 2}\n', "application/octet-stream", jq=".a") == "1\n2"
    assert failure(b"a: 1", "application/octet-stream", jq=".a").code == "bad_option"
    assert failure(b"<p>x", "application/octet-stream", mode="links").code == "unsupported_type"


def test_raw_is_the_text_where_nothing_is_lost():
    """Mode raw gives text that decodes whole as it is, line ends and controls too, and base64 of the rest."""
    assert text_of(b"a\r\nb\x0c", "text/plain", mode="raw") == "a\r\nb\x0c"
    assert text_of(b"<p>\xe9", "text/html; charset=latin1", mode="raw") == "<p>é"
    assert text_of(b" \n", "text/plain", mode="raw") == " \n"
    got = reading(b"caf\xe9", "text/plain; charset=utf-8", mode="raw")
    assert base64.b64decode(got.content) == b"caf\xe9"
    assert got.facts["encoding"] == "base64"
    got = reading(PDF, "application/pdf", mode="raw")
    assert base64.b64decode(got.content) == PDF
    assert "charset" not in got.facts


def test_html_is_the_decoded_source():
    """Mode html gives the source of a page, untouched but for its charset."""
    assert text_of(b"<P>caf\xe9\r\n</P>", "text/html; charset=latin1", mode="html") == "<P>café\r\n</P>"


@pytest.mark.parametrize("header", ["text/plain", "text/markdown", "text/x-python", "application/xml"])
def test_plain_kinds_are_unchanged(header):
    """Text, Markdown, source and XML stay as they are but for line ends and control characters."""
    assert text_of(b"# a \r\n\n\n\n  b\x0c\x1b\t\rc  \n", header) == "# a \n\n\n\n  b\t\nc  \n"
    assert text_of(b"# a \r\n", header, mode="text") == "# a \n"


def test_a_reading_says_what_it_is():
    """The facts are those that apply, and no others."""
    assert reading("<title>T</title><p>Hello there", "text/html").facts == {
        "content_type": "text/html",
        "charset": "utf-8",
        "title": "T",
        "chars": 11,
    }
    assert reading("größe", "").facts == {"charset": "utf-8", "chars": 5}


def test_meta_is_one_object_for_every_kind():
    """Mode meta tells something of any document, of one that can't be opened too."""
    for header, body, names in [
        ("image/png", PNG, {"content_type", "bytes"}),
        ("text/plain", b"x", {"content_type", "charset", "bytes"}),
        ("application/json", b"{", {"content_type", "charset", "bytes"}),
        ("application/pdf", b"%PDF-1.4 cut", {"content_type", "bytes"}),
        ("application/pdf", PDF, {"content_type", "bytes", "pages"}),
        ("text/html", b"<html lang=en><title>x</title>", {"title", "language"}),
    ]:
        assert set(json.loads(text_of(body, header, mode="meta"))) == names


def test_a_page_of_a_pdf_only():
    """The option pages on what is no PDF is a bad option that names the count."""
    error = failure("text", "text/plain", pages="1")
    assert error.code == "bad_option"
    assert "0 pages" in error.message


@pytest.mark.parametrize(
    ("header", "body", "mode", "hint"),
    [
        ("text/html", "<script>x()</script>", "", "html"),
        ("text/html", "<script>x()</script>", "full", "html"),
        ("text/html", "<p>no link</p>", "links", "no links"),
        ("text/html", " \n", "html", "empty"),
        ("text/plain", "\n \n", "", "nothing"),
        ("text/csv", "\n", "", "nothing"),
        ("text/plain", "", "raw", "empty"),
    ],
)
def test_an_empty_document_says_so(header, body, mode, hint):
    """Where there is nothing to read, the target is done with a note that says why or what to try."""
    got = reading(body, header, mode=mode)
    assert (got.content, got.facts["code"], got.facts["chars"]) == ("", "empty", 0)
    assert hint in got.facts["hint"]


_SHELL = "<p>As root, type</p><pre># mount the pump disk\n```\ndone</pre><h2>Care</h2><p>Oil the pump.</p>"
_FEED = (
    '<rss version="2.0"><channel><title>News</title><item><title>Care</title>'
    "<description>&lt;p&gt;# mount the pump disk&lt;/p&gt;&lt;p&gt;Oil the pump.&lt;/p&gt;</description>"
    "</item></channel></rss>"
)


@pytest.mark.parametrize(
    ("body", "header", "shown"),
    [
        (_SHELL, "text/html", "7-Care\n9:Oil the pump."),
        (_FEED, "application/rss+xml", "5-# mount the pump disk\n7:Oil the pump."),
    ],
)
def test_in_mode_text_nothing_is_a_heading(body, header, shown):
    """A line of a page that begins with # is no heading in mode text, neither to grep nor to a question."""
    got = reading(body, header, mode="text", question="oil")
    assert [passage["headings"] for passage in got.facts["passages"]] == [[]]
    assert text_of(body, header, mode="text", grep="^Oil", context=True) == shown


def test_nothing_matched_is_no_fault():
    """A pattern that matches nothing gives the note no_match with the size of the whole text."""
    got = reading("one\ntwo\n", "text/plain", grep="three")
    assert (got.content, got.facts["code"], got.facts["matches"]) == ("", "no_match", 0)
    assert "8" in got.facts["hint"]


@pytest.mark.parametrize(
    ("header", "body", "options"),
    [
        ("application/json", b'"%s"' % (b"x" * 200), {}),
        ("text/plain", b"x" * 200, {"mode": "raw"}),
        ("image/png", b"x" * 80, {"mode": "raw"}),
        ("text/html", b"<title>%s" % (b"x" * 200), {"mode": "meta"}),
    ],
)
def test_what_is_useless_in_part_is_too_large(header, body, options):
    """JSON, raw and meta are never cut: too_large names the size, and the hint says what to do."""
    error = failure(body, header, limit=100, **options)
    assert error.code == "too_large"
    assert "jq" in error.hint
    assert "grep" in error.hint
    assert "bytes" in error.message
    assert text_of(body, header, limit=1_000, **options)


def test_a_large_json_can_be_searched():
    """A pattern chooses from a JSON document that is too large to be given whole."""
    assert (
        text_of('{\n"a": 1,\n"b": 2\n}' + " " * 500, "application/json", limit=100, grep='"b"') == '3:"b": 2'
    )


@pytest.mark.parametrize(
    ("header", "body", "options", "content"),
    [
        ("text/plain", "aaaa\nbbbb\ncccc\n", {}, "aaaa\nbbbb"),
        ("text/markdown", "aaaa\n\nbbbb\ncccc\n", {}, "aaaa"),
        ("text/html", "<p>aaaa</p><p>bbbb</p><p>cccc</p>", {"mode": "full"}, "aaaa\n\nbbbb"),
        ("text/html", "<p>aaaa\n<b>b\nc", {"mode": "html"}, "<p>aaaa"),
        ("text/csv", "a,b\n1,2\n3,4\n", {"mode": "text"}, "a | b\n1 | 2"),
    ],
)
def test_a_text_is_cut_where_it_hurts_least(header, body, options, content):
    """A text over the limit ends at a line or a block, and says so with its whole size."""
    whole = reading(body, header, **options).content
    got = reading(body, header, limit=11, **options)
    assert got.content == content
    assert (got.facts["truncated"], got.facts["chars_total"], got.facts["code"]) == (
        True,
        len(whole),
        "truncated",
    )
    assert got.facts["chars"] == len(content)


def test_facts_are_short_clean_lines():
    """A title of a megabyte with controls in it becomes a line of at most 1,000 characters."""
    title = reading("<title>a\n\x07b\u202e" + "x" * 1_000_000 + "</title><p>y", "text/html").facts["title"]
    assert title.startswith("a bxxx")
    assert len(title) <= 1_000


def test_ten_mebibytes_of_text_are_read():
    """A text at the size limit passes, whatever its alphabet."""
    body = ("ж" * 99 + "😀\n").encode() * (10 * 2**20 // 203)
    got = reading(body, "text/plain")
    assert got.facts["chars_total"] == len(body.decode())
