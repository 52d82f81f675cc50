"""Which elements of a page hold the text that the extractor kept, and what beside it belongs to it?

The extractor loses lists, tables, headings and short paragraphs for reasons of its own. What stands among
the kept text, says something itself and is not made of links belongs to it, and comes back; what stands
around it does not. Next: `html_title`, which looks for the heading of it all.
"""

from typing import TYPE_CHECKING, Final

from .html_chrome import is_comments, is_furniture, is_navigation
from .html_names import BLOCKS, HEADINGS, LISTS
from .html_tables import is_layout
from .html_ways import is_box

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from .html_measure import Size

_CORE: Final = 0.9
# Not entered in search of the part that holds all: they are read as a whole.
_WHOLE_TEXT: Final = "blockquote dl li ol p pre table tbody td th thead tr ul"
_WHOLE: Final = frozenset(_WHOLE_TEXT.split())
# The share of an element's text that is in links, from which on it is there for the links.
_LINKS: Final = 0.4
_ENTRIES: Final = frozenset({"li", "dt", "dd"})
# What may stand round lists to lay them out.
_BOXES: Final = frozenset({"div", "table", "tbody", "tr", "td"})
# A paragraph under the page's heading, before its text: as long as a sentence.
_LEAD: Final = 60


def kept_part(
    within: "HtmlElement", sizes: "dict[HtmlElement, Size]", dropped: "set[HtmlElement]", most: int
) -> "HtmlElement":
    """Return the part of `within` that holds all kept text, and add to `dropped` what in it is none.

    `most` is the amount of text on the page: what says that it is navigation and has half of it, is none.
    """
    kept = sizes[within].kept
    wide = _holder(within, kept, sizes)
    core = _holder(wide, _CORE * kept, sizes)
    _Chooser(sizes, dropped, core, most).choose(wide, inside=wide is core)
    return wide


def _holder(root: "HtmlElement", enough: float, sizes: "dict[HtmlElement, Size]") -> "HtmlElement":
    """Return the innermost element that holds `enough` kept text."""
    while True:
        inner = None
        for child in root:
            size = sizes.get(child)
            if size is not None and size.kept >= enough and child.tag in BLOCKS:
                inner = child
        if inner is None or inner.tag in _WHOLE:
            return root
        root = inner


class _Chooser:
    """Walks through the part that holds the kept text. `core` has nearly all of it."""

    def __init__(
        self,
        sizes: "dict[HtmlElement, Size]",
        dropped: "set[HtmlElement]",
        core: "HtmlElement",
        most: int,
    ) -> None:
        self._sizes = sizes
        self._dropped = dropped
        self._core = core
        self._most = most

    def choose(self, parent: "HtmlElement", *, inside: bool) -> None:
        """Drop what the extractor did not keep, but what belongs to the kept text beside it."""
        children = [child for child in parent if child in self._sizes]
        family = _Family(children, self._sizes)
        for at, child in enumerate(children):
            size = self._sizes[child]
            named = is_navigation(child) and 2 * size.text < self._most
            if size.kept and (named or self._is_way(child, size)):
                self._dropped.add(child)
            elif size.kept:
                if len(child) and not (child.tag == "table" and not is_layout(child, self._dropped)):
                    self.choose(child, inside=inside or child is self._core)
                family.take(at)
            elif child.tag in BLOCKS:
                if self._belongs(child, at, family) if inside else self._leads(child, at, family):
                    family.take(at)
                else:
                    self._dropped.add(child)
            elif size.text and (not inside or any(element.tag in BLOCKS for element in child.iter())):
                self._dropped.add(child)

    def _belongs(self, element: "HtmlElement", at: int, family: "_Family") -> bool:
        """Tell whether a block that was not kept belongs to its neighbours that were."""
        if is_furniture(element) or is_comments(element):
            return False
        tag, size = element.tag, self._sizes[element]
        if tag in ("figure", "pre") or not size.text:
            return True
        if tag in HEADINGS or self._only_heading(element, size):
            return family.after(at) or self._heads_list(element)
        if tag in _ENTRIES:
            # A list with holes is worse than none: the list itself has been looked at.
            return True
        if size.link > _LINKS * size.text:
            return self._is_introduced(element) or (self._follows(element) and leads_somewhere(element))
        before, after = family.before(at), family.after(at)
        if family.alike(at) and (element.get("class") or tag != "div"):
            return before or after
        if tag in ("table", "dl", "blockquote"):
            return before or family.first(at)
        if _is_list(element):
            return before or self._follows(element)
        if tag == "p":
            return before and after
        return (_holds_code(element) or element.find(".//table") is not None) and (before or after)

    def _is_way(self, element: "HtmlElement", size: "Size") -> bool:
        """Tell whether a list of links, few of which were kept, stands where it only leads elsewhere."""
        return (
            element.tag in LISTS and 2 * size.kept < size.text < 2 * size.link and not self._follows(element)
        )

    def _heads_list(self, heading: "HtmlElement") -> bool:
        """Tell whether what follows a heading is a list, and the heading none of a box of links."""
        after = heading.getnext()
        while after is not None and not (after in self._sizes and self._sizes[after].text):
            after = after.getnext()
        if after is None or not is_lists(after, self._sizes) or is_furniture(after):
            return False
        return not is_box("".join(heading.itertext()).strip())

    def _follows(self, element: "HtmlElement") -> bool:
        """Tell whether a list stands below a heading, words or a list of the text, or in such a list."""
        above = element.getparent()
        if not is_lists(element, self._sizes):
            return False
        if above.tag in _ENTRIES:
            return True
        before = element.getprevious()
        while before is not None and not (before in self._sizes and self._sizes[before].text):
            if _says(before.tail):
                return True
            before = before.getprevious()
        if before is None:
            if _says(above.text):
                return True
            # The first in a box of its own: the box stands for it.
            return above.tag in _BOXES and is_lists(above, self._sizes) and self._follows(above)
        if _says(before.tail):
            return True
        if before in self._dropped:
            return False
        if before.tag in HEADINGS:
            return not is_box("".join(before.itertext()).strip())
        return before.tag in ("p", "pre", "dl", "blockquote", "table") or is_lists(before, self._sizes)

    def _is_introduced(self, element: "HtmlElement") -> bool:
        """Tell whether kept words before an element end in a colon: what follows is what they speak of."""
        before = element.getprevious()
        while before is not None and before in self._sizes and not self._sizes[before].text:
            before = before.getprevious()
        if before is None or before not in self._sizes or not self._sizes[before].kept:
            return False
        return "".join(before.itertext()).rstrip().endswith((":", "\uff1a"))

    def _leads(self, element: "HtmlElement", at: int, family: "_Family") -> bool:
        """Tell whether a paragraph under the page's heading leads into the text that was kept."""
        size = self._sizes[element]
        return (
            element.tag == "p"
            and size.text >= _LEAD
            and 5 * size.link < size.text
            and family.headed(at)
            and family.after(at)
            and not is_furniture(element)
        )

    def _only_heading(self, element: "HtmlElement", size: "Size") -> bool:
        """Tell whether an element only wraps a heading."""
        if element.tag not in ("div", "header", "hgroup"):
            return False
        found = sum(self._sizes[inner].text for inner in element.iter(*HEADINGS) if inner in self._sizes)
        return 2 * found > size.text


class _Family:
    """The children of one element that have text, and which of them are taken."""

    def __init__(self, children: "list[HtmlElement]", sizes: "dict[HtmlElement, Size]") -> None:
        texts = [at for at, child in enumerate(children) if sizes[child].text]
        kept = [at for at in texts if sizes[children[at]].kept]
        self._children = children
        self._first = texts[0] if texts else -1
        shown = [at for at in texts if sizes[children[at]].kept or _holds_code(children[at])]
        self._last_kept = shown[-1] if shown else -1
        self._heading = next((at for at, child in enumerate(children) if child.tag == "h1"), len(children))
        self._taken = False  # whether any child before the one that is asked for was taken
        self._kinds = {_kind(children[at]) for at in kept}

    def take(self, at: int) -> None:
        """Note that a child is taken; called in the order of the page."""
        self._taken = self._taken or at >= self._first

    def first(self, at: int) -> bool:
        """Tell whether no child before this one has text."""
        return at <= self._first

    def before(self, at: int) -> bool:
        """Tell whether text before a child is taken."""
        return self._taken

    def headed(self, at: int) -> bool:
        """Tell whether the page's heading stands before a child."""
        return self._heading < at

    def after(self, at: int) -> bool:
        """Tell whether text after a child was kept."""
        return self._last_kept > at

    def alike(self, at: int) -> bool:
        """Tell whether a child of the same kind was kept: a section beside sections."""
        return _kind(self._children[at]) in self._kinds


def is_lists(element: "HtmlElement", sizes: "dict[HtmlElement, Size]") -> bool:
    """Tell whether an element is a list, or a box of nothing but lists: columns, cells of a layout."""
    while element.tag in _BOXES:
        inner = [child for child in element if child in sizes and sizes[child].text]
        if len(inner) != 1:
            return bool(inner) and all(is_lists(child, sizes) for child in inner)
        element = inner[0]
    return element.tag in LISTS


def leads_somewhere(element: "HtmlElement") -> bool:
    """Tell whether the links in an element lead to places, and are not there for a script."""
    return any((link.get("href") or "").strip("#") for link in element.iter("a"))


def _says(text: str | None) -> bool:
    return text is not None and not text.isspace() and text != ""


def _is_list(element: "HtmlElement") -> bool:
    return element.tag in LISTS or (element.tag == "div" and len(element) == 1 and element[0].tag in LISTS)


def _holds_code(element: "HtmlElement") -> bool:
    return element.tag == "pre" or element.find(".//pre") is not None


def _kind(element: "HtmlElement") -> tuple[str, str]:
    return str(element.tag), element.get("class") or ""
