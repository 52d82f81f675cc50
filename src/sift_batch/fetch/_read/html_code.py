"""What does a block of code say, and in which language?

The text of a `pre` exactly as the page shows it, indentation and blank lines kept, without line
numbers and copy buttons; and the language where the page tells it. It does not guess. Next:
`html_blocks`.
"""

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Container

    from lxml.html import HtmlElement

_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight-source|highlight-text|highlight)-|sourceCode\s|brush:)\s*"
    r"([A-Za-z][A-Za-z0-9+#_.-]{0,20})"
)
_NO_LANGUAGE_TEXT: Final = """
    default none text plain plaintext txt nohighlight no-highlight highlight notranslate console-output
    literal-block wrapper line-numbers linenums prettyprint code block source-code copy hljs
    """
_NO_LANGUAGE: Final = frozenset(_NO_LANGUAGE_TEXT.split())
_NUMBERS_TEXT: Final = """
    linenos lineno linenumber linenumbers line-number line-numbers line-numbers-rows gutter blob-num
    hljs-ln-numbers lnt ln rouge-gutter copy copybtn copy-button copy-code-button code-copy btn-clipboard
    react-code-line-number blob-num-addition linenum line-num
    """
_NUMBERS: Final = frozenset(_NUMBERS_TEXT.split())
_SILENT: Final = frozenset({"script", "style", "button", "template", "svg", "select", "textarea", "noscript"})
_LINES: Final = frozenset({"div", "p", "li", "tr", "table", "ol", "ul"})
_TICKS: Final = re.compile(r"^[ \t]*(`{3,})", re.MULTILINE)


def code_text(element: "HtmlElement", dropped: "Container[HtmlElement]") -> str:
    """Return the text of a block of code as the page shows it."""
    text = without_numbers(element, dropped).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    start = 0
    while start < len(lines) and not lines[start]:
        start += 1
    return "\n".join(lines[start:])


def without_numbers(element: "HtmlElement", dropped: "Container[HtmlElement]") -> str:
    """Return the text in an element as it stands there, without line numbers and copy buttons."""
    pieces: list[str] = [element.text or ""]
    for child in element:
        _collect(child, dropped, pieces)
    return "".join(pieces)


def _collect(element: "HtmlElement", dropped: "Container[HtmlElement]", pieces: list[str]) -> None:
    tag = element.tag
    if isinstance(tag, str) and element not in dropped and tag not in _SILENT and not is_number(element):
        if tag == "br":
            pieces.append("\n")
        own_line = tag in _LINES or "display:block" in (element.get("style") or "").replace(" ", "")
        if own_line:
            _new_line(pieces)
        pieces.append(element.text or "")
        for child in element:
            _collect(child, dropped, pieces)
        if own_line and (element.tail or element.getnext() is not None):
            pieces.append("\n") if not pieces[-1].endswith("\n") else None
    pieces.append(element.tail or "")


def _new_line(pieces: list[str]) -> None:
    for piece in reversed(pieces):
        if piece:
            if not piece.endswith("\n"):
                pieces.append("\n")
            return


def is_number(element: "HtmlElement") -> bool:
    """Tell whether an element shows line numbers or copies the code, and is none of it."""
    name = element.get("class")
    if element.get("data-line-number") is not None and not (element.text or "").strip():
        return True
    return bool(name) and not _NUMBERS.isdisjoint(name.lower().split())


def language(element: "HtmlElement") -> str:
    """Return the language that a block of code or its wrapper names, "" if none is told."""
    asked = [element]
    inner = element[0] if len(element) else None
    if inner is not None and inner.tag == "code":
        asked.insert(0, inner)
    above = element.getparent()
    while (
        above is not None and len(asked) < 5 and above.tag in ("div", "figure", "td", "tr", "tbody", "table")
    ):
        asked.append(above)
        above = above.getparent()
    for candidate in asked:
        for name in ("data-lang", "data-language", "lang", "syntax"):
            value = (candidate.get(name) or "").strip().lower()
            if name != "lang" and value and value not in _NO_LANGUAGE and _is_name(value):
                return value
        for found in _LANGUAGE.finditer(candidate.get("class") or ""):
            value = found[1].lower()
            if value not in _NO_LANGUAGE:
                return value
    return ""


def _is_name(value: str) -> bool:
    return len(value) <= 20 and all(char.isalnum() or char in "+#_.-" for char in value)


def fenced(text: str, name: str) -> str:
    """Return code in a fence that nothing in it can close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{name}\n{text}\n{fence}"
