"""The description for people: one page, made from the document, that loads and runs nothing else."""

import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest

from sift_batch.service._codes import KINDS
from sift_batch.service._openapi import docs_html, document
from sift_batch.service._openapi_page import page_of

PAGE = docs_html().decode()


class Reader(HTMLParser):
    """Gathers what a page names, and whether its elements are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Note that it ended."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.text += data

    def values(self, name: str) -> list[str]:
        """Return all values of an attribute."""
        return [value for _, attrs in self.tags for key, value in attrs.items() if key == name and value]


READER = Reader(PAGE)


def test_it_is_well_formed_and_its_links_lead_somewhere() -> None:
    """Every element is closed, every id is there once, and every link within the page has its place."""
    assert not READER.open
    ids = READER.values("id")
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in READER.values("href") if link.startswith("#")} <= set(ids)


def test_it_needs_no_script_and_nothing_from_elsewhere() -> None:
    """It has no script, no style of its own and no address but this service's."""
    tags = {tag for tag, _ in READER.tags}
    assert not tags & {"script", "style", "img", "iframe", "object", "form"}
    assert not READER.values("style")
    named = [*READER.values("href"), *READER.values("src")]
    assert {link for link in named if not link.startswith("#")} == {
        "data:,", "/docs?docs.css", "/", "/openapi.json", "/llms.txt",
    }  # fmt: skip
    style = files("sift_batch.service").joinpath("web", "docs.css").read_text()
    assert not re.search(r"url\(|@import", style)


def test_each_operation_is_on_it_with_a_command_that_does_it() -> None:
    """Each path, method, parameter, code and status of its own stands there, and an example with curl."""
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            card = PAGE.partition(f'id="{operation["operationId"]}"')[2].partition("</section>")[0]
            assert f"{method.upper()}</span> {path}</code>" in card
            assert "curl" in card
            assert all(f"<code>{item['name']}</code>" in card for item in operation.get("parameters", []))
            assert all(
                f"<code>{status}</code>" in card for status in operation["responses"] if status < "400"
            )
            for example in operation.get("requestBody", {}).get("content", {}).values():
                value = list(example["examples"].values())[-1]["value"]
                assert json.dumps(value, indent=2) in Reader(f"<section>{card}").text


@pytest.mark.parametrize("code", KINDS)
def test_each_code_has_a_row_with_all_three_renderings(code: str) -> None:
    """The table says of each code its status, title, and what to do by HTTP, command line and MCP."""
    cells = re.search(rf'<tr id="code-{code}">(.*?)</tr>', PAGE, re.DOTALL)
    assert cells is not None
    row = Reader(cells[1]).text
    kind = KINDS[code]
    for text in (code, str(kind.status), kind.title, kind.http, kind.cli, kind.mcp):
        assert text.replace("`", "") in row


def test_what_the_document_says_is_escaped() -> None:
    """A text with markup in it comes out as text."""
    changed: dict[str, Any] = json.loads(json.dumps(document()))
    changed["info"]["description"] = "a <b>bold</b> & `<i>`"
    changed["paths"]["/v1/batch"]["get"]["summary"] = "<script>x</script>"
    page = page_of(changed)
    assert "a &lt;b&gt;bold&lt;/b&gt; &amp; <code>&lt;i&gt;</code>" in page
    assert "<script>" not in page


def test_a_heading_tells_each_part() -> None:
    """There is one first heading, and no level is left out."""
    levels = [int(tag[1]) for tag, _ in READER.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    after = levels[levels.index(1) :]
    assert all(second - first <= 1 for first, second in pairwise(after))
