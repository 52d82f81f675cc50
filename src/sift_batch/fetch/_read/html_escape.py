"""Which signs in a page's own words would be read as Markdown?

Only those that would make a mark are escaped: a pair of stars round words is, a factor between blanks or
the low lines in a name are not, so that code and names in running text stay as they are. Dashes, numbers
and angles at the start of a line stay too: a person reads them as a list or a quote, and so may a program.
Next: `html_inline`.
"""

import re
from typing import Final

# The middle of a pair holds no such mark, so that a long run of marks is looked through once.
_STARS: Final = re.compile(r"\*(?=[^\s*])[^*]*(?<=[^\s*])\*")
_STAR: Final = re.compile(r"\*(?=\S)|(?<=\S)\*")
_LOW_OPENS: Final = re.compile(r"(?<!\w)_+(?=[^\W_])")
_LOW_CLOSES: Final = re.compile(r"(?<=[^\s_\\])_+(?!\w)")
_TICKS: Final = re.compile(r"(?<!`)(`+)(?!`)")
_DELETED: Final = re.compile(r"~~(?=[^\s~])[^~]*(?<=[^\s~])~~")
_LINK: Final = re.compile(r"\[(?=[^\[\]\n]{0,1000}\]\()")
_MOST: Final = 5_000  # a longer run of text is not prose

# A line that starts like this would be read as a heading, a rule or the start of a fence.
_LIKE_MARK: Final = re.compile(
    r"^(?=#{1,6}(?: |$)|```|~~~|={3,} *$|(?:[-*_] ?){3,}$|[|: ]*-{3}[-|: ]*$)", re.MULTILINE
)


def escaped(text: str) -> str:
    """Return a run of a page's text so that none of its signs is read as emphasis, code or a link."""
    if len(text) > _MOST:
        return text
    if text.count("*") > 1 and _STARS.search(text):
        text = _STAR.sub(r"\\*", text)
    if text.count("_") > 1:
        text = _low_lines(text)
    if text.count("`") > 1:
        runs = [found[1] for found in _TICKS.finditer(text)]
        if len(set(runs)) < len(runs):
            text = text.replace("`", "\\`")
    if "~~" in text and _DELETED.search(text):
        text = text.replace("~~", "\\~~")
    return _LINK.sub(r"\\[", text) if "](" in text else text


def _low_lines(text: str) -> str:
    opens = _LOW_OPENS.search(text)
    if opens is None or _LOW_CLOSES.search(text, opens.end()) is None:
        return text
    return _LOW_CLOSES.sub(_each_escaped, _LOW_OPENS.sub(_each_escaped, text))


def _each_escaped(found: re.Match[str]) -> str:
    return "\\_" * len(found[0])


def escaped_lines(text: str) -> str:
    """Return the lines of a paragraph so that none is read as a heading, a rule or a fence."""
    return _LIKE_MARK.sub(r"\\", text)
