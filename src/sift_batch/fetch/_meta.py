"""What is to be known about a result? Its facts, in one order, the absent ones left out.

Every text from outside is made harmless here: no control characters, no surrogates, no header of any
length. `_pipeline` gathers the facts.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

ORDER: Final = (
    "url",
    "http_status",
    "content_type",
    "charset",
    "bytes_wire",
    "bytes_decoded",
    "chars",
    "title",
    "redirects",
    "fetched_at",
    "elapsed_seconds",
    "tries",
    "pages",
    "matches",
    "passages",
    "truncated",
    "chars_total",
    "encoding",
    "recovered",
    "archived_at",
    "original",
    "etag",
    "last_modified",
    "author",
    "published",
    "language",
    "description",
    "canonical",
    "lossy_numbers",
    "code",
    "hint",
)
"""The names of all facts, in the order in which a result has them."""

_LONGEST_HEADER: Final = 1_000
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def make_meta(*sources: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of all sources in order; of two with one name the later counts, None is none."""
    found = {name: value for source in sources for name, value in source.items() if value is not None}
    return {name: _harmless(found[name]) for name in ORDER if name in found}


def header_text(headers: Mapping[str, bytes], name: str) -> str | None:
    """Return a header as text if it is short and printable ASCII, else None."""
    value = headers.get(name, b"").strip()
    if not 0 < len(value) <= _LONGEST_HEADER or not value.isascii():
        return None
    text = value.decode("ascii")
    return text if text.isprintable() else None


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        if value.isprintable():  # as nearly all are: no control and no surrogate is
            return value
        return _SURROGATES.sub("\ufffd", _CONTROLS.sub(" ", value))
    if isinstance(value, Mapping):
        return {_harmless(name): _harmless(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless(inner) for inner in value]
    return value
