"""A question: words, scores, passages."""

import math
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch._model.values import Options
from sift_batch.fetch._read.blocks import split
from sift_batch.fetch._read.selecting import Selected, select
from sift_batch.fetch._read.words import words

MANUAL = """\
[page 3 of 12]

# Relay pump

Read this first.

## **Install**

Close the valve.

[page 4 of 12]

Open the box.

Mount the relay on the wall
with four screws
and washers.

Connect the hose."""


def ask(
    question: str,
    text: str,
    *,
    context: bool | None = None,
    grep: str = "",
    lines: bool = False,
    marks: bool = False,
) -> Selected:
    """Return what a question chooses."""
    options = Options(question=question, context=context, grep=grep)
    return select(text, options, lines=lines, marks=marks)


def test_the_form_of_a_passage() -> None:
    """A passage says its lines, page, score and path, and then gives its blocks."""
    # Five text blocks, one of which has the word: ln(1 + 4.5 / 1.5) = ln 4. Lengths with the path twice:
    # 3 + 4, 3 + 6, 3 + 6, 11 + 6, 3 + 6, so 10.2 in the mean:
    # ln 4 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 17 / 10.2)).
    content, facts = ask("screws?", MANUAL, marks=True)
    assert content == (
        "[1] lines 13-19, page 4, score 1.09: Relay pump > Install\n"
        "Open the box.\n\n"
        "Mount the relay on the wall\nwith four screws\nand washers.\n\n"
        "Connect the hose."
    )
    assert facts == {
        "passages": [
            {"lines": [13, 19], "page": 4, "score": 1.09, "headings": ["Relay pump", "Install"]},
        ]
    }


def test_without_page_and_path() -> None:
    """Where there are no pages and no headings, a passage says nothing of them."""
    content, facts = ask("b", "a\n\nb\n\nc", context=False)
    # ln(1 + 2.5 / 1.5) * 2.2 / (1 + 1.2)
    assert content == "[1] lines 3-3, score 0.98\nb"
    assert facts == {"passages": [{"lines": [3, 3], "score": 0.98, "headings": []}]}


def test_path_words_count_twice() -> None:
    """A block is found by the words of the headings above it, each as if it stood twice in the block."""
    text = "# pump\n\nx\n\n# other\n\npump pump x\n\ny"
    scores = [passage["score"] for passage in ask("pump", text, context=False).facts["passages"]]
    # lengths 3, 5, 3: mean 11 / 3. Both have the word twice: the shorter block is the better.
    rarity = math.log(1 + 1.5 / 2.5)
    assert scores == [
        round(rarity * 4.4 / (2 + 1.2 * (0.25 + 0.75 * length * 3 / 11)), 2) for length in (3, 5)
    ]


def test_neighbours_and_joined_passages() -> None:
    """Passages that share a block become one with the better score; others stay apart, best first."""
    text = "a needle\n\nb\n\nneedle needle\n\nc\n\nd\n\ne\n\nf needle pin\n\ng"
    content, facts = ask("needle", text)
    assert [passage["lines"] for passage in facts["passages"]] == [[1, 7], [11, 15]]
    alone = ask("needle", text, context=False).facts["passages"]
    assert [passage["lines"] for passage in alone] == [[5, 5], [1, 1], [13, 13]]
    assert [passage["score"] for passage in facts["passages"]] == [alone[0]["score"], alone[2]["score"]]
    assert content.split("\n\n[2]")[0].endswith("\na needle\n\nb\n\nneedle needle\n\nc")


def test_touching_passages_stay_apart() -> None:
    """Passages that only touch are two, in the order of their scores and then of their places."""
    text = "a\n\nneedle\n\nb\n\nc\n\nneedle\n\nd"
    content, facts = ask("needle", text)
    assert [passage["lines"] for passage in facts["passages"]] == [[1, 5], [7, 11]]
    assert content == (
        "[1] lines 1-5, score 1.03\na\n\nneedle\n\nb\n\n[2] lines 7-11, score 1.03\nc\n\nneedle\n\nd"
    )


def test_five_at_most_and_ties_to_the_earlier() -> None:
    """Of more equal blocks the first five are given, in their order."""
    text = "\n\n".join(["needle", "x"] * 9)
    facts = ask("needle needle", text, context=False).facts
    assert [passage["lines"][0] for passage in facts["passages"]] == [1, 5, 9, 13, 17]


def test_a_heading_is_no_candidate() -> None:
    """A heading is never a passage; the text below it is."""
    assert [passage["lines"] for passage in ask("pump", "# pump\n\nx\n\ny").facts["passages"]] == [[3, 5]]
    assert ask("pump", "# pump").facts["code"] == "no_match"


def test_grep_narrows_the_candidates() -> None:
    """With both, only blocks with a matching line are candidates, and the scores are those of all blocks."""
    text = "needle a\n\nneedle needle b\n\nc"
    both = ask("needle", text, grep="a$", context=False)
    alone = ask("needle", text, context=False)
    assert [passage["lines"] for passage in both.facts["passages"]] == [[1, 1]]
    assert both.facts["passages"][0] == alone.facts["passages"][1]
    assert both.facts["matches"] == 1
    assert ask("needle", text, grep="a$").facts["passages"][0]["lines"] == [1, 3]
    nothing = ask("needle", text, grep="c")
    assert nothing.content == ""
    assert (nothing.facts["matches"], nothing.facts["passages"]) == (1, [])
    assert nothing.facts["code"] == "no_match"
    assert f" {len(text)} " in nothing.facts["hint"]


def test_pieces_are_candidates() -> None:
    """A long paragraph is found by the piece that has the words."""
    text = "\n".join(["x" * 99] * 20 + ["needle"] + ["y" * 99] * 20)
    assert ask("needle", text, context=False).facts["passages"][0]["lines"] == [21, 40]


def test_lines_output() -> None:
    """In lines output each line is a candidate."""
    content, _ = ask("b", '{"a":1}\n{"b":2}\n# c', lines=True)
    assert content == '[1] lines 1-3, score 0.91\n{"a":1}\n\n{"b":2}\n\n# c'


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Hello, wörld-wide 42nd!", ["hello", "wörld", "wide", "42nd"]),
        ("snake_case don't", ["snake", "case", "don", "t"]),
        ("Straße STRASSE \ufb01ne \uff21\uff22", ["strasse", "strasse", "fine", "ab"]),
        ("e\u0301a é", ["éa", "é"]),
        ("हिन्दी नमस्ते", ["हिन्दी", "नमस्ते"]),
        ("水泵安装 水", ["水泵", "泵安", "安装", "水"]),
        ("ポンプの取付", ["ポン", "ンプ", "プの", "の取", "取付"]),
        ("USB接続ok", ["usb", "接続", "ok"]),
        ("ปั๊ม", ["ปั", "ั๊", "๊ม"]),
        ("한국어 값", ["한국어", "값"]),
        ("— … !? 😀", []),
        ("x² Ⅷ ①", ["x2", "viii", "1"]),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    """Words are runs of letters, digits and marks, folded; what is written without spaces comes in pairs."""
    assert words(text) == found


def naive_words(text: str) -> list[str]:
    """Return the words, from the names and categories of the characters."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    runs: list[str] = []
    last = ""
    for char in folded:
        category = unicodedata.category(char)
        name = unicodedata.name(char, "")
        kind = ""
        if name.startswith(("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI")) and category[0] in "LMN":
            kind = "pairs"
        elif category[0] in "LM" or category == "Nd":
            kind = "word"
        if kind and kind == last:
            runs[-1] += char
        elif kind:
            runs.append(char)
        last = kind
    found: list[str] = []
    for run in runs:
        first = unicodedata.name(run[0], "")
        if first.startswith(("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI")) and len(run) > 1:
            found += [run[place : place + 2] for place in range(len(run) - 1)]
        else:
            found.append(run)
    return found


def naive_scores(text: str, question: str) -> Sequence[tuple[float, int]]:
    """Return score and first line of each block that has one, by the formula word for word."""
    documents = []
    for block in split(text):
        if block.kind == "text":
            own = naive_words(text[block.start : block.end])
            documents.append((block.first, own + 2 * naive_words(" ".join(block.path))))
    mean = sum(len(found) for _, found in documents) / max(len(documents), 1)
    scored = []
    for line, found in documents:
        score = 0.0
        for word in set(naive_words(question)):
            has = sum(1 for _, other in documents if word in other)
            rarity = math.log(1 + (len(documents) - has + 0.5) / (has + 0.5))
            often = found.count(word)
            if often:
                score += rarity * often * 2.2 / (often + 1.2 * (0.25 + 0.75 * len(found) / mean))
        if score > 0:
            scored.append((score, line))
    return scored


TOKENS = st.sampled_from(["pump", "Valve", "the", "水泵", "安", "é", "x_y", "-", "12", "の"])
LINES = st.lists(TOKENS, min_size=1, max_size=6).map(" ".join)
PAGES = st.lists(
    st.one_of(LINES, LINES.map(lambda line: f"# {line}"), LINES.map(lambda line: f"## {line}")), max_size=12
).map("\n\n".join)


@given(PAGES, LINES)
def test_scores_are_bm25(text: str, question: str) -> None:
    """Scores and choice are those of a second, plain implementation of the formula."""
    expected = naive_scores(text, question)
    passages = ask(question, text, context=False).facts["passages"]
    assert len(passages) == min(len(expected), 5)
    by_line = {line: score for score, line in expected}
    for passage in passages:
        assert passage["score"] == pytest.approx(by_line[passage["lines"][0]], abs=0.0051)
    worst = min((by_line[passage["lines"][0]] for passage in passages), default=0)
    given_lines = {passage["lines"][0] for passage in passages}
    assert all(score <= worst + 1e-9 for score, line in expected if line not in given_lines)


@given(PAGES, LINES)
def test_passages_share_no_line(text: str, question: str) -> None:
    """No line of a text is given twice, every passage has one path, and better ones come first."""
    content, facts = ask(question, text)
    spans = sorted(passage["lines"] for passage in facts["passages"])
    assert all(before[1] < after[0] for before, after in pairwise(spans))
    scores = [passage["score"] for passage in facts["passages"]]
    assert scores == sorted(scores, reverse=True)
    assert len(re.findall(r"^\[\d\] lines ", content, re.MULTILINE)) == len(spans)


def test_a_word_of_the_whole_page_still_scores() -> None:
    """A word that every block has scores above 0, so that a page of one block can answer."""
    assert ask("needle", "needle").facts["passages"][0]["score"] == pytest.approx(0.29)


def test_without_options_the_text_is_untouched() -> None:
    """Without grep and question the text comes back as it is, with no facts."""
    assert select(MANUAL, Options(), lines=False, marks=True) == (MANUAL, {})


def test_rare_letters_take_linear_time() -> None:
    """A text of a hundred thousand different letters of far planes is read as fast as any other."""
    letters = "".join(map(chr, range(0x10000, 0x33000)))
    text = "\n\n".join(letters[start : start + 50] for start in range(0, len(letters), 50))
    assert len(ask("\U00013000\U00013001", text).facts.get("passages", [])) <= 1
