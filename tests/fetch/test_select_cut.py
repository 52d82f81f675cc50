"""The cut: where a text ends that is too large."""

from hypothesis import given
from hypothesis import strategies as st

from sift_batch.fetch._read.blocks import split
from sift_batch.fetch._read.cut import cut


def test_what_fits_is_untouched() -> None:
    """A text of exactly the limit's bytes is given whole, with no facts."""
    text = "é\n\nb"
    assert cut(text, 5, at="block") == (text, {})
    assert cut(text, 5, at="line") == (text, {})


def test_at_a_block_end() -> None:
    """Only whole blocks stay, however many lines of the next would fit."""
    text = "# a\n\nb\nc\n\nd\ne\nf"
    content, facts = cut(text, 14, at="block")
    assert content == "# a\n\nb\nc"
    assert facts["truncated"] is True
    assert facts["chars_total"] == len(text)
    assert facts["code"] == "truncated"
    assert f" {len(text)} " in facts["hint"]
    assert cut(text, 8, at="block").content == "# a\n\nb\nc"
    assert cut(text, 7, at="block").content == "# a"
    assert cut(text, 6, at="block").content == "# a"  # right at a line end inside of a block


def test_at_a_line_end() -> None:
    """Only whole lines stay."""
    text = "ab\ncd\n\nef"
    assert cut(text, 8, at="line").content == "ab\ncd"
    assert cut(text, 5, at="line").content == "ab\ncd"
    assert cut(text, 4, at="line").content == "ab"


def test_first_block_larger_than_the_limit() -> None:
    """A first block that does not fit is cut at a line end, else at the last space, else at a character."""
    assert cut("ab\ncd\nef", 6, at="block").content == "ab\ncd"
    assert cut("ab cd ef", 6, at="block").content == "ab cd"
    assert cut("abcdefgh", 6, at="block").content == "abcdef"
    assert cut("éééé", 5, at="block").content == "éé"
    assert cut("ab cd ef", 6, at="line").content == "ab cd"
    assert cut("😀", 3, at="line").content == ""


def test_a_long_block_is_cut_at_a_piece() -> None:
    """A block over 2,000 characters counts as pieces, so that a long table keeps its first rows."""
    text = "a\n\n" + "\n".join(["x" * 99] * 100)
    content = cut(text, 5_000, at="block").content
    assert content == "a\n\n" + "\n".join(["x" * 99] * 40)


def test_a_fence_is_a_block() -> None:
    """A fence goes as a whole when it does not fit."""
    text = "a\n\n```\nb\n\nc\n```\n\nd"
    assert cut(text, len(text) - 1, at="block").content == "a\n\n```\nb\n\nc\n```"
    assert cut(text, 12, at="block").content == "a"


TEXTS = st.lists(
    st.sampled_from(["# é", "x y", "", "```", "😀" * 30, "long " * 500, "z" * 2_100]), max_size=9
).map("\n".join)


@given(TEXTS, st.integers(min_value=0, max_value=6_000), st.sampled_from(["block", "line"]))
def test_a_cut_is_a_beginning_that_fits(text: str, limit: int, at: str) -> None:
    """What is left is the beginning of the text, fits, and ends where a block or line of the text ends."""
    content, facts = cut(text, limit, at=at)  # type: ignore[arg-type]
    assert text.startswith(content)
    assert len(content.encode()) <= limit
    assert bool(facts) == (content != text)
    if facts and at == "block":
        ends = [0, *(block.end for block in split(text))]
        fitting = max(end for end in ends if len(text[:end].encode()) <= limit)
        if fitting:
            assert content == text[:fitting].rstrip("\n")
