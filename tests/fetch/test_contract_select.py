"""What is chosen of a text is what the documentation says: compared with the plainest way to write it."""

import naive_selection as naive
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sift_batch import Options
from sift_batch.fetch._read.blocks import split
from sift_batch.fetch._read.cut import cut
from sift_batch.fetch._read.selecting import select
from sift_batch.fetch._read.words import words

_WORDS = """
    pump relay Install the of x1 don't a_b 42 ½ ² Straße café cafe\u0301 ﬁne naïve Ⅳ 水泵安装 北京Relay 々
    ポンプの設置 ー か\u3099 ติดตั้งปั๊ม [link](http://a.test/b) **bold** _em_ | # - ``
    """
WORDS = _WORDS.split()
PATTERNS = ("pump", "relay|Install", "[|#]", "Straße", "x+", "水", "page")

row = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
long_row = st.tuples(row, st.integers(20, 120)).map(lambda made: "so " + " ".join([made[0]] * made[1]))
unbroken = st.integers(1_990, 5_000).map("x".__mul__)
heading = st.tuples(st.integers(1, 7), st.lists(st.sampled_from(WORDS[:27]), max_size=3)).map(
    lambda made: "#" * made[0] + " " + " ".join(made[1])
)
fence = st.tuples(
    st.sampled_from(["```", "~~~", "````py"]),
    st.lists(st.one_of(row, st.just(""), heading), max_size=4),
    st.sampled_from(["```", "~~~", "`````", ""]),
).map(lambda made: "\n".join([made[0], *made[1], made[2]]))
mark = st.integers(1, 12).map("[page {} of 12]".format)
run = st.lists(st.one_of(row, row, long_row), min_size=1, max_size=8).map("\n".join)
part = st.one_of(run, run, heading, fence, mark, long_row, unbroken, st.just("\t"))
texts = st.lists(st.tuples(part, st.sampled_from(["\n", "\n\n", "\n\n\n"])), min_size=1, max_size=9).map(
    lambda parts: "".join(text + blanks for text, blanks in parts).strip("\n")
)
ways = st.sampled_from([{"lines": False, "marks": False}, {"lines": False, "marks": True}]) | st.just(
    {"lines": True, "marks": False}
)
asked = st.lists(st.sampled_from(WORDS[:20]), min_size=1, max_size=3).map(" ".join)


@given(text=texts, way=ways)
@settings(max_examples=60, deadline=None)
def test_a_text_has_the_blocks_that_are_documented(text, way):
    """Headings, page marks, fences, runs of lines and pieces of long ones, each under its path and page."""
    found = [
        naive.Block(
            block.kind, block.first, block.last, text[block.start : block.end], block.path, block.page
        )
        for block in split(text, **way)
    ]
    assert found == naive.blocks_of(text, **way)


@given(text=st.one_of(row, st.text(max_size=40)))
@settings(max_examples=60, deadline=None)
def test_a_text_has_the_words_that_are_documented(text):
    """Runs of letters, digits and marks; pairs in Han, kana and Thai."""
    if all(ord(char) < 0x3400 or char in "".join(WORDS) for char in text):  # the naive table is a short one
        assert words(text) == naive.words_of(text)


@given(text=texts, way=ways, pattern=st.sampled_from(PATTERNS))
@example(text="text\n\n# pump\n\nafter\n\nmore\n\npump", way={"lines": False, "marks": False}, pattern="pump")
@settings(max_examples=60, deadline=None)
def test_grep_gives_the_lines_that_are_documented(text, way, pattern):
    """Lines alone are `N:line`; with context they stand in their blocks, with neighbours and path."""
    rows = text.split("\n")
    hits = naive.matching(text, pattern, marks=way["marks"])
    alone = select(text, Options(grep=pattern), **way)
    assert alone.content == "\n".join(f"{hit}:{rows[hit - 1]}" for hit in hits)
    assert alone.facts["matches"] == len(hits)
    around = select(text, Options(grep=pattern, context=True), **way)
    assert around.content == naive.grep(text, pattern, **way)


@given(
    text=texts,
    way=ways,
    words=asked,
    pattern=st.sampled_from(["", *PATTERNS]),
    context=st.sampled_from([None, False]),
)
@settings(max_examples=60, deadline=None)
def test_a_question_gives_the_passages_that_are_documented(text, way, words, pattern, context):
    """Scores, the choice of five, joining, order and form; grep before it narrows the choice alone."""
    found = select(text, Options(question=words, grep=pattern, context=context), **way)
    content, facts = naive.question(text, words, pattern=pattern, context=context is not False, **way)
    assert found.content == content
    assert [
        (passage["lines"], passage.get("page"), passage["score"], passage["headings"])
        for passage in found.facts["passages"]
    ] == facts
    assert (found.facts.get("code") == "no_match") is (not content)


@given(text=texts, marks=st.booleans(), at=st.integers(0, 40), spare=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_a_text_is_cut_after_the_last_block_that_fits(text, marks, at, spare):
    """The beginning of the text up to a block's end, as long as the limit admits."""
    ends = [block.end for block in split(text, marks=marks)]
    if ends:
        limit = len(text[: ends[at % len(ends)]].encode()) + spare
        fitting = max(end for end in ends if len(text[:end].encode()) <= limit)
        found = cut(text, limit, at="block", marks=marks)
        if len(text.encode()) > limit:
            assert found.content == text[:fitting].rstrip("\n")
            assert (found.facts["truncated"], found.facts["chars_total"]) == (True, len(text))
        else:
            assert (found.content, found.facts) == (text, {})


@pytest.mark.parametrize("context", [True, None])
def test_each_piece_of_a_long_line_that_matches_is_found(context):
    """A line that is cut into pieces is found in each piece in which a match begins."""
    filler = "word " * 395
    line = f"{filler}needle {filler}{filler}{filler}needle"
    found = select(
        line,
        Options(grep="needle", question="needle" if context is None else "", context=context),
        lines=False,
        marks=False,
    )
    assert found.content.count("needle") == 2
    assert found.facts["matches"] == 1
