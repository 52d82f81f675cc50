"""Where does a link of a page lead?

Every reference becomes an absolute http or https address as a browser would make it, or nothing at
all. It does not judge whether the address may be fetched. Next: `html_inline`, which writes links.
"""

import json
from typing import TYPE_CHECKING, Final

import ada_url
from lxml import etree

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# A longer address is a payload.
_LONGEST: Final = 8_192


class Links:
    """Resolves the references of one page against its address and its <base href>."""

    def __init__(self, url: str, base: str = "") -> None:
        self._known: dict[str, str] = {}
        self._base = _join(url, base) if base else url

    def absolute(self, href: str | None) -> str:
        """Return the absolute http or https address of `href`, or "" if it has none."""
        if not href:
            return ""
        if href not in self._known:
            self._known[href] = _join(self._base, href)
        return self._known[href]


def _join(base: str, href: str) -> str:
    href = href.strip(" \t\n\r\f")
    if not href or len(href) > _LONGEST or href[:5].lower() == "data:":
        return ""
    try:
        found = ada_url.join_url(base, href)
    except ValueError:
        return ""
    return found if found.startswith(("http://", "https://")) else ""


def link_lines(root: "HtmlElement", links: Links) -> str:
    """Return the links of a page as JSON lines with text, href and rel, the first of equal hrefs."""
    seen: set[str] = set()
    lines: list[str] = []
    for element in root.iter("a", "area"):
        href = links.absolute(element.get("href"))
        if not href or href in seen:
            continue
        seen.add(href)
        rel = " ".join((element.get("rel") or "").split())
        lines.append(json.dumps({"text": _text(element), "href": href, "rel": rel}, ensure_ascii=False))
    return "\n".join(lines)


def _text(element: "HtmlElement") -> str:
    pieces: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if event == "end":
            if node is not element:
                pieces.append(node.tail or "")
        elif node.tag not in ("script", "style", "template"):
            if node.tag in ("img", "area"):
                pieces.append(f" {node.get('alt') or ''} ")
            pieces.append(node.text or "")
    return " ".join("".join(pieces).split())
