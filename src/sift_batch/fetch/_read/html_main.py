"""Which part of a page is its main content?

The extractor chooses text, and we look up where on the page that text stands: so that tables, code and
lists beside it, which it often loses, are still there, and the page's own tree is what gets written.
Where the page marks its content, or the extractor found little of what there is, the marked part (or the
body) without its furniture is taken instead: a page of links, a forum or a table must not come out empty.
Next: `html_kept`, which looks up the text, and `html_blocks`, which writes it.
"""

from typing import TYPE_CHECKING, Final

from .html_chrome import is_comments, is_furniture, is_hidden, is_small_form
from .html_extractor import Extract, as_html, extract
from .html_kept import kept_part
from .html_measure import Size, measure
from .html_title import titled
from .html_ways import drop_ways

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from .html_tree import Page

# The extractor's time grows faster than the page; larger ones are read without it.
_MOST_ELEMENTS: Final = 15_000
# Of the text that a page marks as its content, and of a whole body: with less the extractor is wrong.
_ENOUGH_OF_MAIN: Final = 0.8
_ENOUGH_OF_BODY: Final = 0.2
# Of all text that is left, links included: a page of links is no text to the extractor.
_ENOUGH_OF_MAIN_LINKS: Final = 0.3
_ENOUGH_OF_BODY_LINKS: Final = 0.1
# An extractor that takes nearly everything has made no choice.
_ALL: Final = 0.98
# On a page of so little text the extractor takes all there is.
_FEW: Final = 500
_TINY: Final = 200
_ENOUGH_OF_FEW: Final = 0.75

Choice = tuple["list[HtmlElement]", "set[HtmlElement]"]


def main_content(page: "Page") -> Choice:
    """Return the elements that hold the main content, and what in them is none of it."""
    body = page.body
    found = extract(page.root) if page.elements <= _MOST_ELEMENTS else Extract("", None)
    sizes = measure(body, found.text, hidden=False)
    shown = True
    much = len(found.text) >= _FEW or sizes[body].text < 0.1 * len(found.text)
    if found.text and much and sizes[body].kept < 0.5 * len(found.text):
        # What the extractor found is not shown as the page stands: scripts would show it.
        for element in list(body.iter("noscript")):
            element.tag = "div"
        again = measure(body, found.text, hidden=True)
        if again[body].kept > 1.5 * sizes[body].kept:
            sizes, shown = again, False
        if sizes[body].kept < 0.3 * len(found.text) and found.tree is not None:
            return [as_html(found.tree)], set()
    choice = _Choice(sizes, shown=shown)
    roots = choice.marked(body) or choice.kept(body)
    drop_ways(roots, sizes, choice.dropped)
    return titled(page, roots, choice.dropped)


def whole_body(page: "Page") -> Choice:
    """Return all of the page's body but what it does not show."""
    hidden = {element for element in page.body.iter("*") if is_hidden(element)}
    hidden.discard(page.body)
    return [page.body], hidden


class _Choice:
    """The parts of one page that are taken, and in `dropped` what of them is not."""

    def __init__(self, sizes: "dict[HtmlElement, Size]", *, shown: bool) -> None:
        self._sizes = sizes
        self._shown = shown
        self.dropped: set[HtmlElement] = set()
        self.root: HtmlElement | None = None  # what the page marks as its content, else its body

    def _gone(self, element: "HtmlElement") -> bool:
        return self._shown and is_hidden(element)

    def marked(self, body: "HtmlElement") -> "list[HtmlElement]":
        """Return what the page marks as its content, or its body; [] if the extractor knows better."""
        sizes = self._sizes
        marked = [
            element
            for element in body.iter("main", "article", "div", "section")
            if element in sizes and (element.tag == "main" or element.get("role") == "main")
        ]
        root = max(marked, key=lambda element: sizes[element].text, default=body)
        self.root = root
        total = sizes[root].text
        comments = _comments(root, sizes)
        # In a forum the comments are the content.
        left = self._prune(root, total, comments < 0.5 * total)
        kept = sizes[root].kept
        whole = root is body
        if left.text < 0.9 * kept < _FEW:
            # A short page whose parts have misleading names.
            self.dropped.clear()
            return []
        if (
            kept < _TINY
            or (kept < _FEW and kept < _ENOUGH_OF_FEW * left.text)
            or kept > _ALL * sizes[root].text
            or kept < (_ENOUGH_OF_BODY if whole else _ENOUGH_OF_MAIN) * (left.text - left.link)
            or kept < (_ENOUGH_OF_BODY_LINKS if whole else _ENOUGH_OF_MAIN_LINKS) * left.text
        ):
            if left.text < 0.1 * total:
                # Names have misled us: take all of it.
                self.dropped = {element for element in root.iter("*") if self._gone(element)}
            return [root]
        self.dropped.clear()
        return []

    def _prune(self, parent: "HtmlElement", total: int, comments: bool) -> Size:
        """Drop the furniture in an element; return how much text is left of it."""
        size = self._sizes[parent]
        left = Size()
        left.text, left.link = size.text, size.link
        for child in parent:
            inner = self._sizes.get(child)
            if inner is None:
                if self._gone(child):
                    self.dropped.add(child)
                continue
            named = inner.text < 0.6 * total and (
                is_furniture(child)
                or is_small_form(child, inner.text)
                or (comments and is_comments(child))
                or (_is_site_header(child) and not _is_heading(child, inner))
            )
            if named or self._gone(child):
                self.dropped.add(child)
                left.text -= inner.text
                left.link -= inner.link
            elif len(child):
                rest = self._prune(child, total, comments)
                left.text -= inner.text - rest.text
                left.link -= inner.link - rest.link
        return left

    def kept(self, body: "HtmlElement") -> "list[HtmlElement]":
        """Return the part that holds all text which the extractor kept."""
        # What the page marks as its content holds it, unless the extractor found much elsewhere.
        within = self.root if self._sizes[self.root].kept > 0.6 * self._sizes[body].kept else body
        wide = kept_part(within, self._sizes, self.dropped, self._sizes[self.root].text)
        self.dropped.update(element for element in wide.iter("*") if self._gone(element))
        return [wide]


def _comments(root: "HtmlElement", sizes: "dict[HtmlElement, Size]") -> int:
    """Return how many characters of an element are readers' comments."""
    found, stack = 0, [root]
    while stack:
        for child in stack.pop():
            if child not in sizes:
                continue
            if is_comments(child):
                found += sizes[child].text
            else:
                stack.append(child)
    return found


def _is_site_header(element: "HtmlElement") -> bool:
    """Tell whether a header is the site's, and not that of an article."""
    return element.tag == "header" and not any(
        above.tag in ("main", "article", "section") or above.get("role") == "main"
        for above in element.iterancestors()
    )


def _is_heading(element: "HtmlElement", size: Size) -> bool:
    return element.find(".//h1") is not None and 2 * size.link <= size.text
