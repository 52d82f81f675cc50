"""What is a block of a page, and how do blocks follow each other?

A block is a kind and its lines, written already. Here is what looks at whole blocks and not at the page:
which of them say nothing new, how items become a list, how code stands in a line. Next: `html_blocks`,
which makes them.
"""

from typing import NamedTuple


class Block(NamedTuple):
    """One block: what it is ("text", "heading", "list", "code", "table", "quote", "rule") and its lines."""

    kind: str
    text: str


def without_repeats(blocks: list[Block]) -> list[Block]:
    """Leave out rules at the ends and after each other, and headings that say the same again."""
    kept: list[Block] = []
    for block in blocks:
        before = kept[-1] if kept else None
        if block.kind == "rule" and (before is None or before.kind == "rule"):
            continue
        if before is not None and before.kind == block.kind == "heading" and _says_same(before, block):
            continue
        kept.append(block)
    while kept and kept[-1].kind == "rule":
        kept.pop()
    return kept


def close_list(items: list[str], blocks: list[Block]) -> None:
    """Add the items, if there are any, to the blocks as one list, and begin anew."""
    if items:
        blocks.append(Block("list", "\n".join(items)))
        items.clear()


def in_line(code: str, *, marks: bool) -> str:
    """Return a block of code as it can stand in a line of text."""
    if not marks:
        return code
    text = " ".join(code.split("\n")[1:-1])
    return f"`{text}`" if "`" not in text else text


def _says_same(first: Block, second: Block) -> bool:
    return first.text.lstrip("#") == second.text.lstrip("#")
