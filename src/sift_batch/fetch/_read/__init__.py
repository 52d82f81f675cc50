"""What does this document say, as the options ask for it?

The one way in of the reading half: bytes and a header in, text and facts out. A text is made of the
document, the options choose from it, and the cut keeps it within a result. Plain synchronous code that
may be killed at any moment; it opens no file and no connection. Next: `readers`.
"""

from typing import Any, Final, Literal

from ..._model.values import Options
from .._document import Document, ReadError, Reading
from .._errors import FetchError
from . import clean, cut, kinds, readers, selecting
from .readers import Page

# A fact is one line that a person reads; what is longer is no title.
_FACT_LIMIT: Final = 1_000
_LINES: Final = ("title", "author", "description", "language", "published", "modified", "canonical")


def read(document: Document, options: Options, *, result_max_bytes: int) -> Reading:
    """Return what `document` says as `options` ask for it, in at most `result_max_bytes` of UTF-8.

    Raises `ReadError`, and `MemoryError` where the process has too little memory for the document.
    """
    try:
        page = readers.page(document, options)
        return _chosen(page, options, result_max_bytes)
    except (ReadError, MemoryError):
        raise
    except FetchError as exc:
        # Our own error of an option that a caller could have been refused at once: its texts are ours.
        raise ReadError(exc.code, exc.message, hint=exc.hint, reason=exc.reason) from None
    except Exception:
        raise ReadError(
            "extract_failed",
            "the document can't be read",
            hint="mode raw gives it as it was served",
        ) from None


def _chosen(page: Page, options: Options, limit: int) -> Reading:
    """Return of the page what the options choose, within the limit."""
    facts = {name: value for name, value in page.facts.items() if value not in (None, "")}
    content = page.text
    chooses = bool(options.grep or options.question)
    if not content.strip():
        # A program that gives nothing has said so already.
        facts = {"code": "empty", "hint": page.nothing} | selecting.nothing(options) | facts
        content = content if page.whole else ""  # raw is what was sent, blanks too
    elif chooses:
        # What is chosen from has lines as every text has, also if the text itself is given as it came.
        content = kinds.unchanged(content)
        content, found = selecting.select(
            content, options, lines=page.lines, marks=page.marks, markup=page.markup, limit=limit
        )
        facts |= found
    if page.whole and not chooses:
        _check_size(content, options, limit)
    else:
        at: Literal["block", "line"] = "line" if page.by_line and not chooses else "block"
        content, found = cut.cut(content, limit, at=at, marks=page.marks, markup=page.markup)
        # A choice that left parts of lines out has said so, with the size of all that it found.
        facts = found | facts if "chars_total" in facts else facts | found
    facts["chars"] = len(content)
    return Reading(content, {name: _bounded(name, value) for name, value in facts.items()})


def _check_size(content: str, options: Options, limit: int) -> None:
    """Raise `ReadError` if a text that is of no use in part is over the limit."""
    if len(content) * 4 <= limit or (size := len(content.encode())) <= limit:
        return
    instead = "" if options.mode == "" else "leave the mode out and "
    raise ReadError(
        "too_large",
        f"the document has {size} bytes, and a result may have {limit}",
        hint=f"{instead}use jq or grep to choose what is needed of it",
    )


def _bounded(name: str, value: Any) -> Any:
    if name not in _LINES or not isinstance(value, str):
        return value
    line = " ".join(clean.clean_text(value[: 4 * _FACT_LIMIT]).split())
    return line if len(line) <= _FACT_LIMIT else line[: _FACT_LIMIT - 1].rstrip() + "…"
