"""What may stand in a text that was read out of a document, and how are its lines laid out?

The rules of every converted text, in one place: line ends, blanks, blank lines, and no character that
hides or reorders what a person reads. One pass, whatever the text holds. It does not know where the
text came from. Next: `html_tree`, which makes a tree of a page.
"""

import re
from typing import Final

# What shows nothing and what turns the order of reading round: C0 but tab and newline, DEL and C1 (some
# terminals obey them), the marks and overrides of bidirectional text, everything of no width, fillers and
# tags (whole sentences can be written in them), a byte order mark in the text included. Variation
# selectors stay: emoji are spelled with them.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0001\U000e0020-\U000e007f]+"
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_FENCE: Final = re.compile(r"[ \t>]*(`{3,}|~{3,})(.*)")


def clean_text(text: str) -> str:
    """Return `text` under the rules that hold for every text which a reader gives.

    Lines end in a newline and not in blanks; outside fences no two blank lines follow each other;
    there is none at either end. Control characters but tab and newline, bidirectional marks and
    characters without width are gone; a lone surrogate is U+FFFD. Takes linear time, never fails.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _SURROGATE.sub("\ufffd", _UNSEEN.sub("", text))
    lines: list[str] = []
    fence = ""  # the mark that opened the fence we are in
    for raw in text.split("\n"):
        line = raw.rstrip()
        if line or (lines and (fence or lines[-1])):
            lines.append(line)
        if line and line.lstrip(" \t>")[:3] in ("```", "~~~"):
            fence = _fence_after(line, fence)
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


def _fence_after(line: str, fence: str) -> str:
    """Return the mark of the fence that is open after `line`; "" if none is."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    mark, rest = found.groups()
    if not fence:
        return "" if mark[0] == "`" and "`" in rest else mark
    closes = mark[0] == fence[0] and len(mark) >= len(fence) and not rest.strip()
    return "" if closes else fence
