"""The scores of a reading: each number goes down for what it is meant to see, and for nothing else."""

import json

import pages
import pytest
import rate
import readers
from lxml import html
from pages import Page, Truth
from scoring import Score, score, words

URL = "https://site.example/docs/page.html"

SOURCE = """
<html><head><title>not on the page</title></head><body>
<nav><a href="/home">Go to the front page of this site</a></nav>
<main data-truth="main">
<h1>How to keep bees</h1>
<p>Bees are kept in <b>boxes</b> of wood, and they do not mind.
See <a href="hives.html">the page on hives</a>.</p>
<p data-truth="either">Written on a Tuesday by somebody with gloves</p>
<ul><li>a veil that fits</li><li>a smoker</li></ul>
<table><tr><th>Month</th><th>Work</th></tr><tr><td>May</td><td>swarms</td></tr></table>
<pre>for hive in hives:
    look(hive)
</pre>
</main>
<footer>All rights reserved by the keepers of bees</footer>
</body></html>
"""

RIGHT = """# How to keep bees

Bees are kept in **boxes** of wood, and they do not mind. See [the page on hives](https://site.example/docs/hives.html).

- a veil that fits
- a smoker

| Month | Work |
| --- | --- |
| May | swarms |

```
for hive in hives:
    look(hive)
```
"""


@pytest.fixture
def truth() -> Truth:
    """Give the truth about the page above."""
    return pages.truth_of(html.document_fromstring(SOURCE), URL)


def changed(truth: Truth, old: str, new: str) -> Score:
    """Score the right reading with one thing changed."""
    assert old in RIGHT
    return score(RIGHT.replace(old, new), truth)


def test_bench_quality_the_marks_give_the_truth(truth: Truth) -> None:
    """Blocks under a mark belong to it, in order and with their kinds; what has no mark is boilerplate."""
    assert [(block.kind, block.text) for block in truth.main][:4] == [
        ("heading", "How to keep bees"),
        ("paragraph", "Bees are kept in boxes of wood, and they do not mind. See the page on hives."),
        ("item", "a veil that fits"),
        ("item", "a smoker"),
    ]
    assert [block.kind for block in truth.main][4:] == ["cell"] * 4 + ["code"]
    assert [block.text[:7] for block in truth.either] == ["Written"]
    assert [block.text[:6] for block in truth.boilerplate] == ["Go to ", "All ri"]
    assert [[row.own for row in table] for table in truth.tables] == [[("Month", "Work"), ("May", "swarms")]]
    assert truth.links == [("the page on hives", "https://site.example/docs/hives.html")]


def test_bench_quality_a_right_reading_gets_everything(truth: Truth) -> None:
    """A reading with all of the main content and nothing else is right in every number."""
    assert score(RIGHT, truth) == Score(1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0)


def test_bench_quality_an_empty_reading_gets_nothing(truth: Truth) -> None:
    """A reading without a word is worth nothing, and leaks nothing."""
    assert score("", truth) == Score(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_bench_quality_what_may_be_kept_costs_nothing(truth: Truth) -> None:
    """A byline in the reading lowers no number."""
    kept = RIGHT + "\n\nWritten on a Tuesday by somebody with gloves\n"
    assert score(kept, truth) == score(RIGHT, truth)


def test_bench_quality_boilerplate_costs_precision(truth: Truth) -> None:
    """Boilerplate lowers precision and raises the leak, by its words; recall stays."""
    found = score(f"{RIGHT}\n\nAll rights reserved by the keepers of bees\n", truth)
    count = sum(len(words(block.text)) for block in truth.main)
    assert found.recall == 1.0
    assert found.precision == pytest.approx(count / (count + 8))
    assert found.leak == pytest.approx(8 / 16)


def test_bench_quality_words_out_of_place_do_not_count(truth: Truth) -> None:
    """The words of a block in another order are no content: neither recalled nor precise."""
    mixed = changed(truth, "a veil that fits", "fits that a veil")
    assert mixed.recall < 1.0
    assert mixed.precision < 1.0


def test_bench_quality_a_repeated_block_counts_once(truth: Truth) -> None:
    """Content that the reading gives twice is precise once."""
    assert changed(truth, "- a smoker", "- a smoker\n- a smoker\n- a smoker").precision < 1.0


@pytest.mark.parametrize(
    ("check", "old", "new"),
    [
        ("headings", "# How to keep bees", "How to keep bees"),
        ("tables", "| May | swarms |", "| May swarms |"),
        ("code", "    look(hive)", "look(hive)"),
        ("code", "```\n", ""),
        ("items", "- a smoker", "a smoker"),
        ("links", "https://site.example/docs/hives.html", "hives.html"),
    ],
)
def test_bench_quality_each_check_sees_its_fault(truth: Truth, check: str, old: str, new: str) -> None:
    """A fault of structure lowers its own check and none of the words' numbers."""
    found = changed(truth, old, new)
    assert getattr(found, check) < 1.0
    assert (found.recall, found.precision) == (1.0, 1.0)


@pytest.mark.parametrize(
    "reading",
    [
        RIGHT.replace("**boxes**", "__boxes__").replace("- a", "* a"),
        RIGHT.replace("```\n", "~~~\n"),
        RIGHT.replace("| --- | --- |", "|:-----|----:|").replace("| May | swarms |", "|May|swarms|"),
        RIGHT.replace("[the page on hives](", "![bee](bee.png)[the page on hives](").replace(
            "# How", "## How"
        ),
        RIGHT.replace("```\nfor", "> ```\n> for").replace("    look(hive)\n```", ">     look(hive)\n> ```"),
    ],
)
def test_bench_quality_taste_costs_nothing(truth: Truth, reading: str) -> None:
    """Which marks a reading uses, and the pictures it keeps, change no number."""
    assert score(reading, truth) == score(RIGHT, truth)


def told(inside: str) -> Truth:
    """Return the truth about a page whose whole body is content."""
    return pages.truth_of(html.document_fromstring(f"<body data-truth='main'>{inside}</body>"), URL)


def test_bench_quality_what_is_said_twice_must_be_read_twice() -> None:
    """Content that is on the page twice, and read once, is recalled by half."""
    truth = told("<p>five words in a row</p><p>five words in a row</p>")
    assert score("five words in a row", truth).recall == 0.5
    assert score("five words in a row\n\nfive words in a row", truth).recall == 1.0


def test_bench_quality_content_that_boilerplate_repeats_is_no_leak() -> None:
    """A table of contents outside the content does not leak because its headings were read."""
    truth = told("<nav data-truth='not'>how to begin</nav><h2>How to begin</h2><p>With a cup of tea.</p>")
    assert score("## How to begin\n\nWith a cup of tea.", truth).leak == 0.0
    assert score("how to begin\n\n## How to begin\n\nWith a cup of tea.", truth).leak == 1.0


def test_bench_quality_numbers_of_items_are_marks_and_those_of_headings_words() -> None:
    """An ordered item's number is not a word of it; the number in a heading is one."""
    truth = told("<h2>2. How it works</h2><ol><li>turn the key</li><li>wait for the light</li></ol>")
    found = score("## 2. How it works\n\n1. turn the key\n2. wait for the light\n", truth)
    assert (found.recall, found.precision, found.headings, found.items) == (1.0, 1.0, 1.0, 1.0)


def test_bench_quality_tables_of_the_layout_are_none_of_the_content() -> None:
    """A table that holds the page together, or stands in boilerplate, is not asked for as a table."""
    rows = "<tr><td>left</td><td>right</td></tr>"
    truth = told(f"<table data-truth-layout>{rows}</table><div data-truth='not'><table>{rows}</table></div>")
    assert truth.tables == []
    assert [block.kind for block in truth.main] == ["paragraph", "paragraph"]
    assert [block.kind for block in truth.boilerplate] == ["cell", "cell"]


def test_bench_quality_links_inside_the_page_are_not_asked_for() -> None:
    """A link to a place on the same page may go: its address means nothing elsewhere."""
    assert told("<p><a href='#below'>see below</a> <a href='mailto:x@y.example'>write</a></p>").links == []


def test_bench_quality_blocks_keep_their_order_and_their_first_line() -> None:
    """Text before code stays before it, and only the beginning of an item is asked for as an item."""
    truth = told("<div>Run this: <pre>x = 1</pre> and look.</div><ul><li><p>first</p><p>second</p></li></ul>")
    assert [(block.kind, block.text) for block in truth.main] == [
        ("paragraph", "Run this:"),
        ("code", "x = 1"),
        ("paragraph", "and look."),
        ("item", "first"),
        ("paragraph", "second"),
    ]


def test_bench_quality_a_cell_over_two_rows_may_be_said_once_or_twice() -> None:
    """A cell that spans rows is right in its own row alone and in each of them."""
    truth = told("<table><tr><td>a</td><td rowspan=2>b</td></tr><tr><td>c</td></tr></table>")
    for last in ("| c | b |", "| c |  |"):
        assert score(f"| a | b |\n| --- | --- |\n{last}\n", truth).tables == 1.0


def test_bench_quality_japanese_is_compared_by_characters() -> None:
    """Han and kana are words of one character each, so that a cut sentence is seen."""
    assert words("灯台を宿に3 Räume") == ["灯", "台", "を", "宿", "に", "3", "räume"]


def test_bench_quality_pages_carry_no_marks_to_the_readers() -> None:
    """No reader sees the truth in a page, and every page has some."""
    found = [*pages.made(), *pages.made(pages.UNSEEN)]
    assert len(found) >= 20
    assert len({page.name for page in found}) == len(found)
    for page in found:
        assert "data-truth" not in page.source
        assert page.truth.main
        assert not [block for block in page.truth.main if "data-truth" in block.text]
    assert sum(len(page.source.encode()) for page in found) < 400 * 2**10


def test_bench_quality_real_pages_are_skipped_with_a_reason(monkeypatch, tmp_path) -> None:
    """A page whose package is missing is left out, and said to be; one that changed is an error."""
    file = tmp_path / "page.html"
    entry = {
        "name": "bees", "kind": "article", "package": "bees-doc", "file": str(file), "url": URL,
        "main": ["//main"], "read": ["Bees are kept"], "ignored": ["All rights reserved"],
    }  # fmt: skip
    monkeypatch.setattr(pages, "REAL", tmp_path / "real.json")
    pages.REAL.write_text(json.dumps([entry]))
    assert pages.real() == ([], ["bees: bees-doc is not installed"])
    file.write_text(SOURCE.replace(' data-truth="main"', ""))
    assert [page.name for page in pages.real()[0]] == ["bees"]
    file.write_text(SOURCE.replace("Bees are kept", "Wasps are kept"))
    with pytest.raises(ValueError, match="not in its read part"):
        pages.real()


def test_bench_quality_a_reader_that_fails_has_read_nothing(capsys) -> None:
    """A reader's error counts as an empty reading, and the others go on."""

    def broken(source: str, url: str) -> str:
        raise ValueError(source)

    page = Page("bees", "article", URL, SOURCE, pages.truth_of(html.document_fromstring(SOURCE), URL))
    rated = rate.rate([page], {readers.PEERS[0]: broken, readers.OURS: lambda *_: RIGHT})
    assert rated[readers.PEERS[0]][page].recall == 0.0
    assert rated[readers.OURS][page].f1 == 1.0
    assert "ValueError" in capsys.readouterr().err
    assert "| article | 1 | 0.000 | 1.000 |" in rate.by_kind(rated, "f1")
