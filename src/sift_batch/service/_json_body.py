"""Is this body JSON that everybody reads the same way? Its type, its bytes, and the value in it.

Two readers that differ about a body are how one of them is deceived: a name given twice, NaN, a number
that no other parser holds, half of a character are refused. What the value means is `_submissions`'.
"""

import json
import math
import re
from typing import Any, Final, Never

from ._asgi import Receive
from ._problems import Problem, problem_of_status
from ._refusal import BodyRefused, ClientGone

MAX_DEPTH: Final = 16
_MAX_DIGITS: Final = 19
_LARGE: Final = 2**15
_JSON_TYPE: Final = re.compile(
    rb'application/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8")[ \t]*)?', re.IGNORECASE
)
# Texts are passed over whole, their end is optional: one without it is not tried again at each quote in it.
_STRUCTURE: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
_HARMFUL: Final = re.compile("[\0\ud800-\udfff]")


async def read_body(headers: list[tuple[bytes, bytes]], receive: Receive) -> bytes:
    """Return a request's body, which must be announced as JSON.

    Raises `Problem`: `media_type` for what is not announced as plain JSON in UTF-8, `body_too_large`;
    `ClientGone` when the client left before the end.
    """
    check_media_type(headers)
    return await _read(receive)


def is_large(raw: bytes) -> bool:
    """Whether a body is to be looked through in a thread: the largest ones take half a second."""
    return len(raw) > _LARGE


def check_media_type(headers: list[tuple[bytes, bytes]]) -> None:
    """Raise `Problem` unless the headers announce JSON in UTF-8, not encoded again."""
    types = [value for name, value in headers if name == b"content-type"]
    if len(types) != 1 or not _JSON_TYPE.fullmatch(types[0].strip()):
        raise Problem("media_type", "Content-Type must be application/json, in UTF-8")
    if any(name == b"content-encoding" for name, _ in headers):
        raise Problem("media_type", "a body with a Content-Encoding is not taken")


def parse_json(raw: bytes) -> Any:
    """Return the value of a JSON text. Raises `Problem` `bad_json`, with line and column where it helps."""
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        _refuse("the body begins with a byte order mark")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        _refuse("the body is not UTF-8")
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        _refuse(f"the body is no JSON: line {error.lineno}, column {error.colno}")
    except RecursionError:  # pragma: no cover - the depth was looked at before
        _refuse(f"more than {MAX_DEPTH} levels")
    _check_texts(value)
    return value


async def _read(receive: Receive) -> bytes:
    pieces: list[bytes] = []
    while True:
        try:
            message = await receive()
        except BodyRefused as refused:
            raise problem_of_status(refused.status) from None
        if message["type"] == "http.disconnect":
            raise ClientGone
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)


def _refuse(detail: str) -> Never:
    raise Problem("bad_json", detail) from None


def _check_depth(text: str) -> None:
    depth = 0
    for found in _STRUCTURE.finditer(text):
        mark = found[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                _refuse(f"more than {MAX_DEPTH} levels")
        elif mark in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        _refuse("an object has the same name twice")
    return made


def _constant(_: str) -> Never:
    _refuse("NaN and Infinity are no JSON")


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > _MAX_DIGITS:
        _refuse(f"a number has more than {_MAX_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        _refuse("a number is too large")
    return value


def _check_texts(value: Any) -> None:
    """Refuse NUL and lone surrogates, in names too: an escape can write what UTF-8 can't hold."""
    left = [value]
    while left:
        item = left.pop()
        if isinstance(item, str):
            if _HARMFUL.search(item):
                _refuse("a text has NUL or a lone surrogate in it")
        elif isinstance(item, dict):
            left += item.keys()
            left += item.values()
        elif isinstance(item, list):
            left += item
