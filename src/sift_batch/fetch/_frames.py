"""How do a document and a reading travel through a pipe, and which answers are not believed?

A frame is eight bytes (two lengths, big-endian), a small JSON header, and raw bytes: the body on the way
in, the content on the way out. The bytes are never part of the JSON, so that ten MiB of a page are
neither escaped nor copied together. Both sides use this module; it does no input or output itself.

The worker has read hostile bytes with native code, so its answer counts as hostile too: lengths, JSON,
names, types, codes, surrogates and numbers are checked before anything of it becomes a value.
Next: `_pool` (the application's side), `_worker` (the other one).
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from .._model.values import Options
from ._document import Document, ReadError, Reading
from ._errors import FetchError

PREFIX: Final = struct.Struct("!II")
REQUEST_LIMIT: Final = 2**20
"""Bytes of a request's header: the address, the content type and the options, escaped."""

ANSWER_LIMIT: Final = 64 * 2**10
"""Bytes of an answer's header: the facts, or the texts of an error. The costliest takes 4 ms to check."""

READY: Final = b"sift-batch reader 1\n"
"""What a worker says once its limits hold; that on files follows, before it reads a request."""

_COMPACT: Final = json.JSONEncoder(separators=(",", ":")).encode
_STRICT: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_TEXT_LIMIT: Final = 2_000
_SHORT: Final = 500
_COUNT_LIMIT: Final = 2**53
_OPTIONS: Final = tuple(item.name for item in fields(Options))

_TEXTS: Final = frozenset(
    {
        "author",
        "canonical",
        "charset",
        "content_type",
        "description",
        "hint",
        "language",
        "published",
        "title",
    }
)
_COUNTS: Final = frozenset({"chars", "chars_total", "matches"})
_FLAGS: Final = frozenset({"lossy_numbers", "truncated"})
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "code": frozenset({"empty", "no_match", "truncated"}),
    "encoding": frozenset({"base64"}),
}
# How a reader can fail. What a site or the network did is not for a worker to say.
_FAILURES: Final = frozenset({"bad_option", "extract_failed", "refused", "too_large", "unsupported_type"})
_REFUSALS: Final = frozenset({"content_mismatch"})
_PASSAGE: Final = frozenset({"lines", "page", "score", "headings"})


class BadFrame(Exception):
    """What came is no frame that the other side may send."""


def read_request(document: Document, options: Options) -> Iterator[bytes]:
    """Give the pieces of a request to read `document`, one by one, never joined."""
    header = {
        "op": "read",
        "content_type": document.content_type,
        "url": document.url,
        "options": {name: getattr(options, name) for name in _OPTIONS},
    }
    yield _head(header, sum(map(len, document.body)))
    yield from document.body


def check_request(program: str) -> Iterator[bytes]:
    """Give the pieces of a request to check a jq program."""
    yield _head({"op": "check_jq", "program": program}, 0)


def reading_answer(reading: Reading, result_max_bytes: int) -> tuple[bytes, bytes]:
    """Return head and content of the answer that carries `reading`; facts of any size are made to fit.

    Raises `ReadError` when the content is larger than a result may be.
    """
    content = reading.content.encode("utf-8", "replace")
    if len(content) > result_max_bytes:
        raise ReadError("too_large", f"the result has {len(content):,} bytes, more than a result may have")
    facts: Any = dict(reading.facts)
    if _too_many(facts) and _too_many(facts := _shortened(facts)):
        facts = {name: value for name, value in facts.items() if not isinstance(value, dict | list)}
    return _head({"kind": "reading", "facts": facts}, len(content)), content


def error_answer(error: ReadError) -> tuple[bytes, bytes]:
    """Return head and content of the answer that says why a document can't be read."""
    texts = {"message": error.message[:_SHORT], "hint": error.hint[:_SHORT]}
    return _head({"kind": "error", "code": error.code, "reason": error.reason, **texts}, 0), b""


def plain_answer(kind: str) -> tuple[bytes, bytes]:
    """Return an answer without more to say: "checked", "failed" or "memory"."""
    return _head({"kind": kind}, 0), b""


def sizes(prefix: bytes, *, header_limit: int, body_limit: int) -> tuple[int, int]:
    """Return the lengths that a frame announces. Raises `BadFrame` when they are above the limits."""
    header, body = PREFIX.unpack(prefix)
    if not 0 < header <= header_limit or body > body_limit:
        raise BadFrame
    return header, body


def parse_request(header: bytes) -> Mapping[str, Any]:
    """Return a request's header. The application wrote it, so only its form is looked at."""
    return _object(header)


def parse_answer(header: bytes, content: bytes) -> Reading | FetchError | str:
    """Return the reading that a worker sent, the error that it met, or the kind of a plain answer.

    Raises `BadFrame` when the answer is anything that no honest worker sends.
    """
    answer = _object(header)
    kind = answer.get("kind")
    if kind == "reading" and answer.keys() == {"kind", "facts"}:
        return Reading(_text(content), _facts(answer["facts"]))
    if content:
        raise BadFrame
    if kind == "error" and answer.keys() == {"kind", "code", "message", "hint", "reason"}:
        return _error(answer)
    if kind in ("checked", "failed", "memory") and len(answer) == 1:
        return str(kind)
    raise BadFrame


def _head(header: Mapping[str, Any], body: int) -> bytes:
    data = _COMPACT(header).encode()
    return PREFIX.pack(len(data), body) + data


def _object(header: bytes) -> dict[str, Any]:
    try:
        value = json.loads(header)
        # Written once more to find what JSON should not hold but Python reads: NaN and infinity in
        # every spelling (1e999), and halves of surrogate pairs, which no store can keep.
        _STRICT(value).encode()
    except (ValueError, RecursionError):
        raise BadFrame from None
    if not isinstance(value, dict):
        raise BadFrame
    return value


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadFrame from None


def _facts(facts: object) -> dict[str, Any]:
    """Return facts that only a document can tell, each of the form that it has. All others are no facts."""
    if not isinstance(facts, dict) or not all(_is_fact(name, value) for name, value in facts.items()):
        raise BadFrame
    return facts


def _is_fact(name: str, value: object) -> bool:
    if name in _TEXTS:
        return type(value) is str
    if name in _COUNTS:
        return _is_count(value)
    if name in _FLAGS:
        return type(value) is bool
    if name in _WORDS:
        return type(value) is str and value in _WORDS[name]
    if name == "pages":
        return (
            isinstance(value, dict)
            and value.keys() == {"total", "given"}
            and all(map(_is_count, value.values()))
        )
    return name == "passages" and isinstance(value, list) and all(map(_is_passage, value))


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _COUNT_LIMIT


def _is_passage(value: object) -> bool:
    if not isinstance(value, dict) or not {"lines", "score", "headings"} <= value.keys() <= _PASSAGE:
        return False
    lines, headings = value["lines"], value["headings"]
    return (
        isinstance(lines, list)
        and len(lines) == 2
        and all(map(_is_count, lines))
        and _is_count(value.get("page", 0))
        and type(value["score"]) in (int, float)
        and value["score"] >= 0
        and isinstance(headings, list)
        and all(type(heading) is str for heading in headings)
    )


def _error(answer: Mapping[str, Any]) -> FetchError:
    texts = [answer["code"], answer["reason"], answer["message"], answer["hint"]]
    for text in texts:
        if not isinstance(text, str) or len(text) > _TEXT_LIMIT or not text.replace("\n", "").isprintable():
            raise BadFrame
    code, reason, message, hint = texts
    if code not in _FAILURES or not message:
        raise BadFrame
    if reason not in _REFUSALS if code == "refused" else reason:
        raise BadFrame
    return FetchError(code, message, hint=hint, reason=reason)


def _too_many(facts: object) -> bool:
    return len(json.dumps(facts)) > ANSWER_LIMIT - 100


def _shortened(value: Any) -> Any:
    """Return facts with no long text in them: a title of a megabyte is no title."""
    if isinstance(value, str):
        return value[:_SHORT]
    if isinstance(value, list | tuple):
        return [_shortened(item) for item in value[:20]]
    if isinstance(value, Mapping):
        return {name: _shortened(item) for name, item in value.items()}
    return value
