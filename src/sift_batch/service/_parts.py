"""Where may a long text be cut, so that whoever reads it in parts gets whole blocks?

Plain functions over text. Blocks are paragraphs, headings, page marks and fences, as the fetch gives
them; one that is longer than a part is cut at a line end, a longer line at a space.
"""

import re
from collections.abc import Iterator
from typing import Final

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_ALONE: Final = re.compile(r"#{1,6} |\[page \d+ of \d+\]")


def part_of(content: str, offset: int, max_chars: int | None) -> tuple[str, int | None]:
    """Return at most `max_chars` characters from `offset` on, and where the next part begins.

    None: there is no next part. The parts of a text, put together, are the text. Offsets and lengths
    count code points.
    """
    left = len(content) - offset
    if max_chars is None or left <= max_chars:
        return content[offset:], None
    end = _end(content, offset, offset + max_chars)
    return content[offset:end], end


def _end(content: str, start: int, limit: int) -> int:
    best = 0
    for end in block_ends(content):
        if end > limit:
            break
        best = end
    if best > start:
        return best
    for mark in ("\n", " "):
        found = content.rfind(mark, start, limit)
        if found >= start:
            return found + 1
    return limit


def block_ends(content: str) -> Iterator[int]:
    """Yield the places behind each block and the blank lines that follow it."""
    fence = ""
    at, ended = 0, False
    for line in _LINE.findall(content):
        blank = not line.strip()
        found = _FENCE.match(line)
        if not fence and not blank and (ended or (at and (found or _ALONE.match(line)))):
            yield at
        ended = False
        if fence:
            # A fence ends with as many of the same marks, or more.
            if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
                ended = True
        elif found:
            fence = found[1]
        else:
            ended = blank or _ALONE.match(line) is not None
        at += len(line)
