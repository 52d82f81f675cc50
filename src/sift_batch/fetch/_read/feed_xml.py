"""Which feed does an XML text hold?

RSS 0.9x and 2.0, RDF and Atom, told by the root's name. Entities of a document are never expanded, no
DTD is read, nothing is looked up; a document with faults is read as far as it goes. XML of another root
is no feed. Next: `feed`, which writes what was found.
"""

import re
from collections.abc import Iterator, Mapping
from html import unescape
from html.entities import html5
from typing import Any, Final

from lxml import etree

from .feed import Entry, Feed, Summary, one_line
from .html_links import Links

_ROOTS: Final = frozenset({"rss", "rdf", "feed"})
_ROOT: Final = re.compile(r"<(?:[A-Za-z_][\w.-]{0,60}:)?([A-Za-z]{3,4})(?=[\s/>])")
_BEFORE_ROOT: Final = (("<?", "?>"), ("<!--", "-->"), ("<!", ">"))
_NO_XML: Final = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\ufffe\uffff]")
_REFERENCE: Final = re.compile(
    r"<!\[CDATA\[.*?(?:\]\]>|\Z)|&(?:(#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{0,40});)?",
    re.DOTALL,
)
# What looks like HTML where a feed does not say.
_HTML: Final = re.compile(r"<[A-Za-z/!]|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,30});")
_TAG: Final = re.compile(r"<[A-Za-z/!][^<>]{0,500}>")
_XML: Final = "{http://www.w3.org/XML/1998/namespace}"

Children = Mapping[str, Any]
"""The first child of each name; of equal names one without a prefix, so no extension's."""


def from_xml(text: str, url: str) -> Feed | None:
    """Return the feed that an XML text holds, links made absolute; None if its root is another."""
    if not _may_be_feed(text):
        return None
    root = _tree(text)
    if root is None:
        return None
    bases = _Bases(url)
    if _name(root) == "feed":
        return _atom(root, bases)
    channel = next(_named(root, "channel"), None)
    if channel is None:
        return None
    told = _children(channel)
    homes = (channel, root)  # RDF has its items beside the channel
    entries = [_rss_entry(item, bases) for home in homes for item in _named(home, "item")]
    return Feed(entries, _known(told, title="title", description="description", language="language"))


def _may_be_feed(text: str) -> bool:
    """Return whether the root's name is one of a feed's. What stands before the root is stepped over."""
    here = text.find("<")
    while here >= 0:
        for opening, closing in _BEFORE_ROOT:
            if text.startswith(opening, here):
                end = text.find(closing, here)
                if opening == "<!" and text.find("[", here, end) > 0:
                    end = text.find("]>", here)  # the declarations inside a DOCTYPE
                here = text.find("<", end) if end >= 0 else -1
                break
        else:
            root = _ROOT.match(text, here)
            return root is not None and root[1].lower() in _ROOTS
    return False


def _tree(text: str) -> Any:
    """Return the root of the document, as far as it can be read; None for none."""
    parser = etree.XMLParser(
        encoding="utf-8",  # the text is decoded: what its declaration names is of no more interest
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=True,
        remove_comments=True,
        remove_pis=True,
    )
    text = _REFERENCE.sub(_plain_reference, _NO_XML.sub("", text))
    try:
        return etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError:
        return None


def _plain_reference(found: "re.Match[str]") -> str:
    """Return a reference as the parser reads it whatever else is wrong: by number, or not at all.

    Entities of HTML are its characters; those that a document declares are nothing, so that none is
    ever expanded. After one fault of a document the parser drops even `&lt;`.
    """
    name = found[1]
    if found[0].startswith("<"):
        return found[0]
    if name is None:
        return "&#38;"
    if name.startswith("#"):
        return found[0]
    return "".join(f"&#{ord(char)};" for char in html5.get(f"{name};", ""))


class _Bases:
    """Resolves links against the page's address, or the xml:base of an element where it has one."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._links = {url: Links(url)}

    def of(self, element: Any, above: str = "") -> str:
        base = element.get(f"{_XML}base")
        above = above or self._url
        return self._at(above).absolute(base) or above if base else above

    def absolute(self, link: str, base: str) -> str:
        return self._at(base).absolute(link)

    def _at(self, base: str) -> Links:
        if base not in self._links:
            self._links[base] = Links(base)
        return self._links[base]


def _atom(root: Any, bases: _Bases) -> Feed:
    base = bases.of(root)
    told = _children(root)
    facts = _known(told, title="title", description="subtitle")
    if "author" in told:
        facts |= _known(_children(told["author"]), author="name")
    if language := one_line(root.get(f"{_XML}lang") or ""):
        facts["language"] = language
    return Feed([_atom_entry(entry, bases, base) for entry in _named(root, "entry")], facts)


def _atom_entry(entry: Any, bases: _Bases, above: str) -> Entry:
    told = _children(entry)
    base = bases.of(entry, above)
    link = ""
    for element in _named(entry, "link"):
        if not link and element.get("rel", "alternate") in ("alternate", ""):
            link = bases.absolute(element.get("href") or "", bases.of(element, base))
    date = _first_line(told, "published", "updated", "issued", "modified")
    summary = told.get("summary", told.get("content"))
    return Entry(_line(told.get("title")), link, date, _summary(summary, bases, base))


def _rss_entry(item: Any, bases: _Bases) -> Entry:
    told = _children(item)
    base = bases.of(item)
    link = bases.absolute(_raw(told.get("link")).strip(), base)
    guid = told.get("guid")
    if not link and guid is not None and guid.get("isPermaLink", "true") == "true" and "://" in _raw(guid):
        link = bases.absolute(_raw(guid).strip(), base)
    summary = told.get("description")
    if not _raw(summary).strip():
        summary = told.get("encoded")
    date = _first_line(told, "pubDate", "date")
    return Entry(_line(told.get("title")), link, date, _summary(summary, bases, base))


def _summary(element: Any, bases: _Bases, above: str) -> Summary:
    """Return a summary or content, and whether it is HTML: as it says, else as it looks."""
    if element is None:
        return Summary()
    base = bases.of(element, above)
    kind = (element.get("type") or "").lower()
    if kind in ("xhtml", "application/xhtml+xml"):
        for node in element.iter(etree.Element):
            node.tag = _name(node)
        text = "".join(etree.tostring(node, encoding="unicode") for node in element)
        return Summary(text, source=True, base=base)
    text = _raw(element)
    if kind in ("text", "text/plain"):
        return Summary(text)
    return Summary(text, source=kind in ("html", "text/html") or _HTML.search(text) is not None, base=base)


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _named(element: Any, name: str) -> Iterator[Any]:
    return (child for child in element if _name(child) == name)


def _children(element: Any) -> Children:
    found: dict[str, Any] = {}
    for child in element:
        name = _name(child)
        if name not in found or (found[name].prefix is not None and child.prefix is None):
            found[name] = child
    return found


def _known(told: Children, **names: str) -> dict[str, str]:
    lines = {fact: _line(told.get(name)) for fact, name in names.items()}
    return {fact: line for fact, line in lines.items() if line}


def _first_line(told: Children, *names: str) -> str:
    return next((line for name in names if (line := _line(told.get(name)))), "")


def _raw(element: Any) -> str:
    return "" if element is None else "".join(element.itertext())


def _line(element: Any) -> str:
    """Return the text of a title or a date in one line, without the tags and entities of HTML in it."""
    if element is None:
        return ""
    text = _raw(element)
    if element.get("type") != "text" and _HTML.search(text):
        text = unescape(_TAG.sub("", text))
    return one_line(text)
