"""What does the extractor take for the main content?

The one home of trafilatura. It gets the parsed tree and nothing else: no address, no network, no
metadata, no comments, no log. Its choice of the text is what we are after; how the text is written is
ours, so what comes back is its text for comparison and its tree for pages whose text is hidden in data.
Next: `html_main`.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from .html_measure import squeeze

if TYPE_CHECKING:
    from lxml.etree import _Element
    from lxml.html import HtmlElement

# What the extractor calls things, and what HTML calls them.
_HTML: Final = {
    "list": "ul",
    "item": "li",
    "quote": "blockquote",
    "row": "tr",
    "cell": "td",
    "hi": "b",
    "ref": "a",
    "graphic": "img",
    "lb": "br",
    "code": "pre",
}
_SILENCE: Final = 100  # above every level of a log


class Extract(NamedTuple):
    """The extractor's text without blanks, and the tree of it (None if it found nothing)."""

    text: str
    tree: "_Element | None"


def extract(root: "HtmlElement") -> Extract:
    """Return what the extractor takes for the main content of a page. The tree is left as it is."""
    from trafilatura import bare_extraction, core  # slow to import

    core.LOGGER.manager.getLogger("trafilatura").setLevel(_SILENCE)
    try:
        found = bare_extraction(root, fast=True, include_comments=False)
    except Exception:
        # Whatever it stumbles on: the page is read without it.
        return Extract("", None)
    tree = getattr(found, "body", None)
    if tree is None:
        return Extract("", None)
    return Extract(squeeze("".join(tree.itertext())), tree)


def as_html(tree: "_Element") -> "_Element":
    """Return the extractor's tree with HTML's names."""
    for element in tree.iter("*"):
        rank = element.get("rend") or ""
        if element.tag == "head":
            element.tag = rank if rank in ("h1", "h2", "h3", "h4", "h5", "h6") else "h2"
        else:
            element.tag = _HTML.get(element.tag, element.tag)
        if element.get("target"):
            element.set("href", element.get("target"))
    return tree
