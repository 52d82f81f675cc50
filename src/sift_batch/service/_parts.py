"""Where may a long text be cut, so that whoever reads it in parts gets whole blocks?

Plain functions over text. Blocks are paragraphs, headings, page marks and fences, as the fetch gives
them; one that is longer than a part is cut at a line end, a longer line at a space.
"""

import re
from collections.abc import Iterator
from typing import Final

# The lines that matter: blank ones, fences, and what is a block by itself. A text may have many others.
_LINE: Final = re.compile(
    r"^(?:(?P<blank>[^\S\n]*$)| {0,3}(?P<fence>`{3,}|~{3,})[^\n]*|(?:#{1,6} |\[page \d+ of \d+\])[^\n]*)",
    re.MULTILINE,
)


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
    fence, ended, at = "", False, 0  # in which fence; a block ended before `at`, with which a line begins
    for line in _LINE.finditer(content):
        start, blank = line.start(), line["blank"] is not None
        if ended and start > at:  # a plain line stands between
            yield at
            ended = False
        if not fence and not blank and (ended or start):
            yield start
        at = min(line.end() + 1, len(content))
        if fence:
            # A fence ends with as many of the same marks, or more.
            ended = _closes(line, fence)
            fence = "" if ended else fence
        elif line["fence"]:
            fence, ended = line["fence"], False
        else:
            ended = True
    if ended and at < len(content):
        yield at


def _closes(line: re.Match[str], fence: str) -> bool:
    found = line["fence"]
    return found is not None and found.startswith(fence) and not line[0].strip().strip(fence[0])
