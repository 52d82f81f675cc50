"""The last rules of every text that was read out of a document."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch.fetch._read.clean import clean_text


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("\n\n a \t\r\nb\rc\n\n\n\nd\n\n", " a\nb\nc\n\nd"),
        ("a\x00\x0c\x1fb\tc", "ab\tc"),
        ("a\u200b\u200d\ufeff\u202e\u2066b", "ab"),
        ("a\ud800b", "a\ufffdb"),
        ("```\na\n\n\n\nb\n```\n\n\n\nc", "```\na\n\n\n\nb\n```\n\nc"),
        ("~~~\n```\n\n\n~~~\n\n\nx", "~~~\n```\n\n\n~~~\n\nx"),
        ("```\nnot closed\n\n\n\n", "```\nnot closed"),
        ("  ```\n  a\n\n\n  b\n  ```", "  ```\n  a\n\n\n  b\n  ```"),
    ],
)
def test_rules(given_text: str, expected: str) -> None:
    """Line ends, blanks, blank lines and unseen characters obey the rules, and fences are kept."""
    assert clean_text(given_text) == expected


@given(st.text(alphabet=st.sampled_from("ab \t\n\r\x00\x0b`~>\u200b\u202e\u00a0\u2028\ud800")))
def test_any_text(given_text: str) -> None:
    """Whatever goes in, nothing unseen comes out, no line ends in a blank, and once more changes nothing."""
    found = clean_text(given_text)
    assert not {"\r", "\x00", "\x0b", "\u200b", "\u202e", "\ud800"} & set(found)
    lines = found.split("\n")
    assert all(line == line.rstrip() for line in lines)
    assert not found or (lines[0] and lines[-1])
    assert clean_text(found) == found
    if "`" not in found and "~" not in found:
        assert "\n\n\n" not in found


def test_what_cannot_be_seen_is_gone():
    """Controls that terminals obey, fillers, annotation marks and tags are gone; what emoji need stays."""
    hidden = (
        "\x7f\x80\x85\x9b\x9f\xad\u034f\u115f\u1160\u3164\uffa0\ufff9\ufffb\U000e0001\U000e0041\U000e007f"
    )
    for sign in hidden:
        assert clean_text(f"a{sign}b") == "ab", hex(ord(sign))
    assert clean_text("\u2764\ufe0f a\u0301") == "\u2764\ufe0f a\u0301"
