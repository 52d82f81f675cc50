"""How does a run of text read: links, emphasis, code and images within a block?

Gives one string whose blanks are collapsed as a browser does it, with a newline where the page breaks
the line. With marks it is Markdown, without them what a person sees. Blocks are not its business.
Next: `html_blocks`, which puts the runs together.
"""

import re
from typing import TYPE_CHECKING, Final

from .html_code import without_numbers
from .html_escape import escaped
from .html_formula import formula, lowered, raised
from .html_names import CODE, DELETED, EMPHASIS, HEADINGS, SILENT, STRONG

if TYPE_CHECKING:
    from collections.abc import Container

    from lxml.html import HtmlElement

    from .html_links import Links

_BLANKS: Final = re.compile(r"\s+")
_AROUND_BREAK: Final = re.compile(r" *\n *")
_TICKS: Final = re.compile("`+")
_BREAK: Final = "\0"  # a line break while blanks are collapsed; no page's text holds NUL
_JOINT: Final = "\1"  # stands between two marks that must not grow together

# Signs that a heading's own link carries, and what they look like.
_PERMALINKS: Final = frozenset({"¶", "#", "§", "🔗", "\uf0c1"})
# In a sentence these are words, in a heading they are such signs.
_PERMALINK_WORDS: Final = frozenset({"link", "permalink", "anchor", "direct link", "copy link"})
_PERMALINK_CLASSES_TEXT: Final = """
    headerlink anchor anchorjs-link heading-anchor header-anchor hash-link permalink anchor-link
    octicon-link headinglink doc-anchor section-link mw-editsection toclink-permalink
    """
_PERMALINK_CLASSES: Final = frozenset(_PERMALINK_CLASSES_TEXT.split())
_EDITS: Final = frozenset({"edit", "edit source", "edit section", "bearbeiten", "modifier", "editar", "編集"})


class Inline:
    """Renders the inline parts of one page. `marks` tells whether it is Markdown or plain text."""

    def __init__(self, links: "Links", dropped: "Container[HtmlElement]", *, marks: bool) -> None:
        self.marks = marks
        self._links = links
        self._dropped = dropped

    def tidy(self, raw: str) -> str:
        """Return a run of `text` and `element` pieces with its blanks collapsed."""
        text = _BLANKS.sub(" ", raw).replace("\u00ad", "")
        if _JOINT in text:
            text = text.replace("**" + _JOINT + "**" + _JOINT, "").replace(_JOINT, "")
        if _BREAK in text:
            text = _AROUND_BREAK.sub("\n", text.replace(_BREAK, "\n"))
        return text.strip()

    def of(self, element: "HtmlElement") -> str:
        """Return all of an element's content as one raw piece."""
        pieces = [self.words(element.text)]
        for child in element:
            pieces.append(self.element(child))
            pieces.append(self.words(child.tail))
        return "".join(pieces)

    def words(self, text: str | None) -> str:
        """Return a run of the page's own text as a raw piece."""
        if not text:
            return ""
        return escaped(text) if self.marks else text

    def line(self, element: "HtmlElement") -> str:
        """Return all of an element's content on one line."""
        return self.tidy(self.of(element)).replace("\n", " ")

    def element(self, element: "HtmlElement") -> str:
        """Return one element within a run as a raw piece, without its tail."""
        tag = element.tag
        if not isinstance(tag, str) or element in self._dropped:
            return ""
        if tag == "br":
            return _BREAK
        if tag == "img":
            return self.image(element)
        if tag == "a":
            return self._link(element)
        if tag == "math":
            return formula(element, marks=self.marks)
        if tag == "ruby":
            return self._ruby(element)
        if tag == "input":
            return self._box(element)
        if tag == "wbr" or tag in SILENT:
            return ""
        if tag in CODE:
            return self._code(element)
        if tag == "span" and _is_edit(element):
            return ""
        inner = self.of(element)
        if tag == "q":
            return f"“{inner.strip()}”"
        if tag == "sup":
            return raised(element, inner)
        if tag == "sub":
            return lowered(element, inner)
        if not self.marks:
            return inner
        if tag in STRONG:
            return _around("**", inner)
        if tag in EMPHASIS:
            return _around("*", inner)
        return _around("~~", inner) if tag in DELETED else inner

    def _link(self, element: "HtmlElement") -> str:
        inner = self.of(element)
        text = self.tidy(inner)
        if is_permalink(element, text):
            return ""
        return self.linked(inner, element.get("href"))

    def linked(self, inner: str, href: str | None) -> str:
        """Return a raw piece as a link to `href`, where that leads anywhere."""
        text = self.tidy(inner).replace("\n", " ")
        if not self.marks or not text or not href:
            return inner
        if href.startswith("mailto:") and len(href) < 320:
            address = href.partition("?")[0].replace(" ", "%20")
        else:
            address = self._links.absolute(href)
        if not address:
            return inner
        if "](" in text and not text.startswith("!["):
            # A link in a link: the inner one is nearer to its text.
            return inner
        before = " " if inner[:1].isspace() else ""
        after = " " if inner[-1:].isspace() else ""
        return f"{before}[{text}]({_in_brackets(address)}){after}"

    def image(self, element: "HtmlElement") -> str:
        """Return an image by its alt text and address; "" for one that shows nothing to read."""
        alt = " ".join((element.get("alt") or "").split())
        if not self.marks:
            return f" {alt} " if alt else ""
        if element.get("width") in ("0", "1") or element.get("height") in ("0", "1"):
            return ""
        source = self._source(element)
        if not source:
            return ""
        alt = alt.replace("[", "(").replace("]", ")")
        return f"![{alt}]({_in_brackets(source)})"

    def _source(self, element: "HtmlElement") -> str:
        # Pages that load images late keep the address elsewhere and a data: or blank one in src.
        for name in ("data-src", "data-original", "data-lazy-src", "src"):
            if found := self._links.absolute(element.get(name)):
                return found
        sets = [element.get("srcset"), element.get("data-srcset")]
        parent = element.getparent()
        if parent is not None and parent.tag == "picture":
            sets += [source.get("srcset") for source in parent.iterchildren("source")]
        for candidates in sets:
            first = (candidates or "").strip().split(" ", 1)[0].rstrip(",")
            if found := self._links.absolute(first):
                return found
        return ""

    def _code(self, element: "HtmlElement") -> str:
        if not self.marks:
            return self.of(element)
        text = _BLANKS.sub(" ", without_numbers(element, self._dropped)).strip()
        if not text:
            return self.of(element) if len(element) else ""
        longest = max((len(run) for run in _TICKS.findall(text)), default=0)
        fence = "`" * (longest + 1)
        pad = " " if text[0] == "`" or text[-1] == "`" else ""
        code = f"{fence}{pad}{text}{pad}{fence}"
        links = element.findall(".//a") if len(element) else []
        if len(links) == 1 and self.tidy(self.of(links[0])).strip("[]").endswith(text):
            return self.linked(code, links[0].get("href"))
        return code

    def _ruby(self, element: "HtmlElement") -> str:
        """Return a word with how it is read behind it, so that the word itself stays in one piece."""
        word = [element.text or ""]
        readings = []
        for child in element:
            if child.tag in ("rt", "rtc"):
                readings.append("".join(child.itertext()).strip())
            elif child.tag != "rp":
                word.append(self.element(child))
            word.append((child.tail or "").strip())
        reading = "".join(readings)
        return "".join(word) + (f"({reading})" if reading else "")

    def _box(self, element: "HtmlElement") -> str:
        above = element.getparent()
        for _ in range(3):
            if above is not None and above.tag != "li":
                above = above.getparent()
        if (element.get("type") or "").lower() != "checkbox" or not self.marks:
            return ""
        if above is None or above.tag != "li":
            return ""
        return "[x] " if element.get("checked") is not None else "[ ] "


def is_permalink(element: "HtmlElement", text: str) -> bool:
    """Tell whether a link is a heading's link to itself."""
    href = element.get("href") or ""
    if "#" not in href and href:
        return False
    if text.lower() in _PERMALINKS:
        return True
    signed = not _PERMALINK_CLASSES.isdisjoint((element.get("class") or "").lower().split())
    if text.lower() in _PERMALINK_WORDS:
        above = element.getparent()
        return signed or (above is not None and above.tag in HEADINGS)
    return len(text) < 3 and signed


def _is_edit(element: "HtmlElement") -> bool:
    """Tell whether an element is the link of a wiki's heading by which one changes the section."""
    if "mw-editsection" in (element.get("class") or ""):
        return True
    above = element.getparent()
    if above is None or above.tag not in HEADINGS or element.find(".//a") is None:
        return False
    return "".join(element.itertext()).strip(" []()\n").casefold() in _EDITS


def _around(mark: str, inner: str) -> str:
    text = inner.strip()
    if not text or _BREAK in text.strip(_BREAK + " ") or text.startswith(mark) or text.endswith(mark):
        return inner
    if "![" in text and text.startswith("![") and text.endswith(")"):
        return inner
    text = text.strip(_BREAK + " ")
    if not text:
        return inner
    at = inner.find(text)
    joint = _JOINT if mark == "**" else ""
    return f"{inner[:at]}{mark}{joint}{text}{mark}{joint}{inner[at + len(text) :]}"


def _in_brackets(address: str) -> str:
    """Return an address as it can stand between the brackets of a Markdown link."""
    depth = 0
    for char in address:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            break
    if depth:
        return address.replace("(", "%28").replace(")", "%29")
    return address
