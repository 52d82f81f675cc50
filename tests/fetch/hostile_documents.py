"""Documents that are made to hurt whoever reads them, with what a fetch of each may end in.

    from hostile_documents import DOCUMENTS

maps a name to a `Case`: the body (made when it is asked for), the header, the options, and `codes`, the
ways in which a fetch may end ("" for a result, which then has `says` in it). `kind` groups them: "html",
"packed", "pdf", "feed", "json", "jq", "grep", "charset", "text". `slow` marks those that cost a reader
seconds, or end only by its limits. `SWITCHES` has the same for the hostile server, by the same names.
"""

import base64
import functools
import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from hostile_talk import Act, Switch, Talk, answer
from pdf_bombs import BOMBS

from sift_batch import Options

_MIB = 2**20
_READ = ("",)
_EITHER = ("", "extract_failed")
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"


@dataclass(frozen=True)
class Case:
    """One hostile document."""

    kind: str
    body: Callable[[], bytes]
    content_type: str
    codes: tuple[str, ...] = _READ
    says: str = ""
    options: Options = field(default_factory=Options)
    headers: tuple[str, ...] = ()
    slow: bool = False


def _html(source: str, says: str = "end", **options: str) -> Case:
    return Case("html", source.encode, _HTML, _READ, says, Options(**options))  # type: ignore[arg-type]


def _nested(tag: str, count: int = 100_000) -> Case:
    says = "" if tag == "svg" else "end"  # so deep in a drawing nobody looks for text
    return Case("html", lambda: f"<{tag}>".encode() * count + b"<p>the end", _HTML, _EITHER, says)


def _many(begin: str, item: str, count: int, says: str = "", **options: str) -> Case:
    def body() -> bytes:
        return (begin + item * count + "<p>the end of it").encode()

    return Case("html", body, _HTML, _EITHER, says, Options(**options), slow=True)  # type: ignore[arg-type]


_BOMB_PAGE = b"<p>" + b"a" * (20 * _MIB)

HTML = {
    **{f"nested_{tag}": _nested(tag) for tag in ("div", "blockquote", "ul", "font", "table", "svg", "math")},
    "nested_lists": _nested("ul><li", 50_000),
    "nested_cells": _nested("div><ul><li><table><tr><td", 20_000),
    "cells_60000": _many("<table><tr>", "<td>1</td>", 60_000),
    "cells_60000_full": _many("<table><tr>", "<td>1</td>", 60_000, mode="full"),
    "paragraphs_60000": _many("", "<p>.</p>", 60_000),
    "items_1000000": _many("<ul>", "<li>x", 1_000_000),
    "items_1000000_text": _many("<ul>", "<li>x", 1_000_000, mode="text"),
    "items_1000000_grep": _many("<ul>", "<li>x", 1_000_000, "the end", grep="end"),
    "items_1000000_links": _many("<ul>", "<li><a href=/x>x</a>", 450_000, '"text": "x"', mode="links"),
    "attribute_10_mb": Case(
        "html", lambda: b'<p title="' + b"a" * (10 * _MIB - 40) + b'">hello</p>', _HTML, _EITHER, "hello"
    ),
    "attributes_300000": Case(
        "html",
        lambda: b"<p " + b" ".join(b"a%d=1" % n for n in range(300_000)) + b">hello",
        _HTML,
        _EITHER,
        slow=True,
    ),
    "one_word_9_mb": Case("html", lambda: b"a" * (9 * _MIB) + b" end", _HTML, _EITHER, slow=True),
    "less_than_signs": Case("html", lambda: b"<p>a</p>" + b"<" * _MIB, _HTML, _EITHER),
    "entities_1000000": Case("html", lambda: b"&amp;&#0;&#xd800;" * 300_000, _HTML, _EITHER, slow=True),
    "comment_9_mb": Case("html", lambda: b"<p>the end<!--" + b"-" * (9 * _MIB), _HTML, _EITHER),
    "script_9_mb": Case("html", lambda: b"<p>the end<script>" + b"'<" * (4 * _MIB), _HTML, _EITHER),
    "json_ld_deep": Case(
        "html",
        lambda: b'<script type="application/ld+json">' + b"[" * 100_000 + b"</script><p>the end",
        _HTML,
        _EITHER,
        options=Options(mode="meta"),
    ),
    "rowspans": Case(
        "html",
        lambda: b"<table><tr>" + b"<td rowspan=65534 colspan=1000>x" * 500 + b"<tr>" * 9_000 + b"</table>end",
        _HTML,
        _EITHER,
        slow=True,
    ),
    "external_entity": _html("<!DOCTYPE x [<!ENTITY y SYSTEM 'file:///etc/passwd'>]><p>&y; the end"),
    "nul_in_html": Case("html", lambda: b'<p val="x\0">a\0b</p>', _HTML, ("", "unsupported_type")),
    "xml_declaration": _html("<?xml version='1.0' encoding='utf-8'?><html><body><p>the end of the page"),
    "noncharacters": _html("<p>a\ufffe\x0c\ufeff\ufeffb the end"),
    "surrogate_entity": _html("<title>&#xd83d;</title><p>&#xd83d; the end"),
    "data_images": _html(
        "<p>the end of it</p>"
        + "".join(
            f'<img alt="i{n}" src="data:image/png;base64,{base64.b64encode(bytes(240_000)).decode()}">'
            for n in range(21)
        )
        + '<p style="background:url(data:image/png;base64,AA)">b</p><a href="data:text/html,x">a</a>',
        mode="full",
    ),
    "script_links": _html(
        "<p>the end<a href='javascript:alert(1)'>x</a><a href='\x01http://a'>y</a>", mode="full"
    ),
}

PACKED = {
    "gzip_html_bomb": Case(
        "packed",
        lambda: gzip.compress(_BOMB_PAGE),
        _HTML,
        ("too_large",),
        headers=("Content-Encoding: gzip",),
    ),
    "gzip_under_the_cap": Case(
        "packed",
        lambda: gzip.compress(b"<p>the end</p>" + b" " * (9 * _MIB)),
        _HTML,
        says="the end",
        headers=("Content-Encoding: gzip",),
    ),
    "gzip_of_gzip": Case(
        "packed",
        lambda: gzip.compress(gzip.compress(_BOMB_PAGE)),
        "application/gzip",
        ("unsupported_type",),
        headers=("Content-Encoding: gzip",),
    ),
    "br_bomb": Case(
        "packed", lambda: b"\x0b\x02\x80" * 5_000, _HTML, ("refused",), headers=("Content-Encoding: br",)
    ),
    "zstd_bomb": Case(
        "packed",
        lambda: b"\x28\xb5\x2f\xfd" * 5_000,
        _HTML,
        ("refused",),
        headers=("Content-Encoding: zstd",),
    ),
    "deflate_bomb": Case(
        "packed",
        lambda: zlib.compress(_BOMB_PAGE),
        _HTML,
        ("refused",),
        headers=("Content-Encoding: deflate",),
    ),
}


_PDF_SLOW = frozenset({"a million paths", "forms in forms"})


def _pdf(name: str) -> Case:
    return Case("pdf", BOMBS[name], "application/pdf", _EITHER, slow=name in _PDF_SLOW)


PDF = {
    **{"pdf_" + name.replace(" ", "_"): _pdf(name) for name in BOMBS},
    "pdf_is_html": Case("pdf", lambda: b"<html><p>hello", "application/pdf", ("refused",)),
    "pdf_only_a_head": Case("pdf", lambda: b"%PDF-1.7\n", "application/pdf", _EITHER),
    "pdf_of_nul": Case("pdf", lambda: b"%PDF-1.7\n" + bytes(_MIB), "application/pdf", _EITHER),
    "pdf_all_pages": Case(
        "pdf",
        BOMBS["a milliard pages"],
        "application/pdf",
        ("bad_option", "extract_failed"),
        options=Options(pages="1-999999999999"),
    ),
}


def _laughs(depth: int, width: int) -> bytes:
    lines = [f'<!ENTITY e{n} "{f"&e{n - 1};" * width}">' for n in range(1, depth)]
    head = '<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY e0 "lol">' + "".join(lines) + "]>"
    item = f"<item><title>&e{depth - 1};</title></item>"
    return f"{head}<rss><channel><title>t</title>{item}</channel></rss>".encode()


def _feed(body: Callable[[], bytes], *, slow: bool = False) -> Case:
    return Case("feed", body, "application/rss+xml", _EITHER, slow=slow)


FEED = {
    "feed_laughs": _feed(lambda: _laughs(10, 10)),
    "feed_quadratic": _feed(
        lambda: (
            b'<!DOCTYPE rss [<!ENTITY a "%s">]><rss><channel><title>%s</title></channel></rss>'
            % (b"a" * 100_000, b"&a;" * 50_000)
        )
    ),
    "feed_external": _feed(
        lambda: (
            b'<!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
            b"<rss><channel><title>t</title><item><title>&a;</title></item></channel></rss>"
        )
    ),
    "feed_parameter": _feed(
        lambda: b'<!DOCTYPE rss [<!ENTITY % a SYSTEM "http://127.0.0.1/x"> %a;]><rss><channel/></rss>'
    ),
    "feed_deep": _feed(lambda: b"<rss><channel><title>t</title>" + b"<a>" * 200_000),
    "feed_items": _feed(
        lambda: b"<rss><channel><title>t</title>" + b"<item><title>x</title></item>" * 250_000, slow=True
    ),
    "feed_attributes": _feed(
        lambda: b"<rss " + b" ".join(b'a%d=""' % n for n in range(300_000)) + b"><channel/></rss>"
    ),
    "feed_unended": _feed(lambda: b"<rss><channel><title>the end</title><item><title>x"),
    "feed_json_deep": Case("feed", lambda: b"[" * 20_000, "application/feed+json", _EITHER),
}


def _json(body: Callable[[], bytes], codes: tuple[str, ...], **options: str) -> Case:
    return Case("json", body, _JSON, codes, options=Options(**options))  # type: ignore[arg-type]


def _big_json() -> bytes:
    return b"[" + b",".join(b'{"name": "n%d", "n": %d}' % (n, n) for n in range(300_000)) + b"]"


JSON = {
    "json_depth": _json(lambda: b"[" * 20_000, _READ),
    "json_depth_jq": _json(lambda: b"[" * 20_000, ("bad_option", "extract_failed"), jq="."),
    "json_depth_closed_jq": _json(
        lambda: b"[" * 20_000 + b"]" * 20_000, ("bad_option", "extract_failed"), jq="."
    ),
    "json_depth_objects_jq": _json(
        lambda: b'{"a":' * 20_000 + b"1" + b"}" * 20_000, ("bad_option", "extract_failed"), jq="."
    ),
    "json_5000_digits": _json(lambda: b'{"a": ' + b"9" * 5_000 + b"}", _READ, jq=".a"),
    "json_5000_digits_less": _json(lambda: b'{"a": ' + b"9" * 5_000 + b"}", _READ, jq=".a - 1"),
    "json_exponent": _json(lambda: b'{"a": 1e999, "b": -1E+99999}', _READ, jq="."),
    "json_nan": _json(lambda: b'{"a": NaN}', ("", "bad_option"), jq=".a"),
    "json_surrogates": _json(lambda: b'{"a": "\\ud83d", "\\udc00": 1}', _READ, jq="."),
    "json_nul": _json(lambda: b'{"a": "\\u0000b"}', _READ, jq=".a"),
    "json_10_mb": _json(_big_json, ("too_large",)),
    "json_10_mb_jq": Case("json", _big_json, _JSON, _EITHER, "299999", Options(jq="last.n"), slow=True),
    "json_10_mb_keys": _json(
        lambda: b"{" + b",".join(b'"k%d":0' % n for n in range(600_000)) + b"}", _EITHER, jq="length"
    ),
    "json_same_keys": _json(lambda: b"{" + b'"a":1,' * 500_000 + b'"a":2}', _EITHER, jq=".a"),
    "json_lines_grep": _json(_big_json, ("too_large", ""), grep="n299999"),
}

_DOCUMENT = b'{"a": [1, 2, 3], "b": "text"}'
_JQ_MONSTERS = {
    "repeat": "repeat(.)",
    "range": "range(infinite)",
    "forever": "def f: f; f",
    "list": "[limit(1e9;repeat(1))]",
    "text": '"a"*1e9',
    "last": "last(range(1e12))",
    "recurse": "[recurse([.,.])]",
    "until": "until(false; .)",
    "combinations": "[[range(1000)],[range(1000)],[range(1000)]] | [combinations] | length",
    "doubling": "reduce range(100) as $n (.b; . + .)",
    "deep_function": "def f: 1 + f; f",
    "deep_value": "reduce range(1000000) as $n (null; [.])",
    "regex": '("a"*5000+"b") | test("^(a+)+$")',
    "getpath": "getpath([range(65000)|0])",
    "setpath": "setpath([range(65000)|0]; 1)",
    "delpaths": "delpaths([[range(65000)|0]])",
    "implode": "[range(10000000)|97] | implode",
    "big_index": ".a[1e9] = 1",
    "tojson": "reduce range(20000) as $n (0; [.]) | tojson",
    "sort": "[range(20000000)] | sort_by(-.) | first",
    "outputs": "range(1000000)",
    "ltrimstr": "input | input",
}
_JQ_SLOW = frozenset(
    ["list", "last", "recurse", "until", "combinations", "deep_function", "deep_value", "implode", "sort"]
)
_JQ_TAME = {
    "env": ("env", ""),
    "env_path": ("$ENV.PATH", ""),
    "env_at": ('getpath(["x"])|env|keys', ""),
    "import": ('import "x" as x; .', "bad_option"),
    "include": ('include "x"; .', "bad_option"),
    "import_search": ('import "passwd" as $x {search:"/etc"}; $x', "bad_option"),
    "input_filename": ("input_filename", ""),
    "location": ("$__loc__", ""),
    "halt": ("halt", ""),
    "halt_error": ('"secret"|halt_error', "bad_option"),
    "error": (".b|error", "bad_option"),
    "error_of_nul": ('"a\\u0000b"|error', "bad_option"),
    "debug": ("debug", ""),
    "stderr": ("stderr", ""),
    "input_line": ("input_line_number", ""),
    "inputs": ("[inputs]", ""),
    "unclosed": (".a | (", "bad_option"),
    "closes_the_wrapper": (".) | env | (.", "bad_option"),
    "infinite": ("[infinite, -infinite, nan]", ""),
    "parens": ("(" * 2_000 + "." + ")" * 2_000, ""),
    "now": ("now|type", ""),
    "modulemeta": ('"x"|modulemeta', "bad_option"),
    "get_search_list": ("get_search_list", ""),
    "splits": ('[.b|splits("")]|length', ""),
}
JQ = {
    **{
        f"jq_{name}": Case(
            "jq",
            lambda: _DOCUMENT,
            _JSON,
            ("", "bad_option", "extract_failed", "too_large"),
            options=Options(jq=jq),
            slow=name in _JQ_SLOW,
        )
        for name, jq in _JQ_MONSTERS.items()
    },
    **{
        f"jq_{name}": Case(
            "jq", lambda: _DOCUMENT, _JSON, tuple({code, "bad_option", ""}), options=Options(jq=jq)
        )
        for name, (jq, code) in _JQ_TAME.items()
    },
}


def _regex(pattern: str, codes: tuple[str, ...] = _READ, body: bytes = b"a" * 5_000 + b"b") -> Case:
    return Case("grep", lambda: body, _TEXT, codes, options=Options(grep=pattern))


GREP = {
    "grep_nested_plus": _regex("(a+)+$"),
    "grep_nested_star": _regex("(.*)*x"),
    "grep_word_star": _regex(r"(\w+)*:"),
    "grep_hungry": _regex("(((a{50}){50}){50}){50}", ("bad_option",)),
    "grep_thousand": _regex("a{1000}{1000}", ("bad_option",)),
    "grep_classes": _regex(r"(\pL|\pN|\pM){900}x", ("", "bad_option", "extract_failed")),
    "grep_alternatives": _regex(
        "|".join(f"(?:{c}.*){{99}}" for c in "abcdefghij"), ("", "bad_option", "extract_failed")
    ),
    "grep_states": _regex("(?:a?){500}(?:a){500}", ("", "bad_option", "extract_failed"), b"a" * _MIB),
    "grep_back_reference": _regex(r"(a)\1", ("bad_option",)),
    "grep_unclosed": _regex("(((", ("bad_option",)),
    "grep_empty_matches": _regex("x*", _READ, b"y\n" * 100_000),
    "grep_one_line": _regex(r"(x|y)*[^z]$", _EITHER, b"xy" * (4 * _MIB)),
    "grep_parens": _regex("(" * 500 + "a" + ")" * 500, ("", "bad_option")),
    "question_of_blocks": Case(
        "grep",
        lambda: b"word end\n\n" * 500_000,
        _TEXT,
        _EITHER,
        "end",
        Options(question="word end"),
        slow=True,
    ),
    "question_of_one_word": Case(
        "grep", lambda: b"ab" * (4 * _MIB), _TEXT, _EITHER, options=Options(question="ab"), slow=True
    ),
    "question_of_words": Case(
        "grep", lambda: b"a b c d e " * 900_000, _TEXT, _EITHER, "a", Options(question="a b c"), slow=True
    ),
}

_CHARSET_PAGE = "<html><title>caf\u00e9</title><p>hello caf\u00e9 +ADw-script+AD4- and the end".encode()


def _labelled(label: str, body: bytes = _CHARSET_PAGE, says: str = "the end") -> Case:
    return Case("charset", lambda: body, f"text/html; charset={label}", _EITHER, says)


_LABELS = [
    "zlib_codec",
    "bz2_codec",
    "idna",
    "punycode",
    "utf-7",
    "undefined",
    "rot13",
    "hex",
    "uu",
    "base64",
    "none",
    "utf8mb4",
    "unicode_escape",
    "raw_unicode_escape",
    "mbcs",
    "oem",
    "string_escape",
    "utf-8,gbk",
    "../../etc/passwd",
    "\u00e9",
]
CHARSET = {
    **{f"label_{n}": _labelled(label) for n, label in enumerate(_LABELS)},
    "label_empty": _labelled(""),
    "label_quoted": _labelled('"utf-8"'),
    "label_long": _labelled("x" * 90_000),
    "label_nul_meta": Case(
        "charset", lambda: b'<meta charset="zlib_codec"><p>hello the end', "text/html", says="the end"
    ),
    "bom_twice": _labelled("utf-8", b"\xef\xbb\xbf\xef\xbb\xbf<p>hello the end"),
    "bom_utf16": Case(
        "charset", lambda: "\ufeff<p>hello the end".encode("utf-16-le"), _HTML, ("", "unsupported_type")
    ),
    "utf16_odd": Case(
        "charset", lambda: "\ufeff<p>hello the end".encode("utf-16-le") + b"x", "text/plain", _EITHER
    ),
    "utf16_surrogates": Case("charset", lambda: b"\xff\xfe" + b"\x3d\xd8" * 1_000, "text/plain", _EITHER),
    "utf32": Case(
        "charset", lambda: "\ufeffhello".encode("utf-32-le"), "text/plain", ("", "unsupported_type")
    ),
    "no_charset_garbage": Case("charset", lambda: bytes(range(128, 256)) * 40_000, "text/html", _EITHER),
    "no_charset_9_mb": Case("charset", lambda: b"caf\xe9 " * 1_500_000, "text/plain", _EITHER, slow=True),
    "gb18030_garbage": _labelled("gb18030", b"<p>" + bytes(range(129, 255)) * 1_000 + b" the end", ""),
}


def _text(
    body: bytes,
    codes: tuple[str, ...] = _READ,
    says: str = "",
    kind: str = _TEXT,
    slow: bool = False,
    **options: str,
) -> Case:
    return Case("text", lambda: body, kind, codes, says, Options(**options), slow=slow)  # type: ignore[arg-type]


TEXT = {
    "text_of_nul": _text(b"a\0b", ("", "unsupported_type")),
    "text_of_nul_raw": _text(b"a\0b", _READ, mode="raw"),
    "text_of_controls": _text(bytes(range(1, 32)) + b"\x7f the end", ("", "unsupported_type"), "end"),
    "text_surrogates": _text(b"a \xed\xa0\xbd b the end", says="the end"),
    "text_bidi": _text("\u202e\u200b\u2066the end".encode(), says="the end"),
    "text_one_line": _text(b"x" * (9 * _MIB), _READ, "x"),
    "text_line_ends": _text(b"\r\n\r" * (3 * _MIB)),
    "text_9_mb_raw": _text(b"x" * (9 * _MIB), ("too_large",), mode="raw"),
    "bytes_9_mb_raw": _text(bytes(9 * _MIB), ("too_large",), kind="image/png", mode="raw"),
    "csv_columns": _text(b"a," * (4 * _MIB), _EITHER, kind="text/csv", slow=True),
    "csv_quote": _text(b'a,"' + b"x" * (9 * _MIB), _EITHER, kind="text/csv"),
    "csv_rows": _text(b"a,b\n" * (2 * _MIB), _EITHER, kind="text/csv", slow=True),
    "csv_one_wide": _text(b"a\n" * 100_000 + b"a," * 100_000, _EITHER, kind="text/csv"),
    "markdown_fences": _text(b"```\n" * 2_000_000, _EITHER, kind="text/markdown"),
    "markdown_headings": _text(b"# h\n" * 1_000_000, _EITHER, kind="text/markdown", question="h", slow=True),
    "image_claims_html": _text(b"\x89PNG\r\n\x1a\n" + bytes(100), ("unsupported_type",), kind="text/html"),
    "no_type": Case("text", lambda: b"<p>the end", "", ("", "unsupported_type")),
    "header_of_parameters": Case("text", lambda: b"the end", "text/plain" + ";a=b" * 20_000, says="the end"),
}

DOCUMENTS: dict[str, Case] = HTML | PACKED | PDF | FEED | JSON | JQ | GREP | CHARSET | TEXT


@functools.lru_cache(maxsize=4)
def _body(name: str) -> bytes:
    return DOCUMENTS[name].body()


def _sends(name: str) -> Act:
    async def act(talk: Talk) -> None:
        case = DOCUMENTS[name]
        label = [f"Content-Type: {case.content_type}"] if case.content_type else []
        await talk.send(answer(_body(name), *label, *case.headers))

    return act


SWITCHES = {name: Switch(_sends(name), kind=case.kind, slow=case.slow) for name, case in DOCUMENTS.items()}


def options_of(name: str) -> dict[str, object]:
    """Return what the options of a document are, as JSON can hold it."""
    options = DOCUMENTS[name].options
    found = {name: getattr(options, name) for name in ("mode", "question", "pages", "grep", "jq")}
    return json.loads(json.dumps({name: value for name, value in found.items() if value}))
