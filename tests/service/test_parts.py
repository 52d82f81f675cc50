"""Where a long text may be cut: found by the lines that matter, as if every line were looked at."""

import re
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from sift_batch.service._parts import block_ends

BREAKS = ["\n", "\n\n", "\t", "\u2028", "\r", " ", "    "]
PIECES = ["a", "b", "#", "# ", "```", "````", "~~~", "`", "[page 1 of 2]", *BREAKS]


def line_by_line(content: str) -> Iterator[int]:
    """The plain definition: each line begins a block, or ends one, or neither."""
    fence, ended, at = "", False, 0
    for line in re.findall(r"[^\n]*\n|[^\n]+", content):
        blank = not line.strip()
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        alone = re.match(r"#{1,6} |\[page \d+ of \d+\]", line)
        if not fence and not blank and (ended or (at and (mark or alone))):
            yield at
        ended = False
        if fence:
            ended = bool(mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]))
            fence = "" if ended else fence
        elif mark:
            fence = mark[1]
        else:
            ended = blank or bool(alone)
        at += len(line)


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_blocks_end_where_they_end_line_by_line(content: str) -> None:
    """However a text is made up of blank lines, headings, page marks and fences, its cuts are those."""
    assert list(block_ends(content)) == list(line_by_line(content))
