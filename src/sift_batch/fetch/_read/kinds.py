"""What kind of document is this?

By agreement of what the header says and what the bytes show: neither is believed alone. The kind
decides who reads the document and which modes it has. Nothing is decoded or parsed here. Next:
`charset` for whatever is text.
"""

import re
from typing import Final, Literal, NamedTuple

from .charset import has_wide_mark

Kind = Literal["html", "pdf", "json", "xml", "csv", "tsv", "markdown", "text", "source", "bytes"]
"""`xml` may turn out to be a feed; `bytes` is all that has no text, or whose header lies."""


class Header(NamedTuple):
    """What a Content-Type header says: the media type and the charset's label, "" where it is silent."""

    media: str
    label: str


# The characters of RFC 9110's tokens, lower case, as long as a registered name may be.
_MEDIA: Final = re.compile(r"\s*([a-z0-9!#$&^_.+-]{1,127}/[a-z0-9!#$&^_.+-]{1,127})\s*(?:[;,]|\Z)")
_LABEL: Final = re.compile(r";\s*charset\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^;]*))")

_PDF: Final = frozenset({"application/pdf", "application/x-pdf"})
_UNSAID: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
_BY_MEDIA: Final[dict[str, Kind]] = {
    "text/html": "html",
    "application/xhtml+xml": "html",
    "application/json": "json",
    "text/json": "json",
    "application/ndjson": "json",
    "application/x-ndjson": "json",
    "application/jsonl": "json",
    "application/x-jsonl": "json",
    "application/jsonlines": "json",
    "application/x-jsonlines": "json",
    "text/x-ndjson": "json",
    "application/xml": "xml",
    "text/xml": "xml",
    "application/rss": "xml",
    "application/atom": "xml",
    "application/xml-dtd": "source",
    "text/csv": "csv",
    "application/csv": "csv",
    "text/x-csv": "csv",
    "text/comma-separated-values": "csv",
    "text/tab-separated-values": "tsv",
    "text/markdown": "markdown",
    "text/x-markdown": "markdown",
    "text/plain": "text",
}
# Programs and settings that are registered, or served by habit, outside text/.
_SOURCE_NAMES: Final = """
    ecmascript graphql javascript json5 node rfc822 sql toml typescript x-c x-csh x-ecmascript x-httpd-php
    x-javascript x-latex x-perl x-php x-python x-ruby x-sh x-shellscript x-sql x-subrip x-tcl x-tex
    x-texinfo x-toml x-typescript x-yaml yaml
"""
_SOURCES: Final = frozenset(f"application/{name}" for name in _SOURCE_NAMES.split())
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f]+")
MAY_HOLD_NUL: Final = frozenset({"text", "markdown", "source"})
"""Kinds of text that a NUL does not spoil: it goes with the other control characters."""
_SPOKEN: Final = {"image": "an image", "audio": "sound", "video": "a video", "font": "a font"}
_MAGIC: Final = b"%PDF-"
_MAGIC_WITHIN: Final = 1_024
# Control characters that no text has: what a server without a header sent is no text then.
_NO_TEXT: Final = re.compile(rb"[\x01-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")


def header(content_type: str) -> Header:
    """Return what a Content-Type header says. What is no media type counts as no header."""
    given = content_type.lower()
    media = _MEDIA.match(given)
    if media is None:
        return Header("", "")
    label = _LABEL.search(given, media.end() - 1)
    found = next((part for part in label.groups() if part is not None), "") if label else ""
    return Header(media[1], found.strip().strip("\"'"))


def kind_of(media: str, body: bytes) -> Kind:
    """Return the kind on which the header and the bytes agree."""
    if media in _PDF or media in _UNSAID:
        if has_pdf_mark(body):
            return "pdf"
        if media in _PDF:
            return "bytes"
        # Servers that don't know a file's suffix call it octet-stream: what can only be text is read as such.
        return "text" if (_is_certain_text(body) if media else _is_plain(body)) else "bytes"
    if _is_pdf_inside(body):
        return "bytes"
    kind = _by_media(media)
    if b"\0" in body and not has_wide_mark(body) and not (kind in MAY_HOLD_NUL and _is_text_but_nul(body)):
        return "bytes"
    return kind


def says_pdf(media: str) -> bool:
    """Return whether the header promises a PDF."""
    return media in _PDF


def has_pdf_mark(body: bytes) -> bool:
    """Return whether the first bytes are those of a PDF."""
    return _MAGIC in body[:_MAGIC_WITHIN]


def spoken(media: str) -> str:
    """Return in words what a document without text is. No word of the header is repeated."""
    return _SPOKEN.get(media.partition("/")[0], "of a kind") + " without text to read"


def unchanged(text: str) -> str:
    """Return a text that is given as it is: only line ends are made alike, and controls go."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text)


def _by_media(media: str) -> Kind:
    if kind := _BY_MEDIA.get(media):
        return kind
    if media.endswith("+json"):
        return "json"
    if media.endswith("+xml"):
        return "xml"
    return "source" if media.startswith("text/") or media in _SOURCES else "bytes"


def _is_plain(body: bytes) -> bool:
    if has_wide_mark(body):
        return True
    return b"\0" not in body and not _NO_TEXT.search(body)


def _is_certain_text(body: bytes) -> bool:
    # A PDF whose mark comes too late may be all ASCII.
    return b"\0" not in body and _is_text_but_nul(body) and _MAGIC not in body


def _is_text_but_nul(body: bytes) -> bool:
    # A program or an image under the wrong name has bytes that no text has beside its NULs.
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return not _NO_TEXT.search(body)


def _is_pdf_inside(body: bytes) -> bool:
    # A PDF that is served as a page or as text would be read as a soup of its operators.
    return body[:_MAGIC_WITHIN].lstrip(b"\xef\xbb\xbf \t\r\n\f").startswith(_MAGIC)
