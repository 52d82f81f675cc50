"""Is a caller's pattern sound, and where does it match? RE2, whose time is linear in the text.

Patterns and lines go in as bytes, so that no pattern can leave a match in the middle of a character.
Next: `grep`, which goes through a text line by line.
"""

import re
from typing import Final, Protocol

from .._document import ReadError

_MEMORY: Final = 8 * 2**20  # bytes that a compiled pattern and its automaton may take
# In the application a pattern is compiled only to see whether it is sound; RE2 builds most of one that is
# too large before it says so, and every loop waits meanwhile: 8 MiB are over 50 ms, this is some 10.
_MEMORY_OF_A_CHECK: Final = 2**20
# What may hold a bracket that begins no group: quoted text, an escape, a class; then any other character.
_PIECE: Final = re.compile(
    r"\\Q.*?(?:\\E|\Z) | \\. | \[\^?\]?(?:\[:\w*:\] | \\. | [^\]])*\] | .", re.DOTALL | re.VERBOSE
)
_HINT: Final = (
    "grep takes a pattern in RE2 syntax: no look-around, no references back; escape ( [ { . * + ? ^ $ | \\"
)

_FAULTS: Final = (
    # how RE2 begins to say it, and how we say it
    ("missing ]", "a character class [...] that is not closed"),
    ("missing )", "a group (...) that is not closed"),
    ("unexpected )", "a ) that closes no group"),
    ("trailing \\", "a backslash at the end that escapes nothing"),
    ("no argument for repetition", "a repetition with nothing before it to repeat"),
    ("bad repetition operator", "two repetitions in a row"),
    (
        "invalid repetition size",
        "a repetition of too many times (1,000 in all at most), or from more to less",
    ),
    ("invalid escape sequence", "an escape that there is not"),
    ("invalid character class", "a character class or range that there is not"),
    ("invalid named capture group", "a group whose name is not sound or not closed"),
    ("invalid perl operator", "a (?...) that there is not; look-around is not available"),
    ("invalid UTF-8", "characters that are no text"),
    ("pattern too large", "repetitions that need too much memory"),
)


class Match(Protocol):
    """Where a pattern matched."""

    def start(self) -> int:
        """Return the byte at which the match begins."""
        ...


class Pattern(Protocol):
    """A compiled pattern."""

    def search(self, text: bytes, pos: int = 0) -> Match | None:
        """Return the first match anywhere in `text` that begins at byte `pos` or later."""
        ...


def check_pattern(pattern: str) -> None:
    """Raise `ReadError` `bad_option` for a pattern that is not sound, or larger than any needs to be."""
    compile_pattern(pattern, _MEMORY_OF_A_CHECK)


def compile_pattern(pattern: str, memory: int = _MEMORY) -> Pattern:
    """Compile a caller's pattern. Raises `ReadError` `bad_option` that says what is wrong and where."""
    import re2

    options = re2.Options()
    options.log_errors = False  # it would print the pattern
    options.max_mem = memory
    try:
        compiled: Pattern = re2.compile(pattern.encode("utf-8"), options)
    except UnicodeEncodeError:
        raise ReadError("bad_option", "the grep pattern holds a surrogate, which is no character") from None
    except re2.error as error:
        raise _error(pattern, error.args) from None
    return compiled


def _error(pattern: str, said: tuple[object, ...]) -> ReadError:
    raw = said[0] if said else b""
    told = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else ""
    for begins, fault in _FAULTS:
        if told.startswith(begins):
            place = _place(pattern, told, begins)
            return ReadError("bad_option", f"the grep pattern has {fault}{place}", hint=_HINT)
    return ReadError("bad_option", "the grep pattern is not sound", hint=_HINT)


def _place(pattern: str, told: str, begins: str) -> str:
    """Return where the fault lies, in words, if that can be told."""
    part = told.partition(": ")[2]
    if begins in ("missing )", "unexpected )"):  # RE2 points at the whole pattern
        at = _odd_bracket(pattern)
    elif begins == "trailing \\":
        at = len(pattern) - 1
    else:
        # Where it stands more than once, RE2 means the first one.
        at = pattern.find(part) if part else -1
    if at < 0:
        return ""
    line, column = pattern.count("\n", 0, at) + 1, at - pattern.rfind("\n", 0, at)
    return f" (line {line}, column {column})"


def _odd_bracket(pattern: str) -> int:
    """Return where a group begins that nothing closes, or the ) stands that closes none; -1 if neither."""
    opened: list[int] = []
    for piece in _PIECE.finditer(pattern):
        if piece[0] == "(":
            opened.append(piece.start())
        elif piece[0] == ")":
            if not opened:
                return piece.start()
            opened.pop()
    return opened[-1] if opened else -1
