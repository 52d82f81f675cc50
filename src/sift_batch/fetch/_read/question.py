"""Which passages of a text answer a question best? By the words they share with it: BM25 over blocks.

Nothing is understood here: no model, no stemming, no synonyms. Next: `selecting`, which puts grep before.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final, NamedTuple

from .blocks import Block, neighbours
from .words import words, words_of

BEST: Final = 5
"""So many passages are given at most."""

_K1: Final = 1.2
_B: Final = 0.75
_PATH_WEIGHT: Final = 2


class Passage(NamedTuple):
    """Blocks that belong together, as indexes, and the score of the best of them."""

    indexes: range
    score: float


def select(
    text: str, blocks: Sequence[Block], question: str, *, among: Collection[int] | None, context: bool
) -> tuple[str, list[dict[str, Any]]]:
    """Return the passages of `text` that fit `question` best, as text and as facts; "" and [] for none.

    `among` are the indexes of the text blocks to choose from (None: all); the words of all text blocks
    count in the scores all the same. `context` takes the neighbours of each passage with it.
    """
    passages = _passages(blocks, _best(text, blocks, question, among), context=context)
    shown = [_show(number, text, blocks, passage) for number, passage in enumerate(passages, 1)]
    return "\n\n".join(shown), [_facts(blocks, passage) for passage in passages]


def _best(
    text: str, blocks: Sequence[Block], question: str, among: Collection[int] | None
) -> list[tuple[int, float]]:
    """Return the best text blocks with their scores: the highest first, of equals the earlier."""
    scores = [
        (index, score)
        for index, score in _scores(text, blocks, question)
        if score > 0 and (among is None or index in among)
    ]
    scores.sort(key=lambda scored: (-scored[1], scored[0]))
    return scores[:BEST]


def _scores(text: str, blocks: Sequence[Block], question: str) -> Iterator[tuple[int, float]]:
    """Give the BM25 score of each text block that has a word of the question.

    For each different word of the question that stands in the block f times, with N text blocks in all,
    n of which have the word: ln(1 + (N - n + 0.5) / (n + 0.5)) * f * (k1 + 1) / (f + k1 * (1 - b + b *
    length / mean length)). Lengths and f count the block's own words once and those of its path twice.
    """
    asked = sorted(set(words(question)))  # one order of adding up, so that equal blocks score the same
    wanted = frozenset(asked)
    indexes = [index for index, block in enumerate(blocks) if block.kind == "text"]
    texts = [text[blocks[index].start : blocks[index].end] for index in indexes]
    paths: dict[tuple[str, ...], tuple[int, dict[str, int]]] = {}
    counts: list[tuple[int, int, dict[str, int]]] = []
    total = 0
    spread = dict.fromkeys(asked, 0)
    for index, own in zip(indexes, words_of(texts), strict=True):
        path = blocks[index].path
        if path not in paths:
            paths[path] = _weighed(path, wanted)
        path_length, of_path = paths[path]
        length = len(own) + path_length
        total += length
        if not of_path and wanted.isdisjoint(own):
            continue
        found = dict(of_path)
        for word in own:
            if word in wanted:
                found[word] = found.get(word, 0) + 1
        for word in found:
            spread[word] += 1
        counts.append((index, length, found))
    many = len(indexes)
    rarity = {word: math.log(1 + (many - spread[word] + 0.5) / (spread[word] + 0.5)) for word in asked}
    for index, length, found in counts:
        damping = _K1 * (1 - _B + _B * length * many / total)
        yield (
            index,
            sum(
                rarity[word] * found[word] * (_K1 + 1) / (found[word] + damping)
                for word in asked
                if word in found
            ),
        )


def _weighed(path: Sequence[str], wanted: Collection[str]) -> tuple[int, dict[str, int]]:
    """Return what a path adds to each of its blocks: to the length, and to the counts of wanted words."""
    of_path = [word for heading in path for word in words(heading)]
    counts = Counter(word for word in of_path if word in wanted)
    return _PATH_WEIGHT * len(of_path), {word: _PATH_WEIGHT * count for word, count in counts.items()}


def _passages(blocks: Sequence[Block], best: Sequence[tuple[int, float]], *, context: bool) -> list[Passage]:
    """Return the passages round the best blocks, in the order in which they are shown.

    Those that share a block become one, which has the score of its best block. Neighbours never lie
    beyond a heading or a page mark, so that all blocks of a passage have one path and one page.
    """
    joined: list[Passage] = []
    for index, score in sorted(best):
        indexes = neighbours(blocks, index) if context else range(index, index + 1)
        before = joined[-1] if joined else None
        if before is not None and before.indexes.stop > indexes.start:
            joined[-1] = Passage(range(before.indexes.start, indexes.stop), max(before.score, score))
        else:
            joined.append(Passage(indexes, score))
    return sorted(joined, key=lambda passage: (-passage.score, passage.indexes.start))


def _show(number: int, text: str, blocks: Sequence[Block], passage: Passage) -> str:
    chosen = [blocks[index] for index in passage.indexes]
    page = "" if chosen[0].page is None else f", page {chosen[0].page}"
    path = f": {' > '.join(chosen[0].path)}" if chosen[0].path else ""
    head = f"[{number}] lines {chosen[0].first}-{chosen[-1].last}{page}, score {passage.score:.2f}{path}"
    return head + "\n" + "\n\n".join(text[block.start : block.end] for block in chosen)


def _facts(blocks: Sequence[Block], passage: Passage) -> dict[str, Any]:
    first, last = blocks[passage.indexes[0]], blocks[passage.indexes[-1]]
    facts: dict[str, Any] = {"lines": [first.first, last.last]}
    if first.page is not None:
        facts["page"] = first.page
    return facts | {"score": round(passage.score, 2), "headings": list(first.path)}
