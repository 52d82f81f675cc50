"""Is a table data or the layout of the page, and how do its rows read?

Data becomes rows of as many cells each, the first of them the header, cells joined by a bar. What only
lays the page out is read cell by cell. Cells are rendered by whoever calls. Next: `html_blocks`.
"""

from typing import TYPE_CHECKING, Final

from .html_code import is_number
from .html_names import HEADINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from lxml.html import HtmlElement

# No page shows a person more columns; wider spans are an attack or a mistake.
_WIDEST: Final = 200
_MOST_SPAN: Final = 1_000
# A spanning cell is repeated down its rows if it is a label and no text.
_LABEL: Final = 120
_MOST_REPEATS: Final = 10_000  # characters that all such cells of a table may add
_LONG_CELL: Final = 1_000


def rows_of(table: "HtmlElement") -> "Iterator[HtmlElement]":
    """Yield the rows of a table itself, not those of tables in it."""
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from child.iterchildren("tr")


def _cells(row: "HtmlElement") -> "list[HtmlElement]":
    return [cell for cell in row if cell.tag in ("td", "th")]


def code_cells(table: "HtmlElement") -> "list[HtmlElement]":
    """Return the parts of a table that only puts line numbers beside code; [] for other tables.

    Highlighters write either one row, with all numbers in one cell and the code in the other, or a row for
    each line.
    """
    rows = [_cells(row) for row in rows_of(table)]
    if not rows or any(len(cells) != 2 or not _numbers(cells[0]) for cells in rows):
        return []
    if len(rows) > 1:
        # Rows with a number in front are data unless the cell itself says that the number is one of a line.
        return [code for number, code in rows] if all(is_number(number) for number, _code in rows) else []
    number, code = rows[0]
    if (inner := code.find(".//pre")) is not None:
        return [inner] if is_number(number) or number.find(".//pre") is not None else []
    return [code] if is_number(number) and code.find(".//code") is not None else []


def _numbers(cell: "HtmlElement") -> bool:
    text = "".join("".join(cell.itertext()).split())
    return text.isdigit() or (not text and is_number(cell))


def is_layout(table: "HtmlElement", dropped: "Container[HtmlElement]") -> bool:
    """Tell whether a table lays out the page: roles, nested tables, headings, one column, long cells."""
    if table.get("role") in ("presentation", "none"):
        return True
    widest = 0
    rows = 0
    headed = _is_headed(table)
    if _is_columns(table, dropped):
        return True
    for row in rows_of(table):
        cells = _cells(row)
        rows += 1
        widest = max(widest, len(cells))
        for cell in cells:
            if len(cell) and _lays_out(cell, dropped, long=not headed):
                return True
    if widest > _WIDEST or _has_icon(table, rows):
        return True
    return widest < 2 and not (rows > 1 and table.find(".//th") is not None)


def _has_icon(table: "HtmlElement", rows: int) -> bool:
    """Tell whether a picture stands beside all rows: the sign of a warning or a note."""
    cells = _cells(next(rows_of(table))) if rows > 1 else []
    if not cells or _span(cells[0], "rowspan", _MOST_SPAN) < rows:
        return False
    return cells[0].find(".//img") is not None and not "".join(cells[0].itertext()).strip()


def _is_headed(table: "HtmlElement") -> bool:
    """Tell whether the first row names the columns of more than one row."""
    rows = [_cells(row) for _at, row in zip(range(3), rows_of(table), strict=False)]
    return len(rows) > 2 and len(rows[0]) > 1 and all(cell.tag == "th" for cell in rows[0])


def _is_columns(table: "HtmlElement", dropped: "Container[HtmlElement]") -> bool:
    """Tell whether a table has one row, of cells with several lines, and no names of columns."""
    data: list[list[HtmlElement]] = []
    for row in rows_of(table):
        cells = _cells(row)
        if any(cell.tag == "td" for cell in cells):
            data.append(cells)
        if len(data) > 1 or (cells and len(cells) > 1 and cells not in data):
            return False
    return len(data) == 1 and any(_lines(cell, dropped) > 1 for cell in data[0])


def _lines(cell: "HtmlElement", dropped: "Container[HtmlElement]") -> int:
    """Return how many paragraphs or boxes of one line a cell has."""
    return sum(
        element not in dropped and bool("".join(element.itertext()).strip())
        for element in cell.iter("p", "div")
        if next(element.iterdescendants("p", "div"), None) is None
    )


def _lays_out(cell: "HtmlElement", dropped: "Container[HtmlElement]", *, long: bool) -> bool:
    blocks = 0
    for element in cell.iter("table", "p", "div", "pre", "ul", "ol", *HEADINGS):
        if element in dropped:
            continue
        if element.tag == "table" or (element.tag in HEADINGS and cell.tag == "td"):
            return True
        blocks += 1
        if element.tag == "pre" and "\n" in "".join(element.itertext()).strip():
            return True
    return long and blocks > 1 and sum(map(len, cell.itertext())) > _LONG_CELL


def layout_cells(table: "HtmlElement", dropped: "Container[HtmlElement]") -> "Iterator[HtmlElement]":
    """Yield the cells of a layout table in the order of the page."""
    for row in rows_of(table):
        if row not in dropped:
            yield from (cell for cell in _cells(row) if cell not in dropped)


def table_lines(
    table: "HtmlElement",
    render: "Callable[[HtmlElement], str]",
    dropped: "Container[HtmlElement]",
    *,
    marks: bool,
) -> list[str]:
    """Return the rows of a data table, with the header's rule in Markdown; [] if it is empty."""
    rows: list[list[str]] = []
    hanging: dict[int, tuple[int, str]] = {}  # column: rows still to fill, with what
    repeats = 0
    for row in rows_of(table):
        if row in dropped:
            continue
        repeats += sum(len(text) for _left, text in hanging.values())
        if repeats > _MOST_REPEATS:
            hanging.clear()
        line = _row(_cells(row), render, hanging)
        if any(line):
            rows.append(line)
    width = max(map(len, rows), default=0)
    while width and not any(line[width - 1] for line in rows if len(line) >= width):
        width -= 1
    if not width:
        return []
    rows = [(line + [""] * (width - len(line)))[:width] for line in rows]
    if not marks:
        return [" | ".join(line).strip() for line in rows]
    rows = [[cell.replace("|", "\\|") for cell in line] for line in rows]
    rows.insert(1, ["---"] * width)
    return ["| " + " | ".join(line) + " |" for line in rows]


def _row(
    cells: "list[HtmlElement]",
    render: "Callable[[HtmlElement], str]",
    hanging: dict[int, tuple[int, str]],
) -> list[str]:
    line: list[str] = []
    pending = iter(cells)
    while len(line) < _WIDEST:
        at = len(line)
        if at in hanging:
            left, text = hanging.pop(at)
            if left > 1:
                hanging[at] = (left - 1, text)
            line.append(text)
            continue
        cell = next(pending, None)
        if cell is None:
            break
        text = render(cell)
        across, down = _span(cell, "colspan", _WIDEST - at), _span(cell, "rowspan", _MOST_SPAN)
        for offset in range(across):
            here = text if offset == 0 else ""
            line.append(here)
            if down > 1:
                hanging[at + offset] = (down - 1, here if len(here) <= _LABEL else "")
    return line


def _span(cell: "HtmlElement", name: str, most: int) -> int:
    text = (cell.get(name) or "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        return 1
    return max(1, min(int(text), most))
