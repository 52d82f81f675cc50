"""In which charset was a page written?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from read_documents import reading

from sift_batch.fetch._read.charset import decode
from sift_batch.fetch._read.kinds import header


@pytest.mark.parametrize(
    ("body", "label", "text", "charset"),
    [
        ("grün".encode(), "", "grün", "utf-8"),
        ("\ufeffgrün".encode(), "iso-8859-1", "grün", "utf-8"),
        ("\ufeff\ufeffx".encode(), "", "\ufeffx", "utf-8"),
        ("\ufeffgrün".encode("utf-16-le"), "", "grün", "utf-16-le"),
        ("\ufeffgrün".encode("utf-16-be"), "utf-8", "grün", "utf-16-be"),
        ("„grün“".encode("cp1252"), "iso-8859-1", "„grün“", "windows-1252"),
        ("„grün“".encode("cp1252"), "ascii", "„grün“", "windows-1252"),
        ("мир".encode("cp1251"), "windows-1251", "мир", "windows-1251"),
        ("始発".encode("shift_jis"), "shift_jis", "始発", "shift_jis"),
        ("始発".encode("euc_jp"), "euc-jp", "始発", "euc-jp"),
        ("한국".encode("euc_kr"), "euc-kr", "한국", "euc-kr"),
        ("中文".encode("gbk"), "gb2312", "中文", "gb18030"),
        ("中文".encode("big5"), "big5", "中文", "big5"),
        (b'<meta charset="windows-1251">' + "мир".encode("cp1251"), "", None, "windows-1251"),
        (b"<meta http-equiv=x content='text/html; charset=Windows-1251'>\xec", "", None, "windows-1251"),
        (b"<meta charset=utf-7>+ADw-", "", None, "utf-8"),
        (b"<!-- <meta charset=windows-1251> -->\xc3\xa9", "", None, "utf-8"),
        (b" " * 1_024 + b'<meta charset="windows-1251">\xc3\xa9', "", None, "utf-8"),
        (b'<meta charset="windows-1251">\xc3\xa9', "utf-8", None, "utf-8"),
        (b"<?xml version='1.0' encoding='ISO-8859-5'?><a>\xd0</a>", "", None, "iso-8859-5"),
    ],
)
def test_charset_comes_from_mark_header_page_and_bytes(body, label, text, charset):
    """The byte order mark wins over the header, the header over the page, and all over a guess."""
    found = decode(body, label)
    assert found.charset == charset
    assert found.lossless
    assert text is None or found.text == text


@pytest.mark.parametrize(
    "label",
    [
        "punycode",
        "idna",
        "zlib_codec",
        "utf-7",
        "undefined",
        "hex",
        "rot13",
        "none",
        "utf-8,gbk",
        "utf8mb4",
        "koi8-r",
    ],
)
def test_a_label_that_is_no_charset_means_utf_8(label):
    """A label outside the list decodes as UTF-8 with replacement; no codec of that name is ever looked up."""
    got = reading("<p>+ADw-script é".encode() + b"\xff", f"text/html; charset={label}")
    assert got.content == "+ADw-script é\ufffd"
    assert got.facts["charset"] == "utf-8"


@pytest.mark.parametrize(
    ("given", "media", "label"),
    [
        ("text/html", "text/html", ""),
        ("Text/HTML;charset=UTF-8", "text/html", "utf-8"),
        ('text/html; x=y; Charset = "Windows-1251"', "text/html", "windows-1251"),
        ("text/html; charset='utf-8'", "text/html", "utf-8"),
        ("text/html; charset=", "text/html", ""),
        ("text/html; charset", "text/html", ""),
        ("text/html; charset=utf-8; charset=gbk", "text/html", "utf-8"),
        ("text/html, text/plain", "text/html", ""),
        ("text", "", ""),
        ("", "", ""),
        ("text/ html", "", ""),
        (f"text/{'x' * 200}", "", ""),
        ("text/plain\n", "text/plain", ""),
    ],
)
def test_a_header_is_read_or_counts_as_none(given, media, label):
    """Case, blanks, quotes and further parameters don't matter; what is no media type is no header."""
    assert header(given) == (media, label)


@pytest.mark.parametrize(
    ("text", "codec", "charset"),
    [
        ("Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20, "cp1251", "windows-1251"),
        ("El niño comió piña en España mañana", "cp1252", "windows-1252"),
        ("café", "cp1252", "windows-1252"),
        ("日本語のテキストです。これは長い文章です。", "euc_jp", "euc-jp"),
        ("中文网页的内容没有声明编码。", "gb18030", "gb18030"),
        ("Zażółć gęślą jaźń, proszę państwa", "cp1250", "windows-1250"),
        ("日本語のテキスト。" * 9_000, "shift_jis", "shift_jis"),
    ],
)
def test_a_text_that_names_no_charset_is_guessed(text, codec, charset):
    """Bytes that are no UTF-8 and have no label are read as what they look like."""
    found = decode(text.encode(codec), "")
    assert (found.charset, found.text) == (charset, text)


_LABELS = st.sampled_from(["", "gb18030", "utf-8", "shift_jis", "euc-jp", "euc-kr", "big5", "iso-8859-8"])


@given(st.binary(max_size=300), _LABELS | st.text(max_size=12))
def test_any_bytes_are_text(body, label):
    """Decoding never fails and never gives half of a surrogate pair."""
    found = decode(body, label)
    found.text.encode()
    assert found.charset


@given(st.text(max_size=60))
def test_any_header_is_read(given_header):
    """No header breaks the reader, and the media type is plain ASCII in lower case."""
    found = header(given_header)
    assert found.media.isascii()
    assert found.media == found.media.lower()
