"""How much text is where on a page, how much of it is links, and how much did the extractor keep?

One walk over the tree: the text of each block is looked up in what the extractor gave, and the counts
are summed up the tree. Blanks don't count, so that the two can be compared. It decides nothing. Next:
`html_main`.
"""

import re
from typing import TYPE_CHECKING, Final

from lxml import etree

from .html_chrome import is_hidden
from .html_names import BLOCKS, SILENT

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# Blanks, and what shows nothing: the extractor may have left them out.
_UNCOUNTED: Final = re.compile("[\\s\u00ad\u200b-\u200f\u2060\ufeff]+")
_SHORT: Final = 12  # a shorter text is found anywhere; it must stand close to the one before
_NEAR: Final = 5_000
_LONG: Final = 60
_PIECE: Final = 30


def squeeze(text: str) -> str:
    """Return the characters of a text that count."""
    return _UNCOUNTED.sub("", text)


class Size:
    """Characters in an element: of all text, of text in links, of text that the extractor kept."""

    __slots__ = ("kept", "link", "text")

    def __init__(self) -> None:
        self.text = 0
        self.link = 0
        self.kept = 0


class _Kept:
    """Looks up texts in the extractor's, in the order of the page."""

    def __init__(self, whole: str) -> None:
        self._whole = whole
        self._at = 0
        # Characters that may be searched from the start for texts out of order: keeps it linear.
        self._budget = 30_000_000

    def holds(self, key: str) -> bool:
        """Tell whether a block's text was kept, wholly or for its most part."""
        whole, at, length = self._whole, self._at, len(key)
        if whole.startswith(key, at):
            self._at = at + length
            return True
        found = whole.find(key, at, at + length + (_NEAR if length >= _SHORT else 5 * _SHORT))
        if found < 0 and length >= _SHORT and self._budget > 0:
            self._budget -= len(whole)
            found = whole.find(key)
        if found < 0 and length >= _LONG:
            found = whole.find(key[:_PIECE], at, at + _NEAR)
            if found < 0:
                found = whole.find(key[-_PIECE:], at, at + _NEAR)
            return found >= 0
        if found >= 0:
            self._at = found + length
        return found >= 0


def measure(body: "HtmlElement", kept: str, *, hidden: bool) -> "dict[HtmlElement, Size]":
    """Return the size of each element of a page that may show text, in the order of the page.

    `kept` is the extractor's text, squeezed. What the page hides counts only with `hidden`.
    """
    sizes: dict[HtmlElement, Size] = {}
    owners: list[HtmlElement] = []
    run: list[str] = []
    texts = _Kept(kept)
    in_links = linked = passing = 0

    def close() -> None:
        nonlocal linked
        key = squeeze("".join(run))
        if key and owners:
            size = sizes[owners[-1]]
            size.text += len(key)
            size.link += min(linked, len(key))
            if kept and texts.holds(key):
                size.kept += len(key)
        run.clear()
        linked = 0

    for event, element in etree.iterwalk(body, events=("start", "end")):
        tag = element.tag
        if event == "start":
            if passing or tag in SILENT or (not hidden and element is not body and is_hidden(element)):
                passing += 1
                continue
            sizes[element] = Size()
            if tag in BLOCKS or element is body:
                close()
                owners.append(element)
            elif tag == "a":
                in_links += 1
            text = element.text
        else:
            if passing:
                passing -= 1
            elif tag in BLOCKS or element is body:
                close()
                owners.pop()
            elif tag == "a":
                in_links -= 1
            text = None if passing or element is body else element.tail
        if text:
            run.append(text)
            if in_links:
                linked += len(squeeze(text))
    _sum_up(sizes)
    return sizes


def _sum_up(sizes: "dict[HtmlElement, Size]") -> None:
    for element in reversed(sizes):
        above = sizes.get(element.getparent())
        if above is not None:
            size = sizes[element]
            above.text += size.text
            above.link += size.link
            above.kept += size.kept
