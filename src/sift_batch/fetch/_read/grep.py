"""Which lines of a text match a pattern, and what is shown of them?

Line by line, blank lines and page marks never. It compiles no pattern (`pattern` does) and ranks
nothing (`question` does). Next: `selecting`, which puts the two together.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .._document import ReadError
from .blocks import PIECE, Block, is_mark, neighbours
from .pattern import Pattern

_SHOWN_MOST: Final = 32 * 2**20  # characters; a page of nothing but matches under long headings gives more


class Found(NamedTuple):
    """A line that matches: its number from 1, and a place in the text, in the block of its first match."""

    line: int
    place: int


def find(text: str, pattern: Pattern, *, marks: bool) -> list[Found]:
    """Return the lines of `text` that match, in its order. `marks`: page marks are none of them."""
    found: list[Found] = []
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.isspace():
            raw = line.encode("utf-8", "surrogatepass")
            match = pattern.search(raw)
            if match is not None and not (marks and is_mark(line)):
                # A line that is no longer than a piece lies in one block as a whole.
                before = raw[: match.start()] if len(line) > PIECE else b""
                found.append(Found(number, start + len(before.decode("utf-8", "ignore"))))
        start += len(line) + 1
    return found


def blocks_of(found: Sequence[Found], blocks: Sequence[Block]) -> list[int]:
    """Return for each line found the index of the block in which its first match begins."""
    starts = [block.start for block in blocks]
    return [bisect_right(starts, match.place) - 1 for match in found]


def lines(text: str, found: Sequence[Found]) -> str:
    """Return the lines found, as `N:line`."""
    whole = text.split("\n")
    return "\n".join(f"{match.line}:{whole[match.line - 1]}" for match in found)


def groups(text: str, found: Sequence[Found], blocks: Sequence[Block]) -> str:
    """Return the blocks of the lines found with their neighbours, in groups under their paths.

    A line found is `N:line`, others are `N-line`; of a long line that is cut into pieces, the piece in
    which the match begins is the one found. Blocks that follow each other make one group; a heading that
    was found begins a new one, since it is not under the path of the block before it. Between groups
    stands `--`; a group without headings above it has no line for its path.
    """
    holders = blocks_of(found, blocks)
    hits = {(match.line, holder) for match, holder in zip(found, holders, strict=True)}
    shown: list[str] = []
    size = 0
    for group in _runs(blocks, sorted(set(holders))):
        lines_of_group = ["--"] if shown else []
        if blocks[group[0]].path:
            lines_of_group.append(" > ".join(blocks[group[0]].path))
        for index in group:
            block = blocks[index]
            for number, line in enumerate(text[block.start : block.end].split("\n"), block.first):
                lines_of_group.append(f"{number}{':' if (number, index) in hits else '-'}{line}")
        size += sum(map(len, lines_of_group))
        if size > _SHOWN_MOST:
            raise ReadError(
                "too_large",
                "the matches with their context are too large",
                hint="use a narrower pattern, or leave context out",
            )
        shown += lines_of_group
    return "\n".join(shown)


def _runs(blocks: Sequence[Block], holders: Sequence[int]) -> Iterator[range]:
    """Give the runs of blocks that `holders` and their neighbours make."""
    run = range(0)
    for holder in holders:
        around = neighbours(blocks, holder)
        if run and around.start <= run.stop and blocks[holder].kind != "heading":
            run = range(run.start, max(run.stop, around.stop))
        else:
            if run:
                yield run
            run = around
    if run:
        yield run
