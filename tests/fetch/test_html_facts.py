"""What a page declares, and its links, one a line."""

import json

import pytest

from sift_batch.fetch._read import html

URL = "https://site.example/docs/page.html"


def test_links_mode() -> None:
    """Links are JSON lines in document order, absolute, http or https, the first of equal hrefs."""
    source = (
        "<nav><a href=/a rel='nofollow  noopener'>A <b>b</b></a></nav><p><a href='mailto:x@y.z'>m</a>"
        "<a href='https://site.example/a'>again</a><a href='http://ü.example/'><img alt=pic src=x></a></p>"
    )
    assert html.links(source, URL).split("\n") == [
        '{"text": "A b", "href": "https://site.example/a", "rel": "nofollow noopener"}',
        '{"text": "pic", "href": "http://xn--tda.example/", "rel": ""}',
    ]


HEAD = """<html lang="de-AT"><head><title> A
 title </title><meta name=description content="What it is">
<meta property="og:title" content="OG">
<meta property="article:published_time" content="2024-05-06T07:08:09+00:00">
<meta name=author content="Ann Bee">
<link rel=canonical href="/c">
<link rel=alternate type="application/rss+xml" title=News href="/feed">
<script type="application/ld+json">{"@type": "Article", "dateModified": "2024-05-07", "x": "é"}</script>
</head>"""


def test_facts() -> None:
    """Title, description, author, dates, language, canonical, feeds, OpenGraph and JSON-LD are read."""
    assert html.facts(HEAD, URL) == {
        "title": "A title",
        "description": "What it is",
        "author": "Ann Bee",
        "published": "2024-05-06T07:08:09Z",
        "modified": "2024-05-07",
        "language": "de-AT",
        "canonical": "https://site.example/c",
        "feeds": [{"title": "News", "href": "https://site.example/feed", "type": "application/rss+xml"}],
        "opengraph": {"title": "OG"},
        "jsonld": [{"@type": "Article", "dateModified": "2024-05-07", "x": "é"}],
    }


@pytest.mark.parametrize(
    "data",
    [
        "[" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '{"n": NaN, "i": Infinity, "e": 1e999}',
        '{"s": "\\ud83d", "k\\ud800": 1}',
        '{"n": ' + "9" * 10_000 + "}",
        '["' + "x" * 5_000_000 + '"]',
        "{not json",
        "",
    ],
)
def test_hostile_json_ld_is_harmless(data: str) -> None:
    """Whatever the JSON-LD holds, the facts are small, strict JSON in UTF-8."""
    source = f'<title>t</title><script type="application/ld+json">{data}</script><p>x</p>'
    found = html.facts(source, URL)
    assert found["title"] == "t"
    assert len(json.dumps(found, allow_nan=False, ensure_ascii=False).encode()) < 100_000


def test_page_gives_text_and_facts_at_once() -> None:
    """The combined call gives what the two calls give."""
    source = HEAD + "<body><p>Text.</p>"
    assert html.page(source, URL, "markdown") == (html.markdown(source, URL), html.facts(source, URL))


def test_a_page_without_facts_has_none() -> None:
    """Absent facts are left out."""
    assert html.facts("<p>x</p>", URL) == {}
