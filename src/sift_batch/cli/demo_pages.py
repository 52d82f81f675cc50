"""What does the demo's site have to say? A dozen pages of different kinds, as they go over the wire.

Only data, and what is asked of each page. Next: `demo_site`, which serves them.
"""

import gzip
import json
from dataclasses import dataclass
from typing import Final

from .._model.values import NO_OPTIONS, Options
from .demo_pdf import pdf

HTML: Final = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One answer. `host` is an index, `seconds` how long the site thinks, `busy` how often it refuses first.

    A `slowly` served body comes in pieces over that time instead of after it. `options` say what the
    demo wants of the page.
    """

    path: str
    host: int
    seconds: float
    body: bytes = b""
    kind: str = HTML
    status: int = 200
    location: str = ""
    busy: int = 0
    packed: bool = False
    slowly: bool = False
    options: Options = NO_OPTIONS


def _page(title: str, *blocks: str) -> str:
    head = f"<!doctype html><html><head><title>{title}</title><style>body{{margin:2em}}</style></head>"
    return f"{head}<body><h1>{title}</h1>{''.join(blocks)}</body></html>\n"


_ARTICLE: Final = _page(
    "A rain garden in one weekend",
    "<p>A rain garden is a shallow bed that takes the water of a roof and lets it sink in.</p>",
    "<h2>Where to dig</h2><p>Three metres from the house, where water already stands after a storm.</p>",
    "<h2>What to plant</h2><ul><li>Sedges at the wet middle</li><li>Asters on the slope</li>"
    "<li>Thyme on the dry rim</li></ul>",
    "<script>document.title = 'scripts are left out'</script>",
)
_TABLE: Final = _page(
    "High water at the old pier",
    "<table><tr><th>Day</th><th>Morning</th><th>Evening</th><th>Height</th></tr>",
    "".join(
        f"<tr><td>{day}</td><td>0{day}:1{day}</td><td>1{day}:3{day}</td><td>{3 + day / 10:.1f} m</td></tr>"
        for day in range(1, 8)
    ),
    "</table>",
)
_STATIONS: Final = json.dumps(
    {"stations": [{"name": f"Ridge {n}", "height_m": 300 + 40 * n, "online": n != 3} for n in range(1, 6)]},
    indent=1,
)
_NOTES: Final = "Packing list\n\n- tarp, twelve pegs\n- stove (check the seal)\n- maps 14 and 15\n"
_MENU: Final = _page(
    "Tageskarte", "<p>Grünkohl mit Klößen: 9,80 €</p><p>Rote Grütze „wie früher“: 4,20 €</p>"
)
_TRAIN: Final = _page("始発列車", "<p>五時十二分、三番線から出ます。</p>").replace(
    "<head>", '<head><meta charset="shift_jis">'
)
_LOG: Final = _page(
    "Logbook of a very long walk",
    *(f"<p>Day {n}: {n * 17 % 31} km, wind from the west.</p>" for n in range(1, 900)),
)
_FORECAST: Final = _page("Forecast", "<p>Fog until ten, then sun.</p>", "<p>Fresh wind at night.</p>" * 12)
_REPORT: Final = _page(
    "Quarterly report", "<p>This page is in demand: its host asked for patience first.</p>"
)
_APPENDIX: Final = _page("Appendix", "<p>Served by the busy host as well, after the same wait.</p>")
_FEED: Final = """<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom"><title>Harbour news</title>
<entry><title>Crane repaired</title><link href="/crane"/><updated>2026-03-02T08:00:00Z</updated>
<summary>It lifts again.</summary></entry></feed>
"""
_HANDBOOK: Final = pdf(
    "Lock keeper's handbook",
    ("Lock keeper's handbook", "What to know before the first boat comes."),
    ("Filling the chamber", "Open the upper sluices by a third, then wait until the water is calm."),
    ("Emptying the chamber", "Close the upper sluices first. A full chamber empties in nine minutes."),
)
_PIXEL: Final = b"\x89PNG\r\n\x1a\n" + bytes(64)

PAGES: Final = (
    Page(path="/articles/rain-garden", host=0, seconds=1.1, body=_ARTICLE.encode()),
    Page(path="/tables/tides", host=0, seconds=0.9, body=_TABLE.encode()),
    Page(
        path="/data/stations.json",
        host=0,
        seconds=0.7,
        body=_STATIONS.encode(),
        kind="application/json",
        options=Options(jq=".stations[] | select(.online | not)"),
    ),
    Page(path="/articles/old-address", host=0, seconds=0.4, status=301, location="/articles/rain-garden"),
    Page(path="/notes/packing.txt", host=1, seconds=0.8, body=_NOTES.encode(), kind="text/plain"),
    Page(
        path="/menu", host=1, seconds=1.0, body=_MENU.encode("cp1252"), kind="text/html; charset=iso-8859-1"
    ),
    Page(path="/trains", host=1, seconds=1.2, body=_TRAIN.encode("shift_jis"), kind="text/html"),
    Page(path="/nothing-here", host=1, seconds=0.5, status=404),
    Page(path="/busy/report", host=2, seconds=0.6, body=_REPORT.encode(), busy=1),
    Page(path="/busy/appendix", host=2, seconds=0.6, body=_APPENDIX.encode()),
    Page(
        path="/log",
        host=2,
        seconds=0.9,
        body=_LOG.encode(),
        packed=True,
        options=Options(grep=r"^Day 8\d\d: 30 km"),
    ),
    Page(
        path="/handbook.pdf",
        host=2,
        seconds=0.8,
        body=_HANDBOOK,
        kind="application/pdf",
        options=Options(question="How long does a full chamber take to empty?"),
    ),
    Page(path="/news.xml", host=2, seconds=0.7, body=_FEED.encode(), kind="application/atom+xml"),
    Page(path="/slow/forecast", host=3, seconds=4.0, body=_FORECAST.encode(), slowly=True),
    Page(path="/to-another-host", host=3, seconds=0.4, status=302, location="//{host0}/tables/tides"),
    Page(path="/photo.png", host=3, seconds=0.5, body=_PIXEL, kind="image/png"),
    Page(path="/broken", host=3, seconds=0.6, status=500),
)


def wire_body(page: Page) -> bytes:
    """Return the body as it is sent."""
    # A fixed time in the packed header, so that every run sends the same bytes.
    return gzip.compress(page.body, mtime=0) if page.packed else page.body
