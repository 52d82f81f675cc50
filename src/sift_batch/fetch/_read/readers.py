"""How does each kind of document become one text in the mode that was asked for?

Chooses the reader of a kind, and refuses the modes and options that a kind does not have. Which part of
the text a caller gets is not decided here. Next: `kinds`, then the module of the kind.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..._model.values import Options
from .._document import Document, ReadError
from . import charset, kinds
from .kinds import Kind

if TYPE_CHECKING:
    from .feed import Feed
    from .html import Mode

_HTML_PAGES: Final[dict[str, "Mode"]] = {
    "": "markdown",
    "markdown": "markdown",
    "text": "text",
    "full": "full",
    "links": "links",
    "meta": "facts",
}
_HTML_ALONE: Final = ("full", "html", "links")
# What a document declares that a result's facts hold too; the rest is mode meta's.
_TOLD: Final = ("title", "author", "published", "language", "description", "canonical")
_BYTES_HINT: Final = "mode meta tells what is known of it, mode raw gives its bytes in base64"


@dataclass(slots=True, kw_only=True)
class Page:
    """A document as text, on its way to a reading, with the facts found so far.

    `lines` says that each line is a block of its own, `marks` that page marks are in the text, `markup`
    that its headings and fences are marked, `whole` that it is of no use in part, `by_line` that it is
    cut at line ends. `nothing` is the hint for a text that has nothing in it.
    """

    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    lines: bool = False
    marks: bool = False
    markup: bool = True
    whole: bool = False
    by_line: bool = False
    nothing: str = "there is nothing to read in the document; mode raw gives it as it was served"


def page(document: Document, options: Options) -> Page:
    """Return the document as text. Raises `ReadError`, and whatever a library makes of hostile bytes."""
    body = document.body[0] if len(document.body) == 1 else b"".join(document.body)
    head = kinds.header(document.content_type)
    kind = kinds.kind_of(head.media, body)
    facts: dict[str, Any] = {"content_type": head.media} if head.media else {}
    if kind == "pdf" and options.mode != "raw":
        return _pdf(body, options, facts)
    if kind in ("bytes", "pdf"):
        return _bytes(body, head.media, options, facts)
    decoded = charset.decode(body, head.label)
    if "\0" in decoded.text and kind not in kinds.MAY_HOLD_NUL:
        return _bytes(body, head.media, options, facts)
    facts["charset"] = decoded.charset
    if options.mode == "raw":
        if not decoded.lossless:
            return _base64(body, facts)
        return Page(text=decoded.text, facts=facts, whole=True, nothing="the server sent an empty document")
    size = len(body)
    del body  # the text may take four times as much
    if options.pages:
        raise ReadError(
            "bad_option",
            "the document is no PDF: it has 0 pages to choose from",
            hint="leave the option pages out; grep and question choose from any text",
        )
    if options.jq:
        return _jq(decoded.text, options.jq, facts)
    if kind == "html":
        return _html(decoded.text, document.url, options, facts)
    _refuse_html_modes(options)
    given = _text(kind, decoded.text, document.url, head.media, markup=options.mode != "text")
    given.facts = facts | given.facts
    return _object(given.facts | {"bytes": size}, given.facts) if options.mode == "meta" else given


def _refuse_html_modes(options: Options) -> None:
    if options.mode in _HTML_ALONE:
        raise ReadError(
            "unsupported_type",
            f"mode {options.mode} is for HTML pages, and the document is none",
            hint="leave the mode out for the text of the document",
        )


def _bytes(body: bytes, media: str, options: Options, facts: dict[str, Any]) -> Page:
    """Return a document that has no text to read, in the two modes that it has."""
    if options.mode == "raw":
        return _base64(body, facts)
    if options.mode == "meta":
        return _object(facts | {"bytes": len(body)}, facts)
    if kinds.says_pdf(media) and not kinds.has_pdf_mark(body):
        raise ReadError(
            "refused",
            "the header says PDF and the document is none",
            hint=_BYTES_HINT,
            reason="content_mismatch",
        )
    raise ReadError("unsupported_type", f"the document is {kinds.spoken(media)}", hint=_BYTES_HINT)


def _base64(body: bytes, facts: dict[str, Any]) -> Page:
    facts["encoding"] = "base64"
    text = base64.b64encode(body).decode("ascii")
    return Page(text=text, facts=facts, whole=True, nothing="the server sent an empty document")


def _object(found: Mapping[str, Any], facts: dict[str, Any]) -> Page:
    """Return what is known of a document as one JSON object."""
    return Page(text=json.dumps(found, ensure_ascii=False, allow_nan=False), facts=facts, whole=True)


def _jq(text: str, program: str, facts: dict[str, Any]) -> Page:
    from . import jq_program

    given, found = jq_program.run(program, text)
    nothing = "the jq program gave no output; the program . gives the whole document"
    return Page(text=given, facts=facts | {**found}, lines=True, by_line=True, nothing=nothing)


def _html(source: str, url: str, options: Options, facts: dict[str, Any]) -> Page:
    if options.mode == "html":
        return Page(text=source, facts=facts, by_line=True, nothing="the server sent an empty document")
    from . import html  # heavy, and many documents are no pages

    mode = _HTML_PAGES[options.mode]
    text, found = html.page(source, url, mode)
    facts = facts | _told(found)
    if mode == "facts":
        return _object(found, facts)
    if mode == "links":
        nothing = "the page has no links; mode full gives its text"
        return Page(text=text, facts=facts, lines=True, by_line=True, nothing=nothing)
    nothing = "" if text else html.why_empty(source)
    return Page(text=text, facts=facts, markup=mode != "text", nothing=nothing)


def _told(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in _TOLD if name in found}


def _pdf(body: bytes, options: Options, facts: dict[str, Any]) -> Page:
    from . import pdf

    if options.mode == "meta":
        return _pdf_object(body, facts)
    if options.jq:
        raise ReadError(
            "bad_option",
            "the document is a PDF and no JSON (line 1, column 1)",
            hint="leave the option jq out",
        )
    _refuse_html_modes(options)
    with pdf.opened(body) as document:
        facts = facts | _told(pdf.facts(document))
        pages = pdf.pages(document, lambda total: _choice(options.pages, total))
    facts["pages"] = {"total": pages.total, "given": len(pages.texts)}
    if pages.left:
        hint = f"{pdf.PAGE_LIMIT} pages are read, {pages.left} more were not; the option pages chooses them"
        facts |= {"truncated": True, "code": "truncated", "hint": hint}
    nothing = "the pages hold no text, as scanned ones do; mode raw gives the PDF itself"
    return Page(text=pages.joined(), facts=facts, marks=True, nothing=nothing)


def _choice(pages: str, total: int) -> Sequence[int]:
    """Return the numbers of the pages that the option asks for."""
    from .._options import chosen_pages, parse_pages

    if not pages:
        return range(1, total + 1)
    chosen = chosen_pages(parse_pages(pages), total)
    if not chosen:
        raise ReadError(
            "bad_option",
            f"none of the pages asked for is there: the PDF has {total}",
            hint=f"choose from 1-{total}" if total else "",
        )
    return chosen


def _pdf_object(body: bytes, facts: dict[str, Any]) -> Page:
    """Return what a PDF tells of itself; of one that can't be opened, what is known of any bytes."""
    from . import pdf

    found: dict[str, Any] = {"bytes": len(body)}
    try:
        with pdf.opened(body) as document:
            found |= {"pages": len(document), **pdf.facts(document)}
    except ReadError:
        return _object(facts | found, facts)
    return _object(facts | found, facts | _told(found))


def _text(kind: Kind, text: str, url: str, media: str, *, markup: bool) -> Page:
    """Return a feed or a table where the text is one, else the text as it is."""
    if kind == "json":
        from . import json_text

        if (document := json_text.json_feed(text, media)) is not None:
            from . import feed

            return _feed(feed.from_json(document, url), markup=markup)
        return Page(text=text, whole=True)
    if kind == "xml":
        from . import feed_xml

        if (found := feed_xml.from_xml(text, url)) is not None:
            return _feed(found, markup=markup)
    if kind in ("csv", "tsv"):
        from . import delimited

        try:
            return Page(text=delimited.table(text, tabs=kind == "tsv", markup=markup), markup=markup)
        except delimited.NoTable:
            pass
    return Page(text=kinds.unchanged(text), by_line=kind != "markdown")


def _feed(found: "Feed", *, markup: bool) -> Page:
    from . import feed

    return Page(text=feed.written(found, markup=markup), facts=dict(found.facts), markup=markup)
