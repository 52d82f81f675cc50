"""What do the bytes of a page say?

Bytes to text by the page's charset, and an HTML page to its readable text and its title. Plain code
that takes time linear in the page: no backtracking pattern, no recursion. It is no HTML parser and
finds no main content. Next: `_plain`, which calls it.
"""

import codecs
import html
import re
from typing import Final

# A server's label never reaches Python's codec look-up unless it is one of these: there are codecs
# that are no charsets, and utf-7 turns plain letters into markup. As in browsers, ASCII and latin-1
# labels mean windows-1252, and the East Asian ones their supersets.
_WESTERN: Final = ("ascii", "us-ascii", "latin1", "latin-1", "iso-8859-1", "iso8859-1", "l1", "cp819")
_CODECS: Final = (
    dict.fromkeys(("utf-8", "utf8"), "utf-8")
    | dict.fromkeys((*_WESTERN, "windows-1252", "cp1252"), "windows-1252")
    | {f"windows-{n}": f"windows-{n}" for n in range(1250, 1259)}
    | {f"cp{n}": f"windows-{n}" for n in range(1250, 1259)}
    | {f"iso-8859-{n}": f"iso-8859-{n}" for n in (*range(2, 12), *range(13, 17))}
    | dict.fromkeys(("shift_jis", "shift-jis", "sjis", "windows-31j", "x-sjis"), "cp932")
    | dict.fromkeys(("euc-jp", "x-euc-jp"), "euc_jp")
    | dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949")
    | dict.fromkeys(("gbk", "gb2312", "gb18030", "x-gbk"), "gb18030")
    | dict.fromkeys(("big5", "big5-hkscs"), "big5hkscs")
)
_NAMES: Final = {"cp932": "shift_jis", "euc_jp": "euc-jp", "cp949": "euc-kr", "big5hkscs": "big5"}
_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META: Final = re.compile(
    rb"<meta\s[^>]{0,200}?charset\s{0,9}=\s{0,9}[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE
)
# The detector is slow, and the start of a page tells it enough.
_SAMPLE: Final = 32_768


def decode(body: bytes, label: str, *, is_html: bool) -> tuple[str, str]:
    """Return the text of `body` and the charset it was read in.

    Asked in this order: a byte order mark, the header's `label`, the page's own meta tag, whether it
    is valid UTF-8, a detector. Never fails; what can't be read becomes U+FFFD.
    """
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace"), codec
    found = _CODECS.get(label.strip().strip("\"'").lower())
    if found is None and label:
        found = "utf-8"  # a label that means nothing here
    if found is None and is_html and (meta := _META.search(body[:2_048])):
        found = _CODECS.get(meta[1].decode("ascii").lower())
    if found is None:
        found = "utf-8" if _is_utf8(body) else _detect(body)
    return body.decode(found, "replace"), _NAMES.get(found, found)


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _detect(body: bytes) -> str:
    from charset_normalizer import from_bytes  # slow to import, and seldom needed

    best = from_bytes(body[:_SAMPLE]).best()
    return _CODECS.get(best.encoding.replace("_", "-"), "windows-1252") if best else "windows-1252"


_BLOCK_NAMES: Final = """
    address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav ol option p pre section
    select summary table tbody tfoot thead title tr ul
"""
_BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
_CELLS: Final = frozenset({"td", "th"})
_SKIPPED: Final = frozenset({"script", "style", "template", "noscript", "svg", "textarea"})
# Any other "<" is text; passed over by the pattern, since a page may hold millions of them.
_OPENS: Final = re.compile(r"<(?=/?[A-Za-z]|[!?])")
_TAG: Final = re.compile(r"/?([A-Za-z][A-Za-z0-9:-]{0,30})")
_BLANKS: Final = re.compile(r"[ \t\r\f\n\xa0]+")


def page_text(source: str) -> tuple[str, str]:
    """Return the readable text of an HTML page, one block a line, and its title ("" if it has none).

    Cells of a table row are joined by " | ". Scripts, styles and comments are left out.
    """
    out: list[str] = []
    title, here = "", 0
    while opening := _OPENS.search(source, here):
        tag_at = opening.start()
        if tag_at > here:
            out.append(_plain(source[here:tag_at]))
        if source.startswith("<!--", tag_at):
            here = _after(source, "-->", tag_at + 4)
            continue
        tag = _TAG.match(source, tag_at + 1)
        if tag is None:
            # A declaration.
            here = _after(source, ">", tag_at)
            continue
        name, here = tag[1].lower(), _after(source, ">", tag.end())
        if source[tag_at + 1] != "/" and (name in _SKIPPED or name == "title"):
            inner_at, (here, inner_end) = here, _closing(source, name, here)
            if name == "title" and not title:
                title = _line(_plain(source[inner_at:inner_end]))
            continue
        out.append("\n" if name in _BLOCKS else " | " if name in _CELLS and tag[0][0] != "/" else "")
    out.append(_plain(source[here:]))
    lines = (_line(line).removeprefix("| ") for line in "".join(out).split("\n"))
    return "\n".join(line for line in lines if line and line != "|"), title


def _after(source: str, mark: str, start: int) -> int:
    at = source.find(mark, start)
    return len(source) if at < 0 else at + len(mark)


def _closing(source: str, name: str, start: int) -> tuple[int, int]:
    """Return where the text after the element goes on, and where the element's own text ends."""
    closing = re.compile(f"</{name}", re.IGNORECASE).search(source, start)
    if closing is None:
        return len(source), len(source)
    return _after(source, ">", closing.end()), closing.start()


def _plain(chunk: str) -> str:
    # A line end in the source is a blank in the text, as in a browser.
    chunk = _BLANKS.sub(" ", chunk)
    try:
        return html.unescape(chunk)
    except ValueError:
        # A character reference with more digits than Python makes a number of.
        return chunk


def _line(text: str) -> str:
    return _BLANKS.sub(" ", text).strip()
