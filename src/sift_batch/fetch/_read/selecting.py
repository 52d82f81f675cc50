"""What of a text do the options ask for? grep, then a question.

It does not make the text (pages and jq did), and does not cut it: next is `cut`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..._model.values import Options
from . import grep, question
from .blocks import Block, split
from .pattern import Pattern, compile_pattern


class Selected(NamedTuple):
    """What was chosen, and what `Result.meta` is told of it."""

    content: str
    facts: dict[str, Any]


def select(
    text: str, options: Options, *, lines: bool, marks: bool, markup: bool = True, limit: int | None = None
) -> Selected:
    """Return what `options` choose from `text`: all of it without grep and question.

    `lines`: the text is jq's or the links mode's output, where each line is a block and nothing is a
    heading. `marks`: the text is a PDF's, whose `[page 3 of 12]` lines are page marks. `markup`: what
    looks like a heading or a fence is one, which it is not in mode text, where markup was left out.
    `limit`: the bytes of a result; of a line found that is longer, the pieces with a match are given.
    Raises `ReadError` `bad_option` for a pattern that is not sound.
    """
    if not options.grep and not options.question:
        return Selected(text, {})
    facts: dict[str, Any] = {}
    blocks: list[Block] = []
    if options.question or options.context:
        blocks = split(text, lines=lines, marks=marks, markup=markup)
    among: set[int] | None = None
    content = ""
    if options.grep:
        pattern = compile_pattern(options.grep)
        found = grep.find(text, pattern, marks=marks)
        facts["matches"] = len(found)
        held = grep.holders(text, found, blocks, pattern) if blocks else []
        if options.question:
            among = {index for _, index in held}
        elif options.context:
            content = grep.groups(text, held, blocks)
        else:
            content, cut = _lines(text, found, pattern, limit)
            facts |= cut
    if options.question:
        content, passages = question.select(
            text, blocks, options.question, among=among, context=options.context is not False
        )
        facts["passages"] = passages
    if not content:
        facts |= no_match(len(text))
    return Selected(content, facts)


def _lines(
    text: str, found: Sequence[grep.Found], pattern: Pattern, limit: int | None
) -> tuple[str, dict[str, Any]]:
    """Return the lines found, and the facts of having left out parts of lines that no result can hold."""
    content = grep.lines(text, found)
    if limit is None or len(content) <= limit // 4:
        return content, {}
    shorter = grep.lines_in_part(text, found, pattern, limit)
    if shorter is None:
        return content, {}
    hint = (
        "a line is longer than a result: these are the pieces of it in which a match begins; "
        "context gives what stands round them, and jq chooses from JSON"
    )
    return shorter, {"truncated": True, "chars_total": len(content), "code": "truncated", "hint": hint}


def nothing(options: Options) -> dict[str, Any]:
    """Return the facts of a choice from a text that has nothing in it."""
    return ({"matches": 0} if options.grep else {}) | ({"passages": []} if options.question else {})


def no_match(chars: int) -> dict[str, str]:
    """Return the facts of a target of whose text, so many characters in all, nothing was chosen."""
    return {
        "code": "no_match",
        "hint": f"nothing in the whole text of {chars} characters matched; ask for other words",
    }
