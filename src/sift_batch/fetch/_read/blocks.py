"""Of which blocks is a text made? What grep, a question and a cut choose from.

A block is a heading line, a page mark, or a text block: a fence with what it holds, else a run of lines
that are not blank. In the output of jq and of the links mode every line is a text block. It does not
choose: next are `grep` and `question`, which do, and `cut`, which ends a text at the end of a block.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from .heading import title

PIECE: Final = 2_000
"""More characters than this count as several blocks."""

_HEADING: Final = re.compile(r"(#{1,6}) (.*)", re.DOTALL)
# A fence may be indented, and may begin right after the mark of a list's item.
_FENCE: Final = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?:(`{3,})[^`]*|(~{3,}).*)", re.DOTALL)
_MARK: Final = re.compile(r"\[page ([0-9]{1,9}) of [0-9]{1,9}\]")


class Block(NamedTuple):
    """One block of a text. Lines count from 1; `start` and `end` are its place in code points.

    `path` are the titles of the headings above it, outermost first; `page` the number of the last page
    mark above it.
    """

    kind: Literal["heading", "mark", "text"]
    first: int
    last: int
    start: int
    end: int
    path: tuple[str, ...]
    page: int | None


def split(text: str, *, lines: bool = False, marks: bool = False, markup: bool = True) -> list[Block]:
    """Return the blocks of `text`, in its order.

    `lines`: each line is a block of its own and nothing is a heading. `marks`: a line `[page 3 of 12]` is
    a page mark. Without `markup` nothing is a heading or a fence: the text says so only by its words.
    A text block of more than `PIECE` characters comes as its pieces, and each is a block.
    """
    blocks: list[Block] = []
    for block in _line_blocks(text) if lines else _Splitter(text, marks=marks, markup=markup).blocks():
        if block.kind == "text" and block.end - block.start > PIECE:
            blocks.extend(_pieces(text, block))
        else:
            blocks.append(block)
    return blocks


def neighbours(blocks: Sequence[Block], index: int) -> range:
    """Return the indexes of a block with its neighbours: the text blocks right before and after it.

    A heading and a page mark end the neighbourhood. Of a heading, it is the text block right after it.
    """
    first = last = index
    if blocks[index].kind == "text" and index > 0 and blocks[index - 1].kind == "text":
        first -= 1
    if index + 1 < len(blocks) and blocks[index + 1].kind == "text":
        last += 1
    return range(first, last + 1)


def is_mark(line: str) -> bool:
    """Is the line a page mark, where there are page marks?"""
    return _MARK.fullmatch(line) is not None


def piece_end(text: str, start: int, limit: int) -> int:
    """Return where a piece that starts at `start` ends so that it has no more than `limit` characters.

    At a line end, else at the last space, else at the limit. The piece is never empty, and the newline
    or space at its end belongs to no piece.
    """
    for end in (
        text.rfind("\n", start + 1, start + limit + 1),
        text.rfind(" ", start + 1, start + limit + 1),
    ):
        if end > 0:
            return end
    return start + limit


def _line_blocks(text: str) -> Iterator[Block]:
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.isspace():
            yield Block("text", number, number, start, start + len(line), (), None)
        start += len(line) + 1


def _pieces(text: str, block: Block) -> Iterator[Block]:
    start, line = block.start, block.first
    while start < block.end:
        end = block.end if block.end - start <= PIECE else piece_end(text, start, PIECE)
        last = line + text.count("\n", start, end)
        yield block._replace(start=start, end=end, first=line, last=last)
        # The newline or the space of the cut lies between two pieces.
        skipped = text[end : end + 1]
        line = last + (skipped == "\n")
        start = end + (skipped in ("\n", " "))


class _Splitter:
    """Goes through a text line by line and gives its blocks before long ones are cut."""

    def __init__(self, text: str, *, marks: bool, markup: bool) -> None:
        self._text = text
        self._marks = marks
        self._markup = markup
        # The headings above the current line, by level; and what a block takes from them.
        self._titles: list[tuple[int, str]] = []
        self._path: tuple[str, ...] = ()
        self._page: int | None = None
        # The text block that has begun: its first line and its start; its last line and its end.
        # None between blocks. Only `_add` and `_close` write it.
        self._open: list[int] | None = None
        self._done: list[Block] = []

    def blocks(self) -> list[Block]:
        fenced = self._markup and ("```" in self._text or "~~~" in self._text)
        fence = ""
        start = 0
        for number, line in enumerate(self._text.split("\n"), 1):
            end = start + len(line)
            if self._marks and line.startswith("[page ") and (mark := _MARK.fullmatch(line)):
                # A PDF's text is no Markdown: what looks like a fence in it never swallows a page mark.
                fence = ""
                self._close()
                self._page = int(mark[1])
                self._single("mark", number, start, end)
            elif fence:
                if line and not line.isspace():
                    self._add(number, start, end)
                if _closes(line, fence):
                    fence = ""
                    self._close()
            elif not line or line.isspace():
                self._close()
            elif self._markup and line[0] == "#" and (heading := _HEADING.fullmatch(line)):
                self._close()
                self._heading(len(heading[1]), heading[2], number, start, end)
            else:
                if fenced and (opening := _FENCE.fullmatch(line)):
                    fence = opening[1] or opening[2]
                    self._close()
                self._add(number, start, end)
            start = end + 1
        self._close()
        return self._done

    def _add(self, number: int, start: int, end: int) -> None:
        if self._open is None:
            self._open = [number, start, number, end]
        else:
            self._open[2:] = number, end

    def _close(self) -> None:
        if self._open is not None:
            first, start, last, end = self._open
            self._done.append(Block("text", first, last, start, end, self._path, self._page))
            self._open = None

    def _heading(self, level: int, text: str, number: int, start: int, end: int) -> None:
        while self._titles and self._titles[-1][0] >= level:
            self._titles.pop()
        self._path = tuple(words for _, words in self._titles if words)
        self._single("heading", number, start, end)
        self._titles.append((level, title(text)))
        self._path = tuple(words for _, words in self._titles if words)

    def _single(self, kind: Literal["heading", "mark"], number: int, start: int, end: int) -> None:
        self._done.append(Block(kind, number, number, start, end, self._path, self._page))


def _closes(line: str, fence: str) -> bool:
    stripped = line.strip(" \t")
    return len(stripped) >= len(fence) and not stripped.strip(fence[0])
