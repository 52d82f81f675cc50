"""Where does a text end that is too large for a result? At the end of a block or of a line.

What is left is always the beginning of the text as it was, character for character: a fence that the
cut leaves open stays open. It does not say which contents may be cut: the reader does.
"""

from typing import Any, Literal, NamedTuple

from .blocks import PIECE, piece_end, split


class Cut(NamedTuple):
    """A text that fits, and what `Result.meta` is told if it was cut."""

    content: str
    facts: dict[str, Any]


def cut(
    text: str, max_bytes: int, *, at: Literal["block", "line"], marks: bool = False, markup: bool = True
) -> Cut:
    """Return the beginning of `text` that has at most `max_bytes` bytes of UTF-8; all of it if it fits.

    It ends at the end of a block or a line (`at`). If not even the first one fits, at a line end, else
    at the last space, else at a character.
    """
    if len(text) <= max_bytes // 4 or len(text.encode("utf-8", "surrogatepass")) <= max_bytes:
        return Cut(text, {})
    raw = text[:max_bytes].encode("utf-8", "surrogatepass")[:max_bytes]
    room = len(_whole_characters(raw))
    end = _block_end(text, room, marks=marks, markup=markup) if at == "block" else _line_end(text, room)
    if end == 0 and room > 0:
        end = piece_end(text, 0, room)
    content = text[:end].rstrip("\n")
    hint = f"the first {len(content)} of {len(text)} characters; choose a part with grep or a question"
    return Cut(content, {"truncated": True, "chars_total": len(text), "code": "truncated", "hint": hint})


def _whole_characters(raw: bytes) -> str:
    for lost in range(4):  # a character has at most four bytes
        try:
            return raw[: len(raw) - lost].decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            continue
    return ""


def _block_end(text: str, room: int, *, marks: bool, markup: bool) -> int:
    """Return the last block's end within `room` characters, 0 if there is none."""
    # Whether a block ends here is decided by what comes next: a look ahead of a piece and a line is enough.
    ahead = text.find("\n", min(room + PIECE + 1, len(text)))
    ahead = len(text) if ahead < 0 else ahead
    ends = (block.end for block in split(text[:ahead], marks=marks, markup=markup) if block.end <= room)
    return max(ends, default=0)


def _line_end(text: str, room: int) -> int:
    """Return the last line's end within `room` characters, 0 if there is none."""
    return max(text.rfind("\n", 0, room + 1), 0)
