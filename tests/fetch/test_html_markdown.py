"""A page of HTML as Markdown and as plain text: what comes out, to the letter."""

import pytest

from sift_batch.fetch._read import html

URL = "https://site.example/docs/page.html?v=1"


def page(body: str, head: str = "") -> str:
    """Return a page."""
    return f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"


def markdown(body: str, head: str = "") -> str:
    """Return its main content."""
    return html.markdown(page(body, head), URL)


def text(body: str) -> str:
    """Return the same without markup."""
    return html.text(page(body), URL)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<h1>One</h1><h3>Three</h3><p>Text.</p>", "# One\n\n### Three\n\nText."),
        ("<h2>A <a class=headerlink href='#a'>¶</a></h2><p>x</p>", "## A\n\nx"),
        ("<h2><b>Bold</b></h2><p>x</p>", "## Bold\n\nx"),
        ("<p>a\n  b <b> c </b>d <i>e</i><br>f</p>", "a b **c** d *e*\nf"),
        ("<p>a<b></b>b <em> </em>c</p>", "ab c"),
        ("<p>10<sup>6</sup> of H<sub>2</sub>O</p>", "10^6 of H2O"),
        ("<p># of things</p>", "\\# of things"),
        ("<p>``` no fence</p><p>x</p>", "\\``` no fence\n\nx"),
        ("<p>use <code>a`b</code> and <kbd>x</kbd></p>", "use ``a`b`` and `x`"),
        ("<blockquote><p>a</p><p>b</p></blockquote>", "> a\n>\n> b"),
        ("<p>a &lt;div&gt; &amp; b</p>", "a <div> & b"),
        ("<p>a</p><hr><hr><p>b</p><hr>", "a\n\n---\n\nb"),
        ("<p>x<del>y</del></p>", "x~~y~~"),
        ("<p>a\u00a0b soft\u00adhyphen zero\u200bwidth \u202eleft</p>", "a b softhyphen zerowidth left"),
    ],
)
def test_inline_and_blocks(body: str, expected: str) -> None:
    """Headings, emphasis, code, quotes and breaks are written as Markdown, and nothing else is."""
    assert markdown(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<ul><li>a<li>b</ul>", "- a\n- b"),
        ("<ul><li>a<ul><li>b<ul><li>c</ul></ul><li>d</ul>", "- a\n  - b\n    - c\n- d"),
        ("<ol start=3><li>a<li>b</ol>", "3. a\n4. b"),
        ("<ol><li>a<ul><li>b</ul></ol>", "1. a\n   - b"),
        ("<ul><li><p>a</p><p>b</p><li>c</ul>", "- a\n\n  b\n- c"),
        ("<ul><li>a<pre>x\n  y</pre></ul>", "- a\n\n  ```\n  x\n    y\n  ```"),
        ("<ul><li><h3>T</h3><p>x</p><li><h3>U</h3><p>y</p></ul>", "### T\n\nx\n\n### U\n\ny"),
        ("<ul><li><input type=checkbox checked> a<li><input type=checkbox> b</ul>", "- [x] a\n- [ ] b"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n: b\n\nc\n: d"),
        ("<dl><dt>a<dd><p>b</p><p>c</p></dl>", "**a**\n\nb\n\nc"),
        ("<ul>stray<li>a</ul>", "stray\n\n- a"),
    ],
)
def test_lists(body: str, expected: str) -> None:
    """Lists keep their order, numbers and nesting; a list that only lays the page out is none."""
    assert markdown(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<table><tr><th>A<th>B<tr><td>1|2<td>3<tr><td>4</table>",
         "| A | B |\n| --- | --- |\n| 1\\|2 | 3 |\n| 4 |  |"),
        ("<table><tr><td>a<td>b<tr><td colspan=2>c</table>", "| a | b |\n| --- | --- |\n| c |  |"),
        ("<table><tr><th>A<th>B<tr><td rowspan=2>g<td>1<tr><td>2</table>",
         "| A | B |\n| --- | --- |\n| g | 1 |\n| g | 2 |"),
        ("<table><caption>C</caption><tr><th>A<th>B<tr><td>1<br>2<td><p>x</p><p>y</p></table>",
         "C\n\n| A | B |\n| --- | --- |\n| 1 2 | x y |"),
        ("<table><tr><td><p>One</p><td><table><tr><th>A<th>B<tr><td>1<td>2</table></table>",
         "One\n\n| A | B |\n| --- | --- |\n| 1 | 2 |"),
        ("<table role=presentation><tr><td>a<td>b</table>", "a\n\nb"),
    ],
)  # fmt: skip
def test_tables(body: str, expected: str) -> None:
    """A table of data has a header and as many cells in each row; one that lays out is read in order."""
    assert markdown(body) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<pre><code class="language-python">def f():\n    return 1\n\n\n\n# end\n</code></pre>',
         "```python\ndef f():\n    return 1\n\n\n\n# end\n```"),
        ('<div class="highlight-console"><pre>$ ls\n\ta</pre></div>', "```console\n$ ls\n\ta\n```"),
        ("<pre>a ``` b\n```\nc</pre>", "````\na ``` b\n```\nc\n````"),
        ("<pre><span class=linenos>1</span>a\n<span class=linenos>2</span>  b</pre>", "```\na\n  b\n```"),
        ("<pre><div>a</div><div>  b</div></pre>", "```\na\n  b\n```"),
        ("<pre>a<button>Copy</button></pre>", "```\na\n```"),
        ("<table><tr><td><pre>1\n2</pre><td><pre>a\n  b</pre></table>", "```\na\n  b\n```"),
    ],
)  # fmt: skip
def test_code(body: str, expected: str) -> None:
    """Code keeps its indentation and blank lines, in a fence that nothing in it closes."""
    assert markdown(body) == expected


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("/images/x.jpg", "https://site.example/images/x.jpg"),
        ("../y", "https://site.example/y"),
        ("?q", "https://site.example/docs/page.html?q"),
        ("#f", "https://site.example/docs/page.html?v=1#f"),
        ("//cdn.example/z", "https://cdn.example/z"),
        ("http://bücher.example/ü?a=ö", "http://xn--bcher-kva.example/%C3%BC?a=%C3%B6"),
        (" a b\n", "https://site.example/docs/a%20b"),
        ("x_(y)", "https://site.example/docs/x_(y)"),
        ("x)y", "https://site.example/docs/x%29y"),
    ],
)
def test_links_are_absolute(href: str, expected: str) -> None:
    """A link leads where a browser would go from the page's address."""
    assert markdown(f"<p>See <a href='{href}'>it</a></p>") == f"See [it]({expected})"


def test_links_against_the_base_of_the_page() -> None:
    """Every kind of reference is resolved against <base href> where the page has one."""
    body = "<p><a href=y>a</a> <a href='?q'>b</a> <a href='#f'>c</a> <a href=/z>d</a></p>"
    assert markdown(body, "<base href='/b/'>") == (
        "[a](https://site.example/b/y) [b](https://site.example/b/?q) "
        "[c](https://site.example/b/#f) [d](https://site.example/z)"
    )


@pytest.mark.parametrize("href", ["javascript:alert(1)", "data:text/html,x", "ftp://a/b", "", "http://[::"])
def test_links_that_lead_nowhere_are_text(href: str) -> None:
    """What is no http, https or mail address is no link."""
    assert markdown(f"<p>See <a href='{href}'>it</a></p>") == "See it"


def test_images() -> None:
    """Images keep alt and address, data: is left out, a late one is found where it waits."""
    body = (
        "<p><img src=/a.png alt='An [a]'></p><p><img src='data:image/gif;base64,AAAA' alt=b></p>"
        "<p><img src='data:x' data-src=late.png alt=c></p><p><img src=p.gif width=1 height=1></p>"
    )
    assert markdown(body) == (
        "![An (a)](https://site.example/a.png)\n\n![c](https://site.example/docs/late.png)"
    )


def test_text_has_the_same_blocks_without_markup() -> None:
    """Plain text has links as their text, images as alt, cells joined by a bar, and no marks."""
    body = (
        "<h2>T</h2><p>a <b>b</b> <a href=/c>c</a> <code>d</code> <img src=x alt=e></p><ul><li>f</ul>"
        "<table><tr><th>A<th>B<tr><td>1<td>2</table><pre>x\n  y</pre><blockquote>q</blockquote>"
    )
    assert text(body) == "T\n\na b c d e\n\nf\n\nA | B\n1 | 2\n\nx\n  y\n\nq"


FURNITURE = """
<div class="cookie-banner">We use cookies. <button>Accept</button></div>
<header><a href="/">Site</a><nav><a href="/news">News</a></nav></header>
<main><h1>The relay pump</h1><div class="share-buttons"><a href="/s">Share this</a></div>
{paragraphs}
<aside class="note"><p>Wear gloves.</p></aside>
<aside><h2>Most read</h2><a href="/o">Other story</a></aside>
<p style="display:none">Hidden.</p></main><footer>Imprint</footer>
"""


@pytest.mark.parametrize("count", [1, 20])
def test_main_content_without_furniture(count: int) -> None:
    """Navigation, notices, share buttons and what is hidden are left out, of short and long pages."""
    sentence = "The pump moves water from the low tank to the high one, and number {} says how much."
    paragraphs = "".join(f"<p>{sentence.format(n)}</p>" for n in range(count))
    found = markdown(FURNITURE.format(paragraphs=paragraphs), "<title>The relay pump | Site</title>")
    assert found.startswith("# The relay pump\n\nThe pump moves")
    assert found.count("The relay pump") == 1
    assert sentence.format(count - 1) in found
    for furniture in ("cookies", "Accept", "News", "Share", "Most read", "Other story", "Hidden", "Imprint"):
        assert furniture not in found


def test_full_has_the_whole_body() -> None:
    """Mode full keeps the furniture that the main content leaves out."""
    found = html.full(page(FURNITURE.format(paragraphs="<p>x</p>")), URL)
    for furniture in ("cookies", "[News](https://site.example/news)", "Other story", "Imprint"):
        assert furniture in found


@pytest.mark.parametrize(
    "body",
    [
        "<ul>" + "".join(f"<li><a href='/{n}'>Entry {n}</a>" for n in range(60)) + "</ul>",
        "<table>" + "".join(f"<tr><td>Entry {n}<td>{n}" for n in range(60)) + "</table>",
        "".join(
            f"<div class=comment><b>Al</b><p>Entry {n} is a post in a forum.</p></div>" for n in range(60)
        ),
    ],
    ids=["links", "table", "forum"],
)
def test_pages_that_are_no_articles(body: str) -> None:
    """A page of links, a table and a forum come out whole."""
    found = markdown(f"<nav><a href=/x>Menu</a></nav>{body}")
    assert "Entry 0" in found
    assert "Entry 59" in found
    assert "Menu" not in found
