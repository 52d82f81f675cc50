"""`sift-batch run` on a mixed list: each kind of page, as the options of its line ask for it.

The pages are those of docs/pages, which docs/fetching.md shows with all modes; here they come through a
real process from a real server, all in one list.
"""

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

PAGES = Path(__file__).parents[2] / "docs" / "pages"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".jsonl": "application/x-ndjson",
    ".rss": "application/rss+xml",
    ".csv": "text/csv",
    ".sh": "text/x-sh",
}

# Page, options, what the content begins with, facts that the meta holds.
LIST = [
    ("gauge.html", {}, "# ", {"content_type": "text/html", "charset": "utf-8"}),
    ("gauge.html", {"mode": "text"}, "", {"content_type": "text/html"}),
    ("gauge.html", {"mode": "html"}, "<!doctype html>", {}),
    ("gauge.html", {"mode": "links"}, '{"text": ', {}),
    ("gauge.html", {"mode": "meta"}, '{"title": ', {}),
    ("gauge.html", {"question": "supply voltage"}, "[1] lines ", {}),
    ("gauge.html", {"grep": "no such words"}, "", {"code": "no_match", "matches": 0}),
    ("guide.pdf", {}, "[page 1 of 4]\n\n", {"pages": {"total": 4, "given": 4}}),
    ("guide.pdf", {"pages": "-1"}, "[page 4 of 4]\n\n", {"pages": {"total": 4, "given": 1}}),
    ("guide.pdf", {"question": "battery", "context": False}, "[1] lines ", {}),
    ("stations.json", {}, "{", {"content_type": "application/json"}),
    ("stations.json", {"jq": ".stations | length"}, "", {}),
    ("readings.jsonl", {"jq": "keys"}, '["', {}),
    ("notices.rss", {}, "# ", {"content_type": "application/rss+xml"}),
    ("tides.csv", {}, "| ", {}),
    ("tides.csv", {"mode": "raw"}, (PAGES / "tides.csv").read_text(), {}),
    ("checklist.txt", {}, (PAGES / "checklist.txt").read_text(), {"content_type": "text/plain"}),
    ("last.sh", {"grep": "^grep"}, "", {"matches": 1}),
    ("gauge.png", {"mode": "raw"}, "iVBORw0KGgo", {"encoding": "base64"}),
    ("gauge.png", {"mode": "meta"}, "{", {"content_type": "image/png"}),
]
FAILING = [
    ("gauge.png", {}, "unsupported_type"),
    ("tides.csv", {"mode": "links"}, "unsupported_type"),
    ("guide.pdf", {"pages": "9"}, "bad_option"),
    ("stations.json", {"jq": ".stations.name"}, "bad_option"),
    ("nothing.html", {}, "page_not_found"),
]


class _Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | TYPES

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def pages() -> Iterator[str]:
    """Serve docs/pages; give the address."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Handler, directory=str(PAGES))
    )
    thread = threading.Thread(target=functools.partial(server.serve_forever, poll_interval=0.02))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_each_kind_of_page_comes_as_its_line_asks(run, pages):
    """Every line of a mixed list gives the text and the facts that its mode and options stand for."""
    asked = [(name, options) for name, options, *_ in LIST] + [
        (name, options) for name, options, _ in FAILING
    ]
    lines = [json.dumps({"url": f"{pages}/{name}", "options": options}) for name, options in asked]
    done = run("run", "-f", "-", stdin="\n".join(lines).encode())
    assert done.code == 1, done.err
    assert len(done.views) == len(asked)
    for (name, options, beginning, facts), view in zip(LIST, done.views, strict=False):
        assert view["status"] == "done", (name, options, view["error"])
        content, meta = view["result"]["content"], view["result"]["meta"]
        assert content.lower().startswith(beginning.lower()), (name, options, content[:80])
        assert (content == "") == (meta.get("code") == "no_match"), (name, options)
        assert facts.items() <= meta.items(), (name, options, meta)
        assert meta["chars"] == view["chars"] == len(content)
        assert (meta["url"], meta["http_status"]) == (f"{pages}/{name}", 200)
    for (name, options, code), view in zip(FAILING, done.views[len(LIST) :], strict=True):
        assert (view["status"], view["code"]) == ("failed", code), (name, options)
        assert view["error"]
        assert view["hint"], (name, options)


def test_a_mode_drops_what_is_not_asked_for(run, pages):
    """The main content is without the page's navigation, which the whole page has."""
    main, full = run(
        "run",
        "-f",
        "-",
        stdin="\n".join(
            json.dumps({"url": f"{pages}/gauge.html", "options": {"mode": mode}}) for mode in ("", "full")
        ).encode(),
    ).views
    assert len(main["result"]["content"]) < len(full["result"]["content"])
