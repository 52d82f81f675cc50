"""Which lines of a page only lead elsewhere?

Old and plain pages mark their navigation in no way: a line of links above the heading, "Next: ..., Up: ..."
below the text, a box that begins with "You may also like". They are told by what they say and where they
stand, whatever the names of their elements. Next: `html_title`.
"""

import re
from collections import Counter
from typing import TYPE_CHECKING, Final, NamedTuple

from .html_names import BLOCKS, HEADINGS, SILENT

if TYPE_CHECKING:
    from lxml.html import HtmlElement

    from .html_measure import Size

_LONGEST: Final = 400  # a line that leads elsewhere is not longer
_SENTENCE: Final = 60
_WORDY: Final = 20
_LAST_LINES: Final = 12
# Of a page's text: lines that are more than this are what the page is for.
_MOST: Final = 0.3
_BOX_LINKS: Final = 0.25
_WORD: Final = re.compile(r"[^\W\d_]+")
# What stands beside links that lead to the neighbours of a page.
_NEIGHBOURS_TEXT: Final = """
    next previous prev up top home contents index message messages page chapter section sorted by back forward
    nächste nächster vorige voriger zurück weiter hoch inhalt suivant précédent suivante précédente haut
    accueil sommaire siguiente anterior arriba inicio índice
    """
_NEIGHBOURS: Final = frozenset(_NEIGHBOURS_TEXT.split())
_STEPS_TEXT: Final = "next previous prev up back sorted nächste vorige suivant précédent siguiente anterior"
_STEPS: Final = frozenset(_STEPS_TEXT.split())
_RIGHTS: Final = re.compile(
    r"©|\(c\)|copyright\b|all rights reserved|alle rechte vorbehalten|powered by", re.IGNORECASE
)
_BOXES: Final = re.compile(
    r"you (?:may|might) (?:also )?(?:like|enjoy)|recommended (?:for|from|reading)|"
    r"more (?:from|stories|articles)\b|"
    r"related (?:articles|stories|posts|content|news|products|topics|reading)|(?:read|up) next\b|"
    r"most (?:read|popular)|trending|popular (?:posts|articles|stories)|customers also|"
    r"(?:you|recently) (?:looked at|viewed)|"
    r"mehr zum thema|auch interessant|lesen sie auch|das könnte (?:sie|dich)|meistgelesen|"
    r"à lire aussi|sur le même sujet|vous aimerez|les plus lus|"
    r"te puede interesar|lo más leído|noticias relacionadas|関連記事|おすすめ|あわせて読みたい",
    re.IGNORECASE,
)
# A line that is one link to something to do is furniture if it stands there that often.
_OFTEN: Final = 3
_ACTION: Final = re.compile(r"javascript:|\?|^#|#$", re.IGNORECASE)


class _Line(NamedTuple):
    """A block without blocks in it: the element, its size, its links, and its words outside of them."""

    element: "HtmlElement"
    size: "Size"
    links: "list[HtmlElement]"
    text: str
    beside: list[str]

    @property
    def dense(self) -> bool:
        return len(self.links) > 1 and 2 * self.size.link >= self.size.text

    @property
    def bare(self) -> bool:
        """Tell whether there is nothing but links, and what parts them."""
        return len(self.links) > 1 and not self.beside

    @property
    def neighbours(self) -> bool:
        """Tell whether it leads to the next page, the one before, the one above."""
        if not (self.links and self.size.link and _NEIGHBOURS.issuperset(self.beside)):
            return False
        return not _STEPS.isdisjoint(self.beside) if self.beside else all(map(_is_step, self.links))

    @property
    def action(self) -> str:
        """Return the text of a line that is nothing but a link to something to do; "" for others."""
        if len(self.links) != 1 or self.beside or self.element.tag in ("td", "th", *HEADINGS):
            return ""
        href = self.links[0].get("href")
        if self.element.tag == "li" and href and href.startswith("#") and len(href) > 1:
            # An item that leads to a place on the page: lists of contents repeat themselves.
            return ""
        return self.text if len(self.text) <= _WORDY and (not href or _ACTION.search(href)) else ""

    @property
    def home(self) -> bool:
        """Tell whether it is a link to the start of the site."""
        return len(self.links) == 1 and not self.beside and self.links[0].get("href") == "/"


def is_box(text: str) -> bool:
    """Tell whether a text is the heading of a box of links: "You may also like"."""
    return _BOXES.match(text) is not None


def drop_ways(
    roots: "list[HtmlElement]", sizes: "dict[HtmlElement, Size]", dropped: "set[HtmlElement]"
) -> None:
    """Add to `dropped` the lines of `roots` that only lead elsewhere."""
    lines = [line for root in roots for line in _lines(root, sizes, dropped)]
    total = sum(line.size.text for line in lines)
    steps = {line.element: line.size.text for line in lines if line.neighbours}
    found = {line.element: line.size.text for line in [*_above(lines), *_below(lines)]}
    actions = Counter(line.action for line in lines)
    for line in lines:
        if line.action and actions[line.action] >= _OFTEN:
            found[line.element] = line.size.text
        if _BOXES.match(line.text):
            box = _box(line, sizes, roots)
            if box is not None:
                found[box] = sizes[box].text
    if 2 * sum(steps.values()) < total:
        dropped.update(steps)
    left = _MOST * total
    for element, text in found.items():
        left -= text
        if left > 0:
            dropped.add(element)


def _above(lines: list[_Line]) -> "list[_Line]":
    """Return the lines of links that stand above the first heading of a page."""
    first = next((at for at, line in enumerate(lines[:40]) if _is_heading(line.element)), None)
    if first is None:
        first = next((at for at, line in enumerate(lines) if not (line.bare or line.home)), 0)
        return [line for line in lines[:first] if line.element.tag != "li"]
    return [line for line in lines[:first] if line.dense or line.home]


def _is_heading(element: "HtmlElement") -> bool:
    return element.tag in ("h1", "h2") or element.get("role") == "heading"


def _below(lines: list[_Line]) -> "list[_Line]":
    """Return the lines of links, and of rights, that stand below all sentences of a page."""
    found: list[_Line] = []
    before = None
    for line in lines[: -_LAST_LINES - 1 : -1]:
        if line.element.tag in HEADINGS:
            # Right below a heading they are what it speaks of, as in the last section of a manual page.
            return found[:-1] if found and found[-1] is before else found
        if (line.bare and line.element.tag != "li") or _RIGHTS.match(line.text):
            found.append(line)
        elif len(line.text) >= _SENTENCE:
            return found
        before = line
    # No text ends above them: such lines are all there is.
    return []


def _box(line: _Line, sizes: "dict[HtmlElement, Size]", roots: "list[HtmlElement]") -> "HtmlElement | None":
    """Return the largest element that begins with a line and is a box of links."""
    box, element = None, line.element
    while element not in roots:
        above = element.getparent()
        if _says(above.text) or any(map(_says_something, element.itersiblings(preceding=True))):
            break
        element = above
        size = sizes[element]
        if (
            element.tag in ("div", "section", "aside")
            and element not in roots
            and size.link >= _BOX_LINKS * size.text
        ):
            box = element
    return box


def _says_something(element: "HtmlElement") -> bool:
    shown = element.tag not in SILENT and any(map(_says, element.itertext()))
    return shown or _says(element.tail)


def _says(text: str | None) -> bool:
    return text is not None and bool(text) and not text.isspace()


def _lines(
    root: "HtmlElement", sizes: "dict[HtmlElement, Size]", dropped: "set[HtmlElement]"
) -> "list[_Line]":
    holders = _holders(sizes)
    found: list[_Line] = []
    stack = [root]
    while stack:
        element = stack.pop()
        if element in dropped or element not in sizes or not sizes[element].text:
            continue
        if element in holders:
            stack.extend(reversed(element))
        elif element.tag in BLOCKS:
            found.append(_line(element, sizes[element]))
    return found


def _holders(sizes: "dict[HtmlElement, Size]") -> "set[HtmlElement]":
    """Return the elements that have blocks in them."""
    found: set[HtmlElement] = set()
    for element in sizes:
        if element.tag in BLOCKS:
            above = element.getparent()
            while above is not None and above not in found:
                found.add(above)
                above = above.getparent()
    return found


def _line(element: "HtmlElement", size: "Size") -> _Line:
    if size.text > _LONGEST:
        return _Line(element, size, [], " " * _SENTENCE, [])
    links = list(element.iter("a"))
    text = " ".join("".join(element.itertext()).split())
    beside = text
    for link in links:
        beside = beside.replace(" ".join(_text(link).split()), " ", 1)
    return _Line(element, size, links, text, _words(beside))


def _is_step(link: "HtmlElement") -> bool:
    """Tell whether a link says "Next page" or the like, and not `next()`."""
    text = _text(link)
    words = _words(text)
    return bool(words) and words[0] in _STEPS and _NEIGHBOURS.issuperset(words) and "(" not in text


def _text(element: "HtmlElement") -> str:
    return "".join(element.itertext())


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
