"""What does a page say about itself?

Title, description, author, dates, language, canonical address, feeds, OpenGraph and JSON-LD, each as the
page states it and bounded in size. Absent facts are left out. It reads only what is declared, and guesses
nothing from the text. Next: `html`, which gives them out.
"""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from .clean import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lxml.html import HtmlElement

    from .html_links import Links
    from .html_tree import Page

_LONGEST: Final = {"title": 500, "description": 2_000, "author": 300, "language": 35}
_FEED_TYPES: Final = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
_MOST_FEEDS: Final = 20
_MOST_PROPERTIES: Final = 50
_LONGEST_VALUE: Final = 2_000
_LONGEST_JSONLD: Final = 65_536
_MOST_JSONLD: Final = 20
_DEEPEST_JSONLD: Final = 20

_NAMES: Final = {
    "description": ("description", "og:description", "twitter:description", "dc.description"),
    "author": ("author", "article:author", "dc.creator", "dcterms.creator", "citation_author", "byl"),
    "published": (
        "article:published_time",
        "datepublished",
        "date",
        "dc.date",
        "dcterms.created",
        "dc.date.issued",
        "citation_publication_date",
        "publish_date",
        "pubdate",
        "parsely-pub-date",
    ),
    "modified": (
        "article:modified_time",
        "og:updated_time",
        "datemodified",
        "last-modified",
        "dcterms.modified",
        "docbuild:last-update",
    ),
}


def page_facts(page: "Page") -> dict[str, Any]:
    """Return what a page declares about itself."""
    metas = _metas(page.root)
    data = list(_jsonld(page.root))
    facts: dict[str, Any] = {"title": _title(page.root, metas)}
    for name, keys in _NAMES.items():
        facts[name] = next((metas[key][0] for key in keys if metas.get(key)), "")
    things = [thing for value in data for thing in _things(value)]
    facts["author"] = _author(facts["author"]) or _first(things, "author", _author)
    facts["published"] = _date(facts["published"] or _first(things, "datePublished", _plain))
    facts["modified"] = _date(facts["modified"] or _first(things, "dateModified", _plain))
    facts["description"] = facts["description"] or _first(things, "description", _plain)
    facts["language"] = _language(page.root, metas)
    facts["canonical"] = _canonical(page.root, page.links)
    for name, most in _LONGEST.items():
        facts[name] = _short(facts[name], most)
    facts["feeds"] = _feeds(page.root, page.links)
    facts["opengraph"] = _opengraph(metas)
    facts["jsonld"] = data
    return {name: value for name, value in facts.items() if value}


def _short(text: str, most: int) -> str:
    return " ".join(clean_text(text[: most * 2]).split())[:most].strip()


def _metas(root: "HtmlElement") -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for element in root.iter("meta"):
        content = (element.get("content") or "").strip()
        if not content:
            continue
        names = (element.get(name) for name in ("property", "name", "itemprop", "http-equiv"))
        for key in {name.strip().lower() for name in names if name}:
            if len(key) < 100 and len(found.setdefault(key, [])) < _MOST_PROPERTIES:
                found[key].append(content[:_LONGEST_VALUE])
    return found


def _title(root: "HtmlElement", metas: dict[str, list[str]]) -> str:
    for element in root.iter("title"):
        above = element.getparent()
        text = " ".join("".join(element.itertext()).split())
        if text and (above is None or above.tag != "svg"):
            return text
    for key in ("og:title", "twitter:title", "dc.title"):
        if metas.get(key):
            return metas[key][0]
    for element in root.iter("h1"):
        text = " ".join("".join(element.itertext()).split())
        if text:
            return text
    return ""


def _language(root: "HtmlElement", metas: dict[str, list[str]]) -> str:
    declared = (
        root.get("lang") or root.get("{http://www.w3.org/XML/1998/namespace}lang") or root.get("xml:lang")
    )
    if declared and declared.strip():
        return str(declared).strip()
    for key in ("content-language", "og:locale", "dc.language", "language"):
        if metas.get(key):
            return metas[key][0].split(",")[0].strip().replace("_", "-")
    return ""


def _head_links(root: "HtmlElement") -> "Iterator[tuple[set[str], HtmlElement]]":
    for element in root.iter("link"):
        yield set((element.get("rel") or "").lower().split()), element


def _canonical(root: "HtmlElement", links: "Links") -> str:
    for rel, element in _head_links(root):
        if "canonical" in rel and (href := links.absolute(element.get("href"))):
            return href
    return ""


def _feeds(root: "HtmlElement", links: "Links") -> list[dict[str, str]]:
    feeds: list[dict[str, str]] = []
    for rel, element in _head_links(root):
        kind = (element.get("type") or "").split(";")[0].strip().lower()
        if "alternate" not in rel or kind not in _FEED_TYPES or len(feeds) >= _MOST_FEEDS:
            continue
        href = links.absolute(element.get("href"))
        if href and all(feed["href"] != href for feed in feeds):
            feeds.append({"title": _short(element.get("title") or "", 200), "href": href, "type": kind})
    return feeds


def _opengraph(metas: dict[str, list[str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, values in metas.items():
        if key.startswith("og:") and len(found) < _MOST_PROPERTIES:
            texts = [_short(value, _LONGEST_VALUE) for value in values[:10]]
            found[key[3:]] = texts[0] if len(texts) == 1 else texts
    return found


def _jsonld(root: "HtmlElement") -> "Iterator[Any]":
    left, count = _LONGEST_JSONLD, 0
    for element in root.iter("script"):
        if (element.get("type") or "").split(";")[0].strip().lower() != "application/ld+json":
            continue
        text = element.text or ""
        left -= len(text)
        count += 1
        if left < 0 or count > _MOST_JSONLD:
            return
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list) and value:
            yield _bounded(value, _DEEPEST_JSONLD)


def _bounded(value: Any, depth: int) -> Any:
    """Return a JSON value that any strict encoder takes, cut below `depth` levels."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float):
        # NaN and the infinities are no JSON.
        return value if abs(value) < float("inf") else None
    if isinstance(value, int):
        return value if abs(value) < 2**63 else None
    if not isinstance(value, dict | list):
        return value
    if not depth:
        return None
    if isinstance(value, dict):
        return {clean_text(key): _bounded(item, depth - 1) for key, item in value.items()}
    return [_bounded(item, depth - 1) for item in value]


def _things(value: Any) -> "Iterator[dict[str, Any]]":
    """Yield the objects of a JSON-LD value that may describe the page."""
    if isinstance(value, list):
        for item in value:
            yield from _things(item)
    elif isinstance(value, dict):
        yield value
        if isinstance(value.get("@graph"), list):
            yield from (item for item in value["@graph"] if isinstance(item, dict))


def _first(things: list[dict[str, Any]], key: str, read: Any) -> str:
    return next((text for thing in things if (text := read(thing.get(key)))), "")


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _author(value: Any) -> str:
    """Return the name in an author's statement; addresses are no names."""
    if isinstance(value, dict):
        return _author(value.get("name"))
    if isinstance(value, list):
        names = [name for item in value[:10] if (name := _author(item))]
        return ", ".join(dict.fromkeys(names))
    if isinstance(value, str) and not value.startswith(("http://", "https://")):
        return value.strip()
    return ""


def _date(text: str) -> str:
    """Return a date as RFC 3339 where it can be read, else as the page has it."""
    text = _short(text, 60)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return text
    if len(text) <= 10:
        return found.date().isoformat()
    if found.tzinfo is None:
        return text
    return found.isoformat().replace("+00:00", "Z") if found.tzinfo is UTC else found.isoformat()
