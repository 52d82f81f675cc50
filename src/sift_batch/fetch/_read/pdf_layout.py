"""How do the characters of a PDF page become lines and paragraphs?

A PDF sets characters at places; the library puts them into lines. Here lines that stand well apart
become paragraphs, words that were parted at a line's end are joined, and ligatures become the letters
that a reader sees. The order is the file's own: nothing is moved. Next: `clean`, for what no text holds.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from ctypes import c_double
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from . import clean

if TYPE_CHECKING:
    from pypdfium2 import PdfTextPage

# What the library sets for a hyphen at a line's end, and then goes on with the next line.
_PARTED: Final = "\x02"
# U+FB00 and those after it.
_LIGATURES: Final = {
    0xFB00 + at: text for at, text in enumerate(("ff", "fi", "fl", "ffi", "ffl", "st", "st"))
}
# A page of fewer lines does not show which distance is the usual one.
_FEWEST_LINES: Final = 5
_APART: Final = 1.5


def lines(textpage: "PdfTextPage") -> str:
    """Return the lines of a page, a blank one where the distance says that a paragraph ends.

    Words that were parted at a line's end still hold a mark; see `finished`.
    """
    from pypdfium2 import raw

    unicode_of, page = raw.FPDFText_GetUnicode, textpage.raw
    text = "".join([chr(unicode_of(page, at)) for at in range(textpage.count_chars())])
    found = text.split("\n")
    if len(found) < _FEWEST_LINES:
        return text
    x, y, box = c_double(), c_double(), raw.FS_RECTF()

    def height(at: int) -> float:
        return y.value if raw.FPDFText_GetCharOrigin(page, at, x, y) else 0.0

    def size(at: int) -> float:
        return box.top - box.bottom if raw.FPDFText_GetLooseCharBox(page, at, box) else 0.0

    places: list[_Place] = []
    start = 0
    for line in found:
        seen = line.strip()
        first = start + line.find(seen)
        # A line that goes on after a parted word ends lower than it began.
        last = first + len(seen) - 1 if _PARTED in seen else first
        places.append(_Place(height(first), height(last), size(first)))
        start += len(line) + 1
    return "\n".join(_with_gaps(found, places))


class _Place(NamedTuple):
    """Where a line begins and ends, upwards from the page's foot, and how high its letters are."""

    begin: float
    end: float
    size: float


def _with_gaps(found: Sequence[str], places: Sequence[_Place]) -> Iterator[str]:
    steps = [above.end - below.begin for above, below in pairwise(places)]
    down = [step for step in steps if step > 0]
    usual = median(down) if down else 0.0
    yield found[0]
    for line, step, above in zip(found[1:], steps, places, strict=False):
        # A heading of two lines has them further apart, as its letters are higher.
        if step > _APART * max(usual, above.size):
            yield ""
        yield line


def finished(pages: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    """Return the pages with parted words joined, ligatures written out, and cleaned."""
    given = [(number, _paired(text).translate(_LIGATURES)) for number, text in pages]
    if any(_PARTED in text for _, text in given):
        words = {word for _, text in given for word in _WORD.findall(_JOINT.sub(" ", text))}
        given = [(number, _JOINT.sub(lambda joint: _joined(joint, words), text)) for number, text in given]
    return [(number, clean.clean_text(text)) for number, text in given]


_WORD: Final = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_JOINT: Final = re.compile(rf"([^\W\d_]*){_PARTED}\s*([^\W\d_]*)([^\s{_PARTED}]*)(?: +(?=\S))?")


def _joined(joint: "re.Match[str]", words: "set[str]") -> str:
    """Return a parted word in one piece, with its hyphen if that is part of it, and the line's end."""
    head, tail, rest = joint.groups()
    end = "\n" if joint[0].endswith(" ") else ""
    compound = f"{head}-{tail}"
    as_one = head + tail
    if not head or not tail or not tail[0].islower():
        return f"{compound}{rest}{end}"
    if as_one not in words and (compound in words or (head in words and tail in words)):
        return f"{compound}{rest}{end}"
    return f"{as_one}{rest}{end}"


def _paired(text: str) -> str:
    # Where the library gives halves of surrogate pairs, two of them are one character.
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
