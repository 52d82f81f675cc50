"""What does a feed tell, entry by entry?

A feed of any format as one page: its title, then for each entry its title, link, date and summary, in
the order given. The dates are the feed's own words. Next: `feed_xml` (RSS, RDF, Atom) and `json_text`
(JSON Feed), which find the entries, and `html`, which writes the summaries.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from . import clean
from .html_links import Links


@dataclass(frozen=True, slots=True)
class Summary:
    """What an entry says; `source` tells that it is HTML, whose links are resolved against `base`."""

    text: str = ""
    source: bool = False
    base: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry; "" for what it does not tell. Texts are one line each, links absolute."""

    title: str
    link: str
    date: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed: its entries in the order given, and what it tells of itself (title, description, …)."""

    entries: list[Entry]
    facts: dict[str, str] = field(default_factory=dict)


def from_json(document: Mapping[str, Any], url: str) -> Feed:
    """Return the feed that a JSON Feed holds."""
    links = Links(url)
    entries: list[Entry] = []
    for item in document["items"]:
        given = _texts(item)
        summary = Summary(given.get("summary") or given.get("content_text", ""))
        if not summary.text:
            summary = Summary(given.get("content_html", ""), source=True, base=url)
        link = links.absolute(given.get("url") or given.get("external_url"))
        date = given.get("date_published") or given.get("date_modified") or ""
        entries.append(Entry(one_line(given.get("title", "")), link, one_line(date), summary))
    named = _texts(document)
    facts = {name: one_line(named.get(name, "")) for name in ("title", "description", "language")}
    return Feed(entries, {name: value for name, value in facts.items() if value})


def _texts(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {name: text for name, text in value.items() if isinstance(text, str)}


def one_line(text: str) -> str:
    """Return a title or a date, which may be any text, as one clean line."""
    if not (text.isascii() and text.isprintable()):
        text = clean.clean_text(text)
    return " ".join(text.split())


def written(feed: Feed, *, markup: bool) -> str:
    """Return the feed as one page of Markdown; without `markup` the same blocks as plain text."""
    blocks: list[str] = []
    if title := feed.facts.get("title"):
        blocks.append(f"# {title}" if markup else title)
    for entry in feed.entries:
        summary = _written_summary(entry.summary, markup=markup)
        if not (entry.title or entry.link or entry.date or summary):
            continue
        title = entry.title or entry.link or "(without a title)"
        blocks.append(_heading(title, entry.link) if markup else title)
        blocks += (entry.date, summary)
    return clean.clean_text("\n\n".join(block for block in blocks if block))


def _heading(title: str, link: str) -> str:
    if not link:
        return f"## {title}"
    label = title.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return f"## [{label}]({link.replace('(', '%28').replace(')', '%29')})"


def _written_summary(summary: Summary, *, markup: bool) -> str:
    if not summary.text.strip():
        return ""
    if not summary.source:
        lines = (line.strip() for line in summary.text.strip().splitlines())
        return "\n".join(f"\\{line}" if markup and line.startswith("#") else line for line in lines)
    from . import html  # heavy, and many feeds hold no HTML

    # Mode text would look for a main content, and a summary is all of it.
    text = html.page(summary.text, summary.base, "full" if markup else "text")[0]
    return _below(text) if markup else text


_HEADING: Final = re.compile(r"(#{1,6}) ")


def _below(text: str) -> str:
    """Return a summary whose headings stand below that of their entry."""
    if "# " not in text:
        return text
    lines: list[str] = []
    fenced = False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        heading = None if fenced else _HEADING.match(line)
        lines.append("#" * min(2, 6 - len(heading[1])) + line if heading else line)
    return "\n".join(lines)
