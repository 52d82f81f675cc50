"""Which lines of a text match a pattern, and what is shown of them?

Line by line, blank lines and page marks never. It compiles no pattern (`pattern` does) and ranks
nothing (`question` does). Next: `selecting`, which puts the two together.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from .._document import ReadError
from .blocks import PIECE, Block, is_mark, neighbours, piece_end
from .pattern import Pattern

_SHOWN_MOST: Final = 32 * 2**20  # characters; a page of nothing but matches under long headings gives more


class Found(NamedTuple):
    """A line that matches: its number from 1, and where in the text it begins."""

    line: int
    start: int


def find(text: str, pattern: Pattern, *, marks: bool) -> list[Found]:
    """Return the lines of `text` that match, in its order. `marks`: page marks are none of them."""
    found: list[Found] = []
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.isspace():
            match = pattern.search(line.encode("utf-8", "surrogatepass"))
            if match is not None and not (marks and is_mark(line)):
                found.append(Found(number, start))
        start += len(line) + 1
    return found


def holders(
    text: str, found: Sequence[Found], blocks: Sequence[Block], pattern: Pattern
) -> list[tuple[int, int]]:
    """Return the lines found, each with the index of each block in which a match of it begins.

    That is one block, but for a line so long that it is cut into pieces.
    """
    held: list[tuple[int, int]] = []
    starts = [block.start for block in blocks]
    for line, start in found:
        first = bisect_right(starts, start) - 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if end - start <= PIECE:  # it lies in one block as a whole
            held.append((line, first))
        else:
            behind = bisect_right(starts, end)
            pieces = _held_pieces(text[start:end], pattern, [at - start for at in starts[first + 1 : behind]])
            held.extend((line, first + piece) for piece in pieces)
    return held


def _held_pieces(line: str, pattern: Pattern, cuts: Sequence[int]) -> Iterator[int]:
    """Give the numbers from 0 of the pieces of a long line, begun at `cuts`, in which a match begins."""
    raw = line.encode("utf-8", "surrogatepass")
    places: list[int] = []
    size = before = 0
    for cut in cuts:  # in bytes, as the pattern counts
        size += len(line[before:cut].encode("utf-8", "surrogatepass"))
        before = cut
        places.append(size)
    piece, at = 0, 0
    # One search for each piece at most, however many matches there are.
    while (match := pattern.search(raw, at)) is not None:
        piece = bisect_right(places, match.start())
        yield piece
        if piece == len(places):
            return
        at = places[piece]


def lines(text: str, found: Sequence[Found]) -> str:
    """Return the lines found, as `N:line`."""
    whole = text.split("\n")
    return "\n".join(f"{match.line}:{whole[match.line - 1]}" for match in found)


def lines_in_part(text: str, found: Sequence[Found], pattern: Pattern, limit: int) -> str | None:
    """Return what `lines` does, but of each line over `limit` bytes only the pieces in which a match begins.

    A cut would leave the beginning of such a line, and that may hold no match. None if each line fits.
    """
    whole = text.split("\n")
    shown: list[str] = []
    is_whole = True
    # A character has at most four bytes, and the number of the line stands before each piece.
    size = min(PIECE, max(1, limit // 4 - 12))
    for match in found:
        line = whole[match.line - 1]
        if _fits(f"{match.line}:{line}", limit):
            shown.append(f"{match.line}:{line}")
            continue
        is_whole = False
        starts, ends = _cut_up(line, size)
        pieces = _held_pieces(line, pattern, starts[1:])
        shown.extend(f"{match.line}:{line[starts[piece] : ends[piece]]}" for piece in pieces)
    return None if is_whole else "\n".join(shown)


def _fits(text: str, limit: int) -> bool:
    return len(text) <= limit // 4 or len(text.encode("utf-8", "surrogatepass")) <= limit


def _cut_up(line: str, size: int) -> tuple[list[int], list[int]]:
    """Return where the pieces of a line begin and end; the space of a cut is in none of them."""
    starts, ends = [0], []
    while len(line) - starts[-1] > size:
        ends.append(piece_end(line, starts[-1], size))
        starts.append(ends[-1] + (line[ends[-1]] == " "))
    ends.append(len(line))
    return starts, ends


def groups(text: str, held: Sequence[tuple[int, int]], blocks: Sequence[Block]) -> str:
    """Return the blocks of the lines found (`held`) with their neighbours, in groups under their paths.

    A line found is `N:line`, others are `N-line`; of a long line that is cut into pieces, those pieces in
    which a match begins are found. Blocks that follow each other make one group; a heading that was
    found begins a new one, since it is not under the path of the block before it. Between groups
    stands `--`; a group without headings above it has no line for its path.
    """
    hits = set(held)
    shown: list[str] = []
    size = 0
    for group in _runs(blocks, sorted({index for _, index in held})):
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
