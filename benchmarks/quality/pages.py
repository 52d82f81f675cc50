"""Which pages are read, and what is their main content? The truth is marked by hand, and is read here.

A made page (`made/*.html`) carries its truth with it: `data-truth="main"` stands on what a person came for,
"either" on what may be left out or kept (a byline, a date), "not" on boilerplate inside the rest; what has no
mark is boilerplate. A real page is a file of an installed package; `real.json` marks its parts by XPath and
quotes sentences that were read there, so that a new release of the package can't shift the truth unnoticed.
The pages of `unseen/` look like those of `made/`, but nothing in this project's reader was written for them,
and nobody should: they tell whether it was fitted to the others. All marks are taken off before a page is
given to anybody. What is made of the truth is in `scoring.py`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin

from lxml import html

MADE = Path(__file__).with_name("made")
UNSEEN = Path(__file__).with_name("unseen")
REAL = Path(__file__).with_name("real.json")

MARK = "data-truth"
LAYOUT = "data-truth-layout"
"""Stands on a table that holds the page together: its cells are no table of the content."""

_HEAD = re.compile(r"<!-- kind: (?P<kind>[\w -]+); url: (?P<url>\S+) -->\n")
_SKIPPED = {"script", "style", "template", "noscript", "head", "title", "svg", "iframe", "select", "textarea"}
_INLINE = frozenset(
    """
    a abbr acronym b bdi bdo big br cite code data del dfn em font i img ins kbd label mark nobr q rp rt ruby
    s samp small span strike strong sub sup time tt u var wbr
    """.split()  # noqa: SIM905 - forty quotation marks would not read better
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a page: its kind (heading, paragraph, item, cell, code) and its text."""

    kind: str
    text: str


class Row(NamedTuple):
    """A row of a table: its own cells, and those with what reaches into it from a row above."""

    own: tuple[str, ...]
    all: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """What is on a page: main content in order, what may be kept or not, and what must not be kept."""

    main: list[Block] = field(default_factory=list)
    either: list[Block] = field(default_factory=list)
    boilerplate: list[Block] = field(default_factory=list)
    tables: list[list[Row]] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Page:
    """One page as a reader gets it, and the truth about it."""

    name: str
    kind: str
    url: str
    source: str
    truth: Truth


def made(folder: Path = MADE) -> list[Page]:
    """Return the pages that were written for the purpose; or in another folder."""
    return [_made(file) for file in sorted(folder.glob("*.html"))]


def _made(file: Path) -> Page:
    text = file.read_text(encoding="utf-8")
    head = _HEAD.match(text)
    if head is None:
        raise ValueError(f"{file.name} does not begin with its kind and URL")
    source = text[head.end() :]
    tree = html.document_fromstring(source)
    bare = re.sub(rf' (?:{LAYOUT}|{MARK})(?:="[a-z]*")?', "", source)
    return Page(file.stem, head["kind"], head["url"], bare, truth_of(tree, head["url"]))


def real() -> tuple[list[Page], list[str]]:
    """Return the pages of installed packages, and why the others are left out."""
    pages, skipped = [], []
    for entry in json.loads(REAL.read_text(encoding="utf-8")):
        file = Path(entry["file"])
        if file.is_file():
            pages.append(_real(file, entry))
        else:
            skipped.append(f"{entry['name']}: {entry['package']} is not installed")
    return pages, skipped


def _real(file: Path, entry: Mapping[str, Any]) -> Page:
    source = file.read_text(encoding=entry.get("charset", "utf-8"))
    tree = html.document_fromstring(source.encode(), parser=html.HTMLParser(encoding="utf-8"))
    for mark in ("main", "either", "not"):
        for path in entry.get(mark, ()):
            found = tree.xpath(path)
            if not found:
                raise ValueError(f"{entry['name']}: nothing at {path}")
            for element in found:
                element.set(MARK, mark)
    for path in entry.get("layout", ()):
        for element in tree.xpath(path):
            element.set(LAYOUT, "")
    truth = truth_of(tree, entry["url"])
    _check_quotes(entry, truth)
    return Page(entry["name"], entry["kind"], entry["url"], source, truth)


def _check_quotes(entry: Mapping[str, Any], truth: Truth) -> None:
    """Raise `ValueError` unless what was read on the page is where it was read."""
    for quotes, blocks in (("read", truth.main), ("ignored", truth.boilerplate)):
        text = "\n".join(squeezed(block.text) for block in blocks)
        for quote in entry[quotes]:
            if squeezed(quote) not in text:
                raise ValueError(f"{entry['name']}: not in its {quotes} part: {quote}")


def squeezed(text: str) -> str:
    """Return the text with single spaces."""
    return " ".join(text.split())


def truth_of(tree: html.HtmlElement, url: str) -> Truth:
    """Return what the marks on a page say."""
    truth = Truth()
    _Walk(truth, url).walk(tree, "boilerplate", "paragraph")
    for table in tree.iter("table"):
        if LAYOUT not in table.attrib and _marked(table) == "main":
            rows = (row for row in table.iter("tr") if _marked(row) == "main")
            truth.tables.append([row for row in _rows(rows) if any(row.own)])
    return truth


def _rows(rows: Iterable[html.HtmlElement]) -> Iterator[Row]:
    """Give the rows of a table. A cell that spans rows may be said once, or in each of them."""
    above: dict[int, tuple[str, int]] = {}
    for row in rows:
        own, every = [], []
        cells = list(row.iterchildren("td", "th"))
        column = 0
        while cells or column in above:
            if column in above:
                text, left = above.pop(column)
                if left > 1:
                    above[column] = (text, left - 1)
                width = 1
            else:
                cell = cells.pop(0)
                text, width = squeezed("".join(_texts(cell))), int(cell.get("colspan", 1))
                own.append(text)
                if int(cell.get("rowspan", 1)) > 1:
                    above[column] = (text, int(cell.get("rowspan")) - 1)
            every.append(text)
            column += width
        yield Row(tuple(own), tuple(every))


def _marked(element: html.HtmlElement) -> str:
    mark = next((e.get(MARK) for e in (element, *element.iterancestors()) if e.get(MARK)), "not")
    return "boilerplate" if mark == "not" else str(mark)


def _texts(element: html.HtmlElement) -> Iterator[str]:
    """Give the texts in an element, without what is marked as not content and what is no text."""
    if element.get(MARK) == "not" or not isinstance(element.tag, str) or element.tag in _SKIPPED:
        return
    yield element.text or ""
    for child in element:
        if child.tag == "br" or child.tag not in _INLINE:
            yield " "
        yield from _texts(child)
        yield child.tail or ""


class _Walk:
    """Cuts a tree into blocks: text that no block-level element interrupts, by the mark it stands under."""

    def __init__(self, truth: Truth, url: str) -> None:
        self._blocks = {
            "main": truth.main,
            "either": truth.either,
            "boilerplate": truth.boilerplate,
        }
        self._links = truth.links
        self._url = url
        self._text: list[str] = []

    def walk(self, element: html.HtmlElement, mark: str, kind: str) -> None:
        """Add the blocks of an element; `mark` and `kind` are those of what it stands in."""
        if not isinstance(element.tag, str) or element.tag in _SKIPPED:
            return
        inner = {"not": "boilerplate"}.get(element.get(MARK, ""), element.get(MARK) or mark)
        if element.tag == "br":
            self._text.append(" ")
        inline = element.tag in _INLINE and inner == mark
        if not inline:
            self._flush(mark, kind)
        if element.tag == "pre":
            self._blocks[inner].append(Block("code", "".join(element.itertext())))
            return
        own = kind if inline else _kind(element, kind)
        if not inline and own == "item" and element.tag != "li" and element.getprevious() is not None:
            own = "paragraph"
        self._text.append(element.text or "")
        for child in element:
            self.walk(child, inner, own)
            self._text.append(child.tail or "")
        if not inline:
            self._flush(inner, own)
        if element.tag == "a" and inner == "main":
            self._link(element)

    def _link(self, element: html.HtmlElement) -> None:
        text, target = squeezed("".join(_texts(element))), element.get("href", "").strip()
        if text and target and not target.startswith("#"):
            absolute = urljoin(self._url, target)
            if absolute.startswith(("http://", "https://")):
                self._links.append((text, absolute))

    def _flush(self, mark: str, kind: str) -> None:
        text = squeezed("".join(self._text))
        self._text.clear()
        if text:
            self._blocks[mark].append(Block(kind, text))


def _kind(element: html.HtmlElement, outer: str) -> str:
    if element.tag in _HEADINGS:
        return "heading"
    if element.tag == "li":
        return "item"
    if element.tag in ("td", "th"):
        table = next(element.iterancestors("table"), None)
        return "paragraph" if table is None or LAYOUT in table.attrib else "cell"
    # A paragraph in an item or a cell is a part of it.
    return outer if outer in ("item", "cell", "heading") else "paragraph"
