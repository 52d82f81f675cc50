"""Pages made to break their reader: text or an error comes out, soon, and nothing else."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sift_batch.fetch._document import ReadError
from sift_batch.fetch._read import html

URL = "https://site.example/"
MODES = ("markdown", "full", "text", "links", "facts")


@pytest.mark.parametrize(
    ("source", "word"),
    [
        ("<table><tr>" + "<td>1</td>" * 60_000, "1"),
        ("<p>.</p>" * 60_000 + "<p>end", "end"),
        ("<ul>" + "<li>x" * 300_000 + "<li>end", "end"),
        *((f"<{tag}>" * 100_000 + "<p>end", "end") for tag in ("div", "blockquote", "ul", "font", "table")),
        ("<svg>" * 50_000 + "x" + "</svg>" * 50_000 + "<p>end", "end"),
        ("<math>" * 50_000 + "x<p>end", "end"),
        ('<p title="' + "a" * 10_000_000 + '">hello</p>', "hello"),
        ("a" * 5_000_000 + " end", "end"),
        ("<p>a</p>" + "<" * 1_000_000 + "<p>end", "end"),
        ("<table><tr>" + f"<td rowspan=9999>{'x' * 99}" * 200 + "<tr>" * 9_000, "x"),
        ("<div><ul><li><table><tr><td>" * 20_000 + "end", "end"),
    ],
    ids=lambda value: value[:12],
)
def test_monstrous_pages_still_give_text(source: str, word: str) -> None:
    """Counts, depths and sizes that no person writes cost seconds at most, and the text is there."""
    began = time.process_time()
    found = html.markdown(source, URL)
    assert word in found
    assert len(found) < 3 * len(source) + 100
    assert time.process_time() - began < 15


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('<p val="x\0">a\0b</p>', "ab"),
        ("<?xml version='1.0' encoding='utf-16'?><html><body><p>héllo", "héllo"),
        ("\ufeff\ufeff<p>hi", "hi"),
        ("<p>a\x0cb\ufffec", "a bc"),
        ("<p>a \ud800 b", "a \ufffd b"),
        ("<p>a</p><!-- no end <p>b", "a"),
        ("<p>a</p><plaintext><p>b", "a\n\n```\n<p>b\n```"),
        ("<!DOCTYPE x SYSTEM 'file:///etc/passwd'><p>&a; b", "&a; b"),
        ("", ""),
        ("  \n ", ""),
        ("<!-- only -->", ""),
        ("plain words", "plain words"),
        ("<frameset><frame src=a></frameset>", ""),
    ],
)
def test_odd_pages(source: str, expected: str) -> None:
    """Control bytes, wrong declarations, unclosed and empty pages are read as a browser reads them."""
    assert html.markdown(source, URL) == expected


def test_a_monstrous_page_has_its_title() -> None:
    """What a page declares at its start is read even where its size forbids a tree."""
    assert html.facts("<title>Rows</title><ul>" + "<li>x" * 210_000, URL)["title"] == "Rows"


def test_data_addresses_never_come_out() -> None:
    """Pictures in data: addresses, however large, leave nothing in any mode."""
    picture = "data:image/png;base64," + "A" * 240_000
    source = f"<style>p {{background: url({picture})}}</style><a href='{picture}'>x</a>" + (
        f"<p>text</p><img alt=pic src='{picture}'>" * 21
    )
    for mode in MODES:
        assert len(html.page(source, URL, mode)[0]) < 1_000


PIECES = [
    "<p>",
    "</p>",
    "<b>",
    "<a href='",
    "'>",
    "<table>",
    "<tr>",
    "<td>",
    "<ul>",
    "<li>",
    "<pre>",
    "<img src=x>",
]
PIECES += [
    "<h1>",
    "<dl>",
    "<dt>",
    "<!--",
    "-->",
    "<base href='//[x'>",
    "&#0;",
    "&#xd800;",
    "|",
    "```\n",
    "\0",
    "x y",
]
ANY_PAGE = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))


@settings(max_examples=60, deadline=None)
@given(ANY_PAGE, st.sampled_from(MODES))
def test_any_text_as_a_page(source: str, mode: str) -> None:
    """Any text is a page or a `ReadError`; what comes out obeys the rules, links are absolute."""
    try:
        found, facts = html.page(source, URL, mode)
    except ReadError:
        return
    json.dumps(facts, allow_nan=False, ensure_ascii=False).encode()
    found.encode()
    assert "\0" not in found
    assert all(line == line.rstrip() for line in found.split("\n"))
    if mode == "links":
        for line in filter(None, found.split("\n")):
            assert json.loads(line)["href"].startswith(("http://", "https://"))
