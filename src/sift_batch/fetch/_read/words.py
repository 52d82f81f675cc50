"""Which words does a text have? What a question and the blocks of a text are compared by.

Words are runs of letters, digits and marks, after NFKC and casefold. Han, kana and Thai are written
without spaces between words: a run of them counts as its overlapping pairs of characters, and one
character alone as itself. There is no stemming and there are no stop words. Next: `question`.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

_ASCII: Final = re.compile(r"[a-z0-9]+")
# Letters, digits and marks of what is written without spaces between words.
_UNSPACED: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59"  # Thai
    "\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003fffd"  # Han beyond the first plane
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\U0001aff0-\U0001affe\U0001b000-\U0001b167"  # historic kana
)
_IS_UNSPACED: Final = re.compile(f"[{_UNSPACED}]")


def words(text: str) -> list[str]:
    """Return the words of `text`, in its order, each as often as it stands there."""
    return next(words_of([text]))


def words_of(texts: Sequence[str]) -> Iterator[list[str]]:
    """Give the words of each text, in turn."""
    characters: set[str] = set()
    for text in texts:
        if not text.isascii():
            characters.update(text)
    pattern = _pattern(characters)
    for text in texts:
        if text.isascii():  # nothing to compose, and the words of most pages
            yield _ASCII.findall(text.lower())
        else:
            yield list(_with_pairs(pattern.findall(_folded(text))))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _pattern(characters: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of runs: of what is written without spaces, and of all other words.

    `re` knows letters and digits and no marks: those that can come of `characters` are named.
    """
    marks = {
        char
        for whole in characters
        for char in unicodedata.normalize("NFKD", whole) + _folded(whole)
        if unicodedata.category(char)[0] == "M" and not _IS_UNSPACED.match(char)
    }
    word = rf"[^\W_{_UNSPACED}]+"
    if marks:
        word = f"(?:{word}|[{''.join(sorted(marks))}]+)+"
    return re.compile(f"[{_UNSPACED}]+|{word}")


def _with_pairs(found: Iterable[str]) -> Iterator[str]:
    for word in found:
        if len(word) > 1 and _IS_UNSPACED.match(word):
            for first, second in pairwise(word):
                yield first + second
        else:
            yield word
