"""Is this text plainly harmless, and what is left of it if it is not?

There is no pattern for a target: a single-label host, a path, or a host spelled out in base64 look like
words. So nothing is searched for. A text is cut into tokens, and a token stands only if it is
known to be harmless: a word of the vocabulary, a number, a time, an id. The first token that could be
part of an address ends the text, since its author may have put blanks into it. Strings only; values of
other types are `redact`'s, exceptions are `exceptions`'. Next: `redact`.
"""

import re
import sys
from typing import Final

from .events import ERROR_TYPES, SQLITE_NAMES
from .words import ends_host, is_known, is_numbered, names_machine

REDACTED: Final = "[redacted]"
TEXT_LIMIT: Final = 1_024
"""Of a longer text only so much is read, which bounds the work whatever is logged."""
SCRUB_LIMIT: Final = 8 * 2**10

_SHORT_WORD: Final = re.compile(r"[a-z]{1,12}|[A-Z]{1,12}|[A-Z][a-z]{1,11}")
_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]{1,3}")
_WORDY: Final = re.compile(r"[A-Za-z0-9]+(?:[-_.]{1,2}[A-Za-z0-9]+)*|__[a-z]{1,12}__")
_SHORTENED: Final = re.compile(r"([a-z]+)'(?:t|s|re|ve|ll|d|m)", re.IGNORECASE)
_UNIT: Final = "%|ns|us|ms|s|m|h|d|x|k|[kKMGT]?i?[bB]"
_NUMBER: Final = re.compile(rf"[+-]?[0-9]{{1,6}}(?:\.[0-9]{{1,9}})?(?:{_UNIT})?|[0-9]{{1,4}}/[0-9]{{1,4}}")
_VERSION: Final = re.compile(r"v[0-9]{1,3}(?:\.[0-9]{1,3}){0,2}")
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}(?:[:.][0-9]{2}(?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
_TIME: Final = re.compile(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T_]{_CLOCK})?|{_CLOCK}")
_ID: Final = re.compile(r"[0-9a-f]{32}|[0-9a-f]{16}|(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})")
_PLACE: Final = re.compile(r"%[sdifrxg]")
_SIGNS: Final = "- -- -> => = + & | ... n/a N/A i/o I/O HTTP/1.0 HTTP/1.1 HTTP/2 s m h d"
_MEDIA: Final = "text/html text/plain text/csv application/json application/pdf application/xml"
_WHOLE: Final = frozenset((*_SIGNS.split(), *_MEDIA.split())) | ERROR_TYPES | SQLITE_NAMES
_SPACED_OUT: Final = re.compile(
    r"(?<![^ ])[^ ](?: [^ ]){2,}(?![^ ])|(?<![^ ])[0-9]{1,3}(?: [0-9]{1,3}){3}(?![^ ])"
)

_KEY_PART: Final = "[A-Za-z]{1,14}[0-9]{0,3}"
_KEY: Final = re.compile(rf"_{{0,2}}{_KEY_PART}(?:[-_.](?:{_KEY_PART}|[0-9]{{1,3}})){{0,5}}_{{0,2}}")
_UNKNOWN_IN_KEY: Final = 2
_NUMBERS_IN_NAME: Final = 2
_TELLING_WORDS: Final = """
addr address auth authority authorization bearer body content cookie cookies credential credentials domain
endpoint exc exception exceptions fqdn fragment grep headers host hostname hosts href html ip ips jq key link
links locals location netloc origin passwd password path peer query question referer referrer secret sig
signature site src stack target targets text title token tokens traceback tracebacks uri uris url urls
userinfo
"""
_ABOUT_WORDS: Final = """
age bytes chars code count counts idx index id ids kind left len limit max min ms number port seconds size
state status total type
"""
_TELLING: Final = frozenset(_TELLING_WORDS.split())
_ONLY_ABOUT: Final = frozenset(_ABOUT_WORDS.split())


def harmless_text(text: str, *, words_only: bool = False) -> str:
    """Return `text`, or what of it is plainly harmless with `[redacted]` for the rest.

    A text that is one short word stands even if the word is not in the vocabulary (a user's word: a
    queue, a team), unless `words_only`.
    """
    if not words_only and _SHORT_WORD.fullmatch(text) and not names_machine(text):
        return text
    # What is cut off goes with the whole token that the cut may have split.
    head = text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT].rpartition(" ")[0]
    if (spaced := _SPACED_OUT.search(head)) is not None:
        head = head[: spaced.start()].removesuffix(" ")
    kept: list[str] = []
    for token in head.split(" ") if head or not text else ():
        verdict = _HIDE if token == REDACTED else _judge(token)
        if verdict is _KEEP:
            kept.append(token)
            continue
        _mark(kept)
        if verdict is _STOP:
            return " ".join(kept)
    if len(head) < len(text):
        _mark(kept)
    return " ".join(kept)


def _mark(kept: list[str]) -> None:
    # One mark for a run of hidden tokens: how many there were may depend on the target.
    if not kept or kept[-1] != REDACTED:
        kept.append(REDACTED)


_KEEP: Final = "keep"
_HIDE: Final = "hide"  # an unknown word: it can't be part of an address that goes on behind it
_STOP: Final = "stop"  # it may be part of an address: nothing behind it stands


def _judge(token: str) -> str:
    core = token.lstrip("(\"'[").rstrip(",.:;!?)\"']")
    if not core:
        return _KEEP if len(token) <= 1 or token in _WHOLE else _STOP
    if core in _WHOLE or _PLACE.fullmatch(core):
        return _KEEP
    if _NUMBER.fullmatch(core) or _VERSION.fullmatch(core) or _TIME.fullmatch(core):
        return _KEEP
    if _ID.fullmatch(core):
        return _HIDE if _spells_text(core) else _KEEP
    if _WORDY.fullmatch(core):
        return _KEEP if _is_compound(core) else _HIDE
    if short := _SHORTENED.fullmatch(core):
        return _KEEP if is_known(short[1]) else _HIDE
    name, sign, value = core.partition("=")
    if sign and _KEY.fullmatch(name):
        verdict = _judge(value) if "=" not in value else _STOP
        return _HIDE if verdict is _KEEP and (is_telling(name) or not harmless_key(name)) else verdict
    return _STOP


def _spells_text(digits: str) -> bool:
    """Say whether an id is printable text in hex: a random one is so once in ten million."""
    data = bytes.fromhex(digits.replace("-", ""))
    return data.isascii() and data.decode().isprintable()


def _is_compound(token: str) -> bool:
    """Say whether a token is built of known words and small numbers alone: `job.done`, `MainThread`."""
    parts = [part for part in re.split(r"[-_.]", token) if part]
    if "." in token and ends_host(parts[-1]):
        return False
    if parts[0].isdecimal() or sum(part.isdecimal() for part in parts) > _NUMBERS_IN_NAME:
        return False  # an address has more numbers in it than the name of a thing: ip-10-20-30-40
    return all(_is_part(part) for part in parts)


def _is_part(part: str) -> bool:
    if part.isdecimal():
        return len(part) <= 6
    if is_known(part) or is_numbered(part.lower()):
        return True
    pieces = _CAMEL.findall(part)
    return len(pieces) > 1 and "".join(pieces) == part and all(p.isdecimal() or is_known(p) for p in pieces)


def harmless_key(key: str) -> bool:
    """Say whether `key` looks like a programmer's name for a field rather than like data."""
    if key == REDACTED:
        return True
    if not _KEY.fullmatch(key):
        return False
    parts = [part.rstrip("0123456789") for part in re.split(r"[-_.]", key.strip("_"))]
    if ("." in key and ends_host(parts[-1])) or parts.count("") > _NUMBERS_IN_NAME:
        return False
    unknown = sum(1 for part in parts if part and not is_known(part) and not _is_part(part))
    return unknown == 0 or (unknown <= _UNKNOWN_IN_KEY and "." not in key and not names_machine(key))


def is_telling(key: str) -> bool:
    """Say whether the name of a field says that its text is a target, a part of one, or a secret."""
    if len(key) > TEXT_LIMIT:
        return True
    parts = [part.lower() for part in re.split(r"[-_.]|(?<=[a-z0-9])(?=[A-Z])", key) if part]
    return bool(parts) and not _TELLING.isdisjoint(parts) and parts[-1] not in _ONLY_ABOUT


def logger_name(name: str) -> str:
    """Return the name of a logger as far as it is that of a loaded module, else `other`.

    Loggers are named after modules; one that is named after a host must not give it away.
    """
    if len(name) > TEXT_LIMIT:
        return "other"
    if name in ("", "root", "sift_batch", "py.warnings"):
        return name
    while name and name not in sys.modules:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return "other"
    return name


def scrub_text(text: str) -> str:
    """Return `text` with every token that is no known word and no number of 1 to 3 digits as `*`.

    For the rare place that must keep foreign prose, such as an operator's dump; never for a log. Only
    the first 8 KiB are read, and a token that this cuts is dropped; runs of single letters
    become one `*`. Never raises for a `str`.
    """
    head = text[:SCRUB_LIMIT]
    tokens = head.split()
    if len(text) > SCRUB_LIMIT and tokens and not head[-1].isspace():
        tokens.pop()
    kept: list[str] = []
    spaced_out = False
    for i, token in enumerate(tokens):
        spaced_out = len(token) == 1 and (spaced_out or (i + 1 < len(tokens) and len(tokens[i + 1]) == 1))
        if spaced_out:
            if not (kept and kept[-1] == "*" and i and len(tokens[i - 1]) == 1):
                kept.append("*")
            continue
        number = token.isascii() and token.isdecimal() and len(token) <= 3
        kept.append(token if number or (token.isascii() and is_known(token)) else "*")
    return " ".join(kept)
