"""How does a formula read in one line?

TeX where the page carries it along, else what MathML shows, with the signs that keep its meaning on one
line: a fraction has its stroke, a power its ^. The same for raised and lowered letters in running text.
Next: `html_inline`.
"""

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lxml.html import HtmlElement

_POWER: Final = re.compile(r"[+\-\u2212]?[0-9]+|[+\-\u2212]\w{1,3}|[nmkijxy]")
_INDEX: Final = re.compile(r"[A-Za-z]\w{0,3}")
_ATOM: Final = re.compile(r"\w+|\(.*\)")
# A letter or two in a slanted type is a variable.
_VARIABLE: Final = frozenset({"var", "i", "em"})
_BETWEEN: Final = {
    "mfrac": "/",
    "msup": "^",
    "mover": "^",
    "msub": "_",
    "munder": "_",
}
_BETWEEN_THREE: Final = {"msubsup": ("_", "^"), "munderover": ("_", "^")}


def formula(element: "HtmlElement", *, marks: bool) -> str:
    """Return a `math` element as TeX between dollar signs, or as what it shows on one line."""
    text = element.get("alttext") or ""
    for note in element.iter("annotation"):
        if "tex" in (note.get("encoding") or "").lower():
            text = note.text or text
    text = " ".join(text.split())
    if text:
        return f"${text}$" if marks else text
    return " ".join(_shown(element).split())


def _shown(element: "HtmlElement") -> str:
    parts = [_shown(child) for child in element if isinstance(child.tag, str)]
    tag = element.tag
    if tag in ("annotation", "annotation-xml"):
        return ""
    if tag in _BETWEEN and len(parts) == 2:
        return _joined(parts, (_BETWEEN[tag],))
    if tag in _BETWEEN_THREE and len(parts) == 3:
        return _joined(parts, _BETWEEN_THREE[tag])
    if tag == "mroot" and len(parts) == 2:
        return f"root({parts[0]}, {parts[1]})"
    inner = (element.text or "").strip() + "".join(parts)
    if tag == "msqrt":
        return f"√({inner})"
    if tag == "mtr":
        return " ".join(parts) + "; "
    return f" {inner} " if tag == "mo" and inner in ("=", "<", ">", "≤", "≥", "≈", "→", "⇒") else inner


def _joined(parts: "Sequence[str]", signs: "Sequence[str]") -> str:
    atoms = [part if _ATOM.fullmatch(part.strip()) else f"({part.strip()})" for part in parts]
    return atoms[0] + "".join(sign + atom for sign, atom in zip(signs, atoms[1:], strict=True))


def raised(element: "HtmlElement", inner: str) -> str:
    """Return the content of a `sup`; a power gets its sign, for 10<sup>6</sup> is not 106."""
    text = inner.strip()
    left = _left(element)
    return f"^{text}" if (left[-1:].isalnum() or left[-1:] == ")") and _POWER.fullmatch(text) else inner


def lowered(element: "HtmlElement", inner: str) -> str:
    """Return the content of a `sub`; letters get a sign, or they would grow on to the word."""
    return f"_{inner.strip()}" if _left(element)[-1:].isalnum() and _INDEX.fullmatch(inner.strip()) else inner


def _left(element: "HtmlElement") -> str:
    """Return the text right before an element, that of a variable included."""
    before = element.getprevious()
    if before is None:
        above = element.getparent()
        return (above.text if above is not None else "") or ""
    if not before.tail and before.tag in _VARIABLE and not len(before):
        name = (before.text or "").strip()
        return name if len(name) < 3 else ""
    return before.tail or ""
