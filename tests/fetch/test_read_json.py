"""How does a JSON document read?"""

import json

import pytest
from read_documents import failure, reading, text_of

HARMLESS = [
    '{"a": 1}\r\n\n\n',
    '{"a": NaN, "b": 1e999, "c": Infinity}',
    '{"id": %s}' % ("9" * 5_000),
    "[" * 20_000,
    '"\\ud83d"',
    "{broken",
    '{"a":1}\n{"a":2}\n',
]


@pytest.mark.parametrize("body", HARMLESS, ids=range(len(HARMLESS)))
@pytest.mark.parametrize("media", ["application/json", "application/geo+json", "application/x-ndjson"])
def test_json_is_unchanged(body, media):
    """A JSON document is given as it is, whatever its numbers, depth, line ends or faults."""
    assert text_of(body, media) == body
    assert text_of(body, media, mode="text") == body


def test_jq_chooses_from_json():
    """A program gives one line for each output, whatever header the JSON came under."""
    assert (
        text_of('{"b": ["ä", 12345678901234567890]}', "application/json", jq=".b[]")
        == '"ä"\n12345678901234567890'
    )
    assert text_of('{"a": 1}', "text/plain", jq=".a") == "1"
    got = reading("[]", "application/json", jq=".[]")
    # The document is not empty: nothing of it was chosen.
    assert (got.content, got.facts["code"]) == ("", "no_match")
    # And it was no question of words.
    assert "the jq program gave no output for the document of 2 characters" in got.facts["hint"]


@pytest.mark.parametrize(
    ("body", "header"),
    [("<p>x", "text/html"), ("{broken", "application/json"), ("%PDF-1.4", "application/pdf")],
)
def test_jq_on_what_is_no_json(body, header):
    """A jq program on a page, on broken JSON or on a PDF is a bad option."""
    assert failure(body, header, jq=".").code == "bad_option"


def test_a_long_jq_output_is_cut_at_a_line():
    """The output of jq is cut at a line's end."""
    got = reading("[1000,2000,3000]", "application/json", jq=".[]", limit=10)
    assert got.content == "1000\n2000"
    assert got.facts["chars_total"] == 14


FEED = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "News",
    "language": "en",
    "items": [
        {
            "id": "1",
            "url": "/one",
            "title": "One",
            "date_published": "2026-01-02",
            "content_html": "<p>a <b>b</b>",
        },
        {"id": "2", "content_text": "plain\n# no heading", "title": 7},
        "nonsense",
    ],
}
FEED_TEXT = """# News

## [One](http://site.test/one)

2026-01-02

a **b**

## (without a title)

plain
\\# no heading"""


@pytest.mark.parametrize(
    ("media", "version", "is_feed"),
    [
        ("application/json", FEED["version"], True),
        ("application/feed+json", "", True),
        ("application/json", "", False),
        ("application/json", "1", False),
    ],
)
def test_a_json_feed_says_that_it_is_one(media, version, is_feed):
    """JSON is a feed only by its own media type or the version that it names."""
    body = json.dumps(FEED | {"version": version})
    got = reading(body, media)
    assert got.content == (FEED_TEXT if is_feed else body)
    assert got.facts.get("title") == ("News" if is_feed else None)


def test_json_about_json_feed_is_no_feed():
    """The address of the format in another place makes no feed."""
    body = '{"version": "2", "about": "https://jsonfeed.org/version/1", "items": []}'
    assert text_of(body, "application/json") == body


@pytest.mark.parametrize("items", ["[" * 100_000, "9" * 5_000, "{}", '[{"title": "\\ud800"}]'])
def test_a_hostile_json_feed_is_harmless(items):
    """Depth, digits and odd shapes of a JSON Feed make it plain JSON, and no surrogate comes out."""
    content = text_of(f'{{"title": "x", "items": {items}}}', "application/feed+json")
    content.encode()
    assert content


def test_grep_in_one_long_line_gives_the_piece_with_the_match():
    """A document of one line longer than a result is not cut before its match, and the note says so."""
    source = '{"items": [' + ", ".join(f'"item {n}"' for n in range(9_000)) + "]}"
    got = reading(source, "application/json", limit=10_000, grep='"item 8123"')
    assert '"item 8123"' in got.content
    assert got.content.startswith("1:")
    assert len(got.content) <= 2_002
    assert (got.facts["matches"], got.facts["code"]) == (1, "truncated")
    assert got.facts["chars_total"] == len(source) + len("1:")
    assert "jq" in got.facts["hint"]
    many = reading(source, "application/json", limit=10_000, grep="item")
    assert (len(many.content) <= 10_000, many.facts["chars_total"]) == (True, len(source) + len("1:"))
