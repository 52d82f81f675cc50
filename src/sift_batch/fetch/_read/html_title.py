"""Which heading of a page is the heading of its main content?

Where the content has no first heading of its own, the one that the page's title names is put before it,
with the paragraph under it that leads into the text. Next: `html_blocks`, which writes it all.
"""

from typing import TYPE_CHECKING, Final

from .html_chrome import is_furniture

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from .html_tree import Page

Choice = tuple["list[HtmlElement]", "set[HtmlElement]"]

# A paragraph that leads into a text is as long as a sentence.
_LEAD: Final = 60


def titled(page: "Page", roots: "list[HtmlElement]", dropped: "set[HtmlElement]") -> Choice:
    """Put the page's own heading before its content where that has none."""
    title = _squeezed(page.root.findtext(".//title") or "")
    heading = _heading(page, title)
    for root in roots:
        for other in root.iter("h1"):
            if not _is_read(other, dropped):
                continue
            if heading is None or heading.tag == "h1" or not _is_sites_name(other):
                return roots, dropped
            # The name of the site stands above the page as its only h1.
            dropped.add(other)
    if heading is None:
        return _with_plain_title(page.body, roots, dropped, title)
    if any(root is heading or root in heading.iterancestors() for root in roots):
        dropped.discard(heading)
        if _is_read(heading, dropped):
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
    if title and body.find(".//h1") is None:
        for element in body.iter("div", "p", "td", "center"):
            if len(element) < 3 and _squeezed("".join(element.itertext())) == title:
                element.tag = "h1"
                dropped.discard(element)
                read = any(root in element.iterancestors() for root in roots) and _is_read(element, dropped)
                return ([] if read else [element]) + roots, dropped
    return roots, dropped


def _squeezed(text: str) -> str:
    return " ".join(text.split()).casefold()


def _is_read(element: "HtmlElement", dropped: "set[HtmlElement]") -> bool:
    return element not in dropped and not any(above in dropped for above in element.iterancestors())
