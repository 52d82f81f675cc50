"""What does a heading say, without the marks round it? What a path is made of.

Link and emphasis marks go; code spans stay as they are, backticks included. Every step takes linear
time, whatever the heading holds. Next: `blocks`, whose blocks carry the headings above them.
"""

import re
from typing import Final

_LONGEST: Final = 2_000
_CLOSING: Final = re.compile(r"(?:^| )#+\Z")
_MARKS: Final = re.compile(r"[\[<`*_]")
_CODE: Final = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_LINK: Final = re.compile(
    r"""
    !?\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]  # [text] or ![alt], with brackets in it
    (?:\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\])  # (url "title"), with brackets in it, or [id]
    """,
    re.VERBOSE,
)
_AUTOLINK: Final = re.compile(r"<((?:https?://|mailto:)[^<>\s]*)>")
_EMPHASIS: Final = re.compile(r"(?<!\\)(?:\*+|_+)")
# Each mark has a stand-in that no text has: Unicode keeps these for such use.
_ASIDE: Final = {ord(char): 0xFDD0 + number for number, char in enumerate("\\[]()<>*_!")}
_BACK: Final = {stand_in: char for char, stand_in in _ASIDE.items()}
_NEVER: Final = dict.fromkeys(_BACK)


def title(heading: str) -> str:
    """Return the words of a heading's text, without link and emphasis marks.

    Of a heading longer than any that a person wrote, the beginning.
    """
    heading = heading.strip()
    if len(heading) > _LONGEST:
        heading = heading[:_LONGEST].rpartition(" ")[0] or heading[:_LONGEST]
    heading = _CLOSING.sub("", heading).strip()
    if not _MARKS.search(heading):
        return heading
    # Nothing in a code span is a mark: its characters are put aside while marks go.
    text = _CODE.sub(lambda code: code[0].translate(_ASIDE), heading.translate(_NEVER))
    for _ in range(2):  # an image may be a link's text
        text = _LINK.sub(r"\g<text>", text)
    text = _without_emphasis(_AUTOLINK.sub(r"\1", text))
    return text.translate(_BACK).strip()


def _without_emphasis(text: str) -> str:
    opened: dict[str, list[int]] = {}
    gone: list[tuple[int, int]] = []
    for mark in _EMPHASIS.finditer(text):
        before = text[mark.start() - 1 : mark.start()]
        after = text[mark.end() : mark.end() + 1]
        in_word = mark[0][0] == "_"  # there, an underscore is a letter like others
        starts = opened.setdefault(mark[0], [])
        if starts and before and not before.isspace() and not (in_word and after.isalnum()):
            start = starts.pop()
            gone += ((start, start + len(mark[0])), mark.span())
        elif after and not after.isspace() and not (in_word and before.isalnum()):
            starts.append(mark.start())
    for start, end in sorted(gone, reverse=True):
        text = text[:start] + text[end:]
    return text
