"""What does a PDF say, page by page?

The text of the pages asked for in the order in which the file sets it, column by column where the file
was written so, and what the document tells of itself. It draws nothing, runs no script, follows no link
and decodes no image. A hostile file ends in an error here or in the end of the worker. Next:
`pdf_layout`, which makes lines and paragraphs of a page's characters.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from .._document import ReadError
from . import clean, pdf_layout

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument

PAGE_LIMIT: Final = 500
"""At most so many pages are read of one document."""

# The library's numbers for a document that can't be opened.
_LOCKED: Final = frozenset({4, 5})
_MARK: Final = re.compile(r"^\[page [0-9]{1,9} of [0-9]{1,9}\]$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages that were read: the text of each by its number, and how many the document has.

    `left` counts the pages that were asked for and are over the limit.
    """

    texts: Sequence[tuple[int, str]]
    total: int
    left: int

    def joined(self) -> str:
        """Return one text with a mark before each page; "" if no page has any text."""
        if not any(text for _, text in self.texts):
            return ""
        parts: list[str] = []
        for number, text in self.texts:
            parts.append(f"[page {number} of {self.total}]")
            if text:
                # A line of the page that looks like a mark must not count as one.
                parts.append(_MARK.sub(r"\\\g<0>", text))
        return "\n\n".join(parts)


def opened(body: bytes) -> "PdfDocument":
    """Return the document. Raises `ReadError` for one that is locked or broken."""
    from pypdfium2 import PdfDocument, PdfiumError

    try:
        return PdfDocument(body)
    except PdfiumError as exc:
        if exc.err_code in _LOCKED:
            raise ReadError(
                "extract_failed",
                "the PDF is locked with a password",
                hint="look for a copy that opens without one; mode raw gives the file itself",
            ) from None
        raise ReadError(
            "extract_failed", "the PDF is broken", hint="mode raw gives the file itself, as it was served"
        ) from None


def pages(document: "PdfDocument", choose: Callable[[int], Sequence[int]]) -> Pages:
    """Return the text of the pages that `choose` names, given how many there are; from 1.

    Raises `ReadError` for a page that can't be read: a text without it would be a wrong one.
    """
    total = len(document)
    chosen = choose(total)
    texts = [(number, _lines(document, number)) for number in chosen[:PAGE_LIMIT]]
    return Pages(pdf_layout.finished(texts), total, max(0, len(chosen) - PAGE_LIMIT))


def _lines(document: "PdfDocument", number: int) -> str:
    from pypdfium2 import PdfiumError

    try:
        page = document[number - 1]
        try:
            return pdf_layout.lines(page.get_textpage())
        finally:
            page.close()  # a page's objects are kept until then
    except PdfiumError:
        raise ReadError(
            "extract_failed",
            f"page {number} of the PDF can't be read",
            hint="ask for other pages with the option pages; mode raw gives the file itself",
        ) from None


_VALUE_LIMIT: Final = 4_000
_KEYS: Final = {"title": "Title", "author": "Author", "description": "Subject"}
_DATES: Final = {"published": "CreationDate", "modified": "ModDate"}


def facts(document: "PdfDocument") -> dict[str, Any]:
    """Return title, author, dates and language, as far as the document tells them."""
    found = {name: _value(document, key) for name, key in _KEYS.items()}
    found |= {name: _date(_value(document, key)) for name, key in _DATES.items()}
    return {name: value for name, value in found.items() if value}


def _value(document: "PdfDocument", key: str) -> str:
    try:
        value = document.get_metadata_value(key)
    except (
        UnicodeDecodeError
    ):  # half of a surrogate pair: what a document says of itself is never worth failing for
        return ""
    return " ".join(clean.clean_text(value[:_VALUE_LIMIT]).split())


_DATE: Final = re.compile(
    r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?'?)?", re.ASCII
)


def _date(given: str) -> str:
    """Return a PDF's date in ISO 8601, as exact as it was given; "" for what is none."""
    found = _DATE.match(given.strip())
    if found is None:
        return ""
    year, month, day, hour, minute, second, zulu, sign, ahead, minutes = found.groups()
    parts = [
        int(part) for part in (year, month or "1", day or "1", hour or "0", minute or "0", second or "0")
    ]
    try:
        datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type,misc]
    except ValueError:
        return ""
    date = "-".join(part for part in (year, month, day) if part)
    if not minute:
        return date
    zone = f"{sign}{ahead}:{minutes or '00'}" if sign else ""
    if zulu or zone[1:] == "00:00":
        zone = "Z"
    return f"{date}T{hour}:{minute}:{second or '00'}{zone}"
