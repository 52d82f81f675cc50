"""Which HTML elements are what?

The field's knowledge of names that the readers of a page share: which elements are blocks, which say
nothing to a reader, which mark emphasis or code. Tables only. Next: `html_inline`.
"""

from typing import Final

_BLOCKS_TEXT: Final = """
    address article aside blockquote body center dd details dialog dir div dl dt fieldset figcaption figure
    footer form frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li listing main menu nav noframes
    ol optgroup option p pre plaintext search section summary table tbody td tfoot th thead tr ul xmp caption
    """
BLOCKS: Final = frozenset(_BLOCKS_TEXT.split())
# Nothing in them is for reading.
_SILENT_TEXT: Final = """
    applet area audio base basefont bgsound button canvas colgroup col datalist embed head iframe link map
    meta noscript noembed object param progress meter rp script select source style svg template textarea
    title track video
    """
SILENT: Final = frozenset(_SILENT_TEXT.split())
HEADINGS: Final = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
STRONG: Final = frozenset({"b", "strong"})
EMPHASIS: Final = frozenset({"i", "em", "cite", "dfn"})
DELETED: Final = frozenset({"s", "strike", "del"})
CODE: Final = frozenset({"code", "tt", "samp", "kbd"})
FENCED: Final = frozenset({"pre", "listing", "xmp", "plaintext"})
LISTS: Final = frozenset({"ul", "ol", "menu", "dir"})
