"""Which heading of a page is the heading of its main content?

Where the content has no first heading of its own, the one that the page's title names is put before it,
with the paragraph under it that leads into the text. Next: `html_blocks`, which writes it all.
"""

from typing import TYPE_CHECKING, Final

from .html_chrome import is_furniture
from .html_names import HEADINGS, SILENT

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from .html_tree import Page

Choice = tuple["list[HtmlElement]", "set[HtmlElement]"]

# A paragraph that leads into a text is as long as a sentence.
_LEAD: Final = 60
# The signs of a heading's link to itself, at its end.
_PERMALINKS: Final = " ¶§\uf0c1"


def titled(page: "Page", roots: "list[HtmlElement]", dropped: "set[HtmlElement]") -> Choice:
    """Put the page's own heading before its content where that has none."""
    title = _squeezed(page.root.findtext(".//title") or "")
    heading = _heading(page, title)
    for root in roots:
        for other in root.iter("h1"):
            if not _is_read(other, dropped):
                continue
            if heading is None:
                return _with_plain_title(page.body, roots, dropped, title)
            if heading.tag == "h1" or not _is_sites_name(other):
                if other is heading:
                    _drop_logo(heading, root, dropped)
                return roots, dropped
            # The name of the site stands above the page as its only h1.
            dropped.add(other)
    if heading is None:
        return _with_plain_title(page.body, roots, dropped, title)
    within = [root for root in roots if root is heading or root in heading.iterancestors()]
    if within:
        dropped.discard(heading)
        if _is_read(heading, dropped):
            _drop_logo(heading, within[0], dropped)
            return roots, dropped
    return [heading, *_lead(heading, roots), *roots], dropped


def _heading(page: "Page", title: str) -> "HtmlElement | None":
    """Return the heading that the page's title names."""
    for heading in page.body.iter("h1"):
        text = _squeezed("".join(heading.itertext()))
        if text and text in title and not _is_sites_name(heading):
            return heading
    for heading in page.body.iter("h2"):
        text = _squeezed("".join(heading.itertext()))
        if text and title.startswith(text):
            return heading
    for heading in page.body.iter("h1"):
        text = _squeezed("".join(heading.itertext()))
        if text and text in title:
            return heading
    return None


def _is_sites_name(heading: "HtmlElement") -> bool:
    """Tell whether a heading is nothing but a link to the start of the site."""
    links = heading.findall(".//a")
    if len(links) != 1 or _squeezed("".join(links[0].itertext())) != _squeezed("".join(heading.itertext())):
        return False
    return (links[0].get("href") or "").split("#")[0].split("?")[0].rstrip("/").count("/") in (0, 2)


def _lead(heading: "HtmlElement", roots: "list[HtmlElement]") -> "list[HtmlElement]":
    """Return the paragraphs between a heading and the content that stands below it."""
    found: list[HtmlElement] = []
    for element in heading.itersiblings():
        if any(element is root or element in root.iterancestors() for root in roots):
            return found
        if element.tag != "p" or is_furniture(element):
            continue
        text = len(_squeezed("".join(element.itertext())))
        linked = sum(len(_squeezed("".join(link.itertext()))) for link in element.iter("a"))
        if text >= _LEAD and 5 * linked < text:
            found.append(element)
    return []


def _with_plain_title(
    body: "HtmlElement", roots: "list[HtmlElement]", dropped: "set[HtmlElement]", title: str
) -> Choice:
    """Put a block that says the page's title, and is no heading, before the content as one."""
    if not title:
        return roots, dropped
    for element in body.iter("div", "p", "td", "center", "h1"):
        if element.tag == "h1":
            # The sections of the page have headings of the first rank; its title stands above them.
            break
        if len(element) < 3 and _squeezed("".join(element.itertext())) == title:
            element.tag = "h1"
            dropped.discard(element)
            within = [root for root in roots if root in element.iterancestors()]
            read = bool(within) and _is_read(element, dropped)
            if within:
                dropped.update(_banner(element, within[0], dropped))
            return roots if read else [element, *roots], dropped
    return roots, dropped


def _drop_logo(heading: "HtmlElement", root: "HtmlElement", dropped: "set[HtmlElement]") -> None:
    """Drop what stands above the page's heading if the site's logo is in it."""
    banner = _banner(heading, root, dropped)
    if any(above.find(".//a/img") is not None for above in banner):
        dropped.update(banner)


def _banner(title: "HtmlElement", root: "HtmlElement", dropped: "set[HtmlElement]") -> "list[HtmlElement]":
    """Return what stands above a page's title where that is the site's name, and no sentence."""
    found: list[HtmlElement] = []
    element = title
    while element is not root:
        for before in element.itersiblings(preceding=True):
            if _said(before, dropped) >= _LEAD:
                return []
            if before.tag not in HEADINGS:
                found.append(before)
        element = element.getparent()
    return found


def _said(element: "HtmlElement", dropped: "set[HtmlElement]") -> int:
    """Return how many characters an element shows beside its links."""
    if element in dropped or element.tag in SILENT or element.tag == "a" or not isinstance(element.tag, str):
        return 0
    inner = sum(_said(child, dropped) + len((child.tail or "").strip()) for child in element)
    return inner + len((element.text or "").strip())


def _squeezed(text: str) -> str:
    return " ".join(text.split()).rstrip(_PERMALINKS).casefold()


def _is_read(element: "HtmlElement", dropped: "set[HtmlElement]") -> bool:
    return element not in dropped and not any(above in dropped for above in element.iterancestors())
