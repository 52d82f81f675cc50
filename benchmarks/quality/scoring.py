"""How good is a reading of a page? Recall and precision of its words, and whether its structure is kept.

A word counts only in its place: it must stand in a run of four words that follow each other in one block
(in all of a block that is shorter). Single words would not do: boilerplate says "the" as often as an article.
Runs are counted, so that a page that says "yes" ten times must give it ten times. *Recall* is the part of the
main content's words that the reading has, *precision* the part of the reading's words that are main content
or may be kept, *leak* the part of the boilerplate's words that came along. Han and kana are words of one
character each. Of structure it is asked: is a heading a heading line, a row of a table a row of pipes with
the same cells, a line of code the same line inside a fence with its blanks, an item a list line, a link the
absolute address behind its text? Each is a share, or None where the page has nothing of the kind.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from pages import Block, Truth, squeezed

RUN = 4

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+[\"'][^\"']*[\"'])?\)")
_TARGET = re.compile(r"\]\(\s*<?[^()\s]*(?:\([^()]*\)[^()\s]*)*>?(?:\s+[\"'][^\"']*[\"'])?\s*\)")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(\s*<?([^()\s>]*(?:\([^()]*\)[^()\s>]*)*)>?[^)]*\)")
_FENCE = re.compile(r"^([ >]*)(```+|~~~+)")
_HEADING = re.compile(r"^ {0,3}#{1,6} +(.*?)[ #]*$")
_ITEM = re.compile(r"^[\s>]*(?:[-*+]|\d+[.)])\s+(.*)$")
_NUMBER = re.compile(r"^([\s>]*)\d+[.)](?=\s)")
_RULE = re.compile(r"^\s*\|?[\s|:-]+\|?\s*$")

CHECKS = ("headings", "tables", "code", "items", "links")


@dataclass(frozen=True, slots=True)
class Score:
    """What a reading is worth, each number from 0 to 1; None where there was nothing to find."""

    recall: float
    precision: float
    leak: float | None
    headings: float | None
    tables: float | None
    code: float | None
    items: float | None
    links: float | None

    @property
    def f1(self) -> float:
        """The harmonic mean of recall and precision."""
        both = self.recall + self.precision
        return 2 * self.recall * self.precision / both if both else 0.0

    @property
    def structure(self) -> float | None:
        """The mean of the checks of structure that the page allows."""
        return mean(getattr(self, check) for check in CHECKS)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is there; None where nothing is."""
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def score(reading: str, truth: Truth) -> Score:
    """Compare a reading in Markdown with the truth about its page."""
    lines = list(_lines(reading))
    given = words(_plain(lines))
    main, allowed = _block_words(truth.main), _block_words([*truth.main, *truth.either])
    return Score(
        recall=_found(main, given),
        precision=_explained(given, allowed),
        leak=_leak(truth, given, allowed),
        headings=_headings(truth, lines),
        tables=_tables(truth, lines),
        code=_code(truth, lines),
        items=_items(truth, lines),
        links=_links(truth, reading),
    )


def words(text: str) -> list[str]:
    """Return the words of a text, in the form in which they are compared."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def _block_words(blocks: Iterable[Block]) -> list[list[str]]:
    return [found for block in blocks if (found := words(block.text))]


def runs(text: Sequence[str], size: int = RUN) -> Iterator[tuple[str, ...]]:
    """Give the runs of `size` words that follow each other."""
    for start in range(len(text) - size + 1):
        yield tuple(text[start : start + size])


def _found(blocks: Sequence[Sequence[str]], given: Sequence[str]) -> float:
    """Return the part of the blocks' words that stand in a run that was given."""
    there = {size: Counter(runs(given, size)) for size in range(1, RUN + 1)}
    covered = sum(_covered(block, there[min(len(block), RUN)]) for block in blocks)
    return _share(covered, sum(map(len, blocks)))


def _covered(block: Sequence[str], there: Counter[tuple[str, ...]]) -> int:
    """Count the words of a block in runs that are there, and take those runs away."""
    size = min(len(block), RUN)
    last, covered = -1, 0
    for start, run in enumerate(runs(block, size)):
        if there[run] > 0:
            there[run] -= 1
            covered += start + size - 1 - max(last, start - 1)
            last = start + size - 1
    return covered


def _explained(given: Sequence[str], allowed: Sequence[Sequence[str]]) -> float:
    """Return the part of the given words that stand in a run of a block, or in a whole short block."""
    there: Counter[tuple[str, ...]] = Counter()
    for block in allowed:
        there.update(runs(block, min(len(block), RUN)))
    explained = [False] * len(given)
    # Long runs first: what they explain needs no short block, which may be one common word.
    for size in range(RUN, 0, -1):
        for start, run in enumerate(runs(given, size)):
            if there[run] > 0 and not all(explained[start : start + size]):
                there[run] -= 1
                explained[start : start + size] = [True] * size
    return _share(sum(explained), len(given), none=0.0)


def _leak(truth: Truth, given: Sequence[str], allowed: Sequence[Sequence[str]]) -> float | None:
    boilerplate = _block_words(truth.boilerplate)
    if not boilerplate:
        return None
    there = {size: Counter(runs(given, size)) for size in range(1, RUN + 1)}
    for block in allowed:
        # A run of the content excuses the same run of the boilerplate.
        for size in range(1, RUN + 1):
            there[size].subtract(runs(block, size))
    covered = sum(_covered(block, there[min(len(block), RUN)]) for block in boilerplate)
    return _share(covered, sum(map(len, boilerplate)))


def _share(part: int, whole: int, *, none: float = 1.0) -> float:
    return part / whole if whole else none


def _lines(reading: str) -> Iterator[tuple[str, bool]]:
    """Give the lines of a reading, each with whether it is code; the lines of the fences themselves are not.

    What stands before a fence (blanks in an item, `>` in a quotation) stands before its lines too: that much
    is no part of the code.
    """
    fence, before = "", ""
    for line in reading.splitlines():
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[2].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
            else:
                same = takewhile(lambda pair: pair[0] == pair[1], zip(before, line, strict=False))
                yield line[len(list(same)) :], True
        elif mark:
            before, fence = mark[1], mark[2]
        else:
            yield line, False


def _plain(lines: Iterable[tuple[str, bool]]) -> str:
    # The number of an item is a mark; that of a heading ("## 2. How it works") is a word.
    return "\n".join(line if code else _unmarked(_NUMBER.sub(r"\1", line)) for line, code in lines)


def _unmarked(line: str) -> str:
    """Return a line without images, link targets, marks of emphasis and code, escapes and entities."""
    bare = _TARGET.sub("] ", _IMAGE.sub(" ", line))
    # Emphasis inside a word must not cut it; a heading's and an item's marks are no words anyway.
    bare = re.sub(r"\*+|`+|\\(?=\W)|(?<!\w)_+|_+(?!\w)", "", bare)
    return html.unescape(bare)


def _same(text: str) -> str:
    return " ".join(words(text))


def _kept(wanted: Sequence[str], there: Iterable[str]) -> float | None:
    """Return the part of what is wanted that is there, as often as it is wanted."""
    if not wanted:
        return None
    left = Counter(there)
    kept = 0
    for one in wanted:
        if left[one] > 0:
            left[one] -= 1
            kept += 1
    return kept / len(wanted)


def _headings(truth: Truth, lines: Sequence[tuple[str, bool]]) -> float | None:
    found = (match[1] for line, code in lines if not code and (match := _HEADING.match(line)))
    return _kept(_of_kind(truth, "heading", _same), (_same(_unmarked(text)) for text in found))


def _of_kind(truth: Truth, kind: str, key: Callable[[str], str]) -> list[str]:
    return [key(block.text) for block in truth.main if block.kind == kind and key(block.text)]


def _tables(truth: Truth, lines: Sequence[tuple[str, bool]]) -> float | None:
    rows = [row for table in truth.tables for row in table]
    found = Counter(
        _cells(line) for line, code in lines if not code and "|" in line and not _RULE.match(line)
    )
    kept = 0
    for row in rows:
        form = next((form for form in map(_joined, row) if found[form] > 0), None)
        if form is not None:
            found[form] -= 1
            kept += 1
    return kept / len(rows) if rows else None


def _cells(line: str) -> str:
    bare = _TARGET.sub("]", _IMAGE.sub(" ", line)).replace("<br>", " ")
    return _joined(map(_unmarked, re.split(r"(?<!\\)\|", bare)))


def _joined(cells: Iterable[str]) -> str:
    """Return a row's cells as one text. Empty ones are left out: where they stand is a matter of taste."""
    return "|".join(filter(None, map(_same, cells)))


def _code(truth: Truth, lines: Sequence[tuple[str, bool]]) -> float | None:
    blocks = (block.text for block in truth.main if block.kind == "code")
    wanted = [line.rstrip() for text in blocks for line in text.splitlines() if line.strip()]
    return _kept(wanted, (line.rstrip() for line, code in lines if code))


def _items(truth: Truth, lines: Sequence[tuple[str, bool]]) -> float | None:
    """Items are known by their first words: what else is in them may stand on lines of its own."""
    found = (match[1] for line, code in lines if not code and (match := _ITEM.match(line)))
    wanted = _of_kind(truth, "item", _first)
    return _kept(wanted, (_first(_unmarked(text)) for text in found))


def _first(text: str) -> str:
    return " ".join(words(text)[:RUN])


def _links(truth: Truth, reading: str) -> float | None:
    wanted = [f"{_same(text)} {target.partition('#')[0]}" for text, target in truth.links]
    found = (
        f"{_same(_unmarked(text))} {html.unescape(target).partition('#')[0]}"
        for text, target in _LINK.findall(_IMAGE.sub("", squeezed(reading)))
    )
    return _kept(wanted, found)
