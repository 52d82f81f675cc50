"""What does a feed tell?"""

import json
import time

import pytest
from read_documents import reading, text_of

RSS = """<?xml version="1.0" encoding="iso-8859-1"?>
<!-- a comment --><?pi x?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:media="http://search.yahoo.com/mrss/"
  xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel>
<title> The
 News &amp; more </title><link>http://site.test/</link>
<description>All of it</description><language>en</language>
<item><media:title>wrong</media:title><title>One [of] &lt;b&gt;two&lt;/b&gt;</title>
<link>../one (1).html</link>
<pubDate>Tue, 03 Jun 2003 09:39:21 GMT</pubDate>
<description>&lt;h1&gt;Big&lt;/h1&gt;
&lt;p&gt;Text with a &lt;a href="x"&gt;link&lt;/a&gt;.&lt;/p&gt;</description></item>
<item><title>Two</title><guid>http://site.test/two</guid><dc:date>2026-01-02</dc:date>
<content:encoded><![CDATA[<p>Whole &lt;text&gt;</p>]]></content:encoded></item>
<item><title>Three</title><guid isPermaLink="false">http://site.test/three</guid><link>javascript:x()</link></item>
<item/>
</channel></rss>"""

RSS_TEXT = """# The News & more

## [One \\[of\\] two](http://site.test/one%20%281%29.html)

Tue, 03 Jun 2003 09:39:21 GMT

### Big

Text with a [link](http://site.test/a/x).

## [Two](http://site.test/two)

2026-01-02

Whole <text>

## Three"""

ATOM = """<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="de" xml:base="http://other.test/d/">
<title type="text">A &lt;b&gt; B</title><subtitle>Sub</subtitle><author><name>Ann</name></author>
<entry><title type="html">One &amp;amp; two</title><link rel="self" href="/self"/><link href="one"/>
<updated>2026-01-02T03:04:05Z</updated>
<summary type="html">&lt;p&gt;See &lt;a href="q"&gt;it&lt;/a&gt;</summary></entry>
<entry xml:base="http://third.test/"><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">Two
<b>b</b></div></title><link rel="alternate" href="two"/><published>2026-02-03</published>
<updated>2026-03-04</updated><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><ul><li>x</li></ul>
</div></content></entry>
<entry><summary type="text">1 &lt; 2
 # three</summary></entry></feed>"""

ATOM_TEXT = """# A <b> B

## [One & two](http://other.test/d/one)

2026-01-02T03:04:05Z

See [it](http://other.test/d/q)

## [Two b](http://third.test/two)

2026-02-03

- x

## (without a title)

1 < 2
\\# three"""

RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
  xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="x"><title>R</title></channel>
<item rdf:about="y"><title>I</title><link>/i</link><dc:date>2026-02-03</dc:date>
<description>a &amp; b</description>
</item></rdf:RDF>"""


@pytest.mark.parametrize(
    ("body", "content"),
    [(RSS, RSS_TEXT), (ATOM, ATOM_TEXT), (RDF, "# R\n\n## [I](http://site.test/i)\n\n2026-02-03\n\na & b")],
    ids=["rss", "atom", "rdf"],
)
@pytest.mark.parametrize(
    "media", ["application/rss+xml", "application/atom+xml", "text/xml", "application/x+xml"]
)
def test_a_feed_is_told_by_its_root(body, content, media):
    """Title, then link, date and summary of each entry, absolute links: under any XML type."""
    assert text_of(body, media) == content


def test_a_feed_without_markup():
    """Mode text gives the same blocks as plain text."""
    assert text_of(ATOM, "text/xml", mode="text") == (
        "A <b> B\n\nOne & two\n\n2026-01-02T03:04:05Z\n\nSee it\n\nTwo b\n\n2026-02-03\n\nx\n\n"
        "(without a title)\n\n1 < 2\n# three"
    )


def test_a_feed_tells_of_itself():
    """Title, description, language and author are facts, and what mode meta gives."""
    facts = {"title": "A <b> B", "description": "Sub", "language": "de", "author": "Ann"}
    assert facts.items() <= reading(ATOM, "text/xml").facts.items()
    assert facts.items() <= json.loads(text_of(ATOM, "text/xml", mode="meta")).items()
    assert text_of(RSS, "text/xml", mode="raw") == RSS


@pytest.mark.parametrize(
    "body",
    [
        "<config><title>x</title></config>",
        "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><x/></rdf:RDF>",
        "<rss version='2.0'/>",
        "<feeds/>",
        "no XML at all",
        "<!-- <rss><channel/></rss> -->",
    ],
)
def test_other_xml_is_source(body):
    """XML whose root is no feed is given as it is."""
    assert text_of(body, "application/xml") == body


def _bomb() -> str:
    declared = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    return f'<!DOCTYPE rss [<!ENTITY a0 "lol">{declared}]><rss><channel><title>T&a11;</title></channel></rss>'


@pytest.mark.parametrize(
    ("body", "content"),
    [
        (_bomb(), "# T"),
        (
            '<!DOCTYPE rss [<!ENTITY x SYSTEM "file:///etc/passwd">]><rss><channel><title>&x;T</title></channel></rss>',
            "# T",
        ),
        (
            "<rss><channel><title>a&nbsp;&eacute;&zzz;&lt;i &amp; b & c</title></channel></rss>",
            "# a é<i & b & c",
        ),
        ("<rss><channel><title>a\x08b&#0;</title>", "# ab"),
        ("<rss><channel><title>cut", "# cut"),
    ],
    ids=["expanding entities", "a file's entity", "faulty references", "control characters", "cut"],
)
def test_a_hostile_feed_is_harmless(body, content):
    """No entity of a document is expanded and no file is read; faults cost no more than themselves."""
    assert text_of(body, "application/rss+xml") == content


@pytest.mark.parametrize(
    "body",
    [
        "<rss>" * 100_000,
        "<rss><channel>" + "<item/>" * 50_000,
        "<!--" * 200_000,
        "<? " * 200_000,
        "<![" * 200_000,
        "<!DOCTYPE [" * 100_000,
        "<rss><channel><title>" + "&lt;a" * 200_000,
        "<rss><channel><title>" + "<![CDATA[" * 100_000,
        "<rss><channel><title>" + "&" * 500_000,
    ],
    ids=range(9),
)
def test_monstrous_feeds_end(body):
    """A megabyte of an unclosed construct is read, or given as source, in a few seconds."""
    began = time.process_time()
    reading(body, "text/xml")
    assert time.process_time() - began < 10
