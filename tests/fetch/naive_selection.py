"""How a text is divided and searched, written once more: the plainest way, straight from the documentation.

No care is taken for speed or for hostile input, and no code is shared with the package. What the package
gives for any text must be what this gives.
"""

import math
import re
import unicodedata
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

HEADING = re.compile(r"(#{1,6}) (.*)")
MARK = re.compile(r"\[page (\d+) of \d+\]")
PIECE = 2_000


class Block(NamedTuple):
    """One block: "heading", "mark" or "text"; its lines, its words, the headings and the page above it."""

    kind: str
    first: int
    last: int
    text: str
    path: tuple[str, ...] = ()
    page: int | None = None


def blocks_of(text: str, *, lines: bool, marks: bool) -> list[Block]:
    """Divide a text."""
    rows = text.split("\n")
    if lines:
        return [b for n, row in enumerate(rows, 1) if row.strip() for b in _text(n, [row], (), None)]
    found: list[Block] = []
    headings: list[tuple[int, str]] = []
    page = None
    at = 0
    while at < len(rows):
        row = rows[at]
        path = tuple(words for _, words in headings if words)
        if marks and MARK.fullmatch(row):
            page = int(MARK.fullmatch(row)[1])
            found.append(Block("mark", at + 1, at + 1, row, path, page))
        elif heading := HEADING.fullmatch(row):
            headings = [above for above in headings if above[0] < len(heading[1])]
            path = tuple(words for _, words in headings if words)
            found.append(Block("heading", at + 1, at + 1, row, path, page))
            headings.append((len(heading[1]), _unmarked(heading[2])))
        elif row.strip():
            end = _end(rows, at, marks=marks)
            found += _text(at + 1, rows[at:end], path, page)
            at = end - 1
        at += 1
    return found


def _end(rows: list[str], at: int, *, marks: bool) -> int:
    """Return where the text block that begins with a row ends."""
    fence = _fence(rows[at])
    end = at + 1
    while end < len(rows) and not (marks and MARK.fullmatch(rows[end])):
        if fence and set(rows[end].strip()) == {fence[0]} and len(rows[end].strip()) >= len(fence):
            return end + 1
        if not fence and (not rows[end].strip() or HEADING.fullmatch(rows[end]) or _fence(rows[end])):
            return end
        end += 1
    while not rows[end - 1].strip():  # a fence that nobody closed
        end -= 1
    return end


def _fence(row: str) -> str:
    opening = re.fullmatch(r"\s*(?:(`{3,})[^`]*|(~{3,}).*)", row)
    return (opening[1] or opening[2]) if opening else ""


def _unmarked(heading: str) -> str:
    words = re.sub(r"(^| )#+$", "", heading.strip())  # a heading may be closed by its signs
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", words)
    return re.sub(r"\*\*|(?<!\w)_|_(?!\w)", "", words).strip()


def _text(number: int, rows: list[str], path: tuple[str, ...], page: int | None) -> list[Block]:
    whole = "\n".join(rows)
    if len(whole) <= PIECE:
        return [Block("text", number, number + len(rows) - 1, whole, path, page)]
    room = whole[: PIECE + 1]
    cut = room.rfind("\n")
    if cut < 1:
        cut = room.rfind(" ")
    piece = whole[:cut] if cut > 0 else whole[:PIECE]
    rest = whole[cut + 1 :] if cut > 0 else whole[PIECE:]
    last = number + piece.count("\n")
    following = last + (cut > 0 and whole[cut] == "\n")
    block = Block("text", number, last, piece, path, page)
    return [block] + (_text(following, rest.split("\n"), path, page) if rest else [])


def around(blocks: list[Block], at: int) -> list[int]:
    """Return a block with its neighbours."""
    before = [at - 1] if at > 0 and blocks[at].kind == blocks[at - 1].kind == "text" else []
    after = [at + 1] if blocks[at + 1 : at + 2] and blocks[at + 1].kind == "text" else []
    return [*before, at, *after]


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    found: list[str] = []
    for run in re.split(r"\n", _runs(unicodedata.normalize("NFKC", text).casefold())):
        if len(run) > 1 and _is_paired(run[0]):
            found += [first + second for first, second in pairwise(run)]
        elif run:
            found.append(run)
    return found


def _runs(text: str) -> str:
    """Return the runs of a text, one a line."""
    shown = ""
    for char in text:
        if unicodedata.category(char)[0] not in "LMN":
            shown += "\n"
        else:
            if shown and shown[-1] != "\n" and _is_paired(shown[-1]) != _is_paired(char):
                shown += "\n"
            shown += char
    return shown


def _is_paired(char: str) -> bool:
    name = unicodedata.name(char, "")
    return char in "々ー" or name.startswith(("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI"))


def matching(text: str, pattern: str, *, marks: bool) -> list[int]:
    """Return the numbers of the lines that match."""
    rows = enumerate(text.split("\n"), 1)
    wanted = re.compile(pattern)
    return [
        n for n, row in rows if row.strip() and not (marks and MARK.fullmatch(row)) and wanted.search(row)
    ]


def grep(text: str, pattern: str, *, lines: bool, marks: bool) -> str:
    """Return what grep with context gives."""
    rows = text.split("\n")
    blocks = blocks_of(text, lines=lines, marks=marks)
    hits = matching(text, pattern, marks=marks)
    held = [at for at, block in enumerate(blocks) if _holds(block, hits, pattern)]
    groups: list[list[int]] = []
    for at in sorted({near for this in held for near in around(blocks, this)}):
        follows = groups and groups[-1][-1] == at - 1 and blocks[at].kind == "text"
        if follows:
            groups[-1].append(at)
        else:
            groups.append([at])
    shown = []
    for group in groups:
        path = " > ".join(blocks[group[0]].path)
        said = [path] if path else []
        for at in group:
            for number, row in enumerate(blocks[at].text.split("\n"), blocks[at].first):
                hit = number in hits and (len(rows[number - 1]) <= PIECE or re.search(pattern, row))
                said.append(f"{number}{':' if hit else '-'}{row}")
        shown.append("\n".join(said))
    return "\n--\n".join(shown)


def _holds(block: Block, hits: list[int], pattern: str) -> bool:
    inside = range(block.first, block.last + 1)
    return any(hit in inside for hit in hits) and any(
        re.search(pattern, row) for row in block.text.split("\n")
    )


def question(
    text: str, asked: str, *, pattern: str, context: bool, lines: bool, marks: bool
) -> tuple[str, list[tuple[object, ...]]]:
    """Return what a question gives, and the lines, page, score and headings of each passage."""
    blocks = blocks_of(text, lines=lines, marks=marks)
    scores = _scores(blocks, set(words_of(asked)))
    hits = matching(text, pattern, marks=marks) if pattern else []
    able = [at for at in scores if scores[at] > 0 and (not pattern or _holds(blocks[at], hits, pattern))]
    passages: list[tuple[float, set[int]]] = []
    for at in sorted(able, key=lambda at: (-scores[at], at))[:5]:
        score, members = scores[at], set(around(blocks, at) if context else [at])
        for other in [other for other in passages if other[1] & members]:
            passages.remove(other)
            score, members = max(score, other[0]), members | other[1]
        passages.append((score, members))
    passages.sort(key=lambda passage: (-passage[0], min(passage[1])))
    shown, facts = [], []
    for number, (score, members) in enumerate(passages, 1):
        chosen = [blocks[at] for at in sorted(members)]
        first, last, page, path = chosen[0].first, chosen[-1].last, chosen[0].page, chosen[0].path
        on_page = f", page {page}" if page else ""
        below = f": {' > '.join(path)}" if path else ""
        head = f"[{number}] lines {first}-{last}{on_page}, score {score:.2f}{below}"
        shown.append(head + "\n" + "\n\n".join(block.text for block in chosen))
        facts.append(([first, last], page, round(score, 2), list(path)))
    return "\n\n".join(shown), facts


def _scores(blocks: list[Block], asked: set[str]) -> dict[int, float]:
    """Return the BM25 score of each text block."""
    counts = {}
    for at, block in enumerate(blocks):
        if block.kind == "text":
            counts[at] = Counter(words_of(block.text))
            for heading in block.path:
                for word in words_of(heading):
                    counts[at][word] += 2
    mean = sum(sum(count.values()) for count in counts.values()) / max(len(counts), 1)
    scores = dict.fromkeys(counts, 0.0)
    for word in sorted(asked):
        having = sum(word in count for count in counts.values())
        idf = math.log(1 + (len(counts) - having + 0.5) / (having + 0.5))
        for at, count in counts.items():
            if count[word]:
                length = sum(count.values()) / mean
                scores[at] += idf * count[word] * 2.2 / (count[word] + 1.2 * (1 - 0.75 + 0.75 * length))
    return scores
