"""In which charset was a page written?

Bytes to text, asked in this order: a byte order mark, the header's label, what the page says of itself,
whether it is valid UTF-8, a detector. Never fails, and what comes out never holds half of a surrogate
pair. It decides nothing about kinds. Next: `kinds`, which asks first what a page is.
"""

import codecs
import re
from typing import Final, NamedTuple

# A label never reaches Python's codec look-up unless it is one of these: there are codecs that are no
# charsets, and utf-7 turns plain letters into markup. As in browsers, ASCII and latin-1 labels mean
# windows-1252, and the East Asian ones their supersets.
_WESTERN: Final = ("ascii", "us-ascii", "latin1", "latin-1", "iso-8859-1", "iso8859-1", "l1", "cp819")
_ISO_PARTS: Final = (*range(2, 12), *range(13, 17))
_CODECS: Final = (
    dict.fromkeys(("utf-8", "utf8"), "utf-8")
    | dict.fromkeys((*_WESTERN, "windows-1252", "cp1252", "x-cp1252"), "windows-1252")
    | {f"windows-{n}": f"windows-{n}" for n in range(1250, 1259)}
    | {f"cp{n}": f"windows-{n}" for n in range(1250, 1259)}
    | {f"iso-8859-{n}": f"iso-8859-{n}" for n in _ISO_PARTS}
    | {f"iso8859-{n}": f"iso-8859-{n}" for n in _ISO_PARTS}
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
# How far a page is searched for what it says of itself, as in browsers.
_PRESCAN: Final = 1_024
_HTML_SAYS: Final = re.compile(
    rb"<meta\s[^>]{0,400}?charset\s{0,9}=\s{0,9}[\"']?\s{0,9}([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE
)
_XML_SAYS: Final = re.compile(
    rb"\s{0,99}<\?xml\s[^>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9_.:-]{1,40})"
)
_COMMENT: Final = re.compile(rb"<!--.*?(?:-->|\Z)", re.DOTALL)
# The detector is slow, and the start of a page tells it enough.
_SAMPLE: Final = 32_768
_WESTERN_CODEC: Final = "windows-1252"
_SLACK: Final = 0.02
# The detector's name of each codec that it may choose.
_DETECTED: Final = (
    {f"cp{n}": f"windows-{n}" for n in range(1250, 1259)}
    | {f"iso8859_{n}": f"iso-8859-{n}" for n in (2, 5, 7, 9, 15)}
    | {codec: codec for codec in ("cp932", "euc_jp", "cp949", "gb18030", "big5hkscs")}
)


class Decoded(NamedTuple):
    """A page's text, the name of its charset, and whether every byte of it could be read."""

    text: str
    charset: str
    lossless: bool


def has_wide_mark(body: bytes) -> bool:
    """Return whether a byte order mark says UTF-16, in which plain letters hold NUL bytes."""
    return body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decode(body: bytes, label: str) -> Decoded:
    """Return the text of `body`; `label` is the header's charset, "" without one.

    What can't be read becomes U+FFFD.
    """
    for mark, codec in _BOMS:
        if body.startswith(mark):
            return _decoded(body[len(mark) :], codec)
    if label:
        # A label that means nothing here is no reason to guess: most of the web is UTF-8.
        return _decoded(body, _CODECS.get(label, "utf-8"))
    if codec := _declared(body[:_PRESCAN]):
        return _decoded(body, codec)
    found = _decoded(body, "utf-8")
    return found if found.lossless else _decoded(body, _detect(body))


def _declared(head: bytes) -> str:
    """Return the codec that a page names in its own first bytes, "" for none that counts."""
    if said := _XML_SAYS.match(head) or _HTML_SAYS.search(_COMMENT.sub(b"", head)):
        return _CODECS.get(said[1].decode("ascii").lower(), "")
    return ""


def _decoded(body: bytes, codec: str) -> Decoded:
    lossless = True
    try:
        text = body.decode(codec)
    except UnicodeDecodeError:
        lossless = False
        text = body.decode(codec, "replace")
    return Decoded(text, _NAMES.get(codec, codec), lossless)


def _detect(body: bytes) -> str:
    """Return the codec that the beginning of the page looks like, windows-1252 unless another fits better."""
    from charset_normalizer import from_bytes  # slow to import, and seldom needed

    sample = body[:_SAMPLE]
    if len(body) > _SAMPLE:  # a character that is cut in half would rule its charset out
        sample = sample[: max(sample.rfind(b" "), sample.rfind(b"\n")) + 1] or sample
    found = list(from_bytes(sample, cp_isolation=list(_DETECTED)))
    if not found:
        return _WESTERN_CODEC
    best = found[0]
    for match in found:
        # Short texts fit many charsets of one family equally well: then it is the usual one.
        as_clean = match.chaos <= best.chaos + _SLACK and match.coherence >= best.coherence - 5 * _SLACK
        if as_clean and "cp1252" in match.could_be_from_charset:
            return _WESTERN_CODEC
    return _DETECTED.get(best.encoding, _WESTERN_CODEC)
