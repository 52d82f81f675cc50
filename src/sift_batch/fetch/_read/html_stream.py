"""How is a page read that is too monstrous for a tree?

A million rows or a hundred thousand levels: the parser's events become lines as they come, without a
tree, a level or a guess at the main content. What comes out is all text of the page in its order, with
headings, list items and table rows marked where marks are wanted. Next: `clean`.
"""

import json
from typing import Final

from lxml import etree

from .html_links import Links
from .html_names import BLOCKS, HEADINGS, SILENT

_SKIPPED: Final = (SILENT - {"area", "base", "link", "meta", "source", "track", "col", "param", "rp"}) | {
    "svg"
}
_VOID: Final = frozenset({"iframe", "basefont", "bgsound", "embed"})


class _Lines:
    """A parser's target that gathers lines."""

    def __init__(self, *, marks: bool) -> None:
        self.lines: list[str] = []
        self._marks = marks
        self._run: list[str] = []
        self._prefix = ""
        self._silent = ""  # the element whose content is passed over, and how often it is open
        self._depth = 0
        self._row = False

    def start(self, tag: str, attrib: dict[str, str]) -> None:
        if self._silent:
            self._depth += tag == self._silent
            return
        if tag in ("td", "th") and self._row:
            self._run.append(" | ")
            return
        if tag in BLOCKS or tag == "br":
            if self._row and tag != "tr":
                self._run.append(" ")
                return
            self._flush()
            self._row = tag == "tr"
            self._prefix = "#" * HEADINGS[tag] + " " if tag in HEADINGS else "- " if tag == "li" else ""
        elif tag in _SKIPPED and tag not in _VOID:
            self._silent, self._depth = tag, 1

    def end(self, tag: str) -> None:
        if self._silent:
            self._depth -= tag == self._silent
            if not self._depth:
                self._silent = ""
        elif tag in ("tr", "table") or (tag in BLOCKS and not self._row):
            self._flush()

    def data(self, data: str) -> None:
        if not self._silent:
            self._run.append(data)

    def comment(self, text: str) -> None:
        """Comments are not read."""

    def close(self) -> list[str]:
        self._flush()
        return self.lines

    def _flush(self) -> None:
        text = " ".join("".join(self._run).split())
        if self._row:
            text = text.removeprefix("| ")
        self._run.clear()
        self._row = False
        prefix, self._prefix = self._prefix, ""
        if text and text != "|":
            if prefix == "- ":
                self.lines.append(prefix + text if self._marks else text)
            else:
                self.lines += ["", prefix + text if self._marks else text, ""]


class _Links:
    """A parser's target that gathers links, the first of equal ones, with their texts."""

    def __init__(self, url: str) -> None:
        self.lines: list[str] = []
        self._url = url
        self._links = Links(url)
        self._based = False
        self._seen: set[str] = set()
        self._href = self._rel = ""  # the link that is open, if it has not been seen
        self._text: list[str] = []

    def start(self, tag: str, attrib: dict[str, str]) -> None:
        if tag == "base" and not self._based and attrib.get("href"):
            self._links, self._based = Links(self._url, attrib["href"]), True
        elif tag == "img" and self._href:
            self._text.append(f" {attrib.get('alt') or ''} ")
        elif tag in ("a", "area"):
            self._flush()
            href = self._links.absolute(attrib.get("href"))
            if href and href not in self._seen:
                self._seen.add(href)
                self._href, self._rel = href, " ".join((attrib.get("rel") or "").split())
                if tag == "area":
                    self._text.append(attrib.get("alt") or "")
                    self._flush()

    def end(self, tag: str) -> None:
        if tag == "a":
            self._flush()

    def data(self, data: str) -> None:
        if self._href:
            self._text.append(data)

    def close(self) -> list[str]:
        self._flush()
        return self.lines

    def _flush(self) -> None:
        if self._href:
            entry = {"text": " ".join("".join(self._text).split()), "href": self._href, "rel": self._rel}
            self.lines.append(json.dumps(entry, ensure_ascii=False))
        self._href = ""
        self._text.clear()


def stream_text(source: str, *, marks: bool) -> str:
    """Return all text of a page, line by line."""
    return "\n".join(_feed(source, _Lines(marks=marks)))


def stream_links(source: str, url: str) -> str:
    """Return the links of a page as JSON lines, like `link_lines`."""
    return "\n".join(_feed(source, _Links(url)))


def _feed(source: str, target: "_Lines | _Links") -> list[str]:
    parser = etree.HTMLParser(target=target, huge_tree=False, no_network=True, encoding="utf-8")
    try:
        parser.feed(source.encode())
        lines: list[str] = parser.close()
    except etree.LxmlError:
        lines = target.close()
    return lines
