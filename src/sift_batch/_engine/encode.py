"""Can this result be stored, and how does it look in the store?

A result comes from code that is not ours: it may be no `Result`, hold what JSON can't hold, be far too
long, or nest without end. Whatever is wrong with it becomes a `BadResult` that says so; what passes is
UTF-8 JSON. Lone surrogates become U+FFFD, since no reader could encode them. Next room: `attempt.py`.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from .._model.idem import scrub
from .._model.lifecycle import TargetState
from .._model.store import Outcome
from .._model.values import Result

_DEPTH_LIMIT: Final = 64


class BadResult(Exception):
    """What a fetch returned can't be stored; the text says why, and never shows a value."""


def encode_result(result: object, limit: int) -> Outcome:
    """Return what is stored of a fetch's result; `limit` bounds content and meta, in UTF-8 bytes."""
    if not isinstance(result, Result):
        raise BadResult(f"the fetch returned {type(result).__name__} in place of a Result")
    content, meta = result.content, result.meta
    if not isinstance(content, str):
        raise BadResult(f"the result's content is {type(content).__name__} in place of str")
    if type(meta) is not dict and not isinstance(meta, Mapping):
        raise BadResult(f"the result's meta is {type(meta).__name__} in place of a mapping")
    if type(content) is not str:
        content = str.__str__(content)  # a subclass may answer whatever it likes
    plain = _plain_meta(meta)
    meta_json = _encode_meta(plain)
    # A str holds at most 4 bytes of UTF-8 for each character, so most need no second look.
    if plain and len(meta_json) * 4 > limit and len(scrub(meta_json).encode()) > limit:
        raise BadResult(f"the result's meta has more than {limit:,} bytes")
    if len(content) * 4 > limit:
        kept = cut(content, limit)
        if len(kept) < len(content):
            # The mark is ours and does not count.
            content, meta_json = kept, _encode_meta({**plain, "truncated": True})
    text = f'{{"content":{_encode_str(content)},"meta":{meta_json}}}'
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        encoded = scrub(text).encode()
    return Outcome(
        status=TargetState.DONE,
        result=encoded,
        chars=len(content),
        http_status=http_status(plain.get("http_status")),
    )


_encode_str = json.encoder.encode_basestring
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


_UNFIT: Final = "the result's meta holds what JSON can't hold"


def _plain_meta(meta: Mapping[str, Any]) -> dict[str, Any]:
    if type(meta) is dict and not meta:
        return meta
    try:
        plain: dict[str, Any] = _plain(meta, _DEPTH_LIMIT)
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise BadResult(_UNFIT) from exc
    return plain


def _encode_meta(plain: dict[str, Any]) -> str:
    try:
        return _encode(plain) if plain else "{}"
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise BadResult(_UNFIT) from exc


_SCALARS: Final = frozenset({str, int, float, bool, type(None)})


def _plain(value: Any, depth: int) -> Any:
    """Return `value` with mappings as dicts, or raise for keys that JSON would turn into others."""
    if type(value) in _SCALARS:
        return value
    if depth == 0:
        raise BadResult(f"the result's meta is nested deeper than {_DEPTH_LIMIT} levels of JSON")
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError
        return {key: _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    return value


def cut(text: str, limit: int) -> str:
    """Return the longest beginning of `text` that has at most `limit` bytes in UTF-8."""
    encoded = scrub(text).encode()
    return text if len(encoded) <= limit else encoded[:limit].decode(errors="ignore")


def http_status(value: object) -> int | None:
    """Return `value` if it can be an HTTP status, else None."""
    return value if type(value) is int and 100 <= value <= 999 else None
