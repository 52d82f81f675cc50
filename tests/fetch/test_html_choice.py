"""What of a page is chosen: text that the extractor loses comes back, lines that lead elsewhere go."""

import json

import pytest

from sift_batch.fetch._read import html, html_main
from sift_batch.fetch._read.html_extractor import Extract
from sift_batch.fetch._read.html_measure import squeeze

URL = "https://site.example/docs/page.html"
SENTENCE = "The pump moves water from the low tank to the high one, and number {} says how much it takes."


# With so many links beside the text the extractor's choice counts.
SIDE = (
    "<div>" + "".join(f"<a href=/{n}>Another tale of tanks and pumps {n}</a>" for n in range(30)) + "</div>"
)


def prose(count: int, first: int = 0) -> str:
    """Return paragraphs, each of them different."""
    return "".join(f"<p>{SENTENCE.format(n)}</p>" for n in range(first, first + count))


def markdown(body: str, title: str = "") -> str:
    """Return the main content of a page."""
    return html.markdown(f"<!doctype html><html><head><title>{title}</title></head><body>{body}", URL)


def kept(monkeypatch: pytest.MonkeyPatch, *numbers: int) -> None:
    """Let the extractor find nothing but the sentences of these numbers."""
    found = Extract(squeeze("".join(SENTENCE.format(n) for n in numbers)), None)
    monkeypatch.setattr(html_main, "extract", lambda root: found)


def test_headings_in_boxes_and_lists_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heading that is all link or stands in boxes of its own, and a list among the text, are kept."""
    boxed = "<div class=titlepage><div><div><h2><a href=/v2>2.0</a></h2></div></div></div>"
    body = (
        f"<h1>Pumps</h1><div>{prose(5)}{boxed}{prose(5, 5)}<ul><li>oil it<li>dry it</ul>{prose(5, 10)}</div>"
    )
    kept(monkeypatch, *range(15))
    found = markdown(f"<div>{body}</div>{SIDE}", "Pumps")
    assert "\n\n## [2.0](https://site.example/v2)\n\nThe pump" in found
    assert "\n\n- oil it\n- dry it\n\n" in found
    assert "Another tale" not in found


def test_a_section_beside_sections_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of one kind stand or fall together; a part of another kind does not stand with them."""
    parts = "".join(f"<div class=part><span>{SENTENCE.format(n)}</span></div>" for n in range(15))
    kept(monkeypatch, *range(0, 14, 2))
    found = markdown(f"<div>{parts}<div class=ad>Buy another pump today</div></div>{SIDE}")
    assert found == "\n\n".join(SENTENCE.format(n) for n in range(15))


@pytest.mark.parametrize("tail", [[], [12]])
def test_the_paragraph_under_the_heading_is_kept(monkeypatch: pytest.MonkeyPatch, tail: list[int]) -> None:
    """A paragraph between the page's heading and its text leads into the text and belongs to it."""
    lead = "Twelve years it stood still, on Sunday it will run again for the first time since the flood."
    body = f"<div><h1>The pump</h1><p class=lead><b>{lead}</b></p><div><a href=/p>Print</a></div>"
    last = "".join(f"<p>{SENTENCE.format(n)}</p>" for n in tail)
    kept(monkeypatch, *range(12), *tail)
    found = markdown(f"{body}<div>{prose(12)}</div>{last}</div>{SIDE}", "The pump")
    assert found.startswith(f"# The pump\n\n**{lead}**\n\nThe pump moves")
    assert "Print" not in found


def test_what_a_colon_announces_is_kept() -> None:
    """A list of nothing but links belongs to the text if the words before it announce it."""
    links = "".join(f"<li><a href=/{n}>part {n}</a>" for n in range(9))
    body = (
        f"<div><h1>Pumps</h1>{prose(6)}<p>Take these:</p><table><tr><td><ul>{links}</ul></table>{prose(6, 6)}"
    )
    found = markdown(f"{body}</div>{SIDE}", "Pumps")
    assert "Take these:\n\n- [part 0](https://site.example/0)\n- [part 1]" in found
    assert "Another tale" not in found


def test_a_section_is_not_judged_by_its_topic() -> None:
    """The id of a section of a text is its topic: one on tags or copyright is no furniture."""
    section = "<section id={0}><h2>On {0}<a href='#{0}'>¶</a></h2>{1}</section>"
    names = ("tags", "copyright", "navigation")
    sections = "".join(section.format(name, prose(3, 10 * at)) for at, name in enumerate(names))
    found = markdown(f"<main><h1>Pumps</h1>{sections}</main>", "Pumps")
    for name in names:
        assert f"## On {name}\n\nThe pump" in found


def test_small_forms_are_left_out() -> None:
    """A form to be filled in is no text; a page that stands in a form as a whole is."""
    form = "<form><label>Your name</label><input name=n><textarea></textarea></form>"
    found = markdown(
        f"<form action=x><h1>Pumps</h1><input type=text>{prose(3)}<div>{form}</div></form>{form}"
    )
    assert "number 2 says" in found
    assert markdown(f"<main><h1>Pumps</h1>{prose(1)}{form}</main>") == f"# Pumps\n\n{SENTENCE.format(0)}"


def test_the_heading_is_that_of_the_page_and_not_of_the_site() -> None:
    """Where the only h1 is the site's name and link, the heading is the one that the title names."""
    body = f"<h1><a href=/>Kettles</a></h1><h2>Which wood?</h2><div>{prose(12)}</div>"
    found = markdown(body, "Which wood? - Kettles")
    assert found.startswith("## Which wood?\n\nThe pump")
    assert "# [Kettles]" not in found


@pytest.mark.parametrize(
    "line",
    [
        "<ul><li>Previous message: <a href=1>A pump</a></ul>",
        "<p>Next: <a href=a>Tanks</a>, Up: <a href=b>Water</a> [<a href=c>Index</a>]</p>",
        "<div><a href=a>« Previous page</a> <a href=b>Next page »</a></div>",
        "<center><a href=/>Home</a> - <a href=/map>Map</a> - <a href=/guests>Guest book</a></center>",
        "<div>© 2026 Pumps and Tanks</div>",
        "<div><h4>You may also like</h4><div><a href=/x>A long tale of tanks</a><p>How deep?</p></div></div>",
    ],
    ids=lambda line: line[:24],
)
def test_lines_that_lead_elsewhere_are_left_out(line: str) -> None:
    """Ways to other pages and boxes of links below a text go, though nothing names them furniture."""
    found = markdown(f"<h1>Pumps</h1>{prose(2)}{line}", "Pumps")
    assert found == "# Pumps\n\n" + "\n\n".join(SENTENCE.format(n) for n in range(2))


@pytest.mark.parametrize(
    "line",
    [
        "<p>Next: <a href=a>drain the tank</a>, which takes an hour, and then the pipe to the house.</p>",
        "<p>Then call:</p><ul><li><a href=a>next()</a></ul>",
        "<ul><li>Chapter 1. <a href=a>Tanks</a><li>Chapter 2. <a href=b>Pipes</a></ul>",
        "<p>© is the sign of the right to copy; whoever wants to use it must say in which year that was.</p>",
    ],
    ids=lambda line: line[:24],
)
def test_lines_that_only_look_so_are_kept(line: str) -> None:
    """Sentences with links, names that are such a word and lists of chapters are content."""
    word = "right to copy" if "©" in line else "](https://site.example/docs/a)"
    assert word in markdown(f"<h1>Pumps</h1>{prose(2)}{line}{prose(2, 2)}", "Pumps")


def test_a_section_on_rights_keeps_its_text() -> None:
    """A line of rights with a heading of its own is a section, as at the end of manual pages."""
    found = markdown(f"<h1>Pumps</h1>{prose(2)}<h2>COPYRIGHT</h2><p>Copyright 2020 Al.</p>", "Pumps")
    assert found.endswith("## COPYRIGHT\n\nCopyright 2020 Al.")


def test_lines_of_links_above_the_heading_are_left_out() -> None:
    """What stands above the page's heading and is all links is navigation."""
    top = "<div><a href=/a>Manuals</a> | <a href=/b>Section 1</a> | <a href=/c>Search</a></div>"
    assert markdown(f"{top}<h1>Pumps</h1>{prose(1)}", "Pumps") == f"# Pumps\n\n{SENTENCE.format(0)}"


def test_a_page_of_lines_of_links_is_not_emptied() -> None:
    """Where such lines are all there is, they are the content."""
    lines = "".join(f"<p><a href=/{n}>Entry {n}</a> - <a href=/{n}x>More on {n}</a></p>" for n in range(30))
    found = markdown(lines)
    assert "Entry 15" in found
    assert found.count("](") >= 50


def test_a_link_in_a_sentence_is_no_furniture() -> None:
    """Whatever its class, a link with words beside it is a part of what they say."""
    assert "see [that](https://site.example/q)." in markdown(
        f"<h1>Pumps</h1><p>For more see <a class=share href=/q>that</a>.</p>{prose(2)}", "Pumps"
    )


def test_actions_that_every_post_offers_are_left_out() -> None:
    """A link to something to do that stands alone below every post says nothing."""
    post = "<div><p>Pump {0} is dry.</p><div><a href='/reply?id={0}'>reply</a></div></div>"
    found = markdown("<h1>Pumps</h1>" + "".join(post.format(n) for n in range(5)), "Pumps")
    assert found == "# Pumps\n\n" + "\n\n".join(f"Pump {n} is dry." for n in range(5))


def test_links_of_a_monstrous_page_have_texts_and_the_base() -> None:
    """A page that no tree can hold gives its links as any other: with texts, against <base href>."""
    item = "<li><a href=x>to <b>x</b></a><a href=/z rel=next><img alt=pic></a>"
    found = html.links("<base href='/b/'><ul>" + item * 60_000, URL).split("\n")
    assert [json.loads(line) for line in found] == [
        {"text": "to x", "href": "https://site.example/b/x", "rel": ""},
        {"text": "pic", "href": "https://site.example/z", "rel": "next"},
    ]


def test_a_monstrous_attribute_hides_nothing() -> None:
    """An attribute that is too long for the parser does not take the page with it."""
    assert (
        html.markdown(f"<p title='{'a' * (10 * 2**20)}'>hello</p><p>and more</p>", URL) == "hello\n\nand more"
    )


def test_a_page_of_nothing_but_furniture_is_read() -> None:
    """Where every part has the name of furniture, the page comes out whole and not empty."""
    assert "tell a friend" in markdown("<p>" + "<a class=share href=/x>tell a friend</a> " * 3 + "</p>")


def test_terms_that_were_never_closed_are_all_there() -> None:
    """The parser's depth cuts off nothing of a list of thousands of terms."""
    assert "term 2999" in html.markdown("<dl>" + "".join(f"<dt>term {n}" for n in range(3_000)), URL)
