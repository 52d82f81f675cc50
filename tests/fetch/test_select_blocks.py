"""Blocks, neighbours, paths: what grep, a question and a cut choose from."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sift_batch.fetch._read.blocks import PIECE, neighbours, split
from sift_batch.fetch._read.heading import title

PAGE = """\
# Relay pump

Read this
first.
## Install
Step one.
```sh
# no heading

run
```
Step two.

### Tools

- a
- b

## Use

Go."""


def told(text: str, **how: bool) -> list[tuple[str, int, int, str]]:
    """Return of each block the kind, the lines and the text."""
    return [
        (block.kind, block.first, block.last, text[block.start : block.end]) for block in split(text, **how)
    ]


def test_blocks_of_a_page() -> None:
    """Headings, runs of lines and fences are blocks; a heading or a fence ends a run without a blank line."""
    assert told(PAGE) == [
        ("heading", 1, 1, "# Relay pump"),
        ("text", 3, 4, "Read this\nfirst."),
        ("heading", 5, 5, "## Install"),
        ("text", 6, 6, "Step one."),
        ("text", 7, 11, "```sh\n# no heading\n\nrun\n```"),
        ("text", 12, 12, "Step two."),
        ("heading", 14, 14, "### Tools"),
        ("text", 16, 17, "- a\n- b"),
        ("heading", 19, 19, "## Use"),
        ("text", 21, 21, "Go."),
    ]


def test_paths() -> None:
    """A path holds the headings above a block, outermost first, and a heading's path not itself."""
    assert [block.path for block in split(PAGE)] == [
        (),
        ("Relay pump",),
        ("Relay pump",),
        *[("Relay pump", "Install")] * 4,
        ("Relay pump", "Install", "Tools"),
        ("Relay pump",),
        ("Relay pump", "Use"),
    ]


def test_neighbours_stay_in_their_section() -> None:
    """Neighbours are the text blocks right before and after, and of a heading the one after it."""
    blocks = split(PAGE)
    assert [list(neighbours(blocks, index)) for index in range(len(blocks))] == [
        [0, 1],
        [1],
        [2, 3],
        [3, 4],
        [3, 4, 5],
        [4, 5],
        [6, 7],
        [7],
        [8, 9],
        [9],
    ]


def test_without_markup_nothing_is_a_heading_or_a_fence() -> None:
    """Where markup was left out, a line that looks like a heading or a fence is a line of its block."""
    text = "# one\ntwo\n\n```\nthree\n\n## four"
    assert told(text, markup=False) == [
        ("text", 1, 2, "# one\ntwo"),
        ("text", 4, 5, "```\nthree"),
        ("text", 7, 7, "## four"),
    ]
    assert {block.path for block in split(text, markup=False)} == {()}


def test_page_marks_only_where_there_are_pages() -> None:
    """A page mark is a block and ends a neighbourhood in a PDF's text; elsewhere it is a line of text."""
    text = "[page 3 of 12]\n\none\n\n[page 4 of 12]\n\ntwo"
    assert told(text, marks=True) == [
        ("mark", 1, 1, "[page 3 of 12]"),
        ("text", 3, 3, "one"),
        ("mark", 5, 5, "[page 4 of 12]"),
        ("text", 7, 7, "two"),
    ]
    blocks = split(text, marks=True)
    assert [block.page for block in blocks] == [3, 3, 4, 4]
    assert list(neighbours(blocks, 1)) == [1]
    assert {block.kind for block in split(text)} == {"text"}
    assert {block.page for block in split(text)} == {None}


def test_a_fence_never_swallows_a_page_mark() -> None:
    """A line of a PDF that looks like the start of a fence does not hide the pages behind it."""
    text = "```\none\n\n[page 2 of 2]\n\n# two"
    assert told(text, marks=True) == [
        ("text", 1, 2, "```\none"),
        ("mark", 4, 4, "[page 2 of 2]"),
        ("heading", 6, 6, "# two"),
    ]


def test_each_line_is_a_block_in_lines_output() -> None:
    """In the output of jq and links every line is a text block, and nothing is a heading or a fence."""
    assert told("# a\n```\n[page 1 of 1]\nb", lines=True) == [
        ("text", 1, 1, "# a"),
        ("text", 2, 2, "```"),
        ("text", 3, 3, "[page 1 of 1]"),
        ("text", 4, 4, "b"),
    ]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("~~~\n```\n\n~~~\nx", [4, 5]),
        ("````\n```\n\n````\nx", [4, 5]),
        ("```py`x`\n\nx", [1, 3]),  # code in a line, no fence
        ("```\na\n\nb", [4]),  # never closed
        ("- ```py\n\n  a\n  ```\nx", [4, 5]),  # in a list's item
        ("    ```\n\n    ```\nx", [3, 4]),
    ],
)
def test_fences(text: str, ends: list[int]) -> None:
    """A fence ends at a mark of its own kind that is at least as long, else with the text."""
    assert [block.last for block in split(text)] == ends


def test_what_is_no_heading() -> None:
    """A heading has one to six hashes and a space right at the line's start."""
    for line in ("#hash", "####### seven", " # indented", "#", "#\ttab"):
        assert [block.kind for block in split(line)] == ["text"], line


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("**Bold** and *it* and ***both***", "Bold and it and both"),
        ("**bold *it* x** _em_ __strong__", "bold it x em strong"),
        ("[Install](https://x.example/y_(z) 't') it", "Install it"),
        ("[![alt](a.png)](b) [c][id]", "alt c"),
        ("snake_case 2 * 3 * 4 \\*x\\*", "snake_case 2 * 3 * 4 \\*x\\*"),
        ("`a*b*c` of [`d`](e)", "`a*b*c` of `d`"),
        ("<https://x.example/>", "https://x.example/"),
        ("Closed ##", "Closed"),
        ("C#", "C#"),
    ],
)
def test_titles(heading: str, words: str) -> None:
    """A title has no link and emphasis marks, and everything else of the heading."""
    assert title(heading) == words


def test_pieces_are_cut_at_line_ends_then_spaces_then_anywhere() -> None:
    """A block over 2,000 characters is cut at the last line end, space or character within 2,000."""
    lines = "\n".join(["x" * 99] * 30)
    assert [(block.first, block.last) for block in split(lines)] == [(1, 20), (21, 30)]
    spaces = " ".join(["y" * 99] * 30)
    assert [block.end - block.start for block in split(spaces)] == [1_999, 999]
    solid = "z" * 4_500
    assert [(block.start, block.end) for block in split(solid)] == [
        (0, 2_000),
        (2_000, 4_000),
        (4_000, 4_500),
    ]
    assert len(split("z" * 2_000)) == 1
    full = "a " * 999 + "aa\nb"
    assert [(block.first, block.last) for block in split(full)] == [(1, 1), (2, 2)]
    both = "a" * 10 + "\n" + "b " * 1_500 + "\nc"
    assert [(block.first, block.last, block.end - block.start) for block in split(both)] == [
        (1, 1, 10),
        (2, 2, 1_999),
        (2, 3, 1_002),
    ]


TEXTS = st.text(alphabet=st.sampled_from("a#` -\n~[page 1 of]"), max_size=80) | st.lists(
    st.sampled_from(["# a", "## b", "x", "", " ", "```", "~~~", "[page 1 of 2]", "y" * 2_100, "z w " * 700]),
    max_size=12,
).map("\n".join)


@given(TEXTS, st.booleans(), st.booleans())
def test_blocks_cover_the_text(text: str, lines: bool, marks: bool) -> None:
    """Blocks never overlap, leave only blanks out, know their lines, and are no longer than a piece."""
    place = 0
    for block in split(text, lines=lines, marks=marks):
        assert not text[place : block.start].strip()
        assert place <= block.start < block.end
        assert text.count("\n", 0, block.start) + 1 == block.first
        assert text.count("\n", 0, block.end) + 1 == block.last
        assert block.kind != "text" or block.end - block.start <= PIECE
        place = block.end
    assert not text[place:].strip()
