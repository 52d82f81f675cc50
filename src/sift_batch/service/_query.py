"""What does the query ask for? Names and values after the `?`, each known, each once.

A misspelt name would be answered with something that was not asked for, so it is refused.
"""

import enum
import re
from collections.abc import Collection
from typing import Final, TypeVar
from urllib.parse import parse_qsl

from ._problems import BadItem, Problem

S = TypeVar("S", bound=enum.StrEnum)

LARGEST: Final = 10**18 - 1
_WHOLE: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_DIGITS: Final = re.compile(r"-?[0-9]+", re.ASCII)
_MAX_FIELDS: Final = 20


class Query:
    """The parameters of one request; what is wrong with them is raised by `check`, all at once."""

    def __init__(self, raw: bytes, known: Collection[str]) -> None:
        self._errors: list[BadItem] = []
        self._values: dict[str, str] = {}
        try:
            pairs = parse_qsl(
                raw.decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_MAX_FIELDS,
            )
        except ValueError:
            pairs = []
            self._errors.append(BadItem("?", "malformed", "the query can't be read"))
        for name, value in pairs:
            if name not in known:
                names = ", ".join(sorted(known)) or "none"
                self._errors.append(BadItem("?", "unknown_parameter", f"the parameters are: {names}"))
            elif name in self._values:
                self._bad(name, "twice", "must be given once")
            else:
                self._values[name] = value

    def _bad(self, name: str, code: str, detail: str) -> None:
        self._errors.append(BadItem(f"?{name}", code, detail))

    def has(self, name: str) -> bool:
        """Whether it was given."""
        return name in self._values

    def text(self, name: str) -> str | None:
        """Its value."""
        return self._values.get(name)

    def whole(self, name: str, *, least: int = 0, most: int, default: int | None = None) -> int | None:
        """Its value as a whole number of at least `least`; more than `most` is taken for that."""
        value = self._values.get(name)
        if value is None:
            return default
        if not _WHOLE.fullmatch(value) or int(value) < least:
            self._bad(name, "number", f"must be a whole number of at least {least}")
            return default
        return min(int(value), most)

    def clamped(self, name: str, *, most: int) -> int | None:
        """Its value as a whole number, taken for 0 or `most` where it lies beyond."""
        value = self._values.get(name)
        if value is None:
            return None
        if not _DIGITS.fullmatch(value):
            self._bad(name, "number", "must be a whole number")
            return None
        if value.startswith("-"):
            return 0
        digits = value.lstrip("0")
        # Reading a number takes time that grows with its length, and this one lies beyond anyway.
        return most if len(digits) > len(str(most)) else min(int(digits or "0"), most)

    def choice(self, name: str, states: type[S]) -> S | None:
        """Its value as one of the states."""
        value = self._values.get(name)
        if value is None:
            return None
        try:
            return states(value)
        except ValueError:
            self._bad(name, "value", f"must be one of {', '.join(states)}")
            return None

    def flag(self, name: str, word: str) -> bool:
        """Whether it was given, as the one word that it takes."""
        value = self._values.get(name)
        if value not in (None, word):
            self._bad(name, "value", f"must be {word}")
        return value == word

    def refuse(self, name: str, detail: str) -> None:
        """Note that it can't be given here."""
        self._bad(name, "combination", detail)

    def check(self) -> None:
        """Raise `Problem` `bad_request` if anything is wrong."""
        if self._errors:
            raise Problem("bad_request", errors=self._errors)
