"""How does a CSV or TSV file read as one table?

The first row is the header; short rows are filled up. A file that is no table (broken quotes, a cell
or a table out of all proportion) is refused with `NoTable`, and is then read as plain text. Nothing is
cut to size here. Next: `readers`, which chooses the reader.
"""

import csv
import re
from collections.abc import Iterator
from io import StringIO
from typing import Final

from . import clean

_DELIMITERS: Final = (",", ";", "\t")
# The delimiter shows in the first rows; a hostile file must not be parsed three times in full.
_SAMPLE_CHARS: Final = 65_536
_SAMPLE_ROWS: Final = 20
# One long row over a million short ones would be a table of a million million cells.
_CELL_LIMIT: Final = 10_000_000
_BLANKS: Final = re.compile(r"\s+")


class NoTable(Exception):
    """The file is no table."""


def table(text: str, *, tabs: bool, markup: bool) -> str:
    """Return the file as a pipe table; without `markup` as lines of cells joined by " | ".

    `tabs` says that cells are parted by tabs; else the delimiter is found. Raises `NoTable`.
    """
    delimiter = "\t" if tabs else _delimiter(text)
    # Read twice: the cells of a large file take far more memory than its text.
    width = 0
    for count, row in enumerate(_rows(text, delimiter), 1):
        width = max(width, len(row))
        if width * count > _CELL_LIMIT:
            raise NoTable
    lines: list[str] = []
    for row in _rows(text, delimiter):
        cells = [_plain(cell) for cell in row] + [""] * (width - len(row))
        lines.append(_pipes(cells) if markup else " | ".join(cells))
    if markup and lines:
        lines.insert(1, _pipes(["---"] * width))
    return clean.clean_text("\n".join(lines))


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows that hold anything."""
    try:
        for row in csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True):
            if any(cell.strip() for cell in row):
                yield row
    except csv.Error:
        raise NoTable from None


def _delimiter(text: str) -> str:
    """Return the delimiter by which the first rows have the most cells of one and the same number."""
    sample = text[:_SAMPLE_CHARS]
    if len(text) > _SAMPLE_CHARS:
        sample = sample[: sample.rfind("\n") + 1] or sample

    def fitness(delimiter: str) -> tuple[int, int]:
        widths: list[int] = []
        try:
            for row in _rows(sample, delimiter):
                widths.append(len(row))
                if len(widths) == _SAMPLE_ROWS:
                    break
        except NoTable:
            return (0, 0)
        if not widths or widths[0] == 1:
            return (0, 0)
        return (sum(width == widths[0] for width in widths), widths[0])

    return max(_DELIMITERS, key=fitness)  # the first of equals: the comma


def _plain(cell: str) -> str:
    # A row is one line, so a line break in a cell is a blank, as in the table of a page.
    return _BLANKS.sub(" ", cell).strip()


def _pipes(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
