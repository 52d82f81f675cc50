"""What is left of an application's own log event when everything that may be a target is gone?

`redact_urls` is a structlog processor. It keeps what is plainly harmless (short words, numbers, ids,
times) and replaces the rest, in keys and nested values too; errors are described without their texts.
It runs no code of the values it looks at, reads a bounded part of them, and never raises. The engine's own
events don't need it: they are built from the registry in `events`. Next: `seal`.
"""

import datetime
import decimal
import enum
import logging
import math
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable, MutableMapping
from typing import Any, Final

from .events import EVENTS
from .exceptions import calling_place, current_or, describe
from .harmless import REDACTED, TEXT_LIMIT, harmless_key, harmless_text, is_telling, logger_name

_DEPTH: Final = 6
_ITEMS: Final = 64
_VALUES: Final = 1_000
_CHARS: Final = 32 * 2**10
_INT_LIMIT: Final = 2**63
_TELLING_INT_LIMIT: Final = 2**24  # every IPv4 address but those of 0.0.0.0/8 is a larger number
_DECIMAL_DIGITS: Final = 30
_LOGGER_KEYS: Final = frozenset({"logger", "logger_name", "module"})
_MORE: Final = "..."
_WIDE: Final = re.compile(r"%[^a-zA-Z%]*(?:\d{3}|\*)")  # a directive that pads to a size of the text's choice


def redact_urls(
    logger: Any, method_name: str, event_dict: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Return a new event dict in which every value that is not plainly harmless is `[redacted]`.

    A structlog processor for an application's own events; put it in front of the renderer. What stays:
    numbers, times, ids (UUIDs, 16 or 32 hex digits), known words and single short words, level and
    logger names, keys that look like a programmer's. `exc_info` becomes `exception`, with types and
    places and no text; `stack_info` becomes the place of the call. Texts in fields that are named
    after what they hold (`url`, `host`, `token`, …) are always replaced. Never raises, and looks at
    no more than 1,000 values of an event, and at no more than 1,024 characters of a text.
    """
    try:
        return _Redaction().event(event_dict)
    except Exception:  # a log line is lost rather than leaked
        return {"event": REDACTED}


class _Redaction:
    """One event's redaction."""

    def __init__(self) -> None:
        # How much may still be looked at, of this event alone: values, and characters of texts.
        self.left = _VALUES
        self.chars_left = _CHARS

    def event(self, event_dict: MutableMapping[str, Any]) -> dict[str, Any]:
        given = dict(_items(event_dict))
        clean: dict[str, Any] = {}
        error = current_or(given.pop("exc_info", None))
        stack = given.pop("stack_info", None)
        _format_positional(given)
        event = given.get("event")
        spec = EVENTS.get(event) if type(event) is str else None
        ours = spec.fields if spec is not None else {}
        for key, value in given.items():
            plain = key if type(key) is str else ""  # any other may lie in comparisons
            if plain == "_record":
                clean[plain] = _clean_record(value)
            elif plain in ours and (checked := ours[plain](value)) is not None:
                clean[plain] = checked
            elif plain in _LOGGER_KEYS and issubclass(type(value), str):
                clean[plain] = _logger_name(str.__str__(value))
            else:
                clean[self.key(key, clean)] = self.value(value, telling=is_telling(plain))
        if error is not None:
            clean["exception"] = describe(error)
        if stack is not None and stack is not False:
            clean["stack"] = calling_place("structlog", "sift_batch._observe.")
        return clean

    def key(self, key: object, taken: dict[Any, Any]) -> Any:
        if type(key) is int and abs(key) < _TELLING_INT_LIMIT:
            return key
        if issubclass(type(key), str) and harmless_key(text := str.__str__(key)):
            return text
        name, number = REDACTED, 2
        while name in taken:
            name, number = f"[redacted {number}]", number + 1
        return name

    def value(self, value: Any, *, telling: bool = False, words_only: bool = False, depth: int = 0) -> Any:
        self.left -= 1
        if self.left < 0 or depth > _DEPTH:
            return _MORE
        kind = type(value)
        if value is None or kind is bool or kind is float:
            return value
        if issubclass(kind, str):
            self.chars_left -= min(str.__len__(value), TEXT_LIMIT)
            if self.chars_left < 0:
                return REDACTED
        for base, redact in _SCALARS:
            if issubclass(kind, base):
                return redact(value, telling, words_only)
        if issubclass(kind, dict):
            return self.mapping(value, telling=telling, depth=depth)
        for base in (list, tuple, set, frozenset, deque):
            if issubclass(kind, base):
                walk: Iterable[Any] = base.__iter__(value)
                # A host cut at its dots is a list of short words: in a series only known words stand.
                return self.series(walk, telling=telling, depth=depth)
        return REDACTED

    def mapping(self, value: dict[Any, Any], *, telling: bool, depth: int) -> dict[Any, Any]:
        clean: dict[Any, Any] = {}
        for number, (key, item) in enumerate(dict.items(value)):
            if number >= _ITEMS:
                clean[_MORE] = _MORE
                break
            told = telling or is_telling(key if type(key) is str else "")
            clean[self.key(key, clean)] = self.value(item, telling=told, depth=depth + 1)
        return clean

    def series(self, walk: Iterable[Any], *, telling: bool, depth: int) -> list[Any]:
        clean: list[Any] = []
        for number, item in enumerate(walk):
            if number >= _ITEMS:
                clean.append(_MORE)
                break
            clean.append(self.value(item, telling=telling, words_only=True, depth=depth + 1))
        return clean


def _items(event_dict: MutableMapping[str, Any]) -> Iterable[tuple[Any, Any]]:
    if issubclass(type(event_dict), dict):
        return list(dict.items(event_dict))  # type: ignore[arg-type]  # checked on the line above
    return [(key, event_dict[key]) for key in event_dict]


def _logger_name(name: str) -> str:
    # A logger need not be named after a module; then the rules for any text decide.
    found = logger_name(name)
    return harmless_text(name) if found == "other" else found


def _text(value: str, telling: bool, words_only: bool) -> str:
    text = str.__str__(value)
    return REDACTED if telling and text else harmless_text(text, words_only=words_only)


def _int(value: int, telling: bool, words_only: bool) -> int | str:
    number = int.__add__(value, 0)
    return number if abs(number) < (_TELLING_INT_LIMIT if telling else _INT_LIMIT) else REDACTED


def _float(value: float, telling: bool, words_only: bool) -> float:
    return float.__add__(value, 0.0)


def _error(value: BaseException, telling: bool, words_only: bool) -> str:
    return describe(value)


def _hidden(value: object, telling: bool, words_only: bool) -> str:
    return REDACTED


def _moment(value: Any, telling: bool, words_only: bool) -> str:
    # A foreign time zone runs its own code, and its name could be anything.
    zone = getattr(value, "tzinfo", None) if type(value) in (datetime.datetime, datetime.time) else None
    exact = type(value) in (datetime.datetime, datetime.date, datetime.time)
    return value.isoformat() if exact and (zone is None or type(zone) is datetime.timezone) else REDACTED


def _period(value: Any, telling: bool, words_only: bool) -> float | str:
    return value.total_seconds() if type(value) is datetime.timedelta else REDACTED


def _uuid(value: Any, telling: bool, words_only: bool) -> str:
    return harmless_text(str(value)) if type(value) is uuid.UUID and not telling else REDACTED


def _member(value: Any, telling: bool, words_only: bool) -> str:
    name = object.__getattribute__(value, "_name_")
    return _text(name, telling, words_only) if type(name) is str else REDACTED


def _decimal(value: Any, telling: bool, words_only: bool) -> float | str:
    small = (
        type(value) is decimal.Decimal
        and value.is_finite()
        and len(value.as_tuple().digits) < _DECIMAL_DIGITS
    )
    return float(value) if small and abs(value) < _INT_LIMIT and not math.isinf(float(value)) else REDACTED


_Redact = Callable[[Any, bool, bool], Any]
_SCALARS: Final[tuple[tuple[type, _Redact], ...]] = (
    (str, _text),
    (int, _int),
    (float, _float),
    (bytes, _hidden),
    (bytearray, _hidden),
    (BaseException, _error),
    (datetime.date, _moment),
    (datetime.time, _moment),
    (datetime.timedelta, _period),
    (enum.Enum, _member),
    (uuid.UUID, _uuid),
    (decimal.Decimal, _decimal),
)


def _format_positional(given: dict[str, Any]) -> None:
    """Put positional arguments into the event, so that a target split over two of them is seen whole.

    If one of them is not harmless by itself, none of the texts among them is used.
    """
    args = given.pop("positional_args", None)
    event = given.get("event")
    if type(event) is not str or len(event) > TEXT_LIMIT or type(args) is not tuple or not args:
        return
    by_name = len(args) == 1 and type(args[0]) is dict
    values = list(args[0].values() if by_name else args)
    plain = (len(values) <= _ITEMS and not _WIDE.search(event)) and all(
        type(v) in (int, float, bool, type(None)) or (type(v) is str and harmless_text(v) == v)
        for v in values
    )
    if plain:
        try:
            given["event"] = event % (args[0] if by_name else args)
        except (TypeError, ValueError, KeyError):
            return
    else:
        given["event"] = f"{event.partition('%')[0].rstrip()} {REDACTED}".lstrip()


def _clean_record(record: object) -> logging.LogRecord:
    """Return a record for the processors of structlog that expect one, with nothing of the caller's."""
    level = getattr(record, "levelno", logging.INFO) if type(record) is logging.LogRecord else logging.INFO
    name = getattr(record, "name", "") if type(record) is logging.LogRecord else ""
    name = logger_name(name) if type(name) is str else "other"
    return logging.LogRecord(name, level if type(level) is int else logging.INFO, "", 0, REDACTED, None, None)
