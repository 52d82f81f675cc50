"""What the bytes of a page say."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch.fetch._text import decode, page_text


@pytest.mark.parametrize(
    ("body", "label", "text", "charset"),
    [
        ("grün".encode(), "", "grün", "utf-8"),
        ("\ufeffgrün".encode(), "iso-8859-1", "grün", "utf-8"),
        ("\ufeffgrün".encode("utf-16-le"), "", "grün", "utf-16-le"),
        ("\ufeffgrün".encode("utf-16-be"), "utf-8", "grün", "utf-16-be"),
        ("„grün“".encode("cp1252"), "ISO-8859-1", "„grün“", "windows-1252"),
        ("мир".encode("cp1251"), '"Windows-1251"', "мир", "windows-1251"),
        ("始発".encode("shift_jis"), "Shift_JIS", "始発", "shift_jis"),
        ("中文".encode("gbk"), "gb2312", "中文", "gb18030"),
        (b'<meta charset="windows-1251">' + "мир".encode("cp1251"), "", "мир", "windows-1251"),
        (b"caf\xe9", "utf-7", "caf\ufffd", "utf-8"),
    ],
)
def test_charset_comes_from_mark_header_page_and_bytes(body, label, text, charset):
    """The byte order mark wins over the header, the header over the page, and all over a guess."""
    found, used = decode(body, label, is_html=True)
    assert (found.removeprefix('<meta charset="windows-1251">'), used) == (text, charset)


def test_a_page_that_names_no_charset_is_guessed():
    """Bytes that are no UTF-8 and have no label are read as what they look like."""
    russian = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20
    assert decode(russian.encode("cp1251"), "", is_html=False)[0] == russian


@given(st.binary(max_size=300), st.text(max_size=12), st.booleans())
def test_any_bytes_are_text(body, label, is_html):
    """Decoding never fails and never gives half of a surrogate pair."""
    text, charset = decode(body, label, is_html=is_html)
    text.encode()
    assert charset


def test_page_text_is_one_block_a_line():
    """Blocks become lines, cells are joined, entities are read, scripts and comments are left out."""
    source = """<!doctype html><html><head><title>T &amp; U</title><style>p{}</style></head><body>
      <h1>Head</h1><p>one
      two&nbsp;three</p><ul><li>a<li>b</ul><script>var x = "<p>no</p>"</script><!-- <p>no</p> -->
      <table><tr><th>x</th><th>y</th></tr><tr><td>1</td><td></td></tr></table>5 < 6 and &lt;b&gt;"""
    text, title = page_text(source)
    assert title == "T & U"
    assert text.split("\n") == ["Head", "one two three", "a", "b", "x | y", "1 |", "5 < 6 and <b>"]


@given(st.text(max_size=300) | st.text(alphabet="<>/!-ab \"'=&#;1", max_size=300))
def test_any_source_has_a_text(source):
    """No source breaks the reader, and no line of its text is blank."""
    text, _ = page_text(source)
    assert "" not in text.split("\n") or text == ""


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "< ",
        "</ ",
        "<p>",
        "<!--",
        "<a ",
        "<script>",
        "<title>",
        "</",
        "&#",
        "<td>",
        "<svg><svg>",
        "a" * 9,
        "<p",
        "<?",
        "\t",
    ],
)
def test_hostile_sources_take_linear_time(unit):
    """A megabyte of an unclosed construct is read in a moment, not in minutes."""
    began = time.process_time()
    page_text(unit * (1_000_000 // len(unit)))
    assert time.process_time() - began < 3


@pytest.mark.parametrize(
    ("source", "text"),
    [("a << b", "a << b"), ("<<b>x", "<x"), ("</ <", "</ <"), ("<<!-- -->>", "<>"), ("<1&amp;<", "<1&<")],
)
def test_a_sign_that_opens_nothing_is_text(source, text):
    """A "<" before anything but a tag, a comment or a declaration is shown as it is."""
    assert page_text(source)[0] == text


def test_a_reference_with_thousands_of_digits_is_no_fault():
    """A character reference that is too long to be a number stays as it is."""
    assert page_text("<p>&#" + "9" * 5_000 + ";</p>")[0].startswith("&#999")
