"""Where would a copy of a dead page be, and from when is it?

Only texts are made and read here: the address of a look-up, and what the archive's answer says of the
copy. Whether to look, and the look-up itself, are for `_pipeline` to decide and to do.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from ._errors import FetchError

if TYPE_CHECKING:
    from ._guard import Guard

_PLACE: Final = "{url}"
_STAMP: Final = re.compile(r"/([0-9]{14})(?:[a-z]{2}_)?(?:/(https?://.*))?(?:[/?#]|\Z)")
_LONGEST_DATE: Final = 100
_AUTHORITY: Final = re.compile(r"https?://[^/?#\\]+[/?#]", re.IGNORECASE)
_ANY_PAGE: Final = "http://example.com/"

RECOVERABLE: Final = frozenset({"page_not_found", "page_gone", "dns", "connect", "tls", "server_error"})
"""The failures after which a copy is looked for. Never `busy`: the page is there."""


def is_dead(failure: FetchError) -> bool:
    """Return whether a failure says that the page is not to be had from its own site."""
    return failure.code in RECOVERABLE


def check_template(template: str | None) -> None:
    """Raise `ValueError` for a template that names no host, or leaves its host to the page's URL."""
    if template is not None and not _AUTHORITY.match(template.partition(_PLACE)[0]):
        raise ValueError("archive must name its host and a path before {url}, as https://host/{url} does")


def may_be_called(template: str | None, guard: "Guard") -> bool:
    """Return whether look-ups may be sent there, by the rules that hold for every address."""
    try:
        guard.parse(lookup_url(template or "", _ANY_PAGE))
    except FetchError:
        return False
    return True


def lookup_url(template: str, url: str) -> str:
    """Return the address of the newest copy of `url`.

    In a query or a fragment of the template the URL is percent-encoded, in the path it stands as it is;
    without a `{url}` it comes last.
    """
    before, place, after = template.partition(_PLACE)
    if not place:
        before, after = template, ""
    in_query = "?" in before or "#" in before
    return before + (quote(url, safe="") if in_query else url) + after.replace(_PLACE, "")


def archived_at(headers: Mapping[str, bytes], url: str) -> str | None:
    """Return when a copy was made, in RFC 3339; None if the archive does not say.

    `url` is the copy's own address: archives put 14 digits into it.
    """
    moment = _memento(headers.get("memento-datetime", b"")) or _stamp(url)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def page_url(url: str, asked: str) -> str:
    """Return the address that the links of a copy are to be resolved against: the page's, not the copy's."""
    found = _STAMP.search(url)
    return (found[2] if found else None) or asked


def _memento(value: bytes) -> datetime | None:
    if not value.isascii() or not 0 < len(value) <= _LONGEST_DATE:
        return None
    try:
        moment = parsedate_to_datetime(value.decode("ascii"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _stamp(url: str) -> datetime | None:
    found = _STAMP.search(url)
    if found is None:
        return None
    try:
        return datetime.strptime(found[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
