"""What does a person read on an HTML page?

The doors of the reader of pages: main content and whole body as Markdown, the same blocks without
markup, the links, the facts. `page` gives a text and the facts in one go and parses the page once: it
is the one to call where both are wanted. Every text obeys the rules of `clean`. Nothing is fetched, and
no address is trusted. A page that can't be read is a `ReadError`; a page without text is "". Next:
`html_tree`, `html_main`, `html_blocks`.
"""

import re
from typing import Any, Final, Literal

from .._document import ReadError
from .clean import clean_text
from .html_blocks import Blocks
from .html_facts import page_facts
from .html_links import link_lines
from .html_main import main_content, whole_body
from .html_stream import stream_links, stream_text
from .html_tree import Page, parse, plain_source

Mode = Literal["markdown", "full", "text", "links", "facts"]
_MARKS: Final = ("markdown", "full")
_START: Final = 65_536
_REFRESH: Final = re.compile(r"<meta\b[^>]{0,200}\bhttp-equiv\s*=\s*[\"']?\s*refresh\b", re.IGNORECASE)
_SCRIPT: Final = re.compile(r"<script\b", re.IGNORECASE)


def page(source: str, url: str, mode: Mode) -> tuple[str, dict[str, Any]]:
    """Return the text of a page in `mode` ("" for "facts") and its facts, parsing it once.

    `source` is the decoded page, `url` the address it came from. The facts are `title`, `description`,
    `author`, `published`, `modified`, `language`, `canonical` (texts), `feeds` (a list of title, href,
    type), `opengraph` (an object) and `jsonld` (a list); absent ones are left out. Raises `ReadError`.
    """
    try:
        source = plain_source(source)
        parsed = parse(source, url)
        if parsed is None:
            return _streamed(source, url, mode)
        facts = page_facts(parsed)
        try:
            return _text(parsed, mode), facts
        except RecursionError:
            return _streamed(source, url, mode)
    except (MemoryError, RecursionError, ValueError, LookupError, TypeError, AttributeError):
        raise ReadError("extract_failed", "the page can't be read") from None


def why_empty(source: str) -> str:
    """Return why a page without text has none, as far as its source tells, and what gives the source."""
    if not source.strip():
        return "the server sent an empty document"
    reason = "the page has no text"
    if _REFRESH.search(source):
        reason += " and sends its readers to another address"
    elif _SCRIPT.search(source):
        reason += " without its scripts"
    return f"{reason}; mode html gives its source"


def _text(parsed: Page, mode: Mode) -> str:
    if mode == "facts":
        return ""
    if mode == "links":
        return link_lines(parsed.root, parsed.links)
    for choose in (whole_body,) if mode == "full" else (main_content, whole_body):
        roots, dropped = choose(parsed)
        found = clean_text(Blocks(parsed.links, dropped, marks=mode in _MARKS).render(roots))
        if found:
            return found
    # A page whose every part looks like furniture has been read as a whole, and there is no text in it.
    return ""


def _streamed(source: str, url: str, mode: Mode) -> tuple[str, dict[str, Any]]:
    facts = _facts_of_start(source, url)
    if mode == "facts":
        return "", facts
    if mode == "links":
        return stream_links(source, url), facts
    return clean_text(stream_text(source, marks=mode in _MARKS)), facts


def _facts_of_start(source: str, url: str) -> dict[str, Any]:
    # A page declares itself at its start, and the start of a monstrous page is no larger than others.
    try:
        parsed = parse(source[:_START], url)
        return page_facts(parsed) if parsed is not None else {}
    except RecursionError:
        return {}


def markdown(source: str, url: str) -> str:
    """Return the main content of a page as Markdown; "" if the page has no text."""
    return page(source, url, "markdown")[0]


def full(source: str, url: str) -> str:
    """Return the whole body of a page as Markdown."""
    return page(source, url, "full")[0]


def text(source: str, url: str) -> str:
    """Return the blocks of `markdown` without markup, cells joined by a bar."""
    return page(source, url, "text")[0]


def links(source: str, url: str) -> str:
    """Return the links of a page, one JSON object a line: text, href, rel; the first of equal hrefs."""
    return page(source, url, "links")[0]


def facts(source: str, url: str) -> dict[str, Any]:
    """Return what a page declares about itself; see `page`."""
    return page(source, url, "facts")[1]
