"""Nothing of the main content is lost in silence: headings, lists, terms, pictures, code and tables."""

import json

import pytest

from sift_batch.fetch._read import html, html_main
from sift_batch.fetch._read.html_extractor import Extract
from sift_batch.fetch._read.html_measure import squeeze

URL = "https://site.example/docs/page.html"
ABOVE = (
    "<p>The functions below are there by default. Programs add to them as the chapter on extensions says, "
    "and each of them can be called from any statement.</p>"
)
BELOW = (
    "<p>The avg() function returns the mean of all values within a group. Texts that do not look like "
    "numbers are taken for nought, and the result is a number with a point.</p>"
)
WORDS = {text: text.removeprefix("<p>").removesuffix("</p>") for text in (ABOVE, BELOW)}


def markdown(body: str, title: str = "T") -> str:
    """Return the main content of a page."""
    return html.markdown(f"<!doctype html><html><head><title>{title}</title></head><body>{body}", URL)


def links(*names: str) -> str:
    """Return a list of short links."""
    return "<ul>" + "".join(f'<li><a href="#{name}">{name}(X)</a></li>' for name in names) + "</ul>"


def lines(*names: str) -> str:
    """Return what such a list becomes."""
    return "\n".join(f"- [{name}(X)]({URL}#{name})" for name in names)


@pytest.mark.parametrize("name", ["toc-backref", "toc", "share", "nav"])
def test_a_heading_whose_link_has_a_misleading_name_stays(name: str) -> None:
    """A link that says all that its heading says is no furniture, whatever its class is."""
    heading = f'<h2><span class=no>1.</span> <a class="{name}" href="#id4">What is it?</a></h2>'
    found = markdown(f"<main><h1>FAQ</h1>{heading}<p>It is.</p></main>")
    assert found == f"# FAQ\n\n## 1. [What is it?]({URL}#id4)\n\nIt is."


TWO = links("avg", "sum")
NAMES = ("avg", "count", "max", "min", "sum", "total")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (f"{ABOVE}<h2>List</h2>{links(*NAMES)}<h2>More</h2>{BELOW}",
         f"{WORDS[ABOVE]}\n\n## List\n\n{lines(*NAMES)}\n\n## More\n\n{WORDS[BELOW]}"),
        (f"{ABOVE}{links('avg', 'sum')}{BELOW}",
         f"{WORDS[ABOVE]}\n\n{lines('avg', 'sum')}\n\n{WORDS[BELOW]}"),
        (f"{ABOVE}{BELOW}<h2>All</h2>{links(*NAMES)}",
         f"{WORDS[ABOVE]}\n\n{WORDS[BELOW]}\n\n## All\n\n{lines(*NAMES)}"),
        (f"{ABOVE}<p>Two are enough:</p><p></p>{links('avg', 'sum')}{BELOW}",
         f"{WORDS[ABOVE]}\n\nTwo are enough:\n\n{lines('avg', 'sum')}\n\n{WORDS[BELOW]}"),
        (f"{ABOVE}<h2>In columns</h2><div>{links('avg')}{links('sum')}</div>{BELOW}",
         f"{WORDS[ABOVE]}\n\n## In columns\n\n{lines('avg')}\n\n{lines('sum')}\n\n{WORDS[BELOW]}"),
        (f"<h2>One</h2>{ABOVE}{TWO}<h2>Two</h2>{BELOW}{TWO}<h2>Three</h2>{links('max')}{links('sum')}",
         "\n\n".join(["## One", WORDS[ABOVE], lines("avg", "sum"), "## Two", WORDS[BELOW],
                      lines("avg", "sum"), "## Three", lines("max"), lines("sum")])),
    ],
)  # fmt: skip
def test_a_list_of_short_links_is_whole(body: str, expected: str) -> None:
    """Below a heading, a paragraph or another list of the text, a list of links has all its items."""
    assert markdown(f"<div><h1>Functions</h1>{body}</div>") == f"# Functions\n\n{expected}"


def test_a_list_in_an_item_is_kept() -> None:
    """A list that stands in an item of a kept list, right after the item's first words, stays."""
    inner = "<ol><li>Rename <a href=/c>columns</a> of a table.<li>Fix the rest.</ol>"
    found = markdown(
        f"<div><h1>News</h1><ul><li>{WORDS[ABOVE]}<li>More<a name=x></a>{inner}</ul>{BELOW}</div>"
    )
    assert (
        "\n- More\n  1. Rename [columns](https://site.example/c) of a table.\n  2. Fix the rest.\n" in found
    )


def test_lists_of_chapters_keep_their_levels() -> None:
    """A list of chapters with their sections comes out with all of both, below the words before it."""
    chapter = '<li><a href="{0}.html">{0}</a><ul><li><a href="{0}.html#x">{0} in short</a></li></ul></li>'
    chapters = "".join(map(chapter.format, ("Appetite", "Modules", "Classes")))
    found = markdown(f"<div role=main><h1>Tutorial</h1>{ABOVE}{BELOW}<div><ul>{chapters}</ul></div></div>")
    base = URL.removesuffix("page.html")
    expected = [
        line
        for name in ("Appetite", "Modules", "Classes")
        for line in (f"- [{name}]({base}{name}.html)", f"  - [{name} in short]({base}{name}.html#x)")
    ]
    assert found.endswith(f"{WORDS[BELOW]}\n\n" + "\n".join(expected))


@pytest.mark.parametrize(
    "way",
    [
        "<h3>Related articles</h3><ul><li><a href=/a>Another tale</a><li><a href=/b>Yet another</a></ul>",
        "<ul class=share><li><a href=/a>Tell a friend</a><li><a href=/b>Post it</a></ul>",
        "<nav><ul><li><a href=/a>Another tale</a><li><a href=/b>Yet another</a></ul></nav>",
        "<ul><li><a href='#'>Tell a friend</a><li><a href='#'>Post it</a></ul>",
    ],
)
def test_lists_that_only_lead_elsewhere_stay_out(way: str) -> None:
    """A list is navigation by its landmark, its name, the heading above it, or links that lead nowhere."""
    side = "<div>" + "".join(f"<a href=/{n}>Another tale {n}</a>" for n in range(30)) + "</div>"
    found = markdown(f"<div><h1>Functions</h1>{ABOVE}{BELOW}{ABOVE}{BELOW}{way}</div>{side}")
    assert found == "# Functions\n\n" + "\n\n".join([WORDS[ABOVE], WORDS[BELOW]] * 2)


def test_terms_that_are_links_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each definition has its term, though the term is a link or stands in a paragraph."""
    terms = "<p><dt><a href='#a'>ALPHA</a></dt><dd>The first flag.</dd></p><dt>BETA</dt><dd>The second.</dd>"
    kept = Extract(squeeze((WORDS[ABOVE] + WORDS[BELOW]) * 3 + "The first flag. The second."), None)
    monkeypatch.setattr(html_main, "extract", lambda root: kept)
    side = "<div>" + "".join(f"<a href=/{n}>Another tale {n}</a>" for n in range(30)) + "</div>"
    found = markdown(f"<div><h1>Flags</h1>{(ABOVE + BELOW) * 3}<dl>{terms}</dl></div>{side}")
    assert f"\n\n[ALPHA]({URL}#a)\n: The first flag.\n\nBETA\n: The second." in found


def test_pictures_are_there() -> None:
    """The image of a `picture` is read in any mode, and so is what follows an element that is empty."""
    picture = (
        '<picture><source srcset="c.webp"><source srcset="d.webp"><img src="c.png" alt="A dog"></picture>'
    )
    page = f"<div><h1>Dogs</h1>{ABOVE}{picture} and its tail{BELOW}<p>un<wbr>do <b>it</b> now</p></div>"
    expected = "![A dog](https://site.example/docs/c.png) and its tail"
    assert f"\n\n{expected}\n\n" in markdown(page)
    assert html.full(page, URL).endswith("undo **it** now")
    assert f"\n\n{expected}\n\n" in html.full(page, URL)


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("<code><span>venv</span></code> — Creation", "venv — Creation"),
        ("<b><i>deep</i></b> tail", "deep tail"),
        ("x <b>y<i>z</i></b> w<script>s()</script> v", "x yz w v"),
    ],
)
def test_the_text_of_a_link_is_in_its_order(link: str, expected: str) -> None:
    """Mode links gives the words of a link in the order of the page, however deep they are nested."""
    assert json.loads(html.links(f"<p><a href=/a>{link}</a>", URL))["text"] == expected


LONG = "<p>" + "Nothing in it is changed by what was written before, or after. " * 10


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<blockquote><tt>$&nbsp;<b>ls</b><br>\na<br>\n&nbsp;b</tt></blockquote>", "```\n$ ls\na\n b\n```"),
        ("<p>so <tt>a b</tt> runs</p>", "so `a b` runs"),
        ("<blockquote><table><tr><th>A<th>B<tr><td>1<td>2</table></blockquote>",
         "| A | B |\n| --- | --- |\n| 1 | 2 |"),
        (f"<table><tr><th>A<th>B<tr><td>1<td>{LONG}{LONG}<tr><td>2<td>x</table>",
         f"| A | B |\n| --- | --- |\n| 1 | {' '.join([LONG[3:].strip()] * 2)} |\n| 2 | x |"),
        ("<table><tr><td><p>a<br>b</p><p>c</p><td><p>d</p></table>", "a\nb\n\nc\n\nd"),
        ("<table><tr><th colspan=2>All<tr><td><div>a</div><div>b</div><td><div>c</div></table>",
         "All\n\na\n\nb\n\nc"),
    ],
)  # fmt: skip
def test_code_and_tables_keep_their_lines(body: str, expected: str) -> None:
    """Code written with line breaks is a block, named columns make a table, columns of lines none."""
    assert html.full(body, URL) == expected


LOGO = "<div><a href=/><img src=/logo.png alt=Site></a><div>Small and fast.</div></div>"


@pytest.mark.parametrize("tag", ["h1", "h2", "div"])
def test_the_title_stands_above_all_sections(tag: str) -> None:
    """A page's title is its heading, by its words alone if need be; the site's banner above it goes."""
    body = f"{LOGO}<{tag}>Dates<a class=headerlink href='#d'>¶</a></{tag}>{ABOVE}{BELOW}"
    if tag == "div":
        body = f"{LOGO}<div>Dates</div><h1>1. Overview</h1>{ABOVE}<h1>2. More</h1>{BELOW}"
    found = markdown(body, "Dates")
    assert found.startswith("## Dates\n\n" if tag == "h2" else "# Dates\n\n")
    assert "Site" not in found
    assert "Small" not in found
    assert found.endswith(WORDS[BELOW])


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("", "the server sent an empty document"),
        (" \n", "the server sent an empty document"),
        ("<p></p>", "the page has no text; mode html gives its source"),
        ("<script>x()</script>", "the page has no text without its scripts; mode html gives its source"),
        ("<meta http-equiv=refresh content='0; url=a.html'><script>x()</script>",
         "the page has no text and sends its readers to another address; mode html gives its source"),
    ],
)  # fmt: skip
def test_an_empty_page_says_why(source: str, hint: str) -> None:
    """The hint of a page without text names scripts or a way elsewhere only where the page has them."""
    assert html.why_empty(source) == hint
