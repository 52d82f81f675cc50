"""What does a JSON document need to be read?

Nothing but its own text: it is handed on unchanged, never parsed here, so that no number, depth or
NaN of it can do harm; `jq_program` parses it where a caller asks for that. The one question asked
here is whether it is a JSON Feed. Next: `feed`, if it is one.
"""

import json
from typing import Any, Final

_FEED_MEDIA: Final = "application/feed+json"
_FEED_VERSION: Final = "https://jsonfeed.org/version/"


def json_feed(text: str, media: str) -> dict[str, Any] | None:
    """Return the document if it is a JSON Feed, by its own media type or the version that it names."""
    if media != _FEED_MEDIA and _FEED_VERSION not in text.replace("\\/", "/"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        # Too many digits and too deep a nesting are faults of a feed, not of a text.
        return None
    if not isinstance(found, dict) or not isinstance(found.get("items"), list):
        return None
    version = found.get("version")
    named = isinstance(version, str) and version.startswith(_FEED_VERSION)
    return found if named or media == _FEED_MEDIA else None
