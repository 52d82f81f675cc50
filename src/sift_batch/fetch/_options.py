"""Are a target's options sound, each for itself and together? What can be said before anything is fetched.

Plain code, no look at the page: whether a page has the kind that a mode needs is for `_read` to say, and a
jq program is compiled in a worker. Next: `_fetcher`, which asks here before it fetches.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from .._model.values import Options
from ._document import ReadError
from ._errors import FetchError

MODES: Final = ("", "markdown", "text", "full", "html", "raw", "links", "meta")
"""What `mode` may be; "" is markdown."""

_PAGES_HINT: Final = "pages takes 3, -1 (from the end), 2-5 or 7-, joined by commas, numbered from 1"
_ITEM: Final = re.compile(r"(?P<back>-)?(?P<first>[0-9]+)(?P<to>-(?P<last>[0-9]+)?)?")
SIZES: Final = (
    # option, most, unit
    ("grep", 1_024, "bytes"),
    ("jq", 4_096, "bytes"),
    ("question", 1_000, "characters"),
    ("pages", 200, "characters"),
)
"""The longest text of each option."""

WITHOUT: Final = (
    # option, the modes that it can't be used with
    ("pages", ("html", "links", "meta", "raw")),
    ("grep", ("raw", "meta")),
    ("question", ("html", "raw", "meta")),
)
"""What goes with which mode."""


class PageRange(NamedTuple):
    """Pages from `first` to `last`, both included; None: to the end. Below 0 counts from the end."""

    first: int
    last: int | None


def check_options(options: Options) -> None:
    """Raise `FetchError` `bad_option`, saying what is allowed, unless the options make sense.

    Everything that needs no page is checked here, but the jq program: that is compiled in a worker.
    """
    if options.mode not in MODES:
        raise _bad("there is no such mode", f"mode takes {', '.join(MODES[1:])}")
    for name, most, unit in SIZES:
        _check_text(name, getattr(options, name), most, unit)
    _check_together(options)
    if options.pages:
        parse_pages(options.pages)
    if options.question:
        from ._read.words import words

        if not words(options.question):
            raise _bad("the question has no word in it", "ask with letters or digits")
    if options.grep:
        from ._read.pattern import check_pattern

        try:
            check_pattern(options.grep)
        except ReadError as error:
            raise FetchError(error.code, error.message, hint=error.hint) from None


def parse_pages(text: str) -> tuple[PageRange, ...]:
    """Return the ranges that `pages` names. Raises `FetchError` `bad_option`."""
    _check_text("pages", text, 200, "characters")
    return tuple(_page_range(item) for item in text.split(","))


def chosen_pages(ranges: Iterable[PageRange], total: int) -> list[int]:
    """Return the numbers of the chosen pages of `total`: from 1, in the document's order, each once.

    What lies past either end is left out. A range costs no more than the pages that there are.
    """
    chosen: set[int] = set()
    for first, last in ranges:
        start = first if first > 0 else total + 1 + first
        if start < 1:
            continue
        end = total if last is None else min(last if last > 0 else total + 1 + last, total)
        chosen.update(range(start, end + 1))
    return sorted(chosen)


def _page_range(item: str) -> PageRange:
    parts = _ITEM.fullmatch(item)
    if parts is None or (parts["back"] and parts["to"]):
        raise _bad(_page_fault(item), _PAGES_HINT)
    first = int(parts["first"])
    if first == 0 or (parts["last"] is not None and int(parts["last"]) == 0):
        raise _bad("there is no page 0", _PAGES_HINT)
    if parts["back"]:
        return PageRange(-first, -first)
    if parts["to"] is None:
        return PageRange(first, first)
    if parts["last"] is None:
        return PageRange(first, None)
    last = int(parts["last"])
    if last < first:
        raise _bad("a range of pages ends before it begins", _PAGES_HINT)
    return PageRange(first, last)


def _page_fault(item: str) -> str:
    if not item:
        return "pages has an empty item"
    if any(char.isspace() for char in item):
        return "pages takes no blanks"
    if item.startswith("-") and "-" in item[1:]:
        return "a range of pages can't count from the end"
    return "pages has an item that is no page and no range"


def _check_text(name: str, value: str, most: int, unit: str) -> None:
    # Length first: what follows is never done on a text of unknown size.
    size = len(value)
    if unit == "bytes" and size <= most:
        size = len(value.encode("utf-8", "surrogatepass"))
    if size > most:
        raise _bad(f"{name} is too long", f"{name} takes at most {most:,} {unit}, this one has {size:,}")
    if any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value):
        raise _bad(f"{name} holds NUL or a surrogate", f"{name} takes plain text")


def _check_together(options: Options) -> None:
    mode = "" if options.mode == "markdown" else options.mode
    if options.jq and options.pages:
        raise _bad("jq and pages exclude each other", "jq is for JSON, pages for PDF: leave one out")
    if options.jq and mode:
        raise _bad("jq and mode exclude each other", "leave mode out: jq makes the text by itself")
    for name, modes in WITHOUT:
        if getattr(options, name) and mode in modes:
            raise _bad(f"{name} and mode {mode} exclude each other", f"use {name} with another mode")
    if options.context and not (options.grep or options.question):
        raise _bad("context needs grep or question", "context true gives what stands round a match")


def _bad(message: str, hint: str) -> FetchError:
    return FetchError("bad_option", message, hint=hint)
