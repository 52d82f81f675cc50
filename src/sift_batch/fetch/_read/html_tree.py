"""How does a page become a tree?

Text to an lxml tree that holds no surprise: no control bytes, no encoding to quarrel about, no
network, no depth or number of elements that would cost more than a page is worth. A page that is too
monstrous for a tree is told so, and `html_stream` reads it without one. Next: `html_main`.
"""

import re
from dataclasses import dataclass
from typing import Final

from lxml import etree, html

from .html_links import Links
from .html_names import HEADINGS

# More tags than a page has. A tree of them fits no worker; the stream needs no memory for them.
MOST_TAGS: Final = 200_000
# Deeper than pages are. The parser stops at 255 and drops what is below.
DEEPEST: Final = 120
# The parser's own limit for one attribute or one run of text, in bytes.
_LONGEST_TOKEN: Final = 10_000_000 // 4

_NO_TEXT: Final = re.compile("[\x00-\x08\x0b\x0e-\x1f\ufffe\uffff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Page:
    """A parsed page: its root, its body, what resolves its links, and how many elements it has."""

    root: html.HtmlElement
    body: html.HtmlElement
    links: Links
    elements: int


def plain_source(source: str) -> str:
    """Return `source` without what no page means and parsers stumble on."""
    source = _NO_TEXT.sub("", source.lstrip("\ufeff")).replace("\x0c", " ")
    return _SURROGATE.sub("\ufffd", source)


def parse(source: str, url: str) -> Page | None:
    """Return the tree of a page (a `plain_source`), or None if it takes the stream to read it.

    An empty page has an empty tree.
    """
    if source.count("<") > MOST_TAGS:
        return None
    parser = html.HTMLParser(
        huge_tree=False, no_network=True, remove_comments=True, remove_pis=True, encoding="utf-8"
    )
    try:
        root = etree.fromstring(source.encode(), parser)
    except (etree.LxmlError, ValueError):
        root = None
    if root is None:
        # Nothing but blanks and comments, or a page that broke the parser.
        if _looks_empty(source):
            root = html.Element("html")
        else:
            return None
    elif len(source) > _LONGEST_TOKEN and not "".join(root.itertext()).strip():
        # The parser has passed over a token that is too long for it, and all that follows.
        return None
    for empty in list(root.iter("source", "track", "wbr")):
        _hoist(empty)
    for drawing in root.iter("svg"):
        # A browser closes a drawing at the first element of a page in it; one that was never closed
        # would hide the rest of the page.
        if next(drawing.iter("p", "div", "ul", "ol", "table", *HEADINGS), None) is not None:
            drawing.tag = "div"
    elements = _elements(root)
    if elements is None:
        return None
    for entry in list(root.iter("dt", "dd")):
        # The parser nests terms, and definitions, that follow each other unclosed.
        above = entry.getparent()
        if above is not None and above.tag in ("dt", "dd"):
            above.addnext(entry)
    body = root.find("body")
    return Page(root, root if body is None else body, Links(url, _base(root)), elements)


def _hoist(empty: html.HtmlElement) -> None:
    """Put what stands in an element that is empty by its nature behind it: the parser knows no better."""
    tail, inner = empty.tail or "", list(empty)
    text, empty.text = empty.text or "", None
    empty.tail = None
    for child in reversed(inner):
        empty.addnext(child)
    if inner:
        inner[-1].tail = (inner[-1].tail or "") + tail
        empty.tail = text
    else:
        empty.tail = text + tail


def _looks_empty(source: str) -> bool:
    return not source.strip() or source.lstrip().startswith(("<!", "<?"))


def _elements(root: html.HtmlElement) -> int | None:
    """Return how many elements a tree has; None if it is too deep."""
    count = depth = 0
    for event, _element in etree.iterwalk(root, events=("start", "end")):
        if event == "start":
            count += 1
            depth += 1
            if depth > DEEPEST:
                return None
        else:
            depth -= 1
    return count


def _base(root: html.HtmlElement) -> str:
    for element in root.iter("base"):
        href = element.get("href")
        if href:
            return str(href)
    return ""
