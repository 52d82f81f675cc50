"""When are two submits the same? The idempotency key, and the canonical JSON behind it.

The canonical form is byte for byte what Go's `encoding/json` (1.22 or later) writes for a struct
with the fields url, options{mode, question, pages, grep, jq, context, recover} and `omitempty`, so
that the rows of an older implementation keep their keys. Where Go differs from Python's `json`:
`<`, `>`, `&`, U+2028 and U+2029 are escaped, other non-ASCII text is not.
"""

import hashlib
import json
import re
from collections.abc import Iterable
from typing import Any, Final

from .values import NO_OPTIONS, Options, Target

_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# These characters only ever stand inside JSON strings here, so the finished text can be translated.
_GO_ESCAPES: Final = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\u2028", "\u2029")}
)
_encode_str = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def scrub(text: str) -> str:
    """Return `text` with each lone surrogate replaced by U+FFFD, so that UTF-8 can hold it."""
    if text.isascii():
        return text
    # Encoding is tried first since nearly all text passes, and C is faster than a search.
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def options_dict(options: Options) -> dict[str, Any]:
    """Return the options that are not empty, in canonical order (`context=False` is not empty)."""
    named: dict[str, Any] = {
        "mode": options.mode,
        "question": options.question,
        "pages": options.pages,
        "grep": options.grep,
        "jq": options.jq,
    }
    kept: dict[str, Any] = {name: value for name, value in named.items() if value}
    if options.context is not None:
        kept["context"] = options.context
    if options.recover:
        kept["recover"] = True
    return kept


def canonical_options(options: Options) -> str:
    """Return the options as canonical JSON, as it is stored."""
    if options is NO_OPTIONS:
        return "{}"
    kept = options_dict(options)
    return scrub(_encode(kept)).translate(_GO_ESCAPES) if kept else "{}"


def canonical_json(targets: Iterable[Target]) -> str:
    """Return the canonical JSON of a series of targets."""
    # Put together by hand from two encoded strings a target: a third of the time of one big dump.
    items = [
        f'{{"url":{_encode_str(target.url)},"options":{canonical_options(target.options)}}}'
        for target in targets
    ]
    # Escaping twice changes nothing: what was escaped holds none of the characters any more.
    return scrub(f"[{','.join(items)}]").translate(_GO_ESCAPES)


def idem_key(caller_name: str, targets: Iterable[Target]) -> str:
    """Return the hex SHA-256 of caller name, NUL and canonical JSON of the targets."""
    return hashlib.sha256(f"{caller_name}\0{canonical_json(targets)}".encode()).hexdigest()
